/* Matrix Market files: all forms that are read, sums of entries, and errors, with their places. */
#include "cpu/sparse/market.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "%%MatrixMarket matrix "

static struct hk_market read_text(const char *text)
{
  struct hk_market m;
  char error[256] = "";
  if (hk_market_parse(&m, text, strlen(text), error, sizeof error) != 0)
    fail_msg("%s: %s", text, error);
  return m;
}

/* All numbers, row by row, as a dense matrix would have them. */
static void assert_is(const char *text, uint32_t rows, uint32_t columns, const double *wanted)
{
  struct hk_market m = read_text(text);
  assert_int_equal(m.rows, rows);
  assert_int_equal(m.columns, columns);
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < columns; j++) {
      const uint32_t at = hk_market_place(&m, i, j);
      const double is = at == UINT32_MAX ? 0 : m.value[at];
      if (memcmp(&is, &wanted[i * columns + j], sizeof is) != 0)
        fail_msg("%s: %u, %u: %g", text, i, j, is);
    }
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t k = m.at[i]; k + 1 < m.at[i + 1]; k++)
      assert_true(m.column[k] < m.column[k + 1]);
  hk_market_free(&m);
}

static void test_forms(void **state)
{
  (void)state;
  assert_is(HEAD "coordinate real general\n% by hand\n\n2 3 4\n2 3 -1.5\n1 1 2e0\n% one more\n2 1 0.25\n1 3 7\n", 2, 3,
            (double[]){ 2, 0, 7, 0.25, 0, -1.5 });
  assert_is("%%matrixmarket MATRIX Coordinate Integer General\r\n2 2 1\r\n2 2 3\r\n", 2, 2, (double[]){ 0, 0, 0, 3 });
  assert_is(HEAD "coordinate double symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 4\n3 3 5\n", 3, 3,
            (double[]){ 1, 2, 0, 2, 0, 4, 0, 4, 5 });
  assert_is(HEAD "coordinate real skew-symmetric\n2 2 1\n2 1 3\n", 2, 2, (double[]){ 0, -3, 3, 0 });
  assert_is(HEAD "array real general\n2 2\n1\n2\n3\n4\n", 2, 2, (double[]){ 1, 3, 2, 4 });
  assert_is(HEAD "array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3, (double[]){ 1, 2, 3, 2, 4, 5, 3, 5, 6 });
  assert_is(HEAD "array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, (double[]){ 0, -1, -2, 1, 0, -3, 2, 3, 0 });
  assert_is(HEAD "coordinate real general\n2 2 0\n", 2, 2, (double[]){ 0, 0, 0, 0 });
  assert_is(HEAD "coordinate real general\n1 1 1\n1 1 4.9e-324", 1, 1, (double[]){ 4.9e-324 }); /* without an end of the line */
}

/* Entries of one place are added in the order of the file. */
static void test_sums(void **state)
{
  (void)state;
  assert_is(HEAD "coordinate real general\n2 2 5\n1 2 1\n2 2 1e16\n1 2 2.5\n2 2 1\n2 2 -1e16\n", 2, 2,
            (double[]){ 0, 3.5, 0, 0 });
  struct hk_market m = read_text(HEAD "coordinate real general\n1 3 2\n1 2 0\n1 3 2\n");
  assert_int_equal(m.at[1], 2); /* a zero belongs to the pattern */
  assert_true(hk_market_times(&m, 0, (double[]){ 1, 10, 100 }) == 200);
  hk_market_free(&m);
}

static void test_faults(void **state)
{
  static const struct {
    const char *text, *error;
  } wrong[] = {
    { "", "line 1, column 1: a Matrix Market file begins with" },
    { "1 1 1\n1 1 1\n", "line 1, column 1: 1: a Matrix Market file begins with" },
    { "%%MatrixMarket vector coordinate real general\n", "line 1, column 16: vector: not a matrix" },
    { HEAD "elemental real general\n", "line 1, column 23: elemental: neither coordinate nor array" },
    { HEAD "coordinate complex general\n", "line 1, column 34: complex: none of real, double and integer" },
    { HEAD "coordinate pattern general\n", "line 1, column 34: pattern: none of" },
    { HEAD "coordinate real hermitian\n", "line 1, column 39: hermitian: none of general" },
    { HEAD "coordinate real general\n", "line 1, column 1: the file ends before the numbers of rows" },
    { HEAD "coordinate real general\n2 2\n", "line 2, column 4: not a number of entries, a whole number from 0" },
    { HEAD "coordinate real general\n0 2 1\n", "line 2, column 1: 0: not a number of rows" },
    { HEAD "coordinate real general\n2 -2 1\n", "line 2, column 3: -2: not a number of columns" },
    { HEAD "coordinate real general\n2 1048577 1\n", "line 2, column 3: 1048577: not a number of columns" },
    { HEAD "coordinate real general\n2 2 99999\n", "line 2, column 10: the file is too short" },
    { HEAD "coordinate real symmetric\n2 3 1\n2 1 1\n", "line 2, column 3: 3: a symmetric matrix has as many" },
    { HEAD "array real general\n1048576 1048576\n", "line 2, column 9: 1048576: the matrix has over 67108864 numbers" },
    { HEAD "coordinate real general\n2 2 2\n1 1 1\n", "line 3, column 1: the file ends before its last entry" },
    { HEAD "coordinate real general\n2 2 1\n1 1 1\n1 2 1\n", "line 4, column 1: 1: more entries than the file says" },
    { HEAD "coordinate real general\n2 2 1\n3 1 1\n", "line 3, column 1: 3: not a row, a whole number from 1 to 2" },
    { HEAD "coordinate real general\n2 2 1\n1 1.5 1\n", "line 3, column 3: 1.5: not a column" },
    { HEAD "coordinate real general\n2 2 1\n1 1 1 1\n", "line 3, column 7: 1: more than belongs to the line" },
    { HEAD "coordinate real general\n2 2 1\n1 1 nan\n", "line 3, column 5: nan: not a finite number" },
    { HEAD "coordinate real general\n2 2 1\n1 1 1e999\n", "line 3, column 5: 1e999: not a finite number" },
    { HEAD "coordinate real general\n2 2 1\n1 1\n", "line 3, column 4: no number" },
    { HEAD "coordinate real general\n2 2 1\n1 1 1e\n", "line 3, column 5: 1e: not a finite number" },
    { HEAD "coordinate real symmetric\n2 2 1\n1 2 1\n",
      "line 3, column 3: 2: a symmetric matrix is given by its lower triangle" },
    { HEAD "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "line 3, column 3: 1: a symmetric matrix is given by" },
    { HEAD "coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n", "entries of one place have a sum that is not finite" },
    { HEAD "coordinate real general\n1 1 1\n1 1 0000000000000000000000000000000000000000000000000000000000000000000000001\n",
      "line 3, column 5: " },
  };
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct hk_market m;
    char error[256] = "";
    assert_int_equal(hk_market_parse(&m, wrong[i].text, strlen(wrong[i].text), error, sizeof error), -EINVAL);
    if (strncmp(error, wrong[i].error, strlen(wrong[i].error)) != 0)
      fail_msg("%s: %s", wrong[i].text, error);
    assert_null(m.at);
  }
}

/* A zero byte does not end a word: a word that contains one is not a number. */
static void test_zero_bytes(void **state)
{
  static const char text[] = HEAD "coordinate real general\n1 1 1\n1 1 \0\n", within[] = HEAD "array real general\n1 1\n1\0002\n";
  struct hk_market m;
  char error[256];
  (void)state;
  assert_int_equal(hk_market_parse(&m, text, sizeof text - 1, error, sizeof error), -EINVAL);
  assert_string_equal(error, "line 3, column 5: ?: not a finite number");
  assert_int_equal(hk_market_parse(&m, within, sizeof within - 1, error, sizeof error), -EINVAL);
  assert_string_equal(error, "line 3, column 1: ???: not a finite number");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms), cmocka_unit_test(test_sums), cmocka_unit_test(test_faults),
                                      cmocka_unit_test(test_zero_bytes) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
