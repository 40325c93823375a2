/* Parses decimal digits, eight at a time. Little-endian machines only, as the whole wire format. HK_PLAIN_C, which a test
 * defines, disables x86-64 intrinsics. */
#ifndef HK_DIGITS_H
#define HK_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && !defined(HK_PLAIN_C)
#include <emmintrin.h>
#endif

/* 10^k for 0 <= k <= 22: all are exact. */
extern const double hk_ten_to[23];

/* Converts eight digits to a number: bytes 0..9, the first digit in the lowest byte. */
static inline uint64_t hk_digits_eight(uint64_t x)
{
  x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;   /* four numbers of two digits */
  x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff; /* two of four */
  return (x & 0xffffffff) * 10000 + (x >> 32);
}

/* Parses the digits at the start of the 8 bytes at *p, all of which must be readable: appends them to the number *m, modulo
 * 2^64, and moves *p behind them. Returns whether all 8 were digits. */
static inline bool hk_digits_take(const char **p, uint64_t *m)
{
  static const uint64_t ten_to[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000 };
  uint64_t x;
  memcpy(&x, *p, sizeof x);
  x ^= 0x3030303030303030; /* digits become 0..9 */
  /* High bits: set in the first byte that is not a digit, clear in all bytes before, undefined in later bytes. */
  const uint64_t other = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
  if (other == 0) {
    *m = 100000000 * *m + hk_digits_eight(x);
    *p += 8;
    return true;
  }
  const unsigned n = (unsigned)__builtin_ctzll(other) / 8;
  *m = ten_to[n] * *m + hk_digits_eight(x << 8 << (56 - 8 * n)); /* preceded by zeros */
  *p += n;
  return false;
}

/* Parses the first 16 digits of a number into *m, if there are 16. Otherwise, and on machines other than x86-64, does nothing. */
static inline void hk_digits_take_16(const char **p, uint64_t *m)
{
#if defined(__x86_64__) && !defined(HK_PLAIN_C)
  const __m128i x = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)*p), _mm_set1_epi8('0'));
  if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_subs_epu8(x, _mm_set1_epi8(9)), _mm_setzero_si128())) != 0xffff)
    return;
  const __m128i first = _mm_and_si128(x, _mm_set1_epi16(0xff)), second = _mm_srli_epi16(x, 8);
  const __m128i two = _mm_add_epi16(_mm_mullo_epi16(first, _mm_set1_epi16(10)), second); /* eight numbers of two digits */
  const __m128i four = _mm_madd_epi16(two, _mm_set1_epi32(1 << 16 | 100));               /* four of four */
  const __m128i eight = _mm_madd_epi16(_mm_packs_epi32(four, four), _mm_set1_epi32(1 << 16 | 10000)); /* two of eight */
  const uint64_t both = (uint64_t)_mm_cvtsi128_si64(eight);
  *m = 100000000 * (both & 0xffffffff) + (both >> 32);
  *p += 16;
#else
  (void)p;
  (void)m;
#endif
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

#endif
