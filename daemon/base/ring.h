/* Ring: a queue of pointers from one thread to one other. Neither ever waits for the other, and no memory is asked for once it is
 * made. What was written before a put is seen after the take that brings it. (ck_ring does the same, but in a way that
 * ThreadSanitizer cannot see.) */
#ifndef HK_RING_H
#define HK_RING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct hk_ring {
  void **places;
  uint32_t mask;
  _Alignas(64) atomic_uint put;   /* how many were put in, modulo 2^32; moved by the one who puts */
  _Alignas(64) atomic_uint taken; /* and taken out; moved by the one who takes */
};

/* least: how many it holds at least. 0 or -ENOMEM. */
static inline int hk_ring_init(struct hk_ring *r, uint32_t least)
{
  uint32_t size = 2;
  while (size < least)
    size *= 2;
  r->mask = size - 1;
  atomic_init(&r->put, 0);
  atomic_init(&r->taken, 0);
  r->places = calloc(size, sizeof *r->places);
  return r->places ? 0 : -ENOMEM;
}

static inline void hk_ring_free(struct hk_ring *r)
{
  free(r->places);
  r->places = NULL;
}

/* False: it is full. */
static inline bool hk_ring_put(struct hk_ring *r, void *what)
{
  const uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
  if (put - atomic_load_explicit(&r->taken, memory_order_acquire) > r->mask)
    return false;
  r->places[put & r->mask] = what;
  atomic_store_explicit(&r->put, put + 1, memory_order_release);
  return true;
}

/* Thread: either. What the one who asks has done itself is seen at once. */
static inline bool hk_ring_empty(const struct hk_ring *r)
{
  return atomic_load_explicit(&r->taken, memory_order_acquire) == atomic_load_explicit(&r->put, memory_order_acquire);
}

/* How many are in it. Thread: either; the other may put or take at any time. */
static inline uint32_t hk_ring_count(const struct hk_ring *r)
{
  const uint32_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
  return atomic_load_explicit(&r->put, memory_order_acquire) - taken;
}

/* The one that is taken after i others, which are in it. Thread: the one who takes. */
static inline const void *hk_ring_look(const struct hk_ring *r, uint32_t i)
{
  return r->places[(atomic_load_explicit(&r->taken, memory_order_relaxed) + i) & r->mask];
}

/* NULL: it is empty. */
static inline void *hk_ring_take(struct hk_ring *r)
{
  const uint32_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
  if (taken == atomic_load_explicit(&r->put, memory_order_acquire))
    return NULL;
  void *what = r->places[taken & r->mask];
  atomic_store_explicit(&r->taken, taken + 1, memory_order_release);
  return what;
}

#endif
