/* A number by which a state of a field is known again: what the state depends on is mixed into a hash (FNV-1a of 64 bits, by G.
 * Fowler, L. C. Noll and P. Vo), whose halves are folded. Pure. */
#ifndef HK_STATE_MARK_H
#define HK_STATE_MARK_H

#include <stddef.h>
#include <stdint.h>

#define HK_STATE_MARK_BEGIN 14695981039346656037u

/* The hash with `size` bytes mixed in; the first one is HK_STATE_MARK_BEGIN. */
static inline uint64_t hk_state_mark_mix(uint64_t hash, const void *data, size_t size)
{
  const uint8_t *byte = data;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ byte[i]) * 1099511628211u;
  return hash;
}

/* The mark; never 0. */
static inline uint32_t hk_state_mark_of(uint64_t hash)
{
  const uint32_t mark = (uint32_t)(hash >> 32 ^ hash);
  return mark ? mark : 1;
}

#endif
