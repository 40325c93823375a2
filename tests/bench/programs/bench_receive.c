/* Measures what it costs to receive results with libhankel over a loopback socket, from a process that only sends frames:
 * processor time of the receiving thread for a result, compared with bare reads of the same bytes in the same run. */
#include "proto/hankel.h"
#include "proto/wire/message.h"
#include "proto/wire/scores.h"
#include "tests/bench/programs/bench.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESULTS = 32768, SENSORS = 100000, FRAMES = 2000, ROUNDS = 3 };

struct received {
  uint64_t n, sum;
};

static void send_whole(int fd, const void *data, size_t size)
{
  for (size_t at = 0; at < size;) {
    const ssize_t n = send(fd, (const char *)data + at, size - at, MSG_NOSIGNAL);
    require(n > 0, "send");
    at += (size_t)n;
  }
}

/* Sends the names of all sensors, then one frame of results again and again. */
static void serve(int listener, bool bare, bool one)
{
  static uint8_t data[4 << 20], name_text[SENSORS][16];
  static struct hk_string names[SENSORS];
  static uint32_t handles[SENSORS];
  static int64_t time[RESULTS];
  static float score[RESULTS];
  static uint8_t state[RESULTS];
  const int fd = accept(listener, NULL, NULL);
  struct hk_writer w = HK_WRITER(data, sizeof data);
  require(fd >= 0, "accept");
  for (uint32_t i = 0; i < SENSORS; i++) {
    handles[i] = i;
    names[i] = (struct hk_string){ (const char *)name_text[i],
                                   (size_t)snprintf((char *)name_text[i], sizeof name_text[i], "machine%u", i) };
  }
  if (!bare) { /* the answer to any frame of the client */
    const struct hk_welcome welcome = { 1, HK_FRAME_MAX, hk_string("bench"), hk_string("") };
    require(hk_welcome_write(&w, 0, &welcome) == 0 && hk_empty_write(&w, HK_DONE, 0) == 0, "frames");
    for (uint32_t i = 0; i < SENSORS; i += 10000)
      require(hk_names_write(&w, 10000, handles + i, names + i) == 0, "names");
    send_whole(fd, data, w.size);
  }
  for (uint32_t i = 0; i < RESULTS; i++) {
    time[i] = one ? 5 : (int64_t)(i * 2654435761u % 1000000000);
    score[i] = (float)i / RESULTS;
    state[i] = HANKEL_OK;
  }
  w.size = 0;
  require(hk_scores_write(&w, RESULTS, time, NULL, NULL, handles, score, state) == 0, "results");
  for (int i = 0; i < FRAMES; i++)
    send_whole(fd, data, w.size);
  /* To close a socket with unread bytes would drop bytes in flight. */
  shutdown(fd, SHUT_WR);
  while (recv(fd, data, sizeof data, 0) > 0)
    ;
  _exit(0);
}

static void on_scores(void *arg, const struct hankel_scores *s)
{
  struct received *r = arg;
  uint64_t late = 0;
  for (uint32_t i = 0; i < s->n; i++)
    late += s->state[i] == HANKEL_LATE;
  r->n += s->n;
  r->sum += late + s->handle[s->n / 2] + (uint64_t)s->time[s->n / 3] + (uint64_t)(s->score[s->n / 2] > 0);
}

/* The receiving thread's processor time in ns for a result; *wall: by the clock. */
static double receive(bool bare, bool handles, bool one, double *wall)
{
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  require(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0, "listen");
  require(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "listen");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0)
    serve(listener, bare, one);
  double start, begin;
  if (bare) {
    static char bytes[1 << 20];
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    require(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID), begin = 1e9 * seconds(CLOCK_MONOTONIC);
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
      ;
    close(fd);
  } else {
    struct received r = { 0 };
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(at.sin_port));
    struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
    options.address = address;
    options.once = 1;
    options.handles = handles;
    options.callbacks.scores = on_scores;
    options.arg = &r;
    hankel *h = hankel_open(&options);
    require(h && hankel_subscribe(h, "", 0, HANKEL_SCORES) == 0, "subscribe");
    while (r.n == 0 && hankel_step(h, 1000) == 0)
      ; /* names first */
    const uint64_t before = r.n;
    start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID), begin = 1e9 * seconds(CLOCK_MONOTONIC);
    while (hankel_step(h, 1000) == 0)
      ;
    require(r.n == (uint64_t)FRAMES * RESULTS && before < r.n / 10, "results are missing");
    hankel_close(h);
  }
  const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  *wall = (1e9 * seconds(CLOCK_MONOTONIC) - begin) / FRAMES / RESULTS;
  waitpid(child, NULL, 0);
  close(listener);
  return took / FRAMES / RESULTS;
}

int main(void)
{
  signal(SIGPIPE, SIG_IGN);
  for (int one = 1; one >= 0; one--) {
    const char *what = one ? "one time" : "times within a second";
    static const char *const ways[] = { "bare reads", "libhankel, by handle", "libhankel, by name" };
    for (int way = 0; way < 3; way++) {
      double best = 1e18, wall = 0, whole;
      for (int round = 0; round < ROUNDS; round++) {
        const double took = receive(way == 0, way == 1, one, &whole);
        if (took < best) {
          best = took;
          wall = whole;
        }
      }
      printf("%-24s %-24s %6.2f ns, %6.2f wall a result\n", what, ways[way], best, wall);
    }
  }
  return 0;
}
