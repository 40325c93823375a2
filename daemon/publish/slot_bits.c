#include "daemon/publish/slot_bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hk_slot_bits_grow(struct hk_slot_bits *s, uint32_t slots)
{
  const uint32_t needed = slots / 64 + 1, words = needed > s->words ? needed + needed / 2 : s->words;
  if (words == s->words)
    return 0;
  uint64_t *maybe = realloc(s->maybe, words * sizeof *maybe);
  if (!maybe)
    return -ENOMEM;
  s->maybe = maybe;
  uint64_t *known = realloc(s->known, words * sizeof *known);
  if (!known)
    return -ENOMEM;
  s->known = known;
  memset(maybe + s->words, 0xff, (words - s->words) * sizeof *maybe);
  memset(known + s->words, 0, (words - s->words) * sizeof *known);
  s->words = words;
  return 0;
}

void hk_slot_bits_free(struct hk_slot_bits *s)
{
  free(s->maybe);
  free(s->known);
  *s = (struct hk_slot_bits){ 0 };
}

void hk_slot_bits_learn(struct hk_slot_bits *s, uint32_t slot, bool wanted)
{
  hk_bit_set(s->known, slot);
  s->n_known++;
  if (!wanted)
    hk_bit_clear(s->maybe, slot);
}

void hk_slot_bits_forget(struct hk_slot_bits *s, uint32_t slot)
{
  if (!hk_slot_bits_knows(s, slot))
    return;
  hk_bit_clear(s->known, slot);
  hk_bit_set(s->maybe, slot);
  s->n_known--;
}
