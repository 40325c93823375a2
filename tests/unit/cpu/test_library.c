/* Libraries that are loaded when they are needed. */
#include "cpu/library.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CALLS(_)                                                                                                                 \
  _(c, os)                                                                                                                       \
  _(s, in)

static void functions_are_found(void **state)
{
  (void)state;
  struct {
    CALLS(HK_LIBRARY_CALL)
  } trigonometry = { NULL, NULL };
  struct hk_library library = HK_LIBRARY("libm.so.6", trigonometry, CALLS);
  char why[HK_LIBRARY_WHY] = "";
  assert_int_equal(hk_library_load(&library, why, sizeof why), 0);
  assert_true(trigonometry.os(0) == 1 && trigonometry.in(0) == 0);
  library.file = "libnone.so.1"; /* it is loaded */
  assert_int_equal(hk_library_load(&library, why, sizeof why), 0);
  assert_string_equal(why, "");
}

double sundown(double x); /* of no library */
#define MORE(_) CALLS(_) _(s, undown)

static void what_lacks_is_named(void **state)
{
  (void)state;
  struct {
    MORE(HK_LIBRARY_CALL)
  } more;
  struct hk_library library = HK_LIBRARY("libm.so.6", more, MORE), none = HK_LIBRARY("libnone.so.1", more, MORE);
  char why[HK_LIBRARY_WHY];
  assert_int_equal(hk_library_load(&library, why, sizeof why), -ELIBACC);
  assert_string_equal(why, "libm.so.6 is another version: it has no sundown");
  assert_int_equal(hk_library_load(&library, NULL, 0), -ELIBACC); /* still */
  assert_int_equal(hk_library_load(&none, why, sizeof why), -ELIBACC);
  assert_non_null(strstr(why, "libnone.so.1 cannot be loaded: "));
  assert_int_equal(hk_library_find("libnone.so.1", why, sizeof why), -ELIBACC);
  assert_int_equal(hk_library_find("libm.so.6", why, sizeof why), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_found),
    cmocka_unit_test(what_lacks_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
