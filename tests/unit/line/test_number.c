/* Line protocol: numbers against strtod. */
#include "proto/line/line.h"
#include "proto/line/number.h"
#include "tests/unit/support/line_same.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_number(const char *text)
{
  double got = 0;
  size_t used = 0;
  char *end, line[2500];
  const int size = snprintf(line, sizeof line, "m f=%s,g=%si", text, text); /* the quick reader has a way of its own */
  const double expected = strtod(text, &end);
  static struct hk_line plain;
  assert_int_not_equal(line_same(line, (size_t)size, 1, 0, &plain), -1);
  assert_int_not_equal(line_same(line, strlen(text) + 4, 1, '0', &plain), -1);
  const int status = hk_number_parse(text, strlen(text), &got, &used);
  if (isinf(expected)) {
    assert_int_equal(status, HK_NUMBER_RANGE);
  } else if (status != 0 || memcmp(&got, &expected, sizeof got) != 0 || used != (size_t)(end - text)) {
    fail_msg("%s: %d, %.17g (%zu bytes), not %.17g (%zu)", text, status, got, used, expected, (size_t)(end - text));
  }
}

static const char *const hard[] = {
  "0",
  "-0",
  "00000",
  "0.0",
  "1",
  "10",
  "007",
  "1.",
  ".5",
  "0.1",
  "0.2",
  "0.3",
  "123456789012345678",
  "9007199254740993",
  "9007199254740992",
  "9007199254740991",
  "9007199254740993e1",
  "9007199254740993e-1",
  "18446744073709551615",
  "18446744073709551616",
  "9999999999999999999",
  "99999999999999999999",
  "1e22",
  "1e23",
  "1e-22",
  "1e-23",
  "8.5e22",
  "123456789e22",
  "1e27",
  "1e28",
  "1e-27",
  "1e-28",
  "9007199254740993e20",
  "0.500000000000000166533453693773481063544750213623046875",
  "1.7976931348623157e308",
  "1.7976931348623158e308",
  "1.7976931348623159e308",
  "1e308",
  "1e309",
  "4.9e-324",
  "2.4703282292062327e-324",
  "2.4703282292062328e-324",
  "2.2250738585072011e-308",
  "2.2250738585072014e-308",
  "1e-400",
  "1e400",
  "1e99999999999999999999",
  "1e-99999999999999999999",
  "0e99999999999",
  "1e+5",
  "1E5",
  "1e5x",
  "1e",
  "1e+",
  "1.5e-",
  "0.000000000000000000000000000000000000000000000000000000001e57",
  "100000000000000000000000000000000000000000000000000e-50",
  "9223372036854775807",
  "9223372036854775808",
  "1.0000000000000001110223024625156540423631668090820312",
  "1.00000000000000011102230246251565404236316680908203125",
  "1.00000000000000011102230246251565404236316680908203126",
  "6929495644600919.5",
  "3.14159265358979323846",
  "1..2",
  "1.2.3",
  "--1",
  "",
};

static void numbers_are_rounded_as_strtod_rounds(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
    double x;
    size_t used;
    if (hard[i][0] && !strchr("-", hard[i][0]))
      check_number(hard[i]);
    else if (hard[i][0] == '-' && hard[i][1] != '-')
      check_number(hard[i]);
    else
      assert_int_equal(hk_number_parse(hard[i], strlen(hard[i]), &x, &used), HK_NUMBER_NONE);
  }
  char text[1200];
  srandom(7);
#ifdef HK_SANITIZED
  const int rounds = 15000;
#else
  const int rounds = 120000;
#endif
  for (int i = 0; i < rounds; i++) {
    /* a double's own digits, and digits taken at random */
    const uint64_t bits = (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
    double x;
    memcpy(&x, &bits, sizeof x);
    if (!isfinite(x))
      continue;
    const double near = ldexp((double)(bits >> 11), (int)(bits & 127) - 100);
    snprintf(text, sizeof text, "%.*g", 10 + (int)(bits & 7), i % 2 ? x : near);
    check_number(text);
    snprintf(text, sizeof text, "%" PRIu64 "e%d", bits >> (bits & 31), (int)(bits >> 58) - 32);
    check_number(text);
    snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64, bits >> 44, 1 + (int)(bits & 15), bits & 0xffff);
    check_number(text);
  }
  /* exactly half of the smallest double, which is rounded down; a digit beyond all that are kept makes it round up */
  const int length = snprintf(text, sizeof text, "%.1075Lf%060d", ldexpl(1, -1075), 0);
  check_number(text);
  text[length - 1] = '1';
  check_number(text);
  /* halves between two doubles, in full, and one digit different: over 700 digits must still matter */
  for (int e = -1074; e < 900; e += 13) {
    const double low = ldexp(1 + 0x1p-52 * (double)random(), e), high = nextafter(low, INFINITY);
    snprintf(text, sizeof text, "%.1100g", low);
    check_number(text);
    if (e > -1000 && e < -60) {
      const double half = (high - low) / 2;
      long double middle = (long double)low + (long double)half;
      snprintf(text, sizeof text, "%.1000Lg", middle);
      check_number(text);
      const size_t n = strlen(text);
      const char *const exponent = strchr(text, 'e');
      if (!exponent && n + 2 < sizeof text) {
        memcpy(text + n, "1", 2);
        check_number(text);
      }
    }
  }
}

static void integers(void **state)
{
  (void)state;
  int64_t i;
  uint64_t u;
  size_t used;
  assert_int_equal(hk_integer_parse("-9223372036854775808x", 21, &i, &used), 0);
  assert_true(i == INT64_MIN && used == 20);
  assert_int_equal(hk_integer_parse("-9223372036854775809", 20, &i, &used), HK_NUMBER_RANGE);
  assert_int_equal(hk_integer_parse("+9223372036854775807", 20, &i, &used), 0);
  assert_true(i == INT64_MAX);
  assert_int_equal(hk_integer_parse("+", 1, &i, &used), HK_NUMBER_NONE);
  assert_int_equal(hk_integer_parse("", 0, &i, &used), HK_NUMBER_NONE);
  assert_int_equal(hk_unsigned_parse("-1", 2, &u, &used), HK_NUMBER_NONE);
  assert_int_equal(hk_unsigned_parse("99999999999999999999", 20, &u, &used), HK_NUMBER_RANGE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_rounded_as_strtod_rounds),
    cmocka_unit_test(integers),
  };
  return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
