/* What a receiver is told of. */
#include "daemon/notify/receiver_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 256 /* events, for which the log is held */

static bool is_wanted(const struct hk_receiver *r, const struct hk_logged *l)
{
  const struct hk_event *e = &l->event;
  return (r->rule.channels >> e->channel & 1) && !((double)e->severity < r->rule.min_severity) &&
         !(e->marks & (HANKEL_MAINTENANCE | HANKEL_SECONDARY)) && hk_glob_match(r->glob, l->name.data, l->name.length);
}

/* What an incident looks like among alerts: named by its number, which no sensor's alert has with this handle. */
static struct hk_logged as_alert(const struct hk_logged_incident *i, char name[HK_NAME_MAX + 1])
{
  const bool over = i->kind == HANKEL_INCIDENT_CLOSED || i->kind == HANKEL_INCIDENT_MERGED;
  (void)snprintf(name, HK_NAME_MAX + 1, "incident %" PRIu64, i->id);
  return (struct hk_logged){ .position = i->position,
                             .handle = UINT32_MAX,
                             .name = hk_string(name),
                             .event = { .kind = over ? HK_EVENT_CLEARED : HK_EVENT_RAISED,
                                        .number = (uint32_t)i->id,
                                        .time = i->time,
                                        .instant = i->since,
                                        .severity = (float)i->severity } };
}

static bool incident_matches(const struct hk_receiver *r, const struct hk_logged_incident *i)
{
  const char *name = i->sensors.data, *end = name + i->sensors.length;
  for (; name < end; name += strlen(name) + 1)
    if (hk_glob_match(r->glob, name, strlen(name)))
      return true;
  return false;
}

/* Whether what became of an incident is to be told; what is remembered follows. */
static bool choose_incident(struct hk_receiver *r, const struct hk_logged_incident *i, const struct hk_logged *l)
{
  const bool told = hk_told_has(&r->told, l);
  if (!i->told)
    return false;
  if (l->event.kind == HK_EVENT_CLEARED) {
    hk_told_remove(&r->told, l);
    return r->rule.resolved && told;
  }
  if (i->severity < r->rule.min_severity || !incident_matches(r, i) || hk_told_has(&r->ended, l))
    return false;
  hk_told_add(&r->told, l);
  return true;
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

/* The strings stand in the buffer, which moves: until the batch is whole the change has where they begin. */
static void keep_incident(struct hk_receiver *r, const struct hk_logged_incident *i, const struct hk_logged *l, bool again)
{
  const size_t at = r->texts.size;
  hk_buffer_put(&r->texts, i->text.data, i->text.length);
  hk_buffer_put(&r->texts, i->about.data, i->about.length);
  if (r->texts.failed)
    return;
  keep(r, l, again);
  r->batch[r->n - 1].change = *i;
  r->batch[r->n - 1].change.text.data = r->texts.data;
  r->batch[r->n - 1].change.since = (int64_t)at;
}

/* The batch is whole: its strings stay where they are. */
static void settle_texts(struct hk_receiver *r)
{
  for (uint32_t i = 0; i < r->n; i++) {
    struct hk_logged_incident *c = &r->batch[i].change;
    if (c->id == 0)
      continue;
    c->text.data = r->texts.data + c->since;
    c->about.data = c->text.data + c->text.length;
    c->sensors = hk_string("");
    c->since = r->batch[i].logged.event.instant;
  }
}

static void take_incident(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  if (choose_incident(r, i, &l))
    keep_incident(r, i, &l, false);
}

static void take_incident_again(void *arg, const struct hk_logged_incident *i)
{
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  keep_incident(arg, i, &l, true);
}

static void remember_incident(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  if (i->position <= r->place.position)
    (void)choose_incident(r, i, &l);
}

static void look_for_incidents_end(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  if (l.event.kind == HK_EVENT_CLEARED && r->rule.after > 0)
    hk_told_add(&r->ended, &l);
}

/* Reads on; what the rule is about is visited. Returns how much of the log that was. */
static uint32_t read_on(struct hk_receiver *r, struct hk_eventlog_cursor *c, uint64_t last, uint32_t most,
                        void (*event)(void *arg, const struct hk_logged *logged),
                        void (*incident)(void *arg, const struct hk_logged_incident *incident))
{
  const struct hk_eventlog_visit visit = { .event = r->rule.incidents ? NULL : event,
                                           .incident = r->rule.incidents ? incident : NULL };
  return hk_eventlog_visit(r->durable->events, c, last, most, &visit, r);
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
  while (read_on(r, &c, r->place.position, TOGETHER, remember, remember_incident) > 0 && !atomic_load(&r->quit)) {
  }
}

void hk_receiver_choose(struct hk_receiver *r, uint64_t last)
{
  struct hk_eventlog *log = r->durable->events;
  struct hk_eventlog_cursor c = { .next = r->place.position + 1 }, ahead = c;
  hk_told_clear(&r->ended);
  while (read_on(r, &ahead, hk_eventlog_shown(log), TOGETHER, look_for_end, look_for_incidents_end) > 0) {
  }
  r->n = 0;
  r->names.size = r->texts.size = 0;
  while (r->n + TOGETHER <= HK_BATCH && read_on(r, &c, last, TOGETHER, take, take_incident) > 0) {
  }
  if (r->texts.failed) { /* no memory: in the next turn there may be some */
    hk_buffer_free(&r->texts);
    hk_receiver_remember(r);
    r->n = 0;
    r->place.until = r->place.position;
    return;
  }
  settle_texts(r);
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
  r->names.size = r->texts.size = 0;
  for (uint32_t i = 0; i < n && r->n < HK_BATCH; i++) {
    struct hk_eventlog_cursor c = { .next = position[i] };
    (void)read_on(r, &c, position[i], 1, take_again, take_incident_again);
  }
  settle_texts(r);
  return r->n;
}
