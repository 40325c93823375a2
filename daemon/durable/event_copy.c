#include "daemon/durable/event_copy.h"
#include "daemon/durable/event_log_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING 0u /* an empty record */

int hk_copy_open(struct hk_eventlog **out, uint64_t most)
{
  struct hk_eventlog *l = calloc(1, sizeof *l);
  if (!l)
    return -ENOMEM;
  l->kept.most = most < HK_EVENTLOG_LEAST ? HK_EVENTLOG_LEAST : most;
  pthread_mutex_init(&l->lock, NULL);
  int status = hk_shared_open(&l->shared);
  if (status == 0)
    status = hk_past_open(&l->past);
  if (status != 0) {
    hk_eventlog_free(l);
    return status;
  }
  *out = l;
  return 0;
}

void hk_copy_on_operation(struct hk_eventlog *l, void (*operated)(void *arg, const struct hk_logged_operation *operation),
                          void *arg)
{
  l->operated = operated;
  l->operated_arg = arg;
}

/* --- from the shared log ---------------------------------------------------------------------------------------------------- */

/* Whether an event was told before. */
static bool event_copy_is_known(const struct hk_eventlog *l, const struct hk_logged *e)
{
  const struct hk_past_reached *r = hk_past_look(&l->past, 0, e->name);
  if (!r)
    return false;
  if (e->event.kind == HK_EVENT_ACKNOWLEDGED)
    return r->noted == e->event.number;
  return e->sequence <= r->sequence && e->event.time <= r->time;
}

static bool event_copy_take_event(struct hk_eventlog *l, uint64_t position, const uint8_t *payload, size_t size)
{
  struct hk_logged e;
  if (!hk_logged_read(payload, size, &e) || event_copy_is_known(l, &e))
    return false;
  e.position = position;
  e.handle = 0;
  hk_blocks_keep(&l->kept, position, HK_RECORD_EVENT, payload, size);
  (void)hk_past_reach(&l->past, &e); /* without memory a repeated one is told again */
  return true;
}

/* Whether only the leader writes such a record. Operators may mark incidents at any machine. */
static bool is_leaders(uint32_t type, const uint8_t *payload)
{
  struct hk_logged_incident incident;
  if (type != HK_RECORD_INCIDENT)
    return type == HK_RECORD_SETTLED;
  hk_logged_incident_view(payload, &incident);
  return incident.kind < HANKEL_INCIDENT_EXPECTED;
}

/* Why a record is left out that an older build than its writer's cannot read; NULL: it can be read. */
static const char *event_copy_fault(const struct hk_shared_record *r)
{
  if (r->type >= HK_SHARED_PLACE && r->type <= HK_SHARED_WISH)
    return NULL;
  if (r->type < HK_RECORD_EVENT || r->type > HK_RECORD_OPERATION)
    return "it is of a kind that this hankeld does not know: upgrade this machine";
  return hk_log_record_valid(r->type, r->payload, r->size) ? NULL : "it does not have the layout of its kind";
}

/* Keeps a record without fault. Under the lock. */
static bool take_record(struct hk_eventlog *l, uint64_t position, const struct hk_shared_record *r)
{
  struct hk_logged_settled settled;
  struct hk_logged_operation operation;
  switch (r->type) {
  case HK_RECORD_EVENT:
    return event_copy_take_event(l, position, r->payload, r->size);
  case HK_RECORD_INCIDENT:
  case HK_RECORD_SETTLED:
  case HK_RECORD_OPERATION:
    if (!r->leads && is_leaders(r->type, r->payload))
      return false;
    hk_blocks_keep(&l->kept, position, r->type, r->payload, r->size);
    if (r->type == HK_RECORD_OPERATION && l->operated && hk_logged_operation_read(r->payload, r->size, &operation))
      l->operated(l->operated_arg, &operation);
    if (r->type == HK_RECORD_SETTLED && hk_logged_settled_read(r->payload, r->size, &settled))
      hk_eventlog_assign(l, &settled);
    return true;
  default: /* a place, or a mark */
    return false;
  }
}

bool hk_copy_take(struct hk_eventlog *l, uint64_t offset, const void *message, size_t size, const char **why)
{
  const uint64_t position = offset + 1;
  struct hk_shared_record r;
  bool good = hk_shared_read(l->shared, message, size, &r, why);
  if (good)
    good = (*why = event_copy_fault(&r)) == NULL;
  pthread_mutex_lock(&l->lock);
  if (!good || !take_record(l, position, &r))
    hk_blocks_keep(&l->kept, position, NOTHING, "", 0);
  pthread_mutex_unlock(&l->lock);
  hk_shared_reach(l->shared, position);
  return good;
}

/* --- standing alerts -------------------------------------------------------------------------------------------------------- */

static int event_copy_before(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

uint32_t hk_copy_standing(struct hk_eventlog *l, uint64_t *positions, uint32_t most, uint32_t *acknowledged)
{
  uint32_t n = 0;
  *acknowledged = 0;
  pthread_mutex_lock(&l->lock);
  for (uint64_t i = 0; hk_shared_is_ready(l->shared) && i < l->past.size; i++) {
    const struct hk_past_reached *r = &l->past.reached[i];
    if (r->key == 0 || r->open == 0)
      continue;
    if (n < most)
      positions[n] = r->open;
    n++;
    *acknowledged += r->noted == r->number;
  }
  pthread_mutex_unlock(&l->lock);
  if (n > 0 && most > 0)
    qsort(positions, n < most ? n : most, sizeof *positions, event_copy_before);
  return n;
}

static void copy_event(void *arg, const struct hk_logged *l)
{
  struct hk_logged *out = arg;
  out->event = l->event;
  out->sequence = l->sequence;
  out->position = l->position;
}

int64_t hk_copy_acknowledge(struct hk_eventlog *l, struct hk_string name, uint32_t *number, char by[HK_WHO_MAX + 1],
                            int64_t *when)
{
  struct hk_logged e = { .name = name };
  struct hk_eventlog_cursor cursor = { 0 };
  pthread_mutex_lock(&l->lock);
  const struct hk_past_reached *r = hk_shared_is_ready(l->shared) ? hk_past_look(&l->past, 0, name) : NULL;
  const bool stands = r && r->open != 0 && (*number == 0 || *number == r->number);
  const bool noted = stands && r->noted == r->number;
  const uint64_t sequence = r ? r->sequence : 0;
  if (stands) {
    *number = r->number;
    cursor.next = r->open;
  }
  if (noted) {
    memcpy(by, r->by, sizeof r->by);
    *when = r->when;
  }
  pthread_mutex_unlock(&l->lock);
  if (!stands || noted)
    return stands ? -EALREADY : -ENOENT;
  (void)hk_eventlog_read(l, &cursor, cursor.next, 1, copy_event, &e);
  if (e.position == 0) /* the log no longer has what raised it */
    return -ENOENT;
  e.event.kind = HK_EVENT_ACKNOWLEDGED;
  e.event.time = *when;
  const uint64_t appended = hk_eventlog_append(l, 0, name, sequence, &e.event, hk_string(by), 0);
  return appended > 0 ? (int64_t)appended : -ENOMEM;
}

bool hk_copy_noted(struct hk_eventlog *l, struct hk_string name, uint32_t number, char by[HK_WHO_MAX + 1], int64_t *when)
{
  pthread_mutex_lock(&l->lock);
  const struct hk_past_reached *r = hk_past_look(&l->past, 0, name);
  const bool is = r && r->noted != 0 && r->noted == number;
  if (is) {
    memcpy(by, r->by, sizeof r->by);
    *when = r->when;
  }
  pthread_mutex_unlock(&l->lock);
  return is;
}
