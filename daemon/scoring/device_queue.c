#include "daemon/scoring/device_queue.h"

#define BATCH_TIME 250000000 /* approximate maximum duration of a batch, ns */
#define BATCH_LEAST 64       /* a batch is not reduced for that below this fraction of its capacity */
#define BATCH_FIRST 16       /* the fraction of its capacity that the first batch may use */
#define REFUSALS 16          /* consecutive ones for lack of memory, after which the device is lost */

void hk_queue_adopt(struct hk_device_queue *q, struct hk_device *device)
{
  q->most = device->kind->batch / BATCH_FIRST;
  for (unsigned i = 0; i < device->batches; i++)
    hk_queue_give(q, device->deliveries[i]);
  q->sweeps.delivery = device->deliveries[device->batches];
  for (unsigned i = 0; i < HK_EXPORTS && device->exports[i]; i++)
    hk_queue_give_export(q, device->exports[i]);
}

void hk_queue_abandon(struct hk_device_queue *q)
{
  q->free = q->filled = q->exports = q->sweeps.delivery = NULL;
  q->refusals = 0;
  q->stalled = 0;
}

void hk_queue_put(struct hk_device_queue *q, struct hk_delivery *p)
{
  q->flying[(q->first + q->in_flight) % HK_IN_FLIGHT] = p;
  q->in_flight++;
}

struct hk_delivery *hk_queue_pop(struct hk_device_queue *q)
{
  struct hk_delivery *p = q->flying[q->first];
  q->first = (q->first + 1) % HK_IN_FLIGHT;
  q->in_flight--;
  q->back++;
  return p;
}

const struct hk_delivery *hk_queue_flying(const struct hk_device_queue *q, uint32_t i)
{
  return q->flying[(q->first + i) % HK_IN_FLIGHT];
}

int64_t hk_queue_back(struct hk_device_queue *q, int64_t now)
{
  const int64_t before = q->back_at;
  q->back_at = now;
  return before;
}

void hk_queue_pace(struct hk_device_queue *q, const struct hk_delivery *p, int64_t before)
{
  const struct hk_batch *b = p->batch;
  const int64_t launched = p->stamps.submitted, reaped = p->stamps.reaped;
  const int64_t busy = reaped - (launched > before ? launched : before); /* until then the device worked on the batch before */
  const uint32_t least = b->capacity / BATCH_LEAST;
  q->refusals = 0;
  hk_histogram_add(&q->took, reaped - launched, 1);
  if (busy > 2 * BATCH_TIME && q->most / 2 >= least)
    q->most /= 2;
  else if (busy < BATCH_TIME / 2 && b->n == q->most && q->most < b->capacity)
    q->most *= 2;
}

int64_t hk_queue_watch(struct hk_device_queue *q, int64_t now, int64_t most)
{
  const int64_t since = now - q->watched, counts = q->watched == 0 ? 0 : since < most ? since : most;
  q->stalled = q->in_flight > 0 && q->back == q->back_then ? q->stalled + counts : 0;
  q->watched = now;
  q->back_then = q->back;
  return counts;
}

bool hk_queue_refused(struct hk_device_queue *q)
{
  return ++q->refusals >= REFUSALS;
}

void hk_queue_use(struct hk_device_queue *q)
{
  q->free = q->free->next;
  q->made++;
}

void hk_queue_give(struct hk_device_queue *q, struct hk_delivery *p)
{
  p->next = q->free;
  q->free = p;
}

void hk_queue_give_export(struct hk_device_queue *q, struct hk_delivery *p)
{
  p->next = q->exports;
  q->exports = p;
}

void hk_queue_begin_export(struct hk_device_queue *q)
{
  q->exports = q->exports->next;
  q->exporting = true;
}

void hk_queue_return(struct hk_device_queue *q, struct hk_delivery *p)
{
  struct hk_delivery *top = atomic_load_explicit(&q->returned, memory_order_relaxed);
  do
    p->next = top;
  while (!atomic_compare_exchange_weak_explicit(&q->returned, &top, p, memory_order_release, memory_order_relaxed));
}

struct hk_delivery *hk_queue_returned(struct hk_device_queue *q)
{
  return atomic_exchange_explicit(&q->returned, NULL, memory_order_acquire);
}
