/* Set of slots whose names were sent to a subscriber: pages of bits, allocated when a slot in them is added, because ten
 * thousand subscribers to one sensor each of ten million must not hold a bit for every sensor. Zero-initialise. Owner: the
 * subscriber. */
#ifndef HK_NAMES_SENT_H
#define HK_NAMES_SENT_H

#include <stdbool.h>
#include <stdint.h>

#define HK_NAMES_SENT_PAGE 32768u /* slots */

struct hk_names_sent {
  uint64_t **page; /* NULL: contains none of its slots */
  uint32_t pages;
};

static inline bool hk_names_sent_has(const struct hk_names_sent *sent, uint32_t slot)
{
  const uint32_t page = slot / HK_NAMES_SENT_PAGE;
  return page < sent->pages && sent->page[page] && sent->page[page][slot % HK_NAMES_SENT_PAGE / 64] >> slot % 64 & 1;
}

/* 0 or -ENOMEM. */
int hk_names_sent_add(struct hk_names_sent *sent, uint32_t slot);
/* Removes a slot, which must be in the set. */
static inline void hk_names_sent_remove(struct hk_names_sent *sent, uint32_t slot)
{
  sent->page[slot / HK_NAMES_SENT_PAGE][slot % HK_NAMES_SENT_PAGE / 64] &= ~((uint64_t)1 << slot % 64);
}

void hk_names_sent_free(struct hk_names_sent *sent); /* leaves an empty set, which may be used again */

#endif
