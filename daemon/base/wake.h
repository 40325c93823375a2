/* Wakes a thread that sleeps in its event loop. While the thread is awake, a wake-up costs one atomic operation.
 *
 *   sleeper: does the pending work -> hk_sleep: false -> looks again
 *                                                  true -> waits in the loop -> hk_awake -> looks again
 *   others: publish work in a ring -> hk_wake_up
 *
 * hk_wake_up leaves a mark, and hk_sleep returns false if there is one: so work published before or during the sleep is not
 * missed. */
#ifndef HK_WAKE_H
#define HK_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* Reasons for waking a thread. */
enum {
  HK_WAKE_WORK = 1,  /* something was put into one of its rings, a batch finished, or an order was given */
  HK_WAKE_ROOM = 2,  /* a chunk came back empty, or points got their results */
  HK_WAKE_TAKEN = 4, /* a sealed chunk of this loop was taken by a shard */
  HK_WAKE_BATCH = 8, /* a delivery came back to its shard */
  HK_WAKE_SHIFT = 4, /* low bits: marks; above: the reasons to wake the sleeper, 0 while it is awake */
};

struct hk_wake {
  uv_async_t async; /* its callback does nothing: the thread looks for work after each sleep */
  atomic_uint state;
};

static inline void hk_wake_nothing(uv_async_t *async)
{
  (void)async;
}

/* Returns 0 or a negative errno. The caller closes `async` with the loop's other handles. */
static inline int hk_wake_init(struct hk_wake *w, uv_loop_t *loop)
{
  atomic_init(&w->state, 0);
  return uv_async_init(loop, &w->async, hk_wake_nothing);
}

/* Whether the thread may sleep until woken for one of these reasons; false: it was woken for one since it last slept. Thread: the
 * sleeper. */
static inline bool hk_sleep(struct hk_wake *w, unsigned reasons)
{
  if (!(atomic_exchange_explicit(&w->state, reasons << HK_WAKE_SHIFT, memory_order_acq_rel) & reasons))
    return true;
  atomic_store_explicit(&w->state, 0, memory_order_relaxed);
  return false;
}

/* Thread: the sleeper's. */
static inline void hk_awake(struct hk_wake *w)
{
  (void)atomic_exchange_explicit(&w->state, 0, memory_order_acquire);
}

/* Thread: any. */
static inline void hk_wake_up(struct hk_wake *w, unsigned reason)
{
  const unsigned before = atomic_fetch_or_explicit(&w->state, reason, memory_order_acq_rel), wanted = before >> HK_WAKE_SHIFT;
  if (wanted & reason && !(wanted & before))
    (void)uv_async_send(&w->async); /* fails on a handle that is closing only */
}

#endif
