/* Subscribers with the same view and the same place, that is, nearly all, share the encoding. */
#include "daemon/publish/event_follower.h"

#include "daemon/durable/event_shared.h"
#include "daemon/publish/encode_results.h"
#include "daemon/publish/subscriber_send.h"

#include <errno.h>
#include <stdlib.h>

#define WHEN_READY 0u /* the next event, of a subscriber to a copy that is not complete yet: the first one then */

struct hk_follower {
  struct hk_eventlog *log;
  struct hk_views *views;
  struct hk_counters *counters;
  const size_t *queue;
  uint64_t shown; /* when all subscribers were last served */
  bool more;      /* a subscriber had room for more then */
  /* the piece that was encoded last, and the view and place for which it is valid */
  const struct hk_view *view;
  uint64_t from;
  struct hk_eventlog_cursor behind;
  struct hk_buffer bytes;
  uint32_t events;
  struct hk_buffer change; /* of an incident, after the events */
};

int hk_follower_new(struct hk_follower **out, struct hk_eventlog *log, struct hk_views *views, struct hk_counters *counters,
                    const size_t *queue)
{
  struct hk_follower *f = calloc(1, sizeof *f);
  if (!f)
    return -ENOMEM;
  f->log = log;
  f->views = views;
  f->counters = counters;
  f->queue = queue;
  *out = f;
  return 0;
}

void hk_follower_free(struct hk_follower *f)
{
  if (!f)
    return;
  hk_buffer_free(&f->bytes);
  hk_buffer_free(&f->change);
  free(f);
}

static bool follower_has_room(const struct hk_follower *f, const struct hk_subscriber *s)
{
  return uv_stream_get_write_queue_size(s->stream) < *f->queue;
}

uint64_t hk_follower_place(struct hk_follower *f, struct hk_subscriber *s, uint64_t since)
{
  const uint64_t shown = hk_eventlog_shown(f->log);
  if (hk_eventlog_shared(f->log) && since > shown && (since != HANKEL_NOW || !hk_shared_is_ready(hk_eventlog_shared(f->log)))) {
    /* Another machine's copy was further; or the copy is not complete yet, and begins with what comes behind that. */
    s->events = (struct hk_eventlog_cursor){ .next = since == HANKEL_NOW ? WHEN_READY : since + 1 };
    return since;
  }
  if (since != HANKEL_NOW && since > shown)
    s->gap_events = HANKEL_NOBODY_KNOWS;
  const uint64_t known = since > shown ? shown : since;
  s->events = (struct hk_eventlog_cursor){ .next = known + 1 };
  f->more = true;
  return known;
}

bool hk_follower_told(const struct hk_subscriber *s, uint64_t position)
{
  return !s->view || !hk_wants_logged(&s->view->wanted) || s->events.next > position || s->events.next == WHEN_READY;
}

struct choosing {
  const struct hk_view *view;
  struct hk_buffer *change;
  struct hk_logged chosen[HK_LOGGED_FRAME];
  uint32_t n;
  char names[HK_LOGGED_FRAME * (HK_NAME_MAX + HK_WHO_MAX)]; /* of sensors, and of operators who acknowledged */
  size_t size;
};

static void follower_choose(void *arg, const struct hk_logged *l)
{
  struct choosing *c = arg;
  if (!hk_wants_event(&c->view->wanted, l->event.kind) || !hk_view_matches(c->view, l->name))
    return;
  struct hk_logged *chosen = &c->chosen[c->n++];
  *chosen = *l;
  chosen->name.data = memcpy(c->names + c->size, l->name.data, l->name.length);
  c->size += l->name.length;
  chosen->by.data = memcpy(c->names + c->size, l->by.data, l->by.length);
  c->size += l->by.length;
}

/* A subscriber gets an incident if it wants at least one of the sensors. */
static void choose_change(void *arg, const struct hk_logged_incident *i)
{
  struct choosing *c = arg;
  const char *name = i->sensors.data, *end = name + i->sensors.length;
  bool wanted = false;
  for (; name < end && !wanted; name += strlen(name) + 1)
    wanted = hk_view_matches(c->view, hk_string(name));
  if (wanted)
    hk_encode_incident(c->change, c->view->wanted.format, i, c->view->wanted.what);
}

/* Encodes the next piece for a subscriber, unless the last encoded piece is the same. */
static void follower_encode(struct hk_follower *f, const struct hk_subscriber *s, uint64_t shown)
{
  if (f->view == s->view && f->from == s->events.next)
    return;
  struct choosing c;
  const bool changes = s->view->wanted.what & HANKEL_INCIDENTS;
  const struct hk_eventlog_visit visit = { .event = follower_choose,
                                           .incident = changes ? choose_change : NULL,
                                           .waits = changes && s->view->wanted.what & HANKEL_EVENTS };
  c.view = s->view;
  c.change = &f->change;
  c.n = 0;
  c.size = 0;
  f->view = s->view;
  f->from = s->events.next;
  f->behind = s->events;
  f->bytes.size = f->change.size = 0;
  (void)hk_eventlog_visit(f->log, &f->behind, shown, HK_LOGGED_FRAME, &visit, &c);
  f->events = c.n + (f->change.size > 0 || f->change.failed);
  if (c.n > 0)
    hk_encode_logged(&f->bytes, s->view->wanted.format, c.chosen, c.n, s->view->wanted.what);
  if (f->change.size > 0)
    hk_buffer_put(&f->bytes, f->change.data, f->change.size);
  f->bytes.failed |= f->change.failed;
}

/* Sends one piece. False: it cannot be sent now. */
static bool send_piece(struct hk_follower *f, struct hk_subscriber *s, uint64_t shown)
{
  follower_encode(f, s, shown);
  if (f->bytes.failed) { /* no memory: the piece is left out, as for a subscriber that does not read */
    f->behind.missed += f->events;
    f->counters->gap_events += f->events;
    f->events = 0;
    hk_buffer_free(&f->bytes);
    hk_buffer_free(&f->change);
  }
  const uint64_t missed = f->behind.missed;
  if (missed > 0) {
    s->gap_events += s->gap_events < HANKEL_NOBODY_KNOWS - missed ? missed : 0;
    f->counters->gap_events += missed;
    hk_send_gap(s, *f->queue / 2);
  }
  if (f->events > 0 && hk_send_events(s, f->bytes.data, f->bytes.size) != 0)
    return false;
  s->events = f->behind;
  s->events.missed = 0;
  return true;
}

static bool follower_follow(struct hk_follower *f, struct hk_subscriber *s)
{
  const uint64_t shown = hk_eventlog_shown(f->log);
  if (s->events.next == WHEN_READY && hk_shared_is_ready(hk_eventlog_shared(f->log)))
    s->events.next = shown + 1;
  const uint64_t next = s->events.next;
  if (!s->view || !hk_wants_logged(&s->view->wanted) || next == WHEN_READY || next > shown || !follower_has_room(f, s))
    return false;
  return send_piece(f, s, shown) && s->events.next > next && s->events.next <= shown && follower_has_room(f, s);
}

static void follow_view(void *arg, struct hk_view *v)
{
  struct hk_follower *f = arg;
  for (struct hk_subscriber *s = v->subscribers; s && hk_wants_logged(&v->wanted); s = s->next)
    f->more |= follower_follow(f, s);
}

bool hk_follower_send_one(struct hk_follower *f, struct hk_subscriber *s)
{
  f->view = NULL; /* views may have been freed meanwhile */
  const bool more = follower_follow(f, s);
  f->more |= more;
  return more;
}

bool hk_follower_send_all(struct hk_follower *f)
{
  const uint64_t shown = hk_eventlog_shown(f->log);
  if (shown == f->shown && !f->more)
    return false;
  f->shown = shown;
  f->more = false;
  f->view = NULL; /* views may have been freed meanwhile */
  hk_views_each(f->views, follow_view, f);
  return f->more;
}
