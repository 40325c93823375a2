/* The networks of medians give the median of all zeros and ones, and so of all numbers (Knuth, The Art of Computer Programming 3,
 * 5.3.4): 64 windows at a time, a bit each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HK_SANITIZED
#define STEP 61 /* what is proven by all blocks is so in the other builds */
#else
#define STEP 1
#endif

#define HK_MEDIAN_TYPE uint64_t
#define HK_MEDIAN_MIN(a, b) ((a) & (b))
#define HK_MEDIAN_MAX(a, b) ((a) | (b))
#include "cpu/picture/median.h"

static const uint64_t six[6] = { 0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
                                 0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000 };

/* Bits k of the 64 numbers from 64 `block` on. */
static uint64_t bits_of(uint32_t block, uint32_t k)
{
  return k < 6 ? six[k] : -(uint64_t)(block >> (k - 6) & 1);
}

/* In which of the 64 numbers more than half of the bits are 1. */
static uint64_t majority(uint32_t block, uint32_t bits)
{
  uint64_t out = 0;
  for (uint32_t i = 0; i < 64; i++)
    out |= (uint64_t)((uint32_t)__builtin_popcount(64 * block + i) > bits / 2) << i;
  return out;
}

static void test_9(void **state)
{
  (void)state;
  for (uint32_t block = 0; block < 1u << 3; block++) {
    uint64_t x[3][3];
    for (uint32_t k = 0; k < 9; k++)
      x[k / 3][k % 3] = bits_of(block, k);
    for (uint32_t j = 0; j < 3; j++)
      HK_SORT_3(x[j]);
    assert_true(HK_MEDIAN_9(x[0], x[1], x[2]) == majority(block, 9));
  }
}

static void test_25(void **state)
{
  (void)state;
  for (uint32_t block = 0; block < 1u << 19; block += STEP) {
    uint64_t column[5], x[25];
    for (uint32_t j = 0; j < 5; j++) {
      for (uint32_t i = 0; i < 5; i++)
        column[i] = bits_of(block, 5 * j + i);
      HK_SORT_5(column);
      for (uint32_t i = 0; i < 5; i++)
        x[5 * i + j] = column[i];
    }
    HK_MEDIAN_25(x);
    if (x[12] != majority(block, 25))
      fail_msg("block %u", block);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_9), cmocka_unit_test(test_25) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
