/* Chooses the events of a receiver's messages. */
#include "daemon/notify/receiver_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 256 /* events that are read while the log is held */

static bool receiver_batch_is_wanted(const struct hk_receiver *r, const struct hk_logged *l)
{
  const struct hk_event *e = &l->event;
  return (r->rule.channels >> e->channel & 1) && !((double)e->severity < r->rule.min_severity) &&
         !(e->marks & (HANKEL_MAINTENANCE | HANKEL_SECONDARY | HANKEL_PROVISIONAL)) &&
         hk_glob_match(r->glob, l->name.data, l->name.length);
}

/* An incident as an alert: its number with a handle that no sensor has. */
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
  if (r->sections && !hk_glob_match(r->sections, i->section.data, i->section.length))
    return false;
  for (; name < end; name += strlen(name) + 1)
    if (hk_glob_match(r->glob, name, strlen(name)))
      return true;
  return false;
}

/* Whether an alert is held until the end of quiet hours; remembers the first such position. */
static bool has_to_wait(struct hk_receiver *r, double severity, uint64_t position)
{
  if (!r->quiet || severity >= r->rule.quiet.severity)
    return false;
  if (r->place.held == 0)
    r->place.held = position;
  return true;
}

/* Whether to send a change of an incident; updates the memory. */
static bool choose_incident(struct hk_receiver *r, const struct hk_logged_incident *i, const struct hk_logged *l)
{
  const bool told = hk_told_has(&r->alerts.told, l);
  if (!i->told)
    return false;
  if (l->event.kind == HK_EVENT_CLEARED) {
    hk_told_remove(&r->alerts.told, l);
    return r->rule.resolved && told;
  }
  if (i->severity < r->rule.min_severity || !incident_matches(r, i) || hk_told_has(&r->alerts.ended, l) ||
      has_to_wait(r, i->severity, i->position))
    return false;
  hk_told_add(&r->alerts.told, l);
  return true;
}

/* Whether to send an event; updates the memory. */
static bool receiver_batch_choose(struct hk_receiver *r, const struct hk_logged *l)
{
  const bool told = hk_told_has(&r->alerts.told, l);
  switch (l->event.kind) {
  case HK_EVENT_RAISED:
  case HK_EVENT_CORRECTED: /* its severity may be high enough only now */
    if (told || !receiver_batch_is_wanted(r, l) || hk_told_has(&r->alerts.ended, l) ||
        has_to_wait(r, (double)l->event.severity, l->position))
      return false;
    hk_told_add(&r->alerts.told, l);
    return true;
  case HK_EVENT_CLEARED:
    hk_told_remove(&r->alerts.told, l);
    return r->rule.resolved && (told || (r->alerts.told.overflowed && receiver_batch_is_wanted(r, l)));
  case HK_EVENT_ACKNOWLEDGED: /* for a pager */
    hk_told_hush(&r->alerts.told, l);
    return told && r->rule.type == HK_NOTIFY_PAGERDUTY;
  default:
    return false;
  }
}

static void receiver_batch_keep(struct hk_receiver *r, const struct hk_logged *l, bool again)
{
  const size_t at = r->batch.names.size;
  hk_buffer_put(&r->batch.names, l->name.data, l->name.length);
  struct hk_notice *n = &r->batch.notice[r->batch.n++];
  *n = (struct hk_notice){ .logged = *l, .again = again && !hk_notice_over(&(struct hk_notice){ .logged = *l }) };
  n->logged.by = (struct hk_string){ "", 0 };
  n->logged.name.data = r->batch.names.data + at; /* the buffer has room for all, and does not move */
}

/* The strings are in the buffer, which moves: until the batch is complete, the change has their offsets. */
static void keep_incident(struct hk_receiver *r, const struct hk_logged_incident *i, const struct hk_logged *l, bool again)
{
  const size_t at = r->batch.texts.size;
  (void)hk_buffer_room(&r->batch.texts, 1);
  hk_buffer_put(&r->batch.texts, i->text.data, i->text.length);
  hk_buffer_put(&r->batch.texts, i->about.data, i->about.length);
  hk_buffer_put(&r->batch.texts, i->section.data, i->section.length);
  if (r->batch.texts.failed)
    return;
  receiver_batch_keep(r, l, again);
  r->batch.notice[r->batch.n - 1].change = *i;
  r->batch.notice[r->batch.n - 1].change.text.data = r->batch.texts.data;
  r->batch.notice[r->batch.n - 1].change.since = (int64_t)at;
}

/* An alert's event for a receiver of incidents: a pager acknowledges the incident of an acknowledged alert. */
static void note_member(struct hk_receiver *r, const struct hk_logged *l, bool tell)
{
  char name[HK_NAME_MAX + 1];
  struct hk_logged member = *l;
  struct hk_logged_incident i = { .position = l->position, .time = l->event.time, .since = l->event.time };
  if (!r->alerts.of_incidents.place)
    return;
  if (l->event.kind == HK_EVENT_CLEARED)
    hk_told_remove(&r->alerts.of_incidents, l);
  member.position = l->incident;
  if (l->event.kind == HK_EVENT_RAISED && l->incident != 0)
    hk_told_add(&r->alerts.of_incidents, &member);
  if (l->event.kind != HK_EVENT_ACKNOWLEDGED || (i.id = hk_told_position(&r->alerts.of_incidents, l)) == 0)
    return;
  struct hk_logged as = as_alert(&i, name);
  as.event.kind = HK_EVENT_ACKNOWLEDGED;
  if (hk_told_position(&r->alerts.told, &as) == 0) /* it is over, or was acknowledged before */
    return;
  hk_told_hush(&r->alerts.told, &as);
  if (tell)
    keep_incident(r, &i, &as, false);
}

static void receiver_batch_take(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (r->rule.about.incidents)
    note_member(r, l, true);
  else if (receiver_batch_choose(r, l))
    receiver_batch_keep(r, l, false);
}

/* Of held alerts: a raised one that is to be sent. */
static void receiver_batch_take_held(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  const bool raised = l->event.kind == HK_EVENT_RAISED || l->event.kind == HK_EVENT_CORRECTED;
  if (!r->rule.about.incidents && raised && receiver_batch_choose(r, l))
    receiver_batch_keep(r, l, false);
}

static void take_again(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (!r->rule.about.incidents)
    receiver_batch_keep(r, l, true);
}

/* Alerts that were held then were not sent. */
static void look_back(struct hk_receiver *r, uint64_t position)
{
  r->quiet = r->place.held != 0 && position >= r->place.held;
}

static void receiver_batch_remember(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (l->position > r->place.position)
    return;
  look_back(r, l->position);
  if (r->rule.about.incidents)
    note_member(r, l, false);
  else
    (void)receiver_batch_choose(r, l);
}

/* The batch is complete: its strings no longer move. */
static void settle_texts(struct hk_receiver *r)
{
  for (uint32_t i = 0; i < r->batch.n; i++) {
    struct hk_logged_incident *c = &r->batch.notice[i].change;
    if (c->id == 0)
      continue;
    c->text.data = r->batch.texts.data + c->since;
    c->about.data = c->text.data + c->text.length;
    c->section.data = c->about.data + c->about.length;
    c->sensors = hk_string("");
    c->since = r->batch.notice[i].logged.event.instant;
  }
}

static void receiver_batch_take_incident(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  if (choose_incident(r, i, &l))
    keep_incident(r, i, &l, false);
}

static void take_incident_held(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  const bool passed = i->severity >= r->rule.quiet.severity && hk_told_has(&r->alerts.told, &l);
  if (l.event.kind != HK_EVENT_CLEARED && !passed)
    receiver_batch_take_incident(arg, i);
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
  if (i->position > r->place.position)
    return;
  look_back(r, i->position);
  (void)choose_incident(r, i, &l);
}

static void look_for_incidents_end(void *arg, const struct hk_logged_incident *i)
{
  struct hk_receiver *r = arg;
  char name[HK_NAME_MAX + 1];
  const struct hk_logged l = as_alert(i, name);
  if (l.event.kind == HK_EVENT_CLEARED && (r->rule.after > 0 || r->late))
    hk_told_add(&r->alerts.ended, &l);
}

/* Reads further and visits the events of the rule's kind. Returns how many events of the log were read. */
static uint32_t read_on(struct hk_receiver *r, struct hk_eventlog_cursor *c, uint64_t last, uint32_t most,
                        void (*event)(void *arg, const struct hk_logged *logged),
                        void (*incident)(void *arg, const struct hk_logged_incident *incident))
{
  const bool notes =
      r->rule.about.incidents && r->rule.type == HK_NOTIFY_PAGERDUTY; /* to which incidents they belong is settled later */
  const struct hk_eventlog_visit visit = { .event = r->rule.about.incidents && !notes ? NULL : event,
                                           .incident = r->rule.about.incidents ? incident : NULL,
                                           .waits = notes };
  return hk_eventlog_visit(r->events, c, last, most, &visit, r);
}

static void look_for_end(void *arg, const struct hk_logged *l)
{
  struct hk_receiver *r = arg;
  if (l->event.kind == HK_EVENT_ACKNOWLEDGED || (l->event.kind == HK_EVENT_CLEARED && (r->rule.after > 0 || r->late)))
    hk_told_add(&r->alerts.ended, l);
}

void hk_receiver_remember(struct hk_receiver *r)
{
  struct hk_eventlog_cursor c = { .next = hk_eventlog_first(r->events) };
  hk_told_clear(&r->alerts.told);
  hk_told_clear(&r->alerts.ended);
  if (r->alerts.of_incidents.place)
    hk_told_clear(&r->alerts.of_incidents);
  while (read_on(r, &c, r->place.position, TOGETHER, receiver_batch_remember, remember_incident) > 0 &&
         !atomic_load(&r->thread.quit)) {
  }
}

/* Which alerts after a position have ended by now. */
static void look_ahead(struct hk_receiver *r, uint64_t from)
{
  struct hk_eventlog_cursor ahead = { .next = from };
  hk_told_clear(&r->alerts.ended);
  while (read_on(r, &ahead, hk_eventlog_shown(r->events), TOGETHER, look_for_end, look_for_incidents_end) > 0) {
  }
  r->batch.n = 0;
  r->batch.names.size = r->batch.texts.size = 0;
}

/* The batch is read. False: no memory; the next turn tries again. */
static bool receiver_batch_settle(struct hk_receiver *r, const struct hk_eventlog_cursor *c)
{
  if (r->batch.texts.failed) {
    hk_buffer_free(&r->batch.texts);
    hk_receiver_remember(r);
    r->batch.n = 0;
    return false;
  }
  settle_texts(r);
  if (c->missed == 0)
    return true;
  hk_log(r->log, HK_LOG_WARNING,
         "[notify %s]: the event log has deleted %llu events before they were read (event_log is too small for so long an "
         "outage): alerts among them were not delivered",
         r->rule.name, (unsigned long long)c->missed);
  pthread_mutex_lock(&r->lock);
  r->look.lost += c->missed;
  pthread_mutex_unlock(&r->lock);
  return true;
}

void hk_receiver_choose(struct hk_receiver *r, uint64_t last)
{
  struct hk_eventlog_cursor c = { .next = r->place.position + 1 };
  const uint64_t held = r->place.held;
  look_ahead(r, c.next);
  while (r->batch.n + TOGETHER <= HK_BATCH &&
         read_on(r, &c, last, TOGETHER, receiver_batch_take, receiver_batch_take_incident) > 0) {
  }
  const bool settled = receiver_batch_settle(r, &c);
  if (!settled)
    r->place.held = held;
  r->place.until = settled && c.next - 1 > r->place.position ? c.next - 1 : r->place.position;
}

uint64_t hk_receiver_choose_held(struct hk_receiver *r)
{
  struct hk_eventlog_cursor c = { .next = r->place.held };
  r->late = true;
  look_ahead(r, c.next);
  r->late = false;
  while (r->batch.n + TOGETHER <= HK_BATCH &&
         read_on(r, &c, r->place.position, TOGETHER, receiver_batch_take_held, take_incident_held) > 0) {
  }
  return receiver_batch_settle(r, &c) ? c.next : r->place.held;
}

uint32_t hk_receiver_again(struct hk_receiver *r, const uint64_t *position, uint32_t n)
{
  r->batch.n = 0;
  r->batch.names.size = r->batch.texts.size = 0;
  for (uint32_t i = 0; i < n && r->batch.n < HK_BATCH; i++) {
    struct hk_eventlog_cursor c = { .next = position[i] };
    (void)read_on(r, &c, position[i], 1, take_again, take_incident_again);
  }
  settle_texts(r);
  return r->batch.n;
}
