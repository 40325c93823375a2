/* Acknowledgements of alerts: from a loop to the shard that has the alert, and the answer back.
 * No point causes an acknowledgement, so it has no sequence of its own: it is published with that of the event before it. It
 * is answered once it is in the event log on the disk, from which the next start restores it; without an event log it goes to
 * the loops at once. */
#include "daemon/scoring/acknowledge.h"

#include "daemon/durable/durable.h"
#include "daemon/scoring/alert_log.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hk_acknowledgement *hk_acknowledgement_new(uint32_t handle, uint32_t number, struct hk_string by, int64_t when)
{
  struct hk_acknowledgement *n = calloc(1, sizeof *n);
  if (!n)
    return NULL;
  n->handle = handle;
  n->number = number;
  n->when = when;
  memcpy(n->by, by.data, by.length);
  atomic_store_explicit(&n->holders, 2, memory_order_relaxed);
  atomic_store_explicit(&n->outcome, HK_ACKNOWLEDGEMENT_WAITS, memory_order_relaxed);
  return n;
}

void hk_acknowledgement_release(struct hk_acknowledgement *n)
{
  if (n && atomic_fetch_sub_explicit(&n->holders, 1, memory_order_acq_rel) == 1)
    free(n);
}

void hk_acknowledgement_post(struct hk_shard *s, struct hk_acknowledgement *n)
{
  struct hk_acknowledgement *top = atomic_load_explicit(&s->requests.acknowledgements.posted, memory_order_relaxed);
  do
    n->next = top;
  while (!atomic_compare_exchange_weak_explicit(&s->requests.acknowledgements.posted, &top, n, memory_order_release,
                                                memory_order_relaxed));
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
}

static void answer(struct hk_shard *s, struct hk_acknowledgement *n, int outcome)
{
  atomic_store_explicit(&n->outcome, outcome, memory_order_release);
  hk_acknowledgement_release(n);
  hk_shard_settled(s);
}

/* Publishes an event that is in no log. Returns 0 or -ENOMEM. */
static int tell(struct hk_shard *s, const struct hk_event *e, const char *by)
{
  struct hk_delivery *p = calloc(1, sizeof *p);
  struct hk_batch *b = calloc(1, sizeof *b);
  struct hk_event *event = calloc(1, sizeof *event);
  char *who = strdup(by);
  if (!p || !b || !event || !who) {
    free(p);
    free(b);
    free(event);
    free(who);
    return -ENOMEM;
  }
  *event = *e;
  event->slot = hk_slot_outside(s, e->slot);
  *b = (struct hk_batch){ .kind = HK_BATCH_SWEEP, .capacity = 1, .n_events = 1, .event = event };
  p->kind = HK_DELIVERY_RESULTS;
  p->batch = b;
  p->by = who;
  hk_shard_hand_over(s, p, false);
  return 0;
}

static void take(struct hk_shard *s, struct hk_acknowledgement *n)
{
  struct hk_registry *registry = s->all->registry;
  const uint32_t slot = n->handle & 0xffffff, within = hk_slot_within(s->all, slot);
  struct hk_delivery nobody = { 0 };
  struct hk_event told;
  char before[HK_WHO_MAX + 1];
  if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != n->handle) {
    answer(s, n, -ENOENT);
    return;
  }
  const int status = hk_alerts_acknowledge(s->alerts, within, n->number, hk_string(n->by), n->when, &told, before);
  if (status == -EALREADY) {
    n->when = told.time;
    strcpy(n->by, before);
  }
  if (status != 0) {
    answer(s, n, status);
    return;
  }
  told.slot = within;
  n->number = told.number;
  if (!hk_shard_log_event(s, &nobody, &told, hk_string(n->by))) {
    answer(s, n, tell(s, &told, n->by));
  } else if (nobody.events == 0) {
    answer(s, n, -ENOMEM);
  } else {
    n->position = nobody.events;
    n->next = s->requests.acknowledgements.logged;
    s->requests.acknowledgements.logged = n;
  }
}

bool hk_shard_take_acknowledgements(struct hk_shard *s)
{
  if (!s->requests.acknowledgements.logged && !atomic_load_explicit(&s->requests.acknowledgements.posted, memory_order_relaxed))
    return false;
  struct hk_acknowledgement *n = atomic_exchange_explicit(&s->requests.acknowledgements.posted, NULL, memory_order_acquire);
  bool any = n != NULL;
  for (struct hk_acknowledgement *next; n; n = next) {
    next = n->next;
    take(s, n);
  }
  for (struct hk_acknowledgement **link = &s->requests.acknowledgements.logged; *link;) {
    n = *link;
    if (!hk_eventlog_safe(s->all->events, n->position)) {
      link = &n->next;
      continue;
    }
    *link = n->next;
    answer(s, n, 0);
    any = true;
  }
  return any;
}

static void drop(struct hk_acknowledgement *n)
{
  for (struct hk_acknowledgement *next; n; n = next) {
    next = n->next;
    hk_acknowledgement_release(n);
  }
}

void hk_shard_drop_acknowledgements(struct hk_shard *s)
{
  drop(atomic_exchange_explicit(&s->requests.acknowledgements.posted, NULL, memory_order_acquire));
  drop(s->requests.acknowledgements.logged);
  s->requests.acknowledgements.logged = NULL;
}
