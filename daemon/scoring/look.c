/* Copies a sensor's state from the device. See look.h. */
#include "daemon/scoring/look.h"

#include "cpu/backend/state_size.h"
#include "daemon/sensors/companions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hk_look *hk_look_new(uint32_t handle, void (*ready)(void *arg), void *arg)
{
  struct hk_look *l = calloc(1, sizeof *l);
  if (!l)
    return NULL;
  l->handle = handle;
  l->ready = ready;
  l->arg = arg;
  atomic_store_explicit(&l->holders, 2, memory_order_relaxed);
  atomic_store_explicit(&l->outcome, HK_LOOK_WAITS, memory_order_relaxed);
  return l;
}

void hk_look_release(struct hk_look *l)
{
  if (!l || atomic_fetch_sub_explicit(&l->holders, 1, memory_order_acq_rel) != 1)
    return;
  for (uint32_t i = 0; i < l->n; i++)
    free(l->part[i].state);
  free(l);
}

void hk_look_post(struct hk_shard *s, struct hk_look *l)
{
  struct hk_look *top = atomic_load_explicit(&s->requests.looks.posted, memory_order_relaxed);
  l->posted = hk_now();
  do
    l->next = top;
  while (!atomic_compare_exchange_weak_explicit(&s->requests.looks.posted, &top, l, memory_order_release, memory_order_relaxed));
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
}

static void look_answer(struct hk_look *l, int outcome)
{
  void (*ready)(void *) = l->ready;
  void *arg = l->arg;
  atomic_store_explicit(&l->outcome, outcome, memory_order_release);
  hk_look_release(l);
  ready(arg);
}

/* Whether a batch in flight names one of the look's sensors. */
static bool in_flight(const struct hk_shard *s, const struct hk_look *l)
{
  for (uint32_t i = 0; i < hk_queue_in_flight(&s->queue); i++) {
    const struct hk_batch *b = hk_queue_flying(&s->queue, i)->batch;
    if (b->kind == HK_BATCH_SWEEP)
      return true;
    for (uint32_t k = 0; k < b->n; k++)
      for (uint32_t p = 0; p < l->n; p++)
        if (b->slot[k] == hk_slot_within(s->all, l->part[p].slot))
          return true;
  }
  return false;
}

/* Lists the sensor and its companions. */
static void name_parts(const struct hk_shard *s, struct hk_look *l, uint32_t slot)
{
  const struct hk_registry *registry = s->all->registry;
  uint32_t companion = slot;
  l->n = 0;
  do {
    const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, companion));
    if (d) {
      struct hk_look_part *part = &l->part[l->n++];
      *part = (struct hk_look_part){ .slot = companion, .detector = d->detector };
      memcpy(part->section, d->name, sizeof part->section);
    }
    companion = hk_registry_next_companion(registry, companion);
  } while (companion != slot && l->n < HK_ALGORITHMS);
}

static int look_copy(struct hk_shard *s, struct hk_look_part *part)
{
  struct hk_device *device = s->device;
  struct hk_backend *b = device->backend;
  const size_t most = hk_state_most(&part->detector);
  part->state = malloc(most);
  if (!part->state)
    return -ENOMEM;
  pthread_mutex_lock(&device->calls);
  const int64_t size = b->ops->export_(b, hk_slot_within(s->all, part->slot), part->state, most);
  pthread_mutex_unlock(&device->calls);
  if (size >= 0 && (size_t)size <= most) {
    part->size = (size_t)size;
    return 0;
  }
  free(part->state); /* it has no points yet, or has no backend, as a machine */
  part->state = NULL;
  return 0;
}

/* Takes a look. False: it must wait. */
static bool look_take(struct hk_shard *s, struct hk_look *l)
{
  struct hk_registry *registry = s->all->registry;
  const uint32_t slot = l->handle & 0xffffff;
  int status = 0;
  if (!s->device) {
    look_answer(l, hk_failover_moves(&s->failover) ? -EAGAIN : -ENODEV);
    return true;
  }
  if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != l->handle) {
    look_answer(l, -ENOENT);
    return true;
  }
  name_parts(s, l, slot);
  if (in_flight(s, l))
    return false;
  for (uint32_t i = 0; i < l->n && status == 0; i++)
    status = look_copy(s, &l->part[i]);
  l->taken = hk_wall();
  look_answer(l, status);
  return true;
}

bool hk_shard_take_looks(struct hk_shard *s)
{
  if (!s->requests.looks.waiting && !atomic_load_explicit(&s->requests.looks.posted, memory_order_relaxed))
    return false;
  struct hk_look *l = atomic_exchange_explicit(&s->requests.looks.posted, NULL, memory_order_acquire);
  bool any = false;
  for (struct hk_look *next; l; l = next) {
    next = l->next;
    l->next = s->requests.looks.waiting;
    s->requests.looks.waiting = l;
  }
  const bool held = hk_shard_look_waits(s);
  for (struct hk_look **link = &s->requests.looks.waiting; *link;) {
    l = *link;
    struct hk_look *next = l->next;
    if (look_take(s, l)) {
      *link = next;
      any = true;
    } else {
      link = &l->next;
    }
  }
  if (any && held)
    s->requests.looks.held = hk_now();
  return any;
}

bool hk_shard_look_waits(const struct hk_shard *s)
{
  const int64_t now = s->requests.looks.waiting ? hk_now() : 0;
  if (now - s->requests.looks.held < HK_LOOK_REST)
    return false;
  for (const struct hk_look *l = s->requests.looks.waiting; l; l = l->next)
    if (now - l->posted >= HK_LOOK_PATIENCE)
      return true;
  return false;
}

static void look_drop(struct hk_look *l)
{
  for (struct hk_look *next; l; l = next) {
    next = l->next;
    hk_look_release(l);
  }
}

void hk_shard_drop_looks(struct hk_shard *s)
{
  look_drop(atomic_exchange_explicit(&s->requests.looks.posted, NULL, memory_order_acquire));
  look_drop(s->requests.looks.waiting);
  s->requests.looks.waiting = NULL;
}
