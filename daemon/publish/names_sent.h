/* Set of slots whose names were sent to a subscriber: pages of bits, allocated when a slot in them is added, because ten
 * thousand subscribers to one sensor each of ten million must not hold a bit for every sensor. Zero-initialise. Owner: the
 * subscriber. */
#ifndef HK_NAMES_SENT_H
#define HK_NAMES_SENT_H

#include <stdbool.h>
#include <stdint.h>

#define HK_NAMED_PAGE 32768u /* slots */

struct hk_named {
  uint64_t **page; /* NULL: contains none of its slots */
  uint32_t pages;
};

static inline bool hk_named_has(const struct hk_named *named, uint32_t slot)
{
  const uint32_t page = slot / HK_NAMED_PAGE;
  return page < named->pages && named->page[page] && named->page[page][slot % HK_NAMED_PAGE / 64] >> slot % 64 & 1;
}

/* 0 or -ENOMEM. */
int hk_named_add(struct hk_named *named, uint32_t slot);
/* Removes a slot, which must be in the set. */
static inline void hk_named_remove(struct hk_named *named, uint32_t slot)
{
  named->page[slot / HK_NAMED_PAGE][slot % HK_NAMED_PAGE / 64] &= ~((uint64_t)1 << slot % 64);
}

void hk_named_free(struct hk_named *named); /* leaves an empty set, which may be used again */

#endif
