/* Arrays that grow by doubling. */
#ifndef HK_GROW_H
#define HK_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* An array of n elements of `each` bytes with room for one more, which has room for *room: `first` of them, when there was none.
 * Perhaps at another place. NULL: no memory, and it is as it was. */
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
