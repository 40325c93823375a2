/* Sketches of segments, and the memory of them. */
#include "cpu/rules/segments.h"
#include "cpu/rules/sketch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW 20
#define SAMPLES 800

/* Kinds of behaviour. */
static double behaviour(uint32_t kind, uint32_t t)
{
  const double phase = t / 40.0 - floor(t / 40.0);
  switch (kind) {
  case 0:
    return sin(2 * 3.14159265 * phase);
  case 1:
    return 2 * phase - 1; /* rises slowly */
  case 2:
    return phase < 0.1 ? 5 : 0;
  default:
    return sin(t * 0.9) + 30;
  }
}

/* The sketch, level and spread of n samples from number `first` on, as they lie in a ring from place `oldest` on. */
static struct hk_segment segment_of(uint32_t kind, uint32_t first, uint32_t n, uint32_t oldest, double factor, double offset)
{
  static float ring[SAMPLES];
  struct hk_sketch_view v = { ring, SAMPLES, oldest, n, WINDOW, 0, 0 };
  struct hk_segment s = { 0 };
  for (uint32_t i = 0; i < n; i++) {
    ring[(oldest + i) % SAMPLES] = (float)(factor * behaviour(kind, first + i) + offset);
    v.mean += (double)ring[(oldest + i) % SAMPLES] / n;
  }
  for (uint32_t i = 0; i < n; i++)
    v.spread += pow((double)ring[(oldest + i) % SAMPLES] - v.mean, 2) / n;
  v.spread = sqrt(v.spread);
  s.level = v.mean;
  s.spread = (float)v.spread;
  for (uint32_t q = 0; q < HK_SKETCH_NUMBERS; q++)
    s.sketch.of[q] = hk_sketch_number(&v, q);
  return s;
}

/* A sine's autocorrelations are cosines, its mean |z| is 0.90, and it is symmetric. */
static void sketches_are_as_defined(void **state)
{
  (void)state;
  const struct hk_segment s = segment_of(0, 3, 800, 0, 7, 0);
  const uint32_t lags[HK_SKETCH_LAGS] = { 1, 1, 3, 5, 10, 15, 20, 40 };
  for (uint32_t q = 0; q < HK_SKETCH_LAGS; q++)
    assert_true(fabs(s.sketch.of[q] - 100 * cos(2 * 3.14159265 * lags[q] / 40)) <= 1);
  assert_true(abs(s.sketch.of[8] - 90) <= 1 && abs(s.sketch.of[10] - 90) <= 1);
  assert_true(abs(s.sketch.of[9]) <= 1 && abs(s.sketch.of[11]) <= 1);
  const struct hk_segment saw = segment_of(1, 3, 800, 0, 1, 0), mirrored = segment_of(1, 3, 800, 0, -1, 0);
  assert_true(saw.sketch.of[11] < -15 && saw.sketch.of[11] == -mirrored.sketch.of[11]); /* it rises slowly and falls at once */
}

/* A sketch does not depend on the unit or the place in the ring, and a constant segment has one, too. */
static void sketches_are_of_the_shape(void **state)
{
  (void)state;
  for (uint32_t kind = 0; kind < 4; kind++) {
    const struct hk_segment a = segment_of(kind, 0, 320, 0, 1, 0), b = segment_of(kind, 0, 320, 700, 512, 0),
                            still = segment_of(kind, 0, 320, 0, 0, 7);
    assert_memory_equal(&a.sketch, &b.sketch, sizeof a.sketch);
    for (uint32_t q = 0; q < HK_SKETCH_NUMBERS; q++)
      assert_int_equal(still.sketch.of[q], q < HK_SKETCH_LAGS ? 100 : 0);
  }
  const struct hk_segment huge = segment_of(2, 0, 320, 0, 1e29, 0), tiny = segment_of(2, 0, 320, 0, 1e-25, 0);
  for (uint32_t q = 0; q < HK_SKETCH_NUMBERS; q++)
    assert_true(abs(huge.sketch.of[q] - tiny.sketch.of[q]) <= 1);
  const struct hk_segment few = segment_of(0, 0, 2, 0, 1, 0); /* no lag fits in */
  assert_int_equal(few.sketch.of[3], 0);
}

/* Alert number n of a sensor whose segments are of these kinds, each beginning at 1000 times its number. */
static struct hk_event alert(const uint32_t *kinds, uint32_t n, double offset)
{
  const struct hk_segment before = segment_of(kinds[n - 1], 7 * n, 320, 5, 1, 0),
                          after = segment_of(kinds[n], 11 * n, 200, 3, 1, offset);
  return (struct hk_event){ .kind = HK_EVENT_RAISED,
                            .channel = HK_CHANNEL_CHANGE,
                            .number = n,
                            .from = n == 1 ? 10 : 1000 * (n - 1) + 500,
                            .instant = 1000 * n,
                            .before = before.level,
                            .after = after.level,
                            .spread_before = before.spread,
                            .spread_after = after.spread,
                            .sketch_before = before.sketch,
                            .sketch_after = after.sketch,
                            .similar = 99,
                            .likeness = 9 };
}

static void what_comes_back_is_known(void **state)
{
  (void)state;
  static const uint32_t kinds[] = { 0, 1, 2, 3, 1, 0, 3, 3, 2, 0, 1, 2, 3, 0, 1 };
  struct hk_segments s = { 0 };
  uint32_t told = 0;
  for (uint32_t n = 1; n < sizeof kinds / sizeof *kinds; n++) {
    struct hk_event e = alert(kinds, n, 0);
    assert_true(hk_segments_concerns(&e));
    hk_segments_take(&s, &e);
    uint32_t same = UINT32_MAX; /* the last kept one of its kind, except the one that has just ended */
    for (uint32_t i = n > HK_SEGMENTS ? n - HK_SEGMENTS : 0; i + 1 < n; i++)
      same = kinds[i] == kinds[n] ? i : same;
    if (same == UINT32_MAX || kinds[n - 1] == kinds[n]) {
      assert_true(e.likeness == 0 && e.similar == 0 && e.similar_from == 0);
      continue;
    }
    told++;
    assert_true(e.likeness >= 0.6f && e.likeness <= 1);
    assert_int_equal(kinds[e.similar], kinds[n]);
    assert_int_equal(e.similar_from, e.similar == 0 ? 10 : 1000 * e.similar);
  }
  assert_true(told >= 8);
  assert_int_equal(s.n, HK_SEGMENTS);
}

/* The same shape at a new level resembles no known segment. */
static void levels_count(void **state)
{
  (void)state;
  static const uint32_t kinds[] = { 0, 1, 0 };
  for (uint32_t far = 0; far < 2; far++) {
    struct hk_segments s = { 0 };
    struct hk_event first = alert(kinds, 1, 0), second = alert(kinds, 2, far ? 5 : 0);
    hk_segments_take(&s, &first);
    hk_segments_take(&s, &second);
    assert_true(far ? second.likeness == 0 : second.likeness > 0);
  }
}

/* A correction replaces the raised segment; if numbers jump, segments begin with the alert's own data. */
static void corrections_replace(void **state)
{
  (void)state;
  static const uint32_t kinds[] = { 0, 1, 0, 2 };
  struct hk_segments s = { 0 };
  struct hk_event e = alert(kinds, 1, 0);
  hk_segments_take(&s, &e);
  e.kind = HK_EVENT_CORRECTED;
  e.instant = 1100;
  e.before = 3;
  hk_segments_take(&s, &e);
  assert_true(s.n == 1 && s.kept[0].level == 3 && s.kept[0].from == 10 && s.kept[0].number == 0 && s.from == 1100);
  e = alert(kinds, 2, 0);
  hk_segments_take(&s, &e);
  assert_true(s.n == 2 && s.kept[1].from == 1100 && s.kept[1].number == 1);
  e = alert(kinds, 3, 0);
  e.number = 7;
  hk_segments_take(&s, &e);
  assert_true(s.n == 3 && s.kept[2].from == e.from && s.kept[2].number == 6);
}

static void others_do_not_concern(void **state)
{
  (void)state;
  static const uint32_t kinds[] = { 0, 1 };
  const struct hk_event good = alert(kinds, 1, 0);
  struct hk_event e = good;
  e.kind = HK_EVENT_CLEARED;
  assert_false(hk_segments_concerns(&e));
  e = good;
  e.channel = HK_CHANNEL_SHIFT;
  assert_false(hk_segments_concerns(&e));
  e = good;
  memset(&e.sketch_after, 0, sizeof e.sketch_after);
  assert_false(hk_segments_concerns(&e));
  e = good;
  e.number = 0;
  assert_false(hk_segments_concerns(&e));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sketches_are_as_defined),  cmocka_unit_test(sketches_are_of_the_shape),
    cmocka_unit_test(what_comes_back_is_known), cmocka_unit_test(levels_count),
    cmocka_unit_test(corrections_replace),      cmocka_unit_test(others_do_not_concern),
  };
  return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
