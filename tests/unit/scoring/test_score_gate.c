/* How snapshots wait for the broker to confirm their scores, and go on without. */
#include "daemon/scoring/score_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define WITHOUT HK_SCORE_GATE_WITHOUT

static int begin(void **state)
{
  static struct hk_score_gate gate;
  gate = (struct hk_score_gate){ 0 };
  *state = &gate;
  return hk_score_gate_open(&gate);
}

static int end(void **state)
{
  hk_score_gate_close(*state);
  return 0;
}

/* Without confirmations snapshots wait at first, then not; once one is confirmed, the next waits. */
static void waits_again(void **state)
{
  struct hk_score_gate *g = *state;
  struct hk_score_wait w = { 0 };
  int64_t now = SECOND;
  for (; now < SECOND + WITHOUT; now += 100 * SECOND) { /* each is abandoned */
    hk_score_wait_begin(&w, g, now);
    assert_false(hk_score_wait_over(&w, g, now));
  }
  hk_score_wait_begin(&w, g, now);
  assert_true(hk_score_wait_over(&w, g, now) && w.without);
  hk_score_wait_begin(&w, g, now += SECOND);
  assert_true(hk_score_wait_over(&w, g, now) && w.without);
  hk_score_gate_pass(g, hk_score_gate_asked(g));
  hk_score_wait_begin(&w, g, now += SECOND);
  assert_false(w.without);
  assert_false(hk_score_wait_over(&w, g, now));
  assert_false(hk_score_wait_over(&w, g, now + WITHOUT - 1));
  assert_true(hk_score_wait_over(&w, g, now + WITHOUT));
}

/* A snapshot that was abandoned, and whose scores were confirmed later, does not shorten the wait of the next one. */
static void waits_for_its_own_time(void **state)
{
  struct hk_score_gate *g = *state;
  struct hk_score_wait w = { 0 };
  hk_score_wait_begin(&w, g, SECOND);
  assert_false(hk_score_wait_over(&w, g, 60 * SECOND));
  hk_score_gate_pass(g, hk_score_gate_asked(g));
  hk_score_wait_begin(&w, g, 2 * WITHOUT);
  assert_false(hk_score_wait_over(&w, g, 2 * WITHOUT));
  hk_score_gate_pass(g, hk_score_gate_asked(g));
  assert_true(hk_score_wait_over(&w, g, 2 * WITHOUT + SECOND));
  assert_false(w.without);
}

/* Where nothing is shared, nothing waits. */
static void nothing_to_wait_for(void **state)
{
  struct hk_score_gate shut = { 0 };
  struct hk_score_wait w = { 0 };
  (void)state;
  hk_score_wait_begin(&w, &shut, SECOND);
  assert_true(hk_score_wait_over(&w, &shut, SECOND) && !w.without);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(waits_again, begin, end),
    cmocka_unit_test_setup_teardown(waits_for_its_own_time, begin, end),
    cmocka_unit_test(nothing_to_wait_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
