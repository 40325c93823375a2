/* For each batch and view: select (view.c), encode, send, piece by piece. The bytes are a message that all subscribers of the
 * view share. A socket that has nothing waiting is written to at once, so that the message is free again for the next piece,
 * while its memory is still in the cache; what the socket does not take waits in the queue of libuv. Messages and requests are
 * kept for the next time, so that publishing asks for no memory once there are enough of them. When there is none for one, it is
 * left out like for a slow subscriber. */
#include "daemon/publish.h"

#include "daemon/encode.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_BYTES (16u << 20) /* that messages in nobody's hands may hold, and as much as a queue may */
#define SPARE_WRITES 1024
#define PARTS 4 /* messages in one write: names, gap, results, events */

struct hk_publisher {
  struct hk_registry *registry;
  struct hk_counters *counters;
  struct hk_views *views;
  struct hk_follower *follower; /* NULL: events come with the batches */
  size_t queue;                 /* bytes a subscriber */
  uint64_t evicted;             /* sensors, ever */
  uint32_t *unnamed;            /* slots; room for what is in a piece and the batch's events */
  uint32_t capacity;
  struct message *spare; /* for the next batches */
  size_t spare_bytes, most_spare;
  struct write *spare_writes;
  uint32_t n_spare_writes;
};

struct message {
  uint32_t references;
  struct hk_buffer bytes;
  struct hk_publisher *home; /* keeps it when the last reference is gone; NULL: it is freed */
  struct message *next;
};

struct write {
  uv_write_t request;
  struct hk_subscriber *subscriber;
  struct message *message[PARTS];
  unsigned n;
  size_t reply;              /* bytes, when it is a reply; else 0 */
  struct hk_publisher *home; /* as of a message */
  struct write *next;
};

int hk_publisher_new(struct hk_publisher **out, const struct hk_config *config, struct hk_registry *registry,
                     struct hk_eventlog *log, struct hk_counters *counters)
{
  struct hk_publisher *p = calloc(1, sizeof *p);
  if (!p)
    return -ENOMEM;
  int status = hk_views_new(&p->views, registry, config->max_subscriptions);
  if (status == 0 && log)
    status = hk_follower_new(&p->follower, log, p->views, counters, &p->queue);
  if (status != 0) {
    hk_views_free(p->views);
    free(p);
    return status;
  }
  p->registry = registry;
  p->counters = counters;
  p->queue = config->queue;
  p->most_spare = SPARE_BYTES + config->queue;
  *out = p;
  return 0;
}

void hk_publisher_adopt(struct hk_publisher *p, const struct hk_config *config)
{
  p->queue = config->queue;
  p->most_spare = SPARE_BYTES + config->queue;
  hk_views_limit(p->views, config->max_subscriptions);
}

/* --- messages and writes --- */

/* An empty message. NULL: no memory. */
static struct message *message_new(struct hk_publisher *home)
{
  struct message *m = home ? home->spare : NULL;
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

static void message_free(struct message *m)
{
  hk_buffer_free(&m->bytes);
  free(m);
}

/* NULL is fine. */
static void message_release(struct message *m)
{
  if (!m || --m->references > 0)
    return;
  struct hk_publisher *home = m->home;
  if (!home || m->bytes.failed || home->spare_bytes + m->bytes.capacity > home->most_spare) {
    message_free(m);
    return;
  }
  m->next = home->spare;
  home->spare = m;
  home->spare_bytes += m->bytes.capacity;
}

void hk_publisher_free(struct hk_publisher *p)
{
  if (!p)
    return;
  hk_follower_free(p->follower);
  hk_views_free(p->views);
  free(p->unnamed);
  for (struct message *m = p->spare, *next; m; m = next) {
    next = m->next;
    message_free(m);
  }
  for (struct write *w = p->spare_writes, *next; w; w = next) {
    next = w->next;
    free(w);
  }
  free(p);
}

static void write_release(struct write *w)
{
  struct hk_publisher *home = w->home;
  for (unsigned i = 0; i < w->n; i++)
    message_release(w->message[i]);
  if (!home || home->n_spare_writes == SPARE_WRITES) {
    free(w);
    return;
  }
  w->next = home->spare_writes;
  home->spare_writes = w;
  home->n_spare_writes++;
}

static void on_write(uv_write_t *request, int status)
{
  struct write *w = request->data;
  struct hk_subscriber *s = w->subscriber;
  s->replies -= w->reply;
  write_release(w);
  s->progress = hk_now();
  s->wrote(s, status);
}

/* Writes what the socket takes at once, if nothing waits before it; returns how many bytes. An error shows in the write of the
 * rest. */
static size_t write_now(struct hk_subscriber *s, const uv_buf_t *bytes, unsigned n)
{
  const int written = uv_try_write(s->stream, bytes, n);
  return written > 0 ? (size_t)written : 0;
}

/* Writes, or queues, messages to a subscriber's socket; as send_all. */
static int put_all(struct hk_publisher *home, struct hk_subscriber *s, struct message *const *messages, unsigned n, size_t reply)
{
  struct message *part[PARTS];
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
  /* Had first, so that no write is ever broken off within a frame. */
  struct write *w = home ? home->spare_writes : NULL;
  if (w) {
    home->spare_writes = w->next;
    home->n_spare_writes--;
  } else if (!(w = malloc(sizeof *w))) {
    return -ENOMEM;
  }
  *w = (struct write){ .subscriber = s, .reply = reply, .home = home };
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

/* Makes one message of records of TLS of several. 0, or a negative errno. */
static int encrypt(struct hk_publisher *home, struct hk_tls *tls, struct message *const *messages, unsigned n, struct message **out)
{
  int status = 0;
  *out = message_new(home);
  for (unsigned i = 0; *out && i < n && status == 0; i++)
    if (messages[i])
      status = messages[i]->bytes.failed ? -ENOMEM
                                         : hk_tls_write(tls, messages[i]->bytes.data, messages[i]->bytes.size, &(*out)->bytes);
  return *out ? status : -ENOMEM;
}

/* Writes, or queues, messages to a subscriber; NULL among them: none. home: whose spare requests are used, may be NULL. 0, or
 * -ENOMEM (a message could not be made, or there is no request for it) or another negative errno; then nothing was sent. Over TLS
 * what could not be sent after it was encrypted is a fault that the other side sees, and ends the connection on. To a peer that
 * cannot be told anything (no handshake yet, or it is over) nothing is sent, and that is no fault. */
static int send_all(struct hk_publisher *home, struct hk_subscriber *s, struct message *const *messages, unsigned n, size_t reply)
{
  if (!s->tls)
    return put_all(home, s, messages, n, reply);
  struct message *records;
  int status = encrypt(home, s->tls, messages, n, &records);
  if (status == 0)
    status = put_all(home, s, &records, 1, reply);
  message_release(records);
  return status == -EPIPE ? 0 : status;
}

/* --- names that were sent --- */

/* Adds a slot to p->unnamed if its name was not sent, and marks it as sent. */
static int name_slot(struct hk_publisher *p, struct hk_subscriber *s, uint32_t slot, uint32_t *n)
{
  if (hk_named_has(&s->named, slot))
    return 0;
  if (hk_named_add(&s->named, slot) != 0)
    return -ENOMEM;
  p->unnamed[(*n)++] = slot;
  return 0;
}

static void unname(struct hk_publisher *p, struct hk_subscriber *s, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    hk_named_remove(&s->named, p->unnamed[i]);
  s->settled -= n;
}

/* --- subscribing --- */

static void leave(struct hk_publisher *p, struct hk_subscriber *s)
{
  struct hk_view *v = s->view;
  if (!v)
    return;
  if (s->previous)
    s->previous->next = s->next;
  else
    v->subscribers = s->next;
  if (s->next)
    s->next->previous = s->previous;
  s->view = NULL;
  if (!v->subscribers)
    hk_view_close(p->views, v);
}

int hk_subscribe(struct hk_publisher *p, struct hk_subscriber *s, const struct hk_wanted *wanted)
{
  struct hk_view *v;
  const int status = hk_view_open(p->views, wanted, &v);
  if (status != 0)
    return status;
  if (p->follower)
    (void)hk_follow_from(p->follower, s, wanted->what & HANKEL_POSITIONS ? wanted->since : HANKEL_NOW);
  if (v == s->view)
    return 0;
  leave(p, s);
  /* Only while it has this view it hears of the sensors that go. */
  hk_named_free(&s->named);
  s->settled = p->evicted;
  s->view = v;
  s->previous = NULL;
  s->next = v->subscribers;
  if (s->next)
    s->next->previous = s;
  v->subscribers = s;
  s->progress = hk_now();
  return 0;
}

uint64_t hk_subscribed_since(const struct hk_publisher *p, const struct hk_subscriber *s)
{
  return p->follower ? s->events.next - 1 : HANKEL_NOW;
}

void hk_unsubscribe(struct hk_publisher *p, struct hk_subscriber *s)
{
  leave(p, s);
  s->gap_results = s->gap_events = 0;
  hk_named_free(&s->named);
}

/* --- publishing --- */

/* What is sent at one time: a piece of the results, and with the last piece the events. */
struct piece {
  const struct hk_batch *batch;
  const uint64_t *sequence;       /* NULL: none */
  const struct hk_choice *chosen; /* results */
  uint32_t first, n_results;      /* of the chosen */
  struct hk_choice events;
  struct message *results_message, *events_message; /* NULL: none, or no memory */
};

/* A message with the names that a binary subscriber does not know of a piece; *n: how many. 0 with NULL: it knows all. */
static int name_piece(struct hk_publisher *p, struct hk_subscriber *s, const struct piece *piece, bool results, bool events,
                      struct message **out, uint32_t *n)
{
  *out = NULL;
  *n = 0;
  if (s->settled == hk_registry_added(p->registry))
    return 0;
  int status = 0;
  for (uint32_t i = 0; results && status == 0 && i < piece->n_results; i++)
    status = name_slot(p, s, piece->batch->slot[hk_choice_at(piece->chosen, piece->first + i)], n);
  for (uint32_t i = 0; events && status == 0 && i < piece->events.n; i++)
    status = name_slot(p, s, piece->batch->event[piece->events.index[i]].slot, n);
  s->settled += *n;
  if (status == 0 && *n > 0 && (*out = message_new(p))) {
    hk_registry_read(p->registry);
    hk_encode_names(&(*out)->bytes, p->registry, p->unnamed, *n);
    hk_registry_read_end(p->registry);
  }
  if (status == 0 && (*n == 0 || *out))
    return 0;
  unname(p, s, *n);
  return -ENOMEM;
}

static struct message *gap_message(struct hk_subscriber *s)
{
  struct message *m = s->gap_results + s->gap_events > 0 ? message_new(NULL) : NULL;
  if (m)
    hk_encode_gap(&m->bytes, s->view->wanted.format, s->gap_results, s->gap_events);
  return m;
}

void hk_send_gap(struct hk_subscriber *s, size_t room)
{
  if (!s->view || s->gap_results + s->gap_events == 0 || uv_stream_get_write_queue_size(s->stream) >= room)
    return;
  struct message *m = gap_message(s);
  if (m && send_all(NULL, s, &m, 1, 0) == 0)
    s->gap_results = s->gap_events = 0;
  message_release(m);
}

int hk_send(struct hk_subscriber *s, const void *data, size_t size)
{
  struct message *m = message_new(NULL);
  if (!m)
    return -ENOMEM;
  hk_buffer_put(&m->bytes, data, size);
  const int status = send_all(NULL, s, &m, 1, size);
  message_release(m);
  hk_send_gap(s, 1); /* else it is sent when the write has ended */
  return status;
}

int hk_send_records(struct hk_subscriber *s, const void *data, size_t size)
{
  struct message *m = message_new(NULL);
  if (!m)
    return -ENOMEM;
  hk_buffer_put(&m->bytes, data, size);
  const int status = put_all(NULL, s, &m, 1, size);
  message_release(m);
  return status;
}

int hk_send_events(struct hk_subscriber *s, const void *data, size_t size)
{
  hk_send_gap(s, SIZE_MAX);
  struct message *m = s->gap_results + s->gap_events > 0 ? NULL : message_new(NULL);
  if (!m)
    return -ENOMEM; /* also when the gap notice could not be sent */
  hk_buffer_put(&m->bytes, data, size);
  const int status = send_all(NULL, s, &m, 1, 0);
  message_release(m);
  return status;
}

static bool has_room_for_results(const struct hk_publisher *p, const struct hk_subscriber *s)
{
  /* What was left out is told before anything that comes after it, and before that there must be room again. */
  return uv_stream_get_write_queue_size(s->stream) < (s->gap_results > 0 ? p->queue / 2 : p->queue);
}

static bool has_room_for_events(const struct hk_publisher *p, const struct hk_subscriber *s)
{
  return uv_stream_get_write_queue_size(s->stream) < p->queue + p->queue / 4;
}

/* Sends a piece to one subscriber, as far as its queue has room. */
static void deliver(struct hk_publisher *p, struct hk_subscriber *s, const struct piece *piece)
{
  bool results = piece->results_message && has_room_for_results(p, s);
  bool events = piece->events_message && has_room_for_events(p, s);
  struct message *names = NULL, *gap = NULL;
  uint32_t named = 0;
  if ((results || events) && s->view->wanted.format == HK_PROTOCOL_BINARY &&
      name_piece(p, s, piece, results, events, &names, &named) != 0)
    results = events = false;
  if (results || (events && uv_stream_get_write_queue_size(s->stream) < p->queue / 2))
    gap = gap_message(s);
  if (s->gap_results + s->gap_events > 0 && !gap)
    results = false;
  if (results || events) {
    struct message *const parts[PARTS] = { names, gap, results ? piece->results_message : NULL,
                                           events ? piece->events_message : NULL };
    if (send_all(p, s, parts, PARTS, 0) != 0) {
      unname(p, s, named);
      results = events = false;
    } else if (gap) {
      s->gap_results = s->gap_events = 0;
    }
  }
  message_release(names);
  message_release(gap);
  if (!results) {
    s->gap_results += piece->n_results;
    p->counters->gap_results += piece->n_results;
  }
  if (!events) {
    s->gap_events += piece->events.n;
    p->counters->gap_events += piece->events.n;
  }
}

static bool anyone_has_room(const struct hk_publisher *p, const struct hk_view *v, const struct piece *piece)
{
  for (const struct hk_subscriber *s = v->subscribers; s; s = s->next)
    if (has_room_for_results(p, s) || (piece->events.n > 0 && has_room_for_events(p, s)))
      return true;
  return false;
}

static void encode(struct hk_publisher *p, const struct hk_view *v, struct piece *piece)
{
  const enum hk_protocol format = v->wanted.format;
  if (format == HK_PROTOCOL_TEXT)
    hk_registry_read(p->registry);
  if (piece->n_results > 0 && (piece->results_message = message_new(p)))
    hk_encode_results(&piece->results_message->bytes, format, p->registry, piece->batch, piece->chosen, piece->first,
                      piece->n_results, v->wanted.what & HANKEL_VALUES,
                      v->wanted.what & HANKEL_SEQUENCES ? piece->sequence : NULL);
  if (piece->events.n > 0 && (piece->events_message = message_new(p)))
    hk_encode_events(&piece->events_message->bytes, format, p->registry, piece->batch, &piece->events,
                     v->wanted.what & HANKEL_POSITIONS);
  if (format == HK_PROTOCOL_TEXT)
    hk_registry_read_end(p->registry);
}

/* Room for the slots of a piece and of the events of a batch. */
static int reserve(struct hk_publisher *p, const struct hk_batch *b)
{
  const uint32_t capacity = HK_RESULTS_FRAME + (b->n_events > b->capacity ? b->n_events : b->capacity);
  if (HK_RESULTS_FRAME + b->n_events <= p->capacity)
    return 0;
  free(p->unnamed);
  p->unnamed = malloc(capacity * sizeof *p->unnamed);
  p->capacity = p->unnamed ? capacity : 0;
  return p->unnamed ? 0 : -ENOMEM;
}

struct publishing {
  struct hk_publisher *publisher;
  const struct hk_batch *batch;
  const uint64_t *sequence;
};

static void on_chosen(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  const struct publishing *x = arg;
  struct hk_publisher *p = x->publisher;
  uint32_t at = 0;
  do {
    const uint32_t left = results->n - at, n = left < HK_RESULTS_FRAME ? left : HK_RESULTS_FRAME;
    struct piece piece = { .batch = x->batch, .sequence = x->sequence, .chosen = results, .first = at, .n_results = n };
    if (n == left)
      piece.events = *events;
    if (anyone_has_room(p, v, &piece))
      encode(p, v, &piece);
    for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
      deliver(p, s, &piece);
    message_release(piece.results_message);
    message_release(piece.events_message);
    at += n;
  } while (at < results->n);
}

void hk_publish(struct hk_publisher *p, const struct hk_batch *b, const uint64_t *sequence)
{
  struct publishing x = { p, b, sequence };
  if (hk_views_count(p->views) == 0)
    return;
  if (reserve(p, b) != 0 || hk_views_choose(p->views, b, false, on_chosen, &x) != 0) {
    p->counters->gap_results += b->n;
    p->counters->gap_events += b->n_events;
  }
  hk_views_tend(p->views);
}

bool hk_publish_events(struct hk_publisher *p)
{
  return p->follower && hk_follow_all(p->follower);
}

bool hk_publish_events_to(struct hk_publisher *p, struct hk_subscriber *s)
{
  return p->follower && hk_follow_one(p->follower, s);
}

static void on_dropped(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  (void)arg;
  (void)events; /* none */
  for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
    s->gap_results += results->n;
}

void hk_publish_dropped(struct hk_publisher *p, const struct hk_batch *b)
{
  if (hk_views_choose(p->views, b, true, on_dropped, NULL) != 0)
    p->counters->gap_results += b->n;
}

/* A sensor that goes is settled for whoever might have heard of it: its name was sent, which is counted already, or need not be.
 */
static void on_told(void *arg, struct hk_view *v)
{
  const uint32_t slot = *(const uint32_t *)arg;
  for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
    if (hk_named_has(&s->named, slot))
      hk_named_remove(&s->named, slot);
    else
      s->settled++;
}

void hk_publisher_forget(struct hk_publisher *p, uint32_t slot)
{
  p->evicted++;
  hk_views_forget(p->views, slot, on_told, &slot);
}

bool hk_subscriber_stuck(struct hk_subscriber *s, int64_t now, int64_t stuck)
{
  const size_t queued = uv_stream_get_write_queue_size(s->stream);
  if (queued == 0 || queued < s->queued)
    s->progress = now;
  s->queued = queued;
  return stuck > 0 && now - s->progress > stuck;
}

uint32_t hk_publisher_views(const struct hk_publisher *p)
{
  return hk_views_count(p->views);
}
