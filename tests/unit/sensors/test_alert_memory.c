/* The memory of alerts: standing alerts, and their numbers. */
#include "daemon/sensors/alert_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SENSORS 300

static void note(struct hk_alerts *a, uint32_t slot, uint32_t number, enum hk_event_kind kind, float score)
{
  const struct hk_event e = { .slot = slot, .number = number, .kind = (uint8_t)kind, .score = score, .index = 9 };
  assert_int_equal(hk_alerts_note(a, &e), 0);
}

static void test_one(void **state)
{
  struct hk_alerts *a;
  struct hk_event e;
  uint32_t n;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  assert_int_equal(hk_alerts_number(a, 3), 0);
  assert_false(hk_alerts_clear(a, 3, &e));
  note(a, 3, 1, HK_EVENT_RAISED, 0.5f);
  note(a, 3, 0, HK_EVENT_STALE, 0); /* a notice changes nothing */
  note(a, 3, 1, HK_EVENT_CORRECTED, 0.75f);
  assert_int_equal(hk_alerts_number(a, 3), 1);
  assert_true(hk_alerts_clear(a, 3, &e));
  assert_int_equal(e.kind, HK_EVENT_CLEARED);
  assert_int_equal(e.number, 1);
  assert_int_equal(e.slot, 3);
  assert_true(e.score == 0.75f); /* the latest published event */
  assert_int_equal(e.index, UINT32_MAX);
  assert_false(hk_alerts_clear(a, 3, &e));
  assert_int_equal(hk_alerts_number(a, 3), 1);
  assert_int_equal(hk_alerts_changed(a, 3), 0);
  const struct hk_event late = { .kind = HK_EVENT_RAISED, .channel = HK_CHANNEL_SCORE, .number = 2, .slot = 3, .time = 77 };
  assert_int_equal(hk_alerts_note(a, &late), 0);
  note(a, 3, 2, HK_EVENT_CORRECTED, 0.5f);
  note(a, 3, 2, HK_EVENT_CLEARED, 0.5f);
  assert_int_equal(hk_alerts_changed(a, 3), 77); /* as it was raised, also after its end */
  hk_alerts_standing(a, &n);
  assert_int_equal(n, 0);
  assert_int_equal(hk_alerts_number(a, 3), 2);
  note(a, 3, 3, HK_EVENT_RAISED, 0.5f);
  hk_alerts_forget(a, 3); /* now it is another sensor */
  assert_false(hk_alerts_clear(a, 3, &e));
  assert_int_equal(hk_alerts_number(a, 3), 0);
  assert_int_equal(hk_alerts_changed(a, 3), 0);
  hk_alerts_free(a);
}

static void test_sequences(void **state)
{
  struct hk_alerts *a, *b;
  struct hk_alerts_memory m;
  struct hk_event e;
  uint64_t sequence[4];
  uint32_t n;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  assert_int_equal(hk_alerts_new(&b, SENSORS), 0);
  assert_int_equal(hk_alerts_sequence(a, 5), 0);
  note(a, 5, 1, HK_EVENT_RAISED, 0.5f);
  note(a, 5, 1, HK_EVENT_CORRECTED, 0.5f);
  note(a, 5, 0, HK_EVENT_STALE, 0);
  note(a, 5, 1, HK_EVENT_CLEARED, 0.5f);
  assert_int_equal(hk_alerts_sequence(a, 5), 3); /* notices do not count */
  note(a, 5, 2, HK_EVENT_RAISED, 0.25f);
  hk_alerts_count(a, 4, (const uint32_t[]){ 5, 6, 5, 5 }, sequence);
  assert_memory_equal(sequence, ((const uint64_t[]){ 1, 1, 2, 3 }), sizeof sequence);
  hk_alerts_get(a, 5, &m);
  assert_int_equal(hk_alerts_set(b, 5, &m), 0);
  hk_alerts_get(a, 6, &m);
  assert_int_equal(hk_alerts_set(b, 6, &m), 0);
  hk_alerts_standing(b, &n);
  assert_int_equal(n, 1);
  assert_int_equal(hk_alerts_number(b, 5), 2);
  hk_alerts_count(b, 4, (const uint32_t[]){ 6, 5, 7, 5 }, sequence);
  assert_memory_equal(sequence, ((const uint64_t[]){ 2, 4, 1, 5 }), sizeof sequence);
  assert_int_equal(hk_alerts_sequence(b, 5), 4);
  assert_true(hk_alerts_clear(b, 5, &e));
  assert_true(e.score == 0.25f);
  assert_int_equal(hk_alerts_note(b, &e), 0);
  assert_int_equal(hk_alerts_sequence(b, 5), 5);
  hk_alerts_reach(b, 5, 3, 1);
  assert_true(hk_alerts_sequence(b, 5) == 5 && hk_alerts_number(b, 5) == 2);
  hk_alerts_reach(b, 5, 9, 4);
  assert_true(hk_alerts_sequence(b, 5) == 9 && hk_alerts_number(b, 5) == 4);
  for (uint32_t number = 2; number <= 5; number++) /* an ended alert is not ended a second time */
    for (uint8_t kind = HK_EVENT_CORRECTED; kind <= HK_EVENT_CLEARED; kind++) {
      e = (struct hk_event){ .slot = 5, .number = number, .kind = kind };
      assert_int_equal(hk_alerts_pass(b, &e, 0, 0), number == 5);
    }
  hk_alerts_forget(b, 5);
  assert_int_equal(hk_alerts_sequence(b, 5), 0);
  hk_alerts_free(a);
  hk_alerts_free(b);
}

/* Against a plain table. */
static void test_random(void **state)
{
  struct hk_alerts *a;
  uint32_t number[SENSORS] = { 0 }, n;
  bool stands[SENSORS] = { false };
  uint64_t random = 88172645463325252ull;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  for (int step = 0; step < 100000; step++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const uint32_t slot = (uint32_t)(random >> 20) % SENSORS;
    struct hk_event e;
    if (!stands[slot]) {
      note(a, slot, ++number[slot], HK_EVENT_RAISED, 1);
      stands[slot] = true;
    } else if (random % 3 == 0) {
      assert_true(hk_alerts_clear(a, slot, &e));
      assert_int_equal(e.slot, slot);
      assert_int_equal(e.number, number[slot]);
      stands[slot] = false;
    } else if (random % 3 == 1) {
      note(a, slot, number[slot], HK_EVENT_CLEARED, 1);
      stands[slot] = false;
    } else {
      hk_alerts_forget(a, slot);
      stands[slot] = false;
      number[slot] = 0;
    }
  }
  const struct hk_standing *standing = hk_alerts_standing(a, &n);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < n; i++)
    assert_true(stands[standing[i].event.slot] && standing[i].event.number == number[standing[i].event.slot]);
  for (uint32_t i = 0; i < SENSORS; i++) {
    expected += stands[i];
    assert_int_equal(hk_alerts_number(a, i), number[i]);
  }
  assert_int_equal(n, expected);
  hk_alerts_free(a);
}

/* Passes on an event of slot 2, with a limit of three alerts in a hundred; `kind`: the published event, 0: none. */
static struct hk_event pass(struct hk_alerts *a, uint32_t number, enum hk_event_kind kind, int64_t time, int told)
{
  struct hk_event e = { .slot = 2, .number = number, .kind = (uint8_t)kind, .time = time };
  const bool passed = hk_alerts_pass(a, &e, 3, 100);
  assert_int_equal(passed ? e.kind : 0, told);
  if (passed)
    assert_int_equal(hk_alerts_note(a, &e), 0);
  return e;
}

static void one_alert(struct hk_alerts *a, uint32_t number, int64_t time, int told)
{
  pass(a, number, HK_EVENT_RAISED, time, told);
  pass(a, number, HK_EVENT_CORRECTED, time + 1, told == HK_EVENT_RAISED ? HK_EVENT_CORRECTED : 0);
  pass(a, number, HK_EVENT_CLEARED, time + 2, told == HK_EVENT_RAISED ? HK_EVENT_CLEARED : 0);
}

static void test_flapping(void **state)
{
  struct hk_alerts *a, *b;
  struct hk_alerts_memory m;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  assert_int_equal(hk_alerts_new(&b, SENSORS), 0);
  one_alert(a, 1, 0, HK_EVENT_RAISED);
  one_alert(a, 2, 40, HK_EVENT_RAISED);
  one_alert(a, 3, 80, HK_EVENT_RAISED);
  one_alert(a, 4, 101, HK_EVENT_RAISED); /* the fourth in 101 */
  one_alert(a, 5, 140, HK_EVENT_FLAPPING);
  assert_int_equal(hk_alerts_number(a, 2), 5);
  assert_int_equal(hk_alerts_sequence(a, 2), 4 * 3 + 1);
  one_alert(a, 6, 240, 0); /* as long as there is no pause of more than a hundred */
  one_alert(a, 7, 340, 0);
  hk_alerts_get(a, 2, &m);
  assert_int_equal(m.held, 3);
  assert_int_equal(hk_alerts_set(b, 2, &m), 0); /* the restored memory continues alike */
  for (int k = 0; k < 2; k++) {
    struct hk_alerts *x = k ? b : a;
    assert_int_equal(hk_alerts_number(x, 2), 7);
    const struct hk_event e = pass(x, 8, HK_EVENT_RAISED, 441, HK_EVENT_RAISED);
    assert_int_equal(e.held, 3);
    assert_int_equal(pass(x, 8, HK_EVENT_CLEARED, 442, HK_EVENT_CLEARED).held, 3);
    one_alert(x, 9, 443, HK_EVENT_RAISED);
    one_alert(x, 10, 444, HK_EVENT_RAISED);
    one_alert(x, 11, 445, HK_EVENT_FLAPPING);
    one_alert(x, 12, 446, 0);
    /* the limit is removed: a held alert stays held to its end, and is then reported */
    struct hk_event late = { .slot = 2, .number = 12, .kind = HK_EVENT_CLEARED, .time = 447 };
    assert_false(hk_alerts_pass(x, &late, 0, 100));
    late = (struct hk_event){ .slot = 2, .number = 13, .kind = HK_EVENT_RAISED, .time = 448 };
    assert_true(hk_alerts_pass(x, &late, 0, 100));
    assert_int_equal(late.held, 2);
    hk_alerts_forget(x, 2);
    one_alert(x, 1, 449, HK_EVENT_RAISED); /* another sensor */
    /* an alert that could not be remembered for lack of memory: its end is still published */
    struct hk_event forgotten = { .slot = 2, .number = 2, .kind = HK_EVENT_RAISED, .time = 600 };
    assert_true(hk_alerts_pass(x, &forgotten, 3, 100));
    pass(x, 2, HK_EVENT_CLEARED, 601, HK_EVENT_CLEARED);
  }
  hk_alerts_free(a);
  hk_alerts_free(b);
}

static void test_acknowledged(void **state)
{
  char before[HK_WHO_MAX + 1];
  struct hk_alerts *a, *b;
  struct hk_alerts_memory m;
  struct hk_alerts_sum sum;
  struct hk_standing shown[4];
  struct hk_event e;
  uint32_t n;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  assert_int_equal(hk_alerts_new(&b, SENSORS), 0);
  assert_int_equal(hk_alerts_acknowledge(a, 3, 0, hk_string("anna"), 7, &e, before), -ENOENT);
  note(a, 3, 5, HK_EVENT_RAISED, 0.5f);
  note(a, 4, 1, HK_EVENT_RAISED, 0.5f);
  assert_int_equal(hk_alerts_acknowledge(a, 3, 4, hk_string("anna"), 7, &e, before), -ENOENT);
  assert_int_equal(hk_alerts_acknowledge(a, 3, 5, hk_string("anna"), 7, &e, before), 0);
  assert_true(e.kind == HK_EVENT_ACKNOWLEDGED && e.number == 5 && e.time == 7 && e.slot == 3);
  assert_int_equal(hk_alerts_acknowledge(a, 3, 0, hk_string("otto"), 8, &e, before), -EALREADY);
  assert_string_equal(before, "anna");
  assert_int_equal(e.time, 7);
  note(a, 3, 5, HK_EVENT_CORRECTED, 0.75f); /* it is the same alert */
  assert_int_equal(hk_alerts_sequence(a, 3), 2);
  assert_int_equal(hk_alerts_show(a, shown, 4, &sum), 2);
  assert_true(sum.standing == 2 && sum.acknowledged == 1);
  assert_int_equal(shown[0].event.slot, 4); /* nobody has seen to that */
  assert_true(shown[1].event.score == 0.75f && shown[1].acknowledged == 7);
  assert_string_equal(shown[1].by, "anna");
  assert_int_equal(hk_alerts_show(a, shown, 1, &sum), 1);
  hk_alerts_get(a, 3, &m);
  assert_int_equal(hk_alerts_set(b, 3, &m), 0);
  assert_string_equal(hk_alerts_standing(b, &n)->by, "anna");
  note(a, 3, 5, HK_EVENT_CLEARED, 0.75f);
  note(a, 3, 6, HK_EVENT_RAISED, 0.5f); /* another one */
  assert_int_equal(hk_alerts_acknowledge(a, 3, 0, hk_string("otto"), 9, &e, before), 0);
  assert_int_equal(e.number, 6);
  hk_alerts_free(a);
  hk_alerts_free(b);
}

/* Of many alerts, those are shown that operators should look at first. */
static void test_gravest_first(void **state)
{
  struct hk_alerts *a;
  struct hk_alerts_sum sum;
  struct hk_standing shown[3];
  struct hk_event e;
  char before[HK_WHO_MAX + 1];
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  for (uint32_t slot = 0; slot < 5; slot++) {
    static const float severity[] = { 2, 9, 3, 4, 3 };
    const struct hk_event raised = {
      .slot = slot, .number = 1, .kind = HK_EVENT_RAISED, .time = 100 + slot, .severity = severity[slot]
    };
    assert_int_equal(hk_alerts_note(a, &raised), 0);
  }
  assert_int_equal(hk_alerts_acknowledge(a, 1, 0, hk_string("anna"), 7, &e, before), 0);
  assert_int_equal(hk_alerts_show(a, shown, 3, &sum), 3);
  assert_true(sum.standing == 5 && sum.acknowledged == 1);
  assert_int_equal(shown[0].event.slot, 3);
  assert_int_equal(shown[1].event.slot, 4); /* the latest of two */
  assert_int_equal(shown[2].event.slot, 2);
  assert_int_equal(hk_alerts_show(a, NULL, 0, &sum), 0);
  assert_int_equal(sum.standing, 5);
  hk_alerts_free(a);
}

/* An alert of the channel change: a new segment of one kind after one of another. */
static struct hk_event change(uint32_t number, uint8_t before, uint8_t after, enum hk_event_kind kind)
{
  struct hk_event e = {
    .slot = 4, .number = number, .kind = (uint8_t)kind, .channel = HK_CHANNEL_CHANGE, .instant = 100 * number
  };
  memset(&e.sketch_before, before, sizeof e.sketch_before);
  memset(&e.sketch_after, after, sizeof e.sketch_after);
  e.spread_before = e.spread_after = 1;
  return e;
}

/* The resemblance of a segment is published with the alert to its end, and is kept when the memory is moved. */
static void test_segments(void **state)
{
  struct hk_alerts *a, *b;
  struct hk_alerts_memory m;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  assert_int_equal(hk_alerts_new(&b, SENSORS), 0);
  struct hk_event e = change(1, 10, 90, HK_EVENT_RAISED);
  assert_true(hk_alerts_pass(a, &e, 0, 0) && e.likeness == 0);
  assert_int_equal(hk_alerts_note(a, &e), 0);
  hk_alerts_get(a, 4, &m);
  assert_int_equal(m.segments.n, 1);
  assert_int_equal(hk_alerts_set(b, 4, &m), 0);
  struct hk_alerts *both[] = { a, b };
  for (uint32_t i = 0; i < 2; i++) {
    e = change(2, 90, 40, HK_EVENT_RAISED); /* like nothing */
    assert_true(hk_alerts_pass(both[i], &e, 0, 0) && e.likeness == 0);
    assert_int_equal(hk_alerts_note(both[i], &e), 0);
    e = change(2, 90, 10, HK_EVENT_CORRECTED); /* like the first segment, now that this one is longer */
    assert_true(hk_alerts_pass(both[i], &e, 0, 0) && e.likeness > 0.9f && e.similar == 0);
    assert_int_equal(hk_alerts_note(both[i], &e), 0);
    e = (struct hk_event){ .slot = 4, .number = 2, .kind = HK_EVENT_CLEARED, .channel = HK_CHANNEL_CHANGE };
    assert_true(hk_alerts_pass(both[i], &e, 0, 0) && e.likeness > 0.9f);
    assert_int_equal(hk_alerts_note(both[i], &e), 0);
    e = change(3, 10, 90, HK_EVENT_RAISED);
    assert_true(hk_alerts_pass(both[i], &e, 0, 0) && e.likeness > 0.9f && e.similar == 1 && e.similar_from == 100);
    assert_int_equal(hk_alerts_note(both[i], &e), 0);
  }
  hk_alerts_forget(a, 4); /* now it is another sensor */
  hk_alerts_get(a, 4, &m);
  assert_int_equal(m.segments.n, 0);
  e = change(1, 10, 90, HK_EVENT_RAISED);
  assert_true(hk_alerts_pass(a, &e, 0, 0) && e.likeness == 0);
  hk_alerts_free(a);
  hk_alerts_free(b);
}

/* The novelty is published with the alert to its end. */
static void test_notes(void **state)
{
  struct hk_alerts *a;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  for (uint32_t number = 1; number <= 2; number++) {
    struct hk_event e = { .slot = 4, .number = number, .kind = HK_EVENT_RAISED, .channel = HK_CHANNEL_NOVELTY };
    e.novelty = (struct hk_novelty_note){ .nearest = number, .channel = 1 };
    assert_true(hk_alerts_pass(a, &e, 0, 0));
    assert_int_equal(hk_alerts_note(a, &e), 0);
    e.kind = HK_EVENT_CORRECTED;
    e.novelty = (struct hk_novelty_note){ .nearest = 70 + number, .channel = 2 };
    assert_true(hk_alerts_pass(a, &e, 0, 0) && e.novelty.nearest == 70 + number);
    assert_int_equal(hk_alerts_note(a, &e), 0);
    e.kind = HK_EVENT_CLEARED;
    e.novelty = (struct hk_novelty_note){ 0 };
    assert_true(hk_alerts_pass(a, &e, 0, 0) && e.novelty.nearest == 70 + number && e.novelty.channel == 2);
    assert_int_equal(hk_alerts_note(a, &e), 0);
  }
  hk_alerts_free(a);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_flapping), cmocka_unit_test(test_acknowledged),
                                      cmocka_unit_test(test_one),      cmocka_unit_test(test_sequences),
                                      cmocka_unit_test(test_random),   cmocka_unit_test(test_segments),
                                      cmocka_unit_test(test_notes),    cmocka_unit_test(test_gravest_first) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
