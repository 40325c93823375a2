/* Checks the bytes of names. See name.h. */
#include "proto/wire/name.h"

#include <stdint.h>
#include <string.h>

/* Length of the UTF-8 sequence at p; 0: not UTF-8 (overlong, a surrogate, over U+10FFFF, truncated), or a control character. */
static size_t sequence(const uint8_t *p, size_t left)
{
  const uint8_t a = p[0];
  if (a < 0x80)
    return a >= 0x20 && a != 0x7f;
  if (a < 0xc2 || a > 0xf4)
    return 0;
  const size_t n = a < 0xe0 ? 2 : a < 0xf0 ? 3 : 4;
  if (left < n)
    return 0;
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  }
  const uint8_t b = p[1];
  const bool wrong = (a == 0xc2 && b < 0xa0) || (a == 0xe0 && b < 0xa0) || (a == 0xed && b >= 0xa0) || (a == 0xf0 && b < 0x90) ||
                     (a == 0xf4 && b >= 0x90);
  return wrong ? 0 : n;
}

size_t hk_text_character(const char *text, size_t length, uint32_t *code)
{
  const uint8_t *p = (const uint8_t *)text;
  const size_t n = sequence(p, length);
  *code = HK_SHOWN_AS_IT_IS;
  if (n == 0) {
    const bool c1 = p[0] == 0xc2 && length >= 2 && p[1] >= 0x80 && p[1] < 0xa0;
    *code = p[0] < 0x80 ? p[0] : c1 ? p[1] : 0xfffd;
    return c1 ? 2 : 1;
  }
  const uint32_t c = n == 2   ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                     : n == 3 ? (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
                              : 0;
  if (c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
    *code = c;
  return n;
}

/* Whether all eight bytes are in 0x20..0x7e, the usual case; checked in parallel. */
static bool plain8(const uint8_t *p)
{
  uint64_t x;
  memcpy(&x, p, sizeof x);
  const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
  const uint64_t below =
      (x - 0x20 * ones) & ~x;      /* high bit set where a byte < 0x20 (exact if no byte is; otherwise may also flag others) */
  const uint64_t above = x + ones; /* high bit set where a byte is 0x7f */
  return ((x | below | above) & high) == 0;
}

bool hk_name_piece_valid(const char *piece, size_t length, size_t *fault)
{
  const uint8_t *p = (const uint8_t *)piece;
  size_t i = 0;
  while (i < length) {
    if (length - i >= 8 && plain8(p + i)) {
      i += 8;
      continue;
    }
    const size_t n = sequence(p + i, length - i);
    if (n == 0) {
      if (fault)
        *fault = i;
      return false;
    }
    i += n;
  }
  return true;
}

bool hk_name_valid(const char *name, size_t length)
{
  return length >= 1 && length <= HK_NAME_MAX && hk_name_piece_valid(name, length, NULL);
}
