/* For each batch and view: select, encode, send. The bytes are a message that all subscribers of the view share; after the last
 * write it is kept for the next batch, so that publishing asks for no memory once the messages have their size. When there is
 * no memory for one, it is left out like for a slow subscriber. */
#include "daemon/publish.h"

#include "daemon/encode.h"
#include "daemon/glob.h"
#include "daemon/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_BYTES (16u << 20) /* most that messages in nobody's hands may hold */
#define SPARE_WRITES 1024

enum { MATCH_UNKNOWN = 0, MATCH_NO, MATCH_YES };

struct hk_view {
  struct hk_view *next;
  struct hk_wanted wanted; /* the glob's bytes are below */
  char pattern[HK_GLOB_MAX];
  struct hk_glob *glob;
  uint8_t *match; /* MATCH_ of each slot */
  uint32_t n_match;
  struct hk_subscriber *subscribers;
};

struct hk_publisher {
  const struct hk_registry *registry;
  struct hk_counters *counters;
  struct hk_view *views;
  uint32_t n_views, max_views;
  size_t queue;               /* bytes a subscriber */
  uint32_t *results, *events; /* indices chosen of the present batch */
  uint32_t *unnamed;          /* slots */
  uint32_t capacity;          /* of results and events each; unnamed holds the sum */
  struct message *spare;      /* for the next batches */
  size_t spare_bytes;
  struct write *spare_writes;
  uint32_t n_spare_writes;
};

struct message {
  uint32_t references;
  struct hk_buffer bytes;
  size_t reply;              /* bytes, when it is a reply; else 0 */
  struct hk_publisher *home; /* keeps it when the last reference is gone; NULL: it is freed */
  struct message *next;
};

struct write {
  uv_write_t request;
  struct hk_subscriber *subscriber;
  struct message *message;
  struct write *next;
};

int hk_publisher_new(struct hk_publisher **out, const struct hk_config *config, const struct hk_registry *registry,
                     struct hk_counters *counters)
{
  struct hk_publisher *p = calloc(1, sizeof *p);
  if (!p)
    return -ENOMEM;
  p->registry = registry;
  p->counters = counters;
  p->queue = config->queue;
  p->max_views = config->max_subscriptions;
  *out = p;
  return 0;
}

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

static void message_release(struct message *m)
{
  struct hk_publisher *home = m->home;
  if (--m->references > 0)
    return;
  if (!home || m->bytes.failed || home->spare_bytes + m->bytes.capacity > SPARE_BYTES) {
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
  free(p->results);
  free(p->events);
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
  struct hk_publisher *home = w->message->home;
  message_release(w->message);
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
  s->replies -= w->message->reply;
  write_release(w);
  s->progress = hk_now();
  s->wrote(s, status);
}

/* -ENOMEM for a message that was not made or not filled for want of memory. */
static int message_send(struct hk_subscriber *s, struct message *m)
{
  if (!m || m->bytes.failed)
    return -ENOMEM;
  struct hk_publisher *home = m->home;
  struct write *w = home ? home->spare_writes : NULL;
  if (w) {
    home->spare_writes = w->next;
    home->n_spare_writes--;
  } else if (!(w = malloc(sizeof *w))) {
    return -ENOMEM;
  }
  w->request.data = w;
  w->subscriber = s;
  w->message = m;
  m->references++;
  const uv_buf_t bytes = uv_buf_init(m->bytes.data, (unsigned)m->bytes.size);
  const int status = uv_write(&w->request, s->stream, &bytes, 1, on_write);
  if (status != 0)
    write_release(w);
  else
    s->replies += m->reply;
  return status;
}

int hk_send(struct hk_subscriber *s, const void *data, size_t size)
{
  struct message *m = message_new(NULL);
  if (!m)
    return -ENOMEM;
  hk_buffer_put(&m->bytes, data, size);
  m->reply = size;
  const int status = message_send(s, m);
  message_release(m);
  return status;
}

static bool same(const struct hk_view *v, const struct hk_wanted *w)
{
  return v->wanted.format == w->format && v->wanted.what == w->what && v->wanted.min_score == w->min_score &&
         v->wanted.glob.length == w->glob.length && memcmp(v->pattern, w->glob.data, w->glob.length) == 0;
}

static int view_find(struct hk_publisher *p, const struct hk_wanted *wanted, struct hk_view **out)
{
  for (struct hk_view *v = p->views; v; v = v->next)
    if (same(v, wanted)) {
      *out = v;
      return 0;
    }
  if (p->n_views == p->max_views)
    return -ENOSPC;
  struct hk_view *v = calloc(1, sizeof *v);
  if (!v)
    return -ENOMEM;
  const int status = hk_glob_new(&v->glob, wanted->glob.data, wanted->glob.length);
  if (status != 0) {
    free(v);
    return status;
  }
  v->wanted = *wanted;
  memcpy(v->pattern, wanted->glob.data, wanted->glob.length);
  v->wanted.glob.data = v->pattern;
  v->next = p->views;
  p->views = v;
  p->n_views++;
  *out = v;
  return 0;
}

static void view_free(struct hk_publisher *p, struct hk_view *v)
{
  struct hk_view **link = &p->views;
  while (*link != v)
    link = &(*link)->next;
  *link = v->next;
  p->n_views--;
  hk_glob_free(v->glob);
  free(v->match);
  free(v);
}

static void leave(struct hk_publisher *p, struct hk_subscriber *s)
{
  struct hk_view *v = s->view;
  if (!v)
    return;
  struct hk_subscriber **link = &v->subscribers;
  while (*link != s)
    link = &(*link)->next;
  *link = s->next;
  s->view = NULL;
  if (!v->subscribers)
    view_free(p, v);
}

int hk_subscribe(struct hk_publisher *p, struct hk_subscriber *s, const struct hk_wanted *wanted)
{
  struct hk_view *v;
  const int status = view_find(p, wanted, &v);
  if (status != 0)
    return status;
  if (v == s->view)
    return 0;
  leave(p, s);
  s->view = v;
  s->next = v->subscribers;
  v->subscribers = s;
  s->progress = hk_now();
  return 0;
}

void hk_unsubscribe(struct hk_publisher *p, struct hk_subscriber *s)
{
  leave(p, s);
  s->gap_results = s->gap_events = 0;
  free(s->named);
  s->named = NULL;
  s->named_words = 0;
}

static bool matches(struct hk_publisher *p, struct hk_view *v, uint32_t slot)
{
  const struct hk_string name = hk_registry_name(p->registry, slot);
  if (slot >= v->n_match) {
    const uint32_t n = hk_registry_slots(p->registry) + 1024;
    uint8_t *match = realloc(v->match, n);
    if (!match)
      return hk_glob_match(v->glob, name.data, name.length);
    memset(match + v->n_match, MATCH_UNKNOWN, n - v->n_match);
    v->match = match;
    v->n_match = n;
  }
  if (v->match[slot] == MATCH_UNKNOWN)
    v->match[slot] = hk_glob_match(v->glob, name.data, name.length) ? MATCH_YES : MATCH_NO;
  return v->match[slot] == MATCH_YES;
}

static uint32_t choose_results(struct hk_publisher *p, struct hk_view *v, const struct hk_batch *b)
{
  const bool scored = v->wanted.what & HANKEL_SCORES, unscored = v->wanted.what & HANKEL_UNSCORED;
  uint32_t n = 0;
  if (b->kind != HK_BATCH_POINTS || !(scored || unscored))
    return 0;
  for (uint32_t i = 0; i < b->n; i++) {
    const bool wanted = isnan(b->score[i]) ? unscored : scored && b->score[i] >= v->wanted.min_score;
    if (wanted && matches(p, v, b->slot[i]))
      p->results[n++] = i;
  }
  return n;
}

static uint32_t choose_events(struct hk_publisher *p, struct hk_view *v, const struct hk_batch *b)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_events; i++) {
    const uint32_t kind = b->event[i].kind >= HK_EVENT_STALE ? HANKEL_NOTICES : HANKEL_EVENTS;
    if (v->wanted.what & kind && matches(p, v, b->event[i].slot))
      p->events[n++] = i;
  }
  return n;
}

/* Marks a slot as named to the subscriber; true when it was not. */
static bool name_slot(struct hk_subscriber *s, uint32_t slot)
{
  const uint64_t bit = (uint64_t)1 << slot % 64;
  const bool is_new = !(s->named[slot / 64] & bit);
  s->named[slot / 64] |= bit;
  return is_new;
}

/* Sends a binary subscriber the names that it does not know of these results and events. 0 or -ENOMEM. */
static int send_names(struct hk_publisher *p, struct hk_subscriber *s, const struct hk_batch *b, uint32_t n_results,
                      uint32_t n_events)
{
  const uint32_t words = hk_registry_slots(p->registry) / 64 + 1;
  if (words > s->named_words) {
    uint64_t *named = realloc(s->named, 2 * words * sizeof *named);
    if (!named)
      return -ENOMEM;
    memset(named + s->named_words, 0, (2 * words - s->named_words) * sizeof *named);
    s->named = named;
    s->named_words = 2 * words;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < n_results; i++)
    if (name_slot(s, b->slot[p->results[i]]))
      p->unnamed[n++] = b->slot[p->results[i]];
  for (uint32_t i = 0; i < n_events; i++)
    if (name_slot(s, b->event[p->events[i]].slot))
      p->unnamed[n++] = b->event[p->events[i]].slot;
  if (n == 0)
    return 0;
  struct message *m = message_new(NULL);
  if (m)
    hk_encode_names(&m->bytes, p->registry, p->unnamed, n);
  const int status = message_send(s, m);
  if (m)
    message_release(m);
  if (status != 0)
    for (uint32_t i = 0; i < n; i++)
      s->named[p->unnamed[i] / 64] &= ~((uint64_t)1 << p->unnamed[i] % 64);
  return status;
}

void hk_send_gap(struct hk_subscriber *s, size_t room)
{
  if (!s->view || s->gap_results + s->gap_events == 0 || uv_stream_get_write_queue_size(s->stream) >= room)
    return;
  struct message *m = message_new(NULL);
  if (!m)
    return;
  hk_encode_gap(&m->bytes, s->view->wanted.format, s->gap_results, s->gap_events);
  if (message_send(s, m) == 0)
    s->gap_results = s->gap_events = 0;
  message_release(m);
}

/* Sends what was chosen to one subscriber, as far as its queue has room. */
static void deliver(struct hk_publisher *p, struct hk_subscriber *s, const struct hk_batch *b, struct message *results,
                    uint32_t n_results, struct message *events, uint32_t n_events)
{
  const size_t queued = uv_stream_get_write_queue_size(s->stream);
  /* What was left out is told before anything that comes after it, and before that there must be room again. */
  const size_t limit = s->gap_results > 0 ? p->queue / 2 : p->queue;
  bool send_results = n_results > 0 && queued < limit;
  bool send_events = n_events > 0 && queued < p->queue + p->queue / 4;
  if ((send_results || send_events) && s->view->wanted.format == HK_PROTOCOL_BINARY &&
      send_names(p, s, b, send_results ? n_results : 0, send_events ? n_events : 0) != 0)
    send_results = send_events = false;
  if (send_results) {
    hk_send_gap(s, SIZE_MAX);
    send_results = message_send(s, results) == 0;
  }
  if (send_events)
    send_events = message_send(s, events) == 0;
  if (!send_results) {
    s->gap_results += n_results;
    hk_count(&p->counters->gap_results, n_results);
  }
  if (!send_events) {
    s->gap_events += n_events;
    hk_count(&p->counters->gap_events, n_events);
  }
}

/* Room for the indices of a batch. */
static int reserve(struct hk_publisher *p, uint32_t capacity)
{
  if (capacity <= p->capacity)
    return 0;
  free(p->results);
  free(p->events);
  free(p->unnamed);
  p->results = malloc(capacity * sizeof *p->results);
  p->events = malloc(capacity * sizeof *p->events);
  p->unnamed = malloc(2 * (size_t)capacity * sizeof *p->unnamed);
  p->capacity = p->results && p->events && p->unnamed ? capacity : 0;
  return p->capacity ? 0 : -ENOMEM;
}

void hk_publish(struct hk_publisher *p, const struct hk_batch *b)
{
  for (struct hk_view *v = p->views; v; v = v->next) {
    if (reserve(p, b->capacity) != 0) {
      hk_count(&p->counters->gap_results, b->n);
      hk_count(&p->counters->gap_events, b->n_events);
      continue;
    }
    const uint32_t n_results = choose_results(p, v, b), n_events = choose_events(p, v, b);
    struct message *results = NULL, *events = NULL;
    if (n_results > 0 && (results = message_new(p)))
      hk_encode_results(&results->bytes, v->wanted.format, p->registry, b, p->results, n_results, v->wanted.what & HANKEL_VALUES);
    if (n_events > 0 && (events = message_new(p)))
      hk_encode_events(&events->bytes, v->wanted.format, p->registry, b, p->events, n_events);
    if (n_results + n_events > 0)
      for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
        deliver(p, s, b, results, n_results, events, n_events);
    if (results)
      message_release(results);
    if (events)
      message_release(events);
  }
}

void hk_publish_dropped(struct hk_publisher *p, const struct hk_batch *b)
{
  for (struct hk_view *v = p->views; v; v = v->next) {
    uint32_t n = 0;
    for (uint32_t i = 0; v->wanted.what & (HANKEL_SCORES | HANKEL_UNSCORED) && i < b->n; i++)
      n += matches(p, v, b->slot[i]);
    for (struct hk_subscriber *s = v->subscribers; s && n > 0; s = s->next)
      s->gap_results += n;
  }
}

void hk_publisher_forget(struct hk_publisher *p, uint32_t slot)
{
  for (struct hk_view *v = p->views; v; v = v->next) {
    if (slot < v->n_match)
      v->match[slot] = MATCH_UNKNOWN;
    for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
      if (slot / 64 < s->named_words)
        s->named[slot / 64] &= ~((uint64_t)1 << slot % 64);
  }
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
  return p->n_views;
}
