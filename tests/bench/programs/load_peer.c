/* See load_peer.h. */
#include "tests/bench/programs/load_peer.h"

#include "proto/hankel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

noreturn void die(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

void *need(void *memory)
{
  if (!memory)
    die("no memory");
  return memory;
}

static int64_t clock_ns(clockid_t which)
{
  struct timespec t;
  clock_gettime(which, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t now_wall(void)
{
  return clock_ns(CLOCK_REALTIME);
}

int64_t now_monotonic(void)
{
  return clock_ns(CLOCK_MONOTONIC);
}

int dial(uint16_t port, int type)
{
  const struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = 1;
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
    die("cannot connect to port %u: %s", port, strerror(errno));
  if (type == SOCK_STREAM && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
    die("TCP_NODELAY: %s", strerror(errno));
  return fd;
}

void send_all(int fd, const void *data, size_t size)
{
  const uint8_t *at = data;
  while (size > 0) {
    const ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      struct pollfd waits = { fd, POLLOUT, 0 };
      (void)poll(&waits, 1, -1);
    } else if (n < 0) {
      die("cannot send: %s", strerror(errno));
    } else {
      at += n;
      size -= (size_t)n;
    }
  }
}

void raise_descriptors(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    die("getrlimit: %s", strerror(errno));
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    die("setrlimit: %s", strerror(errno));
}

noreturn void peer_error(const struct hk_frame *f)
{
  struct hk_error_message m;
  if (hk_error_read(f, &m) != 0)
    die("the daemon sent an error that cannot be read");
  die("the daemon says: %.*s (%s)", (int)m.message.length, m.message.data, hk_frame_name(m.type));
}

void peer_receive(struct peer *p, struct hk_frame *f)
{
  int status;
  while ((status = hk_inbox_next(&p->in, f)) == HK_FRAME_PART) {
    size_t room;
    uint8_t *space = need(hk_inbox_space(&p->in, &room));
    const ssize_t n = recv(p->fd, space, room, 0);
    if (n < 0 && errno == EAGAIN) {
      struct pollfd waits = { p->fd, POLLIN, 0 };
      (void)poll(&waits, 1, -1);
      continue;
    }
    if (n <= 0)
      die("the daemon closed the connection%s%s", n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
    hk_inbox_wrote(&p->in, (size_t)n);
  }
  if (status != HK_FRAME_WHOLE)
    die("what the daemon sent is no frame (%d)", status);
  if (f->type == HK_ERROR)
    peer_error(f);
}

void peer_await(struct peer *p, uint8_t type, struct hk_frame *f)
{
  do
    peer_receive(p, f);
  while (f->type != type);
}

void peer_open(struct peer *p, uint16_t port)
{
  uint8_t bytes[256];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_frame f;
  struct hk_welcome welcome;
  *p = (struct peer){ .fd = dial(port, SOCK_STREAM), .in = { .max_length = HK_FRAME_MAX } };
  if (hk_hello_write(&w, 1, &(struct hk_hello){ hk_string("load"), hk_string(""), 0 }) != 0)
    die("HELLO does not fit");
  send_all(p->fd, w.data, w.size);
  peer_await(p, HK_WELCOME, &f);
  if (hk_welcome_read(&f, &welcome) != 0)
    die("WELCOME cannot be read");
  p->feed = welcome.feed;
}

void name_of(const char *prefix, uint32_t sensor, char *name)
{
  sprintf(name, "%s%0*u", prefix, (int)NAME_DIGITS, sensor);
}

void peer_register(struct peer *p, const char *prefix, uint32_t first, uint32_t n, uint32_t *handles)
{
  enum { AT_ONCE = 8192 }; /* the most that one REGISTER takes */
  uint8_t *bytes = need(malloc(AT_ONCE * 32 + 64));
  struct hk_string *names = need(malloc(AT_ONCE * sizeof *names));
  char(*text)[32] = need(malloc(AT_ONCE * sizeof *text));
  for (uint32_t at = 0; at < n; at += AT_ONCE) {
    const uint32_t count = n - at < AT_ONCE ? n - at : AT_ONCE;
    struct hk_writer w = HK_WRITER(bytes, AT_ONCE * 32 + 64);
    struct hk_frame f;
    struct hk_list list;
    for (uint32_t i = 0; i < count; i++) {
      name_of(prefix, first + at + i, text[i]);
      names[i] = hk_string(text[i]);
    }
    if (hk_register_write(&w, 1, count, names) != 0)
      die("REGISTER does not fit");
    send_all(p->fd, w.data, w.size);
    peer_await(p, HK_REGISTERED, &f);
    if (hk_registered_read(&f, &list) != 0 || list.n != count)
      die("REGISTERED cannot be read");
    for (uint32_t i = 0; i < count; i++) {
      uint32_t reason;
      hk_registered_next(&list, &handles[at + i], &reason);
      if (reason != 0)
        die("sensor %s was refused: %s", text[i], hankel_refusal_name((int)reason));
    }
  }
  free(bytes);
  free(names);
  free(text);
}

static void set(const struct setting *s, const char *text)
{
  char *end = NULL;
  errno = 0;
  if (s->kind == SETTING_NUMBER)
    *(int64_t *)s->value = strtoll(text, &end, 10);
  else if (s->kind == SETTING_REAL)
    *(double *)s->value = strtod(text, &end);
  else
    *(const char **)s->value = text;
  if (s->kind != SETTING_TEXT && (errno != 0 || end == text || *end != 0))
    die("%s %s: not a number", s->name, text);
}

void parse_settings(int argc, char **argv, const struct setting *settings)
{
  for (int i = 1; i < argc; i += 2) {
    const struct setting *s = settings;
    while (s->name && strcmp(s->name, argv[i]) != 0)
      s++;
    if (!s->name || i + 1 == argc)
      die("%s: %s", argv[i], s->name ? "a value is wanted" : "no such option");
    set(s, argv[i + 1]);
  }
}
