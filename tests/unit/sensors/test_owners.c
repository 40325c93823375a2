/* Owners: counts of many, at random, compared with a plain array; an owner without sensors takes no place. */
#include "daemon/sensors/owners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define OWNERS 500u
#define STEPS 200000u

static void test_as_an_array(void **state)
{
  (void)state;
  static uint32_t want[OWNERS];
  struct hk_owners o = { .key = 12345 };
  uint32_t random = 1, n = 0;
  assert_int_equal(hk_owners_count(&o, 7), 0);
  for (uint32_t step = 0; step < STEPS; step++) {
    random = random * 1664525 + 1013904223;
    const uint32_t i = (random >> 8) % OWNERS;
    const uint32_t least = step / 20000 % 2 ? 200 : 40; /* it grows, and empties */
    if ((random >> 20) % 256 > least || want[i] == 0) {
      n += want[i]++ == 0;
      assert_int_equal(hk_owners_add(&o, 1 + (uint64_t)i * i), 0);
    } else {
      n -= --want[i] == 0;
      hk_owners_remove(&o, 1 + (uint64_t)i * i);
    }
    assert_int_equal(hk_owners_count(&o, 1 + (uint64_t)i * i), want[i]);
    assert_int_equal(o.n, n);
    assert_true(2 * o.n <= o.room);
  }
  for (uint32_t i = 0; i < OWNERS; i++) {
    assert_int_equal(hk_owners_count(&o, 1 + (uint64_t)i * i), want[i]);
    while (want[i]-- > 0)
      hk_owners_remove(&o, 1 + (uint64_t)i * i);
  }
  assert_int_equal(o.n, 0);
  for (uint32_t i = 0; i < o.room; i++)
    assert_true(o.place[i].owner == 0);
  hk_owners_free(&o);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_as_an_array) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
