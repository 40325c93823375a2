/* Ring: a bounded queue of pointers from one thread to another (single producer, single consumer). Neither waits for the other;
 * memory is allocated only at the start. Writes before a put are visible after the corresponding take. (ck_ring does the same,
 * but ThreadSanitizer cannot see its synchronisation.) */
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
  _Alignas(64) atomic_uint put;   /* number of puts, modulo 2^32; written by the producer */
  _Alignas(64) atomic_uint taken; /* number of takes, modulo 2^32; written by the consumer */
};

/* least: minimum capacity. Returns 0 or -ENOMEM. */
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

/* Thread: the producer. False: the ring is full. */
static inline bool hk_ring_put(struct hk_ring *r, void *what)
{
  const uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
  if (put - atomic_load_explicit(&r->taken, memory_order_acquire) > r->mask)
    return false;
  r->places[put & r->mask] = what;
  atomic_store_explicit(&r->put, put + 1, memory_order_release);
  return true;
}

/* Thread: either; its own puts or takes are visible at once. */
static inline bool hk_ring_empty(const struct hk_ring *r)
{
  return atomic_load_explicit(&r->taken, memory_order_acquire) == atomic_load_explicit(&r->put, memory_order_acquire);
}

/* Number of elements. Thread: either; the other may put or take meanwhile. */
static inline uint32_t hk_ring_count(const struct hk_ring *r)
{
  const uint32_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
  return atomic_load_explicit(&r->put, memory_order_acquire) - taken;
}

/* The element that is taken after i others; i is less than the number of elements. Thread: the consumer. */
static inline const void *hk_ring_look(const struct hk_ring *r, uint32_t i)
{
  return r->places[(atomic_load_explicit(&r->taken, memory_order_relaxed) + i) & r->mask];
}

/* Thread: the consumer. NULL: the ring is empty. */
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
