/* Arrays that grow by doubling. */
#ifndef HK_GROW_H
#define HK_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns the array, perhaps moved, with room for one more than its n elements of `each` bytes. *room: its capacity in elements;
 * the first allocation has `first`. NULL: no memory; the array is unchanged. */
static inline void *hk_grow(void *array, uint32_t n, uint32_t *room, size_t each, uint32_t first)
{
  if (n < *room)
    return array;
  const uint32_t more = *room > 0 ? 2 * *room : first;
  void *grown = realloc(array, more * each);
  if (grown)
    *room = more;
  return grown;
}

#endif
