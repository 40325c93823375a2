/* Bytes that a socket does not accept at once wait in the queue of libuv. Messages and requests are reused, so that publishing
 * allocates no memory once there are enough of them. */
#include "daemon/publish/send_queue.h"

#include "daemon/base/log.h"
#include "daemon/publish/subscriber.h"

#include <errno.h>
#include <stdlib.h>

#define SPARE_WRITES 1024
#define PARTS HK_SEND_QUEUE_PARTS

struct hk_write {
  uv_write_t request;
  struct hk_subscriber *subscriber;
  struct hk_message *message[PARTS];
  unsigned n;
  size_t reply;               /* bytes of a reply; 0: it is none */
  struct hk_send_queue *home; /* as in a message */
  struct hk_write *next;
};

struct hk_message *hk_message_new(struct hk_send_queue *home)
{
  struct hk_message *m = home ? home->spare : NULL;
  if (m) {
    home->spare = m->next;
    home->spare_bytes -= m->bytes.capacity;
  } else if (!(m = calloc(1, sizeof *m))) {
    return NULL;
  }
  m->references = 1;
  m->home = home;
  m->bytes.size = 0;
  return m;
}

static void message_free(struct hk_message *m)
{
  hk_buffer_free(&m->bytes);
  free(m);
}

void hk_message_release(struct hk_message *m)
{
  if (!m || --m->references > 0)
    return;
  struct hk_send_queue *home = m->home;
  if (!home || m->bytes.failed || home->spare_bytes + m->bytes.capacity > home->most_spare) {
    message_free(m);
    return;
  }
  m->next = home->spare;
  home->spare = m;
  home->spare_bytes += m->bytes.capacity;
}

static void write_release(struct hk_write *w)
{
  struct hk_send_queue *home = w->home;
  for (unsigned i = 0; i < w->n; i++)
    hk_message_release(w->message[i]);
  if (!home || home->n_writes == SPARE_WRITES) {
    free(w);
    return;
  }
  w->next = home->writes;
  home->writes = w;
  home->n_writes++;
}

static void on_write(uv_write_t *request, int status)
{
  struct hk_write *w = request->data;
  struct hk_subscriber *s = w->subscriber;
  s->replies -= w->reply;
  write_release(w);
  s->progress = hk_now();
  s->wrote(s, status);
}

/* Writes as much as the socket accepts at once, if no earlier data waits; returns the number of bytes. The write of the rest
 * reports errors. */
static size_t write_now(struct hk_subscriber *s, const uv_buf_t *bytes, unsigned n)
{
  const int written = uv_try_write(s->stream, bytes, n);
  return written > 0 ? (size_t)written : 0;
}

int hk_send_queue_put(struct hk_send_queue *home, struct hk_subscriber *s, struct hk_message *const *messages, unsigned n,
                      size_t reply)
{
  struct hk_message *part[PARTS];
  uv_buf_t bytes[PARTS];
  unsigned parts = 0;
  for (unsigned i = 0; i < n; i++) {
    if (!messages[i])
      continue;
    if (messages[i]->bytes.failed)
      return -ENOMEM;
    part[parts] = messages[i];
    bytes[parts++] = uv_buf_init(messages[i]->bytes.data, (unsigned)messages[i]->bytes.size);
  }
  /* Allocated first, so that no write stops within a frame. */
  struct hk_write *w = home ? home->writes : NULL;
  if (w) {
    home->writes = w->next;
    home->n_writes--;
  } else if (!(w = malloc(sizeof *w))) {
    return -ENOMEM;
  }
  *w = (struct hk_write){ .subscriber = s, .reply = reply, .home = home };
  w->request.data = w;
  size_t written = write_now(s, bytes, parts);
  unsigned first = 0;
  while (first < parts && written >= bytes[first].len)
    written -= bytes[first++].len;
  if (first == parts) {
    s->progress = hk_now();
    write_release(w);
    return 0;
  }
  bytes[first] = uv_buf_init(bytes[first].base + written, (unsigned)(bytes[first].len - written));
  for (unsigned i = first; i < parts; i++) {
    part[i]->references++;
    w->message[w->n++] = part[i];
  }
  const int status = uv_write(&w->request, s->stream, bytes + first, parts - first, on_write);
  if (status != 0)
    write_release(w);
  else
    s->replies += reply;
  return status;
}

/* Combines several messages into one message of TLS records. 0, or a negative errno. */
static int encrypt(struct hk_send_queue *home, const struct hk_subscriber *s, struct hk_message *const *messages, unsigned n,
                   struct hk_message **out)
{
  int status = 0;
  *out = hk_message_new(home);
  for (unsigned i = 0; *out && i < n && status == 0; i++)
    if (messages[i])
      status = messages[i]->bytes.failed ? -ENOMEM
                                         : s->seal(s->seal_arg, messages[i]->bytes.data, messages[i]->bytes.size, &(*out)->bytes);
  return *out ? status : -ENOMEM;
}

int hk_send_queue_send(struct hk_send_queue *home, struct hk_subscriber *s, struct hk_message *const *messages, unsigned n,
                       size_t reply)
{
  if (!s->seal)
    return hk_send_queue_put(home, s, messages, n, reply);
  struct hk_message *records;
  int status = encrypt(home, s, messages, n, &records);
  if (status == 0)
    status = hk_send_queue_put(home, s, &records, 1, reply);
  hk_message_release(records);
  return status == -EPIPE ? 0 : status;
}

void hk_send_queue_free(struct hk_send_queue *o)
{
  for (struct hk_message *m = o->spare, *next; m; m = next) {
    next = m->next;
    message_free(m);
  }
  for (struct hk_write *w = o->writes, *next; w; w = next) {
    next = w->next;
    free(w);
  }
}
