/* Slot bits: a bit for each slot that says whether its sensor is wanted, or may be, and one that says whether somebody has
 * looked.
 *
 * Sensors are many and looked at one after the other, so "may be" stands until then: who sifts a batch with `maybe` misses
 * nothing, and looks closer at what is not known. Zero-initialise. Owner: the caller. */
#ifndef HK_SLOT_BITS_H
#define HK_SLOT_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct hk_slot_bits {
  uint64_t *maybe; /* wanted, or was not looked at */
  uint64_t *known; /* was looked at */
  uint32_t words;  /* of 64 slots */
  uint32_t n_known;
};

static inline bool hk_bit(const uint64_t *bits, uint32_t slot)
{
  return bits[slot / 64] >> slot % 64 & 1;
}
static inline void hk_bit_set(uint64_t *bits, uint32_t slot)
{
  bits[slot / 64] |= (uint64_t)1 << slot % 64;
}
static inline void hk_bit_clear(uint64_t *bits, uint32_t slot)
{
  bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

/* Makes room for slots 0..slots; new ones may be wanted. 0 or -ENOMEM. */
int hk_slot_bits_grow(struct hk_slot_bits *bits, uint32_t slots);
void hk_slot_bits_free(struct hk_slot_bits *bits);

/* Whether somebody has looked at a slot; it may be one that there is no room for. */
static inline bool hk_slot_bits_knows(const struct hk_slot_bits *bits, uint32_t slot)
{
  return slot / 64 < bits->words && hk_bit(bits->known, slot);
}
/* What was found of a slot that was not known. */
void hk_slot_bits_learn(struct hk_slot_bits *bits, uint32_t slot, bool wanted);
void hk_slot_bits_forget(struct hk_slot_bits *bits, uint32_t slot); /* known or not */

#endif
