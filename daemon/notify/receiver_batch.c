/* What a receiver is told of. */
#include "daemon/notify/receiver_batch.h"

#include <stdlib.h>
#include <string.h>

#define TOGETHER 256 /* events, for which the log is held */

static bool is_wanted(const struct hk_receiver *r, const struct hk_logged *l)
{
  const struct hk_event *e = &l->event;
  return (r->rule.channels >> e->channel & 1) && !((double)e->severity < r->rule.min_severity) &&
         !(e->marks & HANKEL_MAINTENANCE) && hk_glob_match(r->glob, l->name.data, l->name.length);
}

/* Whether an event is to be told; what is remembered follows. */
static bool choose(struct hk_receiver *r, const struct hk_logged *l)
{
  const bool told = hk_told_has(&r->told, l);
  switch (l->event.kind) {
  case HK_EVENT_RAISED:
  case HK_EVENT_CORRECTED: /* that it is grave enough may be known only now */
    if (told || !is_wanted(r, l) || hk_told_has(&r->ended, l))
      return false;
    hk_told_add(&r->told, l);
    return true;
  case HK_EVENT_CLEARED:
    hk_told_remove(&r->told, l);
    return r->rule.resolved && (told || (r->told.overflowed && is_wanted(r, l)));
  case HK_EVENT_ACKNOWLEDGED:
    hk_told_hush(&r->told, l);
    return false;
  default:
    return false;
  }
}

static void keep(struct hk_receiver *r, const struct hk_logged *l, bool again)
{
  const size_t at = r->names.size;
  hk_buffer_put(&r->names, l->name.data, l->name.length);
  struct hk_notice *n = &r->batch[r->n++];
  *n = (struct hk_notice){ .logged = *l, .again = again };
  n->logged.by = (struct hk_string){ "", 0 };
  n->logged.name.data = r->names.data + at; /* the buffer has room for all, and does not move */
}

static void take(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (choose(r, l))
    keep(r, l, false);
}

static void take_again(void *arg, const struct hk_logged *l)
{
  keep(arg, l, true);
}

static void remember(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (l->position <= r->place.position)
    (void)choose(r, l);
}

static void look_for_end(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (l->event.kind == HK_EVENT_ACKNOWLEDGED || (l->event.kind == HK_EVENT_CLEARED && r->rule.after > 0))
    hk_told_add(&r->ended, l);
}

void hk_receiver_remember(struct hk_receiver *r)
{
  struct hk_eventlog_cursor c = { .next = hk_eventlog_first(r->durable->events) };
  hk_told_clear(&r->told);
  hk_told_clear(&r->ended);
  while (hk_eventlog_read(r->durable->events, &c, r->place.position, TOGETHER, remember, r) > 0 && !atomic_load(&r->quit)) {
  }
}

void hk_receiver_choose(struct hk_receiver *r, uint64_t last)
{
  struct hk_eventlog *log = r->durable->events;
  struct hk_eventlog_cursor c = { .next = r->place.position + 1 }, ahead = c;
  hk_told_clear(&r->ended);
  while (hk_eventlog_read(log, &ahead, hk_eventlog_shown(log), TOGETHER, look_for_end, r) > 0) {
  }
  r->n = 0;
  r->names.size = 0;
  while (r->n + TOGETHER <= HK_BATCH && hk_eventlog_read(log, &c, last, TOGETHER, take, r) > 0) {
  }
  if (c.missed > 0) {
    hk_log(r->log, HK_LOG_WARNING,
           "[notify %s]: the event log has %llu events no more that were not looked at yet (event_log is too small for a "
           "receiver that is "
           "away for so long): alerts among them are not delivered",
           r->rule.name, (unsigned long long)c.missed);
    pthread_mutex_lock(&r->lock);
    r->look.lost += c.missed;
    pthread_mutex_unlock(&r->lock);
  }
  r->place.until = c.next - 1 > r->place.position ? c.next - 1 : r->place.position;
}

uint32_t hk_receiver_again(struct hk_receiver *r, const uint64_t *position, uint32_t n)
{
  r->n = 0;
  r->names.size = 0;
  for (uint32_t i = 0; i < n && r->n < HK_BATCH; i++) {
    struct hk_eventlog_cursor c = { .next = position[i] };
    (void)hk_eventlog_read(r->durable->events, &c, position[i], 1, take_again, r);
  }
  return r->n;
}
