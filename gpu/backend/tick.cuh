/* The work of a lane for a sensor before and after a score: processes the next point, and decides. One lane for each sensor, in
 * device memory. Neither function is inlined: they are long, and their registers must not count against those of the score. */
#ifndef HK_TICK_CUH
#define HK_TICK_CUH

#include "gpu/backend/device_types.h"

/* Tells memory that `bytes` from `at` on will be read later, a sector a lane: by n lanes, of which this one is number `lane`. The
 * L1 cache is left to what is read now. */
static __device__ __forceinline__ void hk_tick_later(const void *at, uint32_t bytes, uint32_t lane, uint32_t n)
{
#pragma unroll 1
  for (uint32_t byte = lane * HK_CUDA_SECTOR; byte < bytes; byte += n * HK_CUDA_SECTOR)
    asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)at + byte));
}

/* Tells memory that this lane reads a record now, but for vector and ring: its parts are read one after the other. */
static __device__ __forceinline__ void hk_tick_now(const struct hk_cuda_record *record)
{
#pragma unroll
  for (uint32_t byte = 0; byte < sizeof *record; byte += HK_CUDA_SECTOR)
    asm volatile("prefetch.global.L1 [%0];" ::"l"((const char *)record + byte));
}

/* Applies the rules of the window to a point. */
static __device__ __noinline__ struct hk_step hk_tick_take(const struct hk_detector *d, struct hk_cuda_record *record,
                                                           int64_t time, double value, int64_t arrival)
{
  const bool started = record->window.started;
  const struct hk_step step =
      hk_window_take(&record->window, hk_cuda_ring(record, d), d, time, value, arrival, record->alert.raised);
  if (step.restarted || started != (bool)record->window.started)
    record->anew = 1;
  return step;
}

/* Writes an event, in which all fields but index and slot are set. Events are not ordered; the host sorts them. */
static __device__ void hk_tick_event(const struct hk_cuda_columns *columns, const struct hk_cuda_record *record, uint32_t index,
                                     struct hk_event *event)
{
  const uint32_t place = atomicAdd(columns->n_events, 1u);
  if (place >= columns->capacity)
    return;
  event->index = index;
  event->slot = record->slot;
  columns->event[place] = *event;
}

/* Writes the point's results and applies the alert rule. z is NaN if no score was due. */
static __device__ __noinline__ void hk_tick_decide(const struct hk_detector *d, struct hk_cuda_record *record,
                                                   const struct hk_cuda_columns *columns, uint32_t index, struct hk_step step,
                                                   float z, float share)
{
  columns->score[index] = z;
  columns->state[index] = step.state;
  struct hk_event event;
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED ||
      !hk_alert_decide(&record->alert, &record->window, hk_cuda_ring(record, d), d, step, z, share, &event))
    return;
  hk_tick_event(columns, record, index, &event);
}

#endif
