/* For each batch and view: select (view.c), encode, send (send_queue.h), piece by piece. The bytes are a message that all
 * subscribers of the view share. Without memory for a message, it is left out, as for a slow subscriber. */
#include "daemon/publish/publisher.h"

#include "daemon/base/log.h"
#include "daemon/publish/encode_results.h"
#include "daemon/publish/event_follower.h"
#include "daemon/publish/view_select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_BYTES (16u << 20) /* maximum bytes of unused messages, in addition to a queue's limit */

struct hk_publisher {
  struct hk_registry *registry;
  struct hk_counters *counters;
  struct hk_views *views;
  struct hk_follower *follower; /* NULL: events come with the batches */
  size_t queue;                 /* bytes a subscriber */
  uint64_t evicted;             /* number of sensors that ever existed */
  uint32_t *unnamed;            /* slots; capacity for those of a piece and of the batch's events */
  uint32_t capacity;
  struct hk_send_queue send_queue;
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
  p->send_queue.most_spare = SPARE_BYTES + config->queue;
  *out = p;
  return 0;
}

void hk_publisher_adopt(struct hk_publisher *p, const struct hk_config *config)
{
  p->queue = config->queue;
  p->send_queue.most_spare = SPARE_BYTES + config->queue;
  hk_views_limit(p->views, config->max_subscriptions);
}

void hk_publisher_free(struct hk_publisher *p)
{
  if (!p)
    return;
  hk_follower_free(p->follower);
  hk_views_free(p->views);
  free(p->unnamed);
  hk_send_queue_free(&p->send_queue);
  free(p);
}

/* --- names that were sent --- */

/* Adds a slot to p->unnamed if its name was not sent, and marks it as sent. */
static int name_slot(struct hk_publisher *p, struct hk_subscriber *s, uint32_t slot, uint32_t *n)
{
  if (hk_names_sent_has(&s->names_sent, slot))
    return 0;
  if (hk_names_sent_add(&s->names_sent, slot) != 0)
    return -ENOMEM;
  p->unnamed[(*n)++] = slot;
  return 0;
}

static void unname(struct hk_publisher *p, struct hk_subscriber *s, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    hk_names_sent_remove(&s->names_sent, p->unnamed[i]);
  s->settled -= n;
}

/* --- subscribing --- */

static void publisher_leave(struct hk_publisher *p, struct hk_subscriber *s)
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
    (void)hk_follower_place(p->follower, s, wanted->what & HANKEL_POSITIONS ? wanted->since : HANKEL_NOW);
  if (v == s->view)
    return 0;
  publisher_leave(p, s);
  /* A subscriber is informed about evicted sensors only while it has this view. */
  hk_names_sent_free(&s->names_sent);
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
  publisher_leave(p, s);
  s->gap_results = s->gap_events = 0;
  hk_names_sent_free(&s->names_sent);
}

/* --- publishing --- */

/* The data sent at one time: a piece of the results, and with the last piece the events. */
struct piece {
  const struct hk_batch *batch;
  const uint64_t *sequence;       /* NULL: none */
  const struct hk_choice *chosen; /* results */
  uint32_t first, n_results;      /* of the selected results */
  struct hk_choice events;
  struct hk_string by;                                 /* of the events */
  struct hk_message *results_message, *events_message; /* NULL: none, or no memory */
};

/* Makes a message with the names in a piece that a binary subscriber does not know; *n: their number. 0 and NULL: it knows
 * all. */
static int name_piece(struct hk_publisher *p, struct hk_subscriber *s, const struct piece *piece, bool results, bool events,
                      struct hk_message **out, uint32_t *n)
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
  if (status == 0 && *n > 0 && (*out = hk_message_new(&p->send_queue))) {
    hk_registry_read(p->registry);
    hk_encode_names(&(*out)->bytes, p->registry, p->unnamed, *n);
    hk_registry_read_end(p->registry);
  }
  if (status == 0 && (*n == 0 || *out))
    return 0;
  unname(p, s, *n);
  return -ENOMEM;
}

static bool has_room_for_results(const struct hk_publisher *p, const struct hk_subscriber *s)
{
  /* Omitted results must be reported before anything after them, and that needs room in the queue. */
  return uv_stream_get_write_queue_size(s->stream) < (s->gap_results > 0 ? p->queue / 2 : p->queue);
}

static bool has_room_for_events(const struct hk_publisher *p, const struct hk_subscriber *s)
{
  return uv_stream_get_write_queue_size(s->stream) < p->queue + p->queue / 4;
}

/* Sends a piece to one subscriber if its queue has room. */
static void deliver(struct hk_publisher *p, struct hk_subscriber *s, const struct piece *piece)
{
  bool results = piece->results_message && has_room_for_results(p, s);
  bool events = piece->events_message && has_room_for_events(p, s);
  struct hk_message *names = NULL, *gap = NULL;
  uint32_t named = 0;
  if ((results || events) && s->view->wanted.format == HK_PROTOCOL_BINARY &&
      name_piece(p, s, piece, results, events, &names, &named) != 0)
    results = events = false;
  if (results || (events && uv_stream_get_write_queue_size(s->stream) < p->queue / 2))
    gap = hk_gap_message(s);
  if (s->gap_results + s->gap_events > 0 && !gap)
    results = false;
  if (results || events) {
    struct hk_message *const parts[HK_SEND_QUEUE_PARTS] = { names, gap, results ? piece->results_message : NULL,
                                                            events ? piece->events_message : NULL };
    if (hk_send_queue_send(&p->send_queue, s, parts, HK_SEND_QUEUE_PARTS, 0) != 0) {
      unname(p, s, named);
      results = events = false;
    } else if (gap) {
      s->gap_results = s->gap_events = 0;
    }
  }
  hk_message_release(names);
  hk_message_release(gap);
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

static void publisher_encode(struct hk_publisher *p, const struct hk_view *v, struct piece *piece)
{
  const enum hk_protocol format = v->wanted.format;
  if (format == HK_PROTOCOL_TEXT)
    hk_registry_read(p->registry);
  if (piece->n_results > 0 && (piece->results_message = hk_message_new(&p->send_queue)))
    hk_encode_results(&piece->results_message->bytes, format, p->registry, piece->batch, piece->chosen, piece->first,
                      piece->n_results, v->wanted.what & HANKEL_VALUES,
                      v->wanted.what & HANKEL_SEQUENCES ? piece->sequence : NULL);
  if (piece->events.n > 0 && (piece->events_message = hk_message_new(&p->send_queue)))
    hk_encode_events(&piece->events_message->bytes, format, p->registry, piece->batch, &piece->events, v->wanted.what, piece->by);
  if (format == HK_PROTOCOL_TEXT)
    hk_registry_read_end(p->registry);
}

/* Allocates memory for the slots of a piece and of a batch's events. */
static int publisher_reserve(struct hk_publisher *p, const struct hk_batch *b)
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
  struct hk_string by;
};

static void on_chosen(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  const struct publishing *x = arg;
  struct hk_publisher *p = x->publisher;
  uint32_t at = 0;
  do {
    const uint32_t left = results->n - at, n = left < HK_RESULTS_FRAME ? left : HK_RESULTS_FRAME;
    struct piece piece = {
      .batch = x->batch, .sequence = x->sequence, .chosen = results, .first = at, .n_results = n, .by = x->by
    };
    if (n == left)
      piece.events = *events;
    if (anyone_has_room(p, v, &piece))
      publisher_encode(p, v, &piece);
    for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
      deliver(p, s, &piece);
    hk_message_release(piece.results_message);
    hk_message_release(piece.events_message);
    at += n;
  } while (at < results->n);
}

void hk_publish(struct hk_publisher *p, const struct hk_batch *b, const uint64_t *sequence, struct hk_string by)
{
  struct publishing x = { p, b, sequence, by };
  if (hk_views_count(p->views) == 0)
    return;
  if (publisher_reserve(p, b) != 0 || hk_views_choose(p->views, b, false, on_chosen, &x) != 0) {
    p->counters->gap_results += b->n;
    p->counters->gap_events += b->n_events;
  }
  hk_views_tend(p->views);
}

bool hk_publish_events(struct hk_publisher *p)
{
  return p->follower && hk_follower_send_all(p->follower);
}

bool hk_publish_events_to(struct hk_publisher *p, struct hk_subscriber *s)
{
  return p->follower && hk_follower_send_one(p->follower, s);
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

/* Removes an evicted sensor from the names that were sent to each subscriber.
 */
static void on_told(void *arg, struct hk_view *v)
{
  const uint32_t slot = *(const uint32_t *)arg;
  for (struct hk_subscriber *s = v->subscribers; s; s = s->next)
    if (hk_names_sent_has(&s->names_sent, slot))
      hk_names_sent_remove(&s->names_sent, slot);
    else
      s->settled++;
}

void hk_publisher_forget(struct hk_publisher *p, uint32_t slot)
{
  p->evicted++;
  hk_views_forget(p->views, slot, on_told, &slot);
}

uint32_t hk_publisher_views(const struct hk_publisher *p)
{
  return hk_views_count(p->views);
}
