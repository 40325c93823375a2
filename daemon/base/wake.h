/* Waking a thread that sleeps in its event loop, and only then: under load a wake-up costs one atomic operation.
 *
 *   sleeper: does what there is to do -> hk_sleep: false -> looks again
 *                                                  true -> waits in the loop -> hk_awake -> looks again
 *   others:  put work where the sleeper finds it -> hk_wake_up
 *
 * Whoever wakes leaves a mark, and hk_sleep is false when there is one; so nothing that is put down before the sleep is slept
 * over, and nothing that comes later either. */
#ifndef HK_WAKE_H
#define HK_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* What a thread may be woken for. */
enum {
  HK_WAKE_WORK = 1,  /* something was put into one of its rings, a batch has finished, or an order was given */
  HK_WAKE_ROOM = 2,  /* a chunk came back empty, or points were dealt with */
  HK_WAKE_TAKEN = 4, /* a sealed chunk of this loop was taken by a shard */
  HK_WAKE_BATCH = 8, /* a delivery came back to its shard */
  HK_WAKE_SHIFT = 4, /* marks are below, above them what a sleeper wants to be woken for: nothing when it is awake */
};

struct hk_wake {
  uv_async_t async; /* its callback does nothing: what there is to do is looked for after every sleep */
  atomic_uint state;
};

static inline void hk_wake_nothing(uv_async_t *async)
{
  (void)async;
}

/* 0, or a negative errno. It is closed with the loop's other handles. */
static inline int hk_wake_init(struct hk_wake *w, uv_loop_t *loop)
{
  atomic_init(&w->state, 0);
  return uv_async_init(loop, &w->async, hk_wake_nothing);
}

/* Whether the thread may sleep until it is woken for one of these reasons; false: it was woken for one since it last slept.
 * Thread: the sleeper's. */
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
