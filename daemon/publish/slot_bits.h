/* Slot bits: for each slot, a bit whether its sensor is wanted, or may be, and a bit whether that was checked.
 *
 * Sensors are many and are checked one after the other; until then the first bit means "may be wanted". So filtering a batch
 * by `maybe` misses nothing, and unchecked sensors are then checked. Zero-initialise. Owner: the caller. */
#ifndef HK_SLOT_BITS_H
#define HK_SLOT_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct hk_slot_bits {
  uint64_t *maybe; /* wanted, or not checked */
  uint64_t *known; /* checked */
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

/* Makes room for slots 0..slots; new slots may be wanted. Returns 0 or -ENOMEM. */
int hk_slot_bits_grow(struct hk_slot_bits *bits, uint32_t slots);
void hk_slot_bits_free(struct hk_slot_bits *bits);

/* Whether a slot was checked; it may be beyond the bits' room. */
static inline bool hk_slot_bits_knows(const struct hk_slot_bits *bits, uint32_t slot)
{
  return slot / 64 < bits->words && hk_bit(bits->known, slot);
}
/* Stores the result of checking an unchecked slot. */
void hk_slot_bits_learn(struct hk_slot_bits *bits, uint32_t slot, bool wanted);
void hk_slot_bits_forget(struct hk_slot_bits *bits, uint32_t slot); /* checked or not */

#endif
