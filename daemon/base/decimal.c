#include "daemon/base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* 00 to 99. */
static const char hundred[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
                              "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
                              "9899";

int hk_decimal_whole(char *out, uint64_t x, int least)
{
  char digits[20];
  int n = 0; /* the last of them */
  for (; x >= 100; x /= 100, n += 2)
    memcpy(digits + sizeof digits - n - 2, &hundred[2 * (x % 100)], 2);
  if (x >= 10)
    memcpy(digits + sizeof digits - (n += 2), &hundred[2 * x], 2);
  else if (x > 0)
    digits[sizeof digits - ++n] = (char)('0' + x);
  const int zeros = n < least ? least - n : 0;
  memset(out, '0', (size_t)zeros);
  memcpy(out + zeros, digits + sizeof digits - n, (size_t)n);
  return zeros + n;
}

/* Writes number / scale, scale = 10^places. */
static int write_decimal(char *out, int minus, uint64_t number, uint64_t scale, int places)
{
  int n = 0;
  if (minus)
    out[n++] = '-';
  n += hk_decimal_whole(out + n, number / scale, 1);
  if (places > 0) {
    out[n++] = '.';
    n += hk_decimal_whole(out + n, number % scale, places);
  }
  out[n] = 0;
  return n;
}

/* A whole number below 10^15 and a power of ten, both exact in a double, have a quotient that is rounded once, and so is what the
 * digits are read as. */
int hk_decimal_short(char *out, double x)
{
  const double size = fabs(x);
  if (x != 0 && !(size >= 1e-4 && size < 1e15))
    return 0;
  uint64_t scale = 1;
  for (int places = 0; places <= 15; places++, scale *= 10) {
    const double near = size * (double)scale + 0.5;
    if (near >= 1e15)
      return 0;
    const uint64_t number = (uint64_t)near;
    if ((double)number / (double)scale == size)
      return write_decimal(out, signbit(x) != 0, number, scale, places);
  }
  return 0;
}

/* In 64 bits the product of a float's 24 and 10^12 is exact, and so are the digits from 0.0001 to 1; no float lies so near below
 * a power of ten that it is rounded up to it. */
int hk_decimal_nine(char *out, float x)
{
  const float size = fabsf(x);
  if (!((double)size >= 1e-4 && size < 1))
    return snprintf(out, 32, "%.9g", (double)x);
  int places = 9, exponent;
  uint64_t scale = 1000000000;
  for (double limit = 0.1; (double)size < limit; limit /= 10, places++)
    scale *= 10;
  const uint64_t bits = (uint64_t)ldexpf(frexpf(size, &exponent), 24) * scale;
  const int shift = 24 - exponent;
  const uint64_t half = (uint64_t)1 << (shift - 1), rest = bits & (2 * half - 1);
  uint64_t number = bits >> shift;
  number += rest > half || (rest == half && number % 2 == 1);
  for (; number % 10 == 0; number /= 10, scale /= 10)
    places--;
  return write_decimal(out, signbit(x) != 0, number, scale, places);
}
