/* Hands deliveries to the loops. They come back through a list that any thread adds to and that the shard takes as a whole. */
#include "daemon/scoring/hand_over.h"

#include <stdlib.h>

void hk_shard_settled(struct hk_shard *s)
{
  atomic_fetch_add_explicit(&s->all->settled, 1, memory_order_release);
  for (uint32_t i = 0; i < s->all->n_loops; i++)
    hk_wake_up(s->lanes[i].loop, HK_WAKE_ROOM);
}

void hk_delivery_release(struct hk_delivery *p, struct hk_counters *counters)
{
  if (atomic_fetch_sub_explicit(&p->holders, 1, memory_order_acq_rel) > 1)
    return;
  struct hk_shard *s = p->shard;
  const uint32_t n_runs = p->n_runs;
  hk_count(&counters->late, p->late);
  hk_count(&counters->derived_late, p->derived.late); /* after `late`, so that a sum never has more of these */
  hk_count(&counters->rejected, p->rejected);
  hk_count(&counters->derived_rejected, p->derived.rejected); /* likewise */
  hk_count(&counters->scored, p->scored);
  hk_count(&counters->unscored, p->unscored);
  hk_count(&counters->failed, p->failed);
  hk_count(&counters->device_lost, p->device_lost);
  for (uint32_t i = 0; i < n_runs; i++)
    hk_source_done(p->runs[i].source, p->runs[i].n);
  hk_queue_return(&s->queue, p);
  hk_wake_up(&s->life.wake, HK_WAKE_BATCH);
  if (n_runs > 0)
    hk_shard_settled(s);
}

void hk_shard_hand_over(struct hk_shard *s, struct hk_delivery *p, bool all)
{
  uint32_t to = 1; /* this shard */
  bool wants[HK_LOOPS_MAX];
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    wants[i] = all || atomic_load_explicit(s->lanes[i].subscriptions, memory_order_acquire) > 0;
    to += wants[i];
  }
  p->shard = s;
  if (p->device)
    atomic_fetch_add_explicit(&p->device->lent, 1, memory_order_relaxed);
  atomic_store_explicit(&p->holders, to, memory_order_relaxed);
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    if (!wants[i])
      continue;
    if (hk_ring_put(&s->lanes[i].deliveries, p))
      hk_wake_up(s->lanes[i].loop, HK_WAKE_WORK);
    else
      hk_delivery_release(p, &s->counters); /* cannot happen: the ring has room for all deliveries */
  }
  hk_delivery_release(p, &s->counters);
}

void hk_shard_send_after(struct hk_shard *s, struct hk_delivery *p)
{
  atomic_fetch_add_explicit(&p->holders, s->all->n_loops, memory_order_relaxed);
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    if (hk_ring_put(&s->lanes[i].deliveries, p))
      hk_wake_up(s->lanes[i].loop, HK_WAKE_WORK);
    else
      hk_delivery_release(p, &s->counters); /* cannot happen, as above */
  }
}

static void hand_over_take_back(struct hk_shard *s, struct hk_delivery *p)
{
  struct hk_device *d = p->device;
  if (p->kind == HK_DELIVERY_RETIRE || p->kind == HK_DELIVERY_FORGET) {
    p->back = true;
  } else if (!d) {
    if (p->batch)
      free(p->batch->event);
    free(p->batch);
    free(p->words);
    free(p->by);
    free(p);
  } else if (d != s->device) {
    atomic_fetch_sub_explicit(&d->lent, 1, memory_order_release); /* the device is abandoned, and may be freed now */
  } else {
    atomic_fetch_sub_explicit(&d->lent, 1, memory_order_relaxed);
    if (p->kind == HK_DELIVERY_EXPORT) {
      hk_queue_give_export(&s->queue, p);
    } else if (p->batch->kind == HK_BATCH_SWEEP) {
      s->queue.sweeps.delivery = p;
    } else {
      hk_queue_give(&s->queue, p);
    }
  }
}

bool hk_shard_take_back(struct hk_shard *s)
{
  struct hk_delivery *p = hk_queue_returned(&s->queue);
  const bool any = p != NULL;
  for (struct hk_delivery *next; p; p = next) {
    next = p->next;
    hand_over_take_back(s, p);
  }
  return any;
}
