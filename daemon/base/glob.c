/* Globs by bit-parallel simulation. State i means: the first i elements of the pattern (bytes and `?`; stars are no elements)
 * stand for what was read so far. A star before element i lets state i stay where it is. */
#include "daemon/base/glob.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX ((HK_GLOB_MAX + 1 + 63) / 64)

struct hk_glob {
  uint32_t words;            /* of one set of states */
  uint32_t last;             /* the accepting state: number of elements */
  uint64_t stay[WORDS_MAX];  /* states after a star */
  uint64_t after[WORDS_MAX]; /* states after a `?`: they stay on the rest of a character's bytes */
  uint64_t take[];           /* [256][words]: states that the byte leads on */
};

static void set(uint64_t *states, uint32_t state)
{
  states[state / 64] |= (uint64_t)1 << state % 64;
}

static bool continues(uint8_t byte)
{
  return (byte & 0xc0) == 0x80;
}

int hk_glob_new(struct hk_glob **out, const char *pattern, size_t length)
{
  if (length > HK_GLOB_MAX)
    return -EINVAL;
  uint32_t elements = 0;
  for (size_t i = 0; i < length; i++)
    elements += pattern[i] != '*';
  const uint32_t words = elements / 64 + 1;
  struct hk_glob *glob = calloc(1, sizeof *glob + (size_t)256 * words * sizeof glob->take[0]);
  if (!glob)
    return -ENOMEM;
  glob->words = words;
  glob->last = elements;
  if (length == 0)
    set(glob->stay, 0);
  for (size_t i = 0, state = 0; i < length; i++) {
    if (pattern[i] == '*') {
      set(glob->stay, (uint32_t)state);
      continue;
    }
    if (pattern[i] == '?') {
      for (unsigned byte = 0; byte < 256; byte++)
        if (!continues((uint8_t)byte))
          set(glob->take + byte * words, (uint32_t)state);
      set(glob->after, (uint32_t)state + 1);
    } else {
      set(glob->take + (uint8_t)pattern[i] * words, (uint32_t)state);
    }
    state++;
  }
  *out = glob;
  return 0;
}

void hk_glob_free(struct hk_glob *glob)
{
  free(glob);
}

bool hk_glob_match(const struct hk_glob *glob, const char *name, size_t length)
{
  uint64_t states[WORDS_MAX] = { 1 };
  for (size_t i = 0; i < length; i++) {
    const uint8_t byte = (uint8_t)name[i];
    const uint64_t *take = glob->take + (size_t)byte * glob->words;
    const uint64_t rest = continues(byte) ? ~(uint64_t)0 : 0;
    uint64_t carry = 0, any = 0;
    for (uint32_t k = 0; k < glob->words; k++) {
      const uint64_t on = states[k] & take[k];
      states[k] = on << 1 | carry | (states[k] & (glob->stay[k] | (glob->after[k] & rest)));
      carry = on >> 63;
      any |= states[k];
    }
    if (!any)
      return false;
  }
  return states[glob->last / 64] >> glob->last % 64 & 1;
}

/* Stands for any run of bytes, more or less. */
static bool is_wild(char c)
{
  return c == '*' || c == '?';
}

/* Row by row: how far of b one may be when a name was read that the first i bytes of a match. A wildcard of either stands for
 * nothing, or for what the other has next. */
bool hk_globs_meet(const char *a, const char *b)
{
  const size_t n = strlen(a), m = strlen(b);
  bool reached[HK_GLOB_MAX + 1] = { true }; /* of b, for the bytes of a so far */
  if (n == 0 || m == 0 || n > HK_GLOB_MAX || m > HK_GLOB_MAX)
    return true;
  for (size_t k = 0; k < m && is_wild(b[k]); k++)
    reached[k + 1] = true;
  for (size_t i = 0; i < n; i++) {
    bool diagonal = reached[0];
    reached[0] &= is_wild(a[i]);
    for (size_t k = 0; k < m; k++) {
      const bool before = reached[k + 1]; /* without a[i] */
      reached[k + 1] = is_wild(a[i]) || is_wild(b[k]) ? before || reached[k] : diagonal && a[i] == b[k];
      diagonal = before;
    }
  }
  return reached[m];
}
