/* a b + c with one rounding where the processor has no instruction for it: the bits of fmaf. And the lags that every instruction
 * set brings along with it. */
#include "cpu/sst/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#ifdef HK_SANITIZED
#define MANY 200000
#else
#define MANY 3000000
#endif

static uint32_t random_bits(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

static float float_of(uint32_t bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t bits_of(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Whether two numbers have the same bits, or are both not a number. */
static bool same(float a, float b)
{
  return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

static void check(const float *a, const float *b, const float *c)
{
  const vec x = fused(load(a), load(b), load(c));
  for (int l = 0; l < HK_LANES; l++) {
    const float once = fmaf(a[l], b[l], c[l]);
    if (!same(hk_fused_exactly(a[l], b[l], c[l]), once) || !same(x[l], once))
      fail_msg("%a %a + %a is %a, and %a, %a", (double)a[l], (double)b[l], (double)c[l], (double)once,
               (double)hk_fused_exactly(a[l], b[l], c[l]), (double)x[l]);
  }
}

/* A number whose exponent is within `range` of 2^middle, with few digits (so that sums are half way between two) or all. */
static float number(uint64_t *state, int middle, uint32_t range)
{
  const uint32_t bits = random_bits(state), digits = random_bits(state) % 24;
  const float fraction = float_of(0x3f800000 | (bits & 0x7fffff & ~(0x7fffffu >> digits)));
  return ldexpf(bits >> 31 ? -fraction : fraction, middle + (int)(random_bits(state) % (2 * range + 1)) - (int)range);
}

/* All kinds of bits: denormal, infinite, not a number. */
static void any_bits(void **state)
{
  (void)state;
  uint64_t random = 1;
  for (uint32_t i = 0; i < MANY / HK_LANES; i++) {
    float a[HK_LANES], b[HK_LANES], c[HK_LANES];
    for (int l = 0; l < HK_LANES; l++) {
      a[l] = float_of(random_bits(&random));
      b[l] = float_of(random_bits(&random));
      c[l] = float_of(random_bits(&random));
    }
    check(a, b, c);
  }
}

/* Products and addends that meet: about 1, about the smallest numbers, and about the largest. */
static void sums_of_all_sizes(void **state)
{
  (void)state;
  static const struct {
    int factor, addend;
  } about[] = { { 0, 0 }, { -70, -140 }, { -72, -146 }, { -63, -126 }, { 63, 126 }, { 64, 127 } };
  uint64_t random = 2;
  for (uint32_t i = 0; i < MANY / HK_LANES; i++) {
    float a[HK_LANES], b[HK_LANES], c[HK_LANES];
    for (int l = 0; l < HK_LANES; l++) {
      const uint32_t k = (i + (uint32_t)l) % (sizeof about / sizeof *about);
      a[l] = number(&random, about[k].factor, 3);
      b[l] = number(&random, about[k].factor, 3);
      c[l] = number(&random, about[k].addend, 30);
    }
    check(a, b, c);
  }
}

/* An addend half way between two sums, and a product that is far too small to matter but for the side to which it moves the sum:
 * what two roundings get wrong. And the other way round. */
static void hardly_not_half_way(void **state)
{
  (void)state;
  uint64_t random = 3;
  uint32_t twice_wrong = 0;
  for (uint32_t i = 0; i < MANY / HK_LANES; i++) {
    float a[HK_LANES], b[HK_LANES], c[HK_LANES];
    for (int l = 0; l < HK_LANES; l++) {
      const int exponent = (int)(random_bits(&random) % 230) - 120;
      a[l] = 1 + (float)(1 + random_bits(&random) % 4095) * 0x1p-12f; /* the square of such a number has its last bit at 2^-24 */
      b[l] = ldexpf(a[l], exponent);
      c[l] = ldexpf(random_bits(&random) % 2 ? 1 : -1, exponent - 55 - (int)(random_bits(&random) % 40));
      twice_wrong += !same((float)((double)a[l] * (double)b[l] + (double)c[l]), fmaf(a[l], b[l], c[l]));
    }
    check(a, b, c);
  }
  assert_true(twice_wrong > MANY / 100); /* else this shows nothing */
}

/* The same among the smallest numbers, whose last bit is 2^-149: a product that is less than half of it, by far less than the
 * sum's last bit. */
static void hardly_not_half_way_of_little(void **state)
{
  (void)state;
  uint64_t random = 4;
  uint32_t twice_wrong = 0;
  for (uint32_t i = 0; i < MANY / HK_LANES / 4; i++) {
    float a[HK_LANES], b[HK_LANES], c[HK_LANES];
    for (int l = 0; l < HK_LANES; l++) {
      const float little = (float)(1 + random_bits(&random) % 63) * 0x1p-23f;
      a[l] = (1 + little) * 0x1p-75f;
      b[l] = (1 - little) * (random_bits(&random) % 2 ? 0x1p-75f : -0x1p-75f);
      c[l] = float_of((1u << 15) + random_bits(&random) % (1u << 22));
      twice_wrong += !same((float)((double)a[l] * (double)b[l] + (double)c[l]), fmaf(a[l], b[l], c[l]));
    }
    check(a, b, c);
  }
  assert_true(twice_wrong > MANY / 4 / 10);
}

/* Lags that are brought along by a sample alone, of all numbers up to more than two of the widest vectors. */
static void late_lags_have_the_plain_bits(void **state)
{
  (void)state;
  uint64_t random = 5;
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++)
    for (uint32_t n = 0; n < 40; n++) {
      float others[40], variance[2][40], mean[2][40];
      for (uint32_t i = 0; i < 40; i++) {
        others[i] = number(&random, 0, 2);
        variance[0][i] = variance[1][i] = fabsf(number(&random, 0, 2));
        mean[0][i] = mean[1][i] = number(&random, 0, 2);
      }
      const float sample = number(&random, 0, 2);
      hk_novelty_bring_plain(variance[0], mean[0], others, n, sample);
      (*k)->novelty_bring(variance[1], mean[1], others, n, sample);
      assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
      assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_bits),
    cmocka_unit_test(sums_of_all_sizes),
    cmocka_unit_test(hardly_not_half_way),
    cmocka_unit_test(hardly_not_half_way_of_little),
    cmocka_unit_test(late_lags_have_the_plain_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
