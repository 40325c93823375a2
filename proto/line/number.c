/* Converts decimal text to double, exactly rounded. See number.h.
 *
 * With up to 19 significant digits and a power of ten of at most 27 in magnitude, the number is m * 5^q * 2^q or m / 5^q /
 * 2^q, with m and 5^q integers below 2^64: the product or quotient (with a sticky bit for the remainder) is exact in 128 bits
 * and is rounded once. All other numbers, which are rare, are passed to strtod as digits and an exponent, without a decimal
 * point, so that the locale does not matter. */
#include "proto/line/number.h"

#include "proto/line/digits.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { EXACT_DIGITS = 19, EXACT_POWER = HK_NUMBER_POWER };

const double hk_ten_to[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

static const uint64_t five_to[EXACT_POWER + 1] = {
  1ull,
  5ull,
  25ull,
  125ull,
  625ull,
  3125ull,
  15625ull,
  78125ull,
  390625ull,
  1953125ull,
  9765625ull,
  48828125ull,
  244140625ull,
  1220703125ull,
  6103515625ull,
  30517578125ull,
  152587890625ull,
  762939453125ull,
  3814697265625ull,
  19073486328125ull,
  95367431640625ull,
  476837158203125ull,
  2384185791015625ull,
  11920928955078125ull,
  59604644775390625ull,
  298023223876953125ull,
  1490116119384765625ull,
  7450580596923828125ull,
};

/* 2^e for -1022 <= e <= 1023. */
static double power_of_two(int e)
{
  const uint64_t bits = (uint64_t)(e + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

double hk_number_scale(uint64_t m, int power)
{
  if (m <= 1ull << 53 && power >= -22 && power <= 22) { /* both are exact as doubles: one operation rounds once */
    return power < 0 ? (double)m / hk_ten_to[-power] : (double)m * hk_ten_to[power];
  }
  if (power >= 0)
    return (double)((wide)m * five_to[power]) * power_of_two(power);
  /* Both are scaled to [2^63, 2^64), so the quotient has 62 or 63 bits: enough below bit 53 for a sticky bit. */
  const uint64_t five = five_to[-power];
  const int up = __builtin_clzll(m), five_up = __builtin_clzll(five);
  const wide numerator = (wide)(m << up) << 62;
  const uint64_t divisor = five << five_up, quotient = (uint64_t)(numerator / divisor);
  const bool rest = (wide)quotient * divisor != numerator;
  return (double)(quotient | rest) * power_of_two(five_up - up - 62 + power);
}

static bool number_digit(char c)
{
  return (unsigned char)(c - '0') < 10;
}

/* Reads the digits from p and appends them to the number *m, modulo 2^64. Returns their end. */
static const char *read_digits(const char *p, const char *end, uint64_t *m)
{
  while (end - p >= 8) {
    if (!hk_digits_take(&p, m))
      return p;
  }
  for (; p < end && number_digit(*p); p++)
    *m = 10 * *m + (uint64_t)(*p - '0');
  return p;
}

/* Slow path: the digits from text to end (perhaps with a decimal point among them) times 10^power, where power counts from the
 * last digit. Digits beyond the precision that can affect a double are replaced by one digit. */
static double slow(const char *text, const char *end, int64_t power)
{
  enum { TELLING = 780 };
  char buffer[TELLING + 40];
  size_t n = 0;
  bool more = false;
  for (; text < end; text++) {
    if (*text == '.' || (n == 0 && *text == '0'))
      continue;
    if (n < TELLING) {
      buffer[n++] = *text;
    } else {
      more |= *text != '0';
      power++;
    }
  }
  if (more) {
    buffer[n++] = '1';
    power--;
  }
  snprintf(buffer + n, sizeof buffer - n, "e%lld", (long long)power);
  return n == 0 ? 0 : strtod(buffer, NULL);
}

int hk_number_parse(const char *text, size_t size, double *out, size_t *used)
{
  const char *p = text, *const end = text + size;
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+'))
    p++;
  const char *const first = p, *point = NULL;
  uint64_t m = 0;
  p = read_digits(p, end, &m);
  if (p < end && *p == '.') {
    point = p;
    p = read_digits(p + 1, end, &m);
  }
  const size_t digits = (size_t)(p - first) - (point != NULL);
  if (digits == 0)
    return HK_NUMBER_NONE;
  const char *const last = p;
  int64_t power = point ? -(int64_t)(last - point - 1) : 0;
  if (end - p >= 2 && (*p == 'e' || *p == 'E')) {
    const char *q = p + 1;
    const bool down = *q == '-';
    if (*q == '-' || *q == '+')
      q++;
    if (q < end && number_digit(*q)) {
      int64_t e = 0;
      for (; q < end && number_digit(*q); q++)
        e = e < 100000000 ? 10 * e + (*q - '0') : e;
      power += down ? -e : e;
      p = q;
    }
  }
  size_t significant = digits; /* beyond EXACT_DIGITS, which fit into 2^64, m is not used */
  for (const char *q = first; significant > EXACT_DIGITS && q < last && (*q == '0' || *q == '.'); q++)
    significant -= *q == '0';
  double x;
  if (significant <= EXACT_DIGITS && m == 0)
    x = 0;
  else if (significant <= EXACT_DIGITS && power >= -EXACT_POWER && power <= EXACT_POWER)
    x = hk_number_scale(m, (int)power);
  else
    x = slow(first, last, power);
  if (isinf(x))
    return HK_NUMBER_RANGE;
  *out = negative ? -x : x;
  *used = (size_t)(p - text);
  return 0;
}

int hk_unsigned_parse(const char *text, size_t size, uint64_t *out, size_t *used)
{
  uint64_t x = 0;
  const size_t n = (size_t)(read_digits(text, text + size, &x) - text);
  if (n == 0)
    return HK_NUMBER_NONE;
  if (n > EXACT_DIGITS) { /* perhaps too large, perhaps with zeros before it */
    x = 0;
    for (size_t i = 0; i < n; i++) {
      if (__builtin_mul_overflow(x, (uint64_t)10, &x) || __builtin_add_overflow(x, (uint64_t)(text[i] - '0'), &x))
        return HK_NUMBER_RANGE;
    }
  }
  *out = x;
  *used = n;
  return 0;
}

int hk_integer_parse(const char *text, size_t size, int64_t *out, size_t *used)
{
  const bool negative = size > 0 && text[0] == '-', sign = negative || (size > 0 && text[0] == '+');
  uint64_t x;
  const int status = hk_unsigned_parse(text + sign, size - sign, &x, used);
  if (status != 0)
    return status;
  if (x > (uint64_t)INT64_MAX + negative)
    return HK_NUMBER_RANGE;
  *out = negative ? (int64_t)(0 - x) : (int64_t)x;
  *used += sign;
  return 0;
}
