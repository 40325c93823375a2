/* Ends of incidents: the earliest is first, whatever is put and taken. */
#include "daemon/incidents/incident_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 300

/* The earliest of those that are put, by looking at all. */
static const struct hk_incident_end *earliest(const struct hk_incident_end *end, const bool *put)
{
  const struct hk_incident_end *first = NULL;
  for (uint32_t i = 0; i < N; i++)
    if (put[i] && (!first || end[i].time < first->time || (end[i].time == first->time && end[i].number < first->number)))
      first = &end[i];
  return first;
}

static void test_earliest_first(void **state)
{
  struct hk_incident_ends ends = { 0 };
  struct hk_incident_end end[N];
  bool put[N] = { false };
  uint32_t n = 0;
  (void)state;
  srand(3);
  for (int step = 0; step < 20000; step++) {
    const int i = rand() % N;
    if (put[i])
      hk_ends_take(&ends, &end[i]);
    n -= put[i];
    put[i] = rand() % 4 > 0;
    if (put[i]) {
      assert_true(hk_ends_reserve(&ends));
      hk_ends_put(&ends, &end[i], rand() % 50 - 25);
    }
    n += put[i];
    assert_ptr_equal(hk_ends_first(&ends), earliest(end, put));
  }
  for (const struct hk_incident_end *first; (first = hk_ends_first(&ends)) != NULL; n--) {
    assert_ptr_equal(first, earliest(end, put));
    hk_ends_take(&ends, first);
    put[first - end] = false;
  }
  assert_int_equal(n, 0);
  free(ends.of);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_earliest_first) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
