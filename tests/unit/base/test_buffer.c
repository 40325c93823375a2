/* Buffers that grow: printing with and without room, and numbers that are the same when they are read back. */
#include "daemon/base/buffer.h"
#include "daemon/base/decimal.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_print(void **state)
{
  (void)state;
  struct hk_buffer b = { 0 };
  char wanted[8192] = "";
  for (int i = 0; i < 1500; i++) { /* past 1024 and 4096 bytes, at every distance from the end */
    hk_buffer_print(&b, "%d;", i % 10);
    snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%d;", i % 10);
    assert_int_equal(b.size, strlen(wanted));
    assert_string_equal(b.data, wanted); /* with a 0 behind it */
    assert_true(b.size < b.capacity);
  }
  hk_buffer_free(&b);
  char long_one[5000];
  memset(long_one, 'x', sizeof long_one - 1);
  long_one[sizeof long_one - 1] = 0;
  hk_buffer_print(&b, "%s", long_one);
  assert_string_equal(b.data, long_one);
  b.failed = true;
  hk_buffer_print(&b, "more");
  assert_int_equal(b.size, sizeof long_one - 1);
  hk_buffer_free(&b);
}

#ifdef HK_SANITIZED
enum { NUMBERS = 10000 }; /* at random: a sanitizer sees no more in many */
#else
enum { NUMBERS = 100000 };
#endif

/* The definition: 15 digits if these are read back as the same number, else 17. */
static void check(double x)
{
  struct hk_buffer b = { 0 };
  char wanted[64];
  snprintf(wanted, sizeof wanted, "%.15g", x);
  if (strtod(wanted, NULL) != x)
    snprintf(wanted, sizeof wanted, "%.17g", x);
  hk_json_number(&b, x, 17);
  hk_buffer_put(&b, "", 1);
  assert_string_equal(b.data, wanted);
  assert_true(strtod(b.data, NULL) == x);
  hk_buffer_free(&b);
}

static void test_numbers(void **state)
{
  (void)state;
  static const double some[] = { 0,        -0.0,       1,         -1,         0.1,
                                 0.3,      21.5,       1e-4,      9.9e-5,     1e-5,
                                 1e7,      1e8,        99999999,  99999999.5, 99999999.999999,
                                 0.000001, 123.456789, 1e15,      1e300,      DBL_MIN,
                                 1 / 3.,   2 / 3.,     0.1 + 0.2, 1e22,       DBL_MAX,
                                 5e-324,   -273.15,    1013.25,   0.1234567,  -0.5 };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    check(some[i]);
  srandom(5);
  for (int i = 0; i < NUMBERS; i++) {
    const double x = (double)(random() - RAND_MAX / 2) / pow(10, (double)(random() % 9));
    check(x);
    check(nextafter(x, 1e300));
    check((double)random() * (double)(random() % 1000000) / pow(10, (double)(random() % 17)));
  }
}

static void check_nine(float x)
{
  char wanted[32], text[32];
  snprintf(wanted, sizeof wanted, "%.9g", (double)x);
  assert_int_equal(hk_decimal_nine(text, x), strlen(wanted));
  assert_string_equal(text, wanted);
}

/* Of scores, as snprintf writes them: all kinds, ends of powers of ten, and floats half way between two texts. */
static void test_nine_digits(void **state)
{
  (void)state;
  static const float some[] = { 0,       1,        0.5F,     0.25F, 0.1F, 0.01F, 0.001F,  1e-4F,
                                9.9e-5F, 0x1p-10F, 0x1p-13F, 1e-9F, 2,    1e9F,  INFINITY };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      check_nine((float)sign * some[i]);
      check_nine((float)sign * nextafterf(some[i], 0));
      check_nine((float)sign * nextafterf(some[i], 2));
    }
  srandom(6);
  for (int i = 0; i < 2 * NUMBERS; i++)
    check_nine(ldexpf((float)random() / (float)RAND_MAX, -(int)(random() % 16)));
  for (int i = 1; i < 8192; i++) /* few bits: halves of the last digit */
    check_nine((float)i / 8192);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_print), cmocka_unit_test(test_numbers),
                                      cmocka_unit_test(test_nine_digits) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
