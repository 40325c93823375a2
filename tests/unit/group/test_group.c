/* Groups: the statistic compared with a plain recomputation of its definition, rows (order, silence, holes, joining and leaving),
 * values that must not matter, changes that must be found or must not, keys. */
#include "tests/unit/support/group.h"

#include <errno.h>
#include <string.h>

/* --- the definition, plainly ----------------------------------------------------------------------------------------- */

static double xlogx(double x)
{
  return x > 0 ? x * log(x) : 0;
}

static double likelihood(double some, double n)
{
  return xlogx(some) + xlogx(n - some) - xlogx(n);
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Member j's part of the statistic for a split of rows first..end-1 before row `split`; NaN: it has too few samples. */
static double of_member(uint32_t j, uint32_t first, uint32_t split, uint32_t end, uint32_t shortest)
{
  static double x[ROWS], e[ROWS], sorted[ROWS];
  static const double quantiles[] = { 0.1, 0.5, 0.9 };
  uint32_t n = 0, left = 0;
  double mean = 0, c0 = 0, c1 = 0, sum = 0;
  for (uint32_t i = first; i < end; i++)
    if (!isnan(value[i][j]))
      mean += x[n++] = value[i][j];
  if (n < 2 * shortest + 1)
    return NAN;
  mean /= n;
  for (uint32_t i = 0; i < n; i++) {
    c0 += (x[i] - mean) * (x[i] - mean);
    c1 += i > 0 ? (x[i] - mean) * (x[i - 1] - mean) : 0;
  }
  const double phi = c1 > 0 ? c1 / c0 * (c1 / c0) : 0;
  for (uint32_t i = first, k = 0; i < end; i++) {
    if (isnan(value[i][j]))
      continue;
    left += k > 0 && i < split;
    if (k > 0)
      e[k - 1] = sorted[k - 1] = x[k] - mean - phi * (x[k - 1] - mean);
    k++;
  }
  n--;
  if (left < shortest || n - left < shortest)
    return 0;
  qsort(sorted, n, sizeof *sorted, ascending);
  for (uint32_t q = 0; q < 3; q++) {
    const double level = sorted[(uint32_t)ceil(quantiles[q] * n) - 1];
    uint32_t older = 0, newer = 0;
    for (uint32_t i = 0; i < n; i++) {
      older += i < left && e[i] <= level;
      newer += i >= left && e[i] <= level;
    }
    sum += likelihood(older, left) + likelihood(newer, n - left) - likelihood(older + newer, n);
  }
  return sum;
}

/* Mean of member j in rows first..end-1, and the standard deviation about it. */
static void same_level(double told, float spread, uint32_t j, uint32_t first, uint32_t end)
{
  double sum = 0, square = 0, n = 0;
  for (uint32_t i = first; i < end; i++) {
    if (isnan(value[i][j]))
      continue;
    sum += value[i][j];
    square += value[i][j] * value[i][j];
    n++;
  }
  assert_true(n > 0 && fabs(told - sum / n) < 1e-9);
  assert_true(spread > 0 && fabs((double)spread - sqrt(square / n - sum / n * (sum / n))) < 1e-6 * (double)spread);
}

/* Checks that the ticks of rows from..rows-1 follow the definition. */
static void same_as_defined(const struct heard *h, uint32_t from, uint32_t members, const struct hk_group_rule *rule)
{
  uint32_t begin = from, since = 0, changes = 0;
  for (uint32_t k = 0; k < h->n; k++) {
    const struct hk_group_tick *t = &h->tick[k];
    const uint32_t end = from + k + 1;
    assert_int_equal(t->time, (int64_t)(end - 1) * SECOND);
    begin = end - begin > rule->resident ? end - rule->resident : begin;
    since += since > 0;
    double best = -1, said;
    uint32_t best_at = 0, able = 0;
    for (uint32_t j = 0; j < members; j++)
      able += !isnan(of_member(j, begin, begin, end, rule->shortest));
    if ((k + 1) % rule->hop != 0) {
      assert_true(isnan(t->statistic) && isnan(t->score) && t->change == HK_GROUP_SAME);
      continue;
    }
    if (able == 0) {
      assert_true(since <= 2 * rule->shortest); /* in every tested change enough members stay */
      assert_true(isnan(t->statistic) && isnan(t->score) && t->change == HK_GROUP_SAME);
      continue;
    }
    for (uint32_t split = begin + 1; split < end; split++) {
      double sum = 0;
      for (uint32_t j = 0; j < members; j++)
        sum += isnan(said = of_member(j, begin, split, end, rule->shortest)) ? 0 : said;
      if (sum > best + 1e-9) {
        best = sum;
        best_at = split;
      }
    }
    assert_int_equal(t->members, able);
    assert_true(fabs(t->statistic - best) < 1e-8 * (1 + best));
    const double unit = 40 + 8.0 * able;
    assert_true(fabs(t->score - best / (best + unit)) < 1e-8);
    if (since > 2 * rule->shortest) {
      assert_int_equal(t->change, HK_GROUP_SETTLED);
      since = 0;
      continue;
    }
    assert_int_equal(t->change, best > unit && since == 0 ? HK_GROUP_CHANGED : HK_GROUP_SAME);
    if (t->change == HK_GROUP_CHANGED) {
      assert_int_equal(t->from, (int64_t)begin * SECOND);
      assert_int_equal(t->instant, (int64_t)best_at * SECOND);
      assert_true(t->foremost < members);
      same_level(t->before, t->spread_before, t->foremost, begin, best_at);
      same_level(t->after, t->spread_after, t->foremost, best_at, end);
      begin = best_at;
      since = 1;
      changes++;
    }
  }
  assert_int_equal(changes, h->changes);
}

static void is_what_it_is_defined_as(void **state)
{
  (void)state;
  struct hk_group_rule rule = hk_group_default();
  rule.resident = 120;
  seed = 1;
  white(400, 4);
  for (uint32_t i = 100; i < 400; i++)
    for (uint32_t j = 0; j < 4; j++)
      value[i][j] += i >= 250 ? -1.5 : 2;
  for (uint32_t i = 1; i < 400; i++)
    value[i][3] = 0.9 * value[i - 1][3] + noise(); /* one that is persistent, */
  for (uint32_t i = 0; i < 400; i++)
    value[i][2] = uniform() < 0.3 && i % 4 ? NAN : value[i][2]; /* one with holes, */
  for (uint32_t i = 200; i < 211; i++)
    value[i][1] = NAN; /* and one that leaves and returns */
  struct heard *h = run("resident=120", 400, 4);
  assert_true(h->changes >= 2);
  assert_int_equal(h->n, 400 - rule.wait);
  for (uint32_t i = 211; i < 211 + rule.wait; i++)
    value[i][1] = NAN; /* it takes part after these rows */
  same_as_defined(h, rule.wait, 4, &rule);
  free(h);
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

static void order_does_not_matter(void **state)
{
  (void)state;
  enum { N = 1200, M = 5, WAIT = 6 };
  static struct heard other;
  seed = 7;
  white(N, M);
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t j = 0; j < M; j++) {
      value[i][j] += i > 600 ? 2 : 0;
      if (uniform() < 0.1 || (j == 2 && i > 300 && i < 330) || (j == 4 && i < 100))
        value[i][j] = NAN;
    }
  }
  struct heard *h = run("wait=6", N, M);
  for (int turn = 0; turn < 20; turn++) {
    uint32_t number[M], at[M] = { 0 };
    struct hk_group *g = group_of("wait=6", M, number);
    memset(&other, 0, sizeof other);
    for (uint32_t fed = 0; fed < N * M;) { /* any member, but none gets WAIT rows ahead of the last one */
      uint32_t last = N;
      const uint32_t j = (uint32_t)(uniform() * M);
      for (uint32_t k = 0; k < M; k++)
        last = at[k] < last ? at[k] : last;
      if (at[j] == N || at[j] >= last + WAIT - 1)
        continue;
      const uint32_t i = at[j]++;
      fed++;
      if (isnan(value[i][j]))
        continue;
      hk_group_put(g, number[j], (int64_t)i * SECOND, value[i][j]);
      listen(&other, g);
    }
    hk_group_free(g);
    const uint32_t n = other.n < h->n ? other.n : h->n;
    assert_true(n + WAIT >= N - WAIT);
    for (uint32_t i = 0; i < n; i++) {
      assert_memory_equal(&other.tick[i].statistic, &h->tick[i].statistic, sizeof(double));
      assert_int_equal(other.tick[i].time, h->tick[i].time);
      assert_int_equal(other.tick[i].instant, h->tick[i].instant);
      assert_int_equal(other.tick[i].change, h->tick[i].change);
    }
  }
  assert_true(h->changes > 0);
  free(h);
}

/* A row comes out as soon as all participating members have sent their points; for a silent member rows wait for `wait` rows, and
 * no longer. */
static void nobody_waits_for_ever(void **state)
{
  (void)state;
  uint32_t number[3], latest;
  struct hk_group *g = group_of("wait=4", 3, number);
  static struct heard h;
  memset(&h, 0, sizeof h);
  int64_t row = 0;
  for (; row < 50; row++) {
    for (uint32_t j = 0; j < 3; j++) {
      hk_group_put(g, number[j], row * SECOND, 1);
      listen(&h, g);
    }
    assert_int_equal(h.n, row < 4 ? 0 : row - 3);
  }
  uint32_t lag = 0;
  for (; row < 100; row++) { /* the third is silent */
    for (uint32_t j = 0; j < 2; j++) {
      hk_group_put(g, number[j], row * SECOND, 1);
      listen(&h, g);
    }
    latest = (uint32_t)(h.tick[h.n - 1].time / SECOND);
    lag = (uint32_t)row - latest > lag ? (uint32_t)row - latest : lag;
    assert_int_equal(h.n, latest - 3);
  }
  assert_int_equal(lag, 4);
  assert_int_equal(latest, 99);
  hk_group_put(g, number[2], row++ * SECOND, 1); /* it comes again, first of all */
  listen(&h, g);
  for (; row < 120; row++) {
    for (uint32_t j = 0; j < 3; j++) {
      hk_group_put(g, number[j], row * SECOND, 1);
      listen(&h, g);
    }
  }
  assert_int_equal(h.tick[h.n - 1].time, 119 * SECOND);
  hk_group_put(g, number[0], row * SECOND, 1);
  hk_group_put(g, number[1], row * SECOND, 1);
  listen(&h, g);
  assert_int_equal(h.tick[h.n - 1].time, 119 * SECOND);
  hk_group_leave(g, number[2]); /* rows do not wait for a member that left */
  listen(&h, g);
  assert_int_equal(h.tick[h.n - 1].time, 120 * SECOND);
  assert_int_equal(hk_group_members(g), 2);
  uint32_t again;
  assert_int_equal(hk_group_join(g, &again), 0);
  assert_int_equal(again, number[2]);
  hk_group_put(g, number[0], ++row * SECOND, 1); /* nor for one without a point */
  hk_group_put(g, number[1], row * SECOND, 1);
  listen(&h, g);
  assert_int_equal(h.tick[h.n - 1].time, 121 * SECOND);
  hk_group_free(g);
}

static void holes_late_points_and_odd_times(void **state)
{
  (void)state;
  uint32_t number[2];
  struct hk_group *g = group_of("wait=2,interval=1s", 2, number);
  static struct heard h;
  memset(&h, 0, sizeof h);
  const int64_t starts[] = { -40 * SECOND, 5 * SECOND, (int64_t)1 << 61, INT64_MAX - 30 * SECOND };
  for (uint32_t k = 0; k < 4; k++) { /* before 1970, and years apart: rows come out at once */
    for (int i = 0; i < 20; i++) {
      for (uint32_t j = 0; j < 2; j++) {
        hk_group_put(g, number[j], starts[k] + i * SECOND + j * 1000, i);
        listen(&h, g);
        hk_group_put(g, number[j], starts[k] + i * SECOND + 5000, 1e9); /* the row has a value */
        hk_group_put(g, number[j], starts[k] - SECOND, 1e9);            /* late */
        listen(&h, g);
      }
    }
  }
  hk_group_put(g, number[0], INT64_MIN, 1);
  listen(&h, g);
  assert_int_equal(h.n, 4 * 18);
  for (uint32_t i = 0; i < h.n; i++) {
    assert_int_equal(h.tick[i].time, starts[i / 18] + (i % 18 + 2) * SECOND + 1000);
    assert_true(i == 0 || h.tick[i].time > h.tick[i - 1].time);
    assert_true(!(h.tick[i].before > 1e6) && !(h.tick[i].after > 1e6));
  }
  hk_group_free(g);
}

/* --- values ---------------------------------------------------------------------------------------------------------- */

static void values_that_do_not_matter(void **state)
{
  (void)state;
  for (uint32_t i = 0; i < 600; i++) { /* constants, nothing, garbage */
    value[i][0] = 0.1;
    value[i][1] = 1e30;
    value[i][2] = i % 2 ? INFINITY : -INFINITY;
    value[i][3] = i % 2 ? 2e30 : -2e30;
  }
  struct heard *h = run("", 600, 4);
  assert_int_equal(h->changes, 0);
  for (uint32_t i = 0; i < h->n; i++)
    assert_true(isnan(h->tick[i].statistic) || h->tick[i].statistic == 0);
  assert_int_equal(h->tick[h->n - 1 - (h->n % 3)].members, 2);
  free(h);

  seed = 3;
  white(600, 4);
  for (uint32_t i = 300; i < 600; i++)
    for (uint32_t j = 0; j < 4; j++)
      value[i][j] += 1.5;
  h = run("", 600, 4);
  for (uint32_t i = 0; i < 600; i++)
    for (uint32_t j = 0; j < 4; j++)
      value[i][j] = 1e6 + 1e-3 * value[i][j];
  struct heard *far = run("", 600, 4);
  assert_int_equal(h->changes, 1);
  assert_int_equal(far->changes, 1);
  assert_int_equal(far->instant[0], h->instant[0]);
  assert_true(llabs(h->instant[0] / SECOND - 300) <= 3);
  for (uint32_t i = 0; i < far->n; i++) {
    if (far->tick[i].change == HK_GROUP_CHANGED) {
      assert_true(fabs(far->tick[i].before - 1e6) < 1e-3);
      assert_true(far->tick[i].after - far->tick[i].before > 1e-3);
    }
  }
  free(h);
  free(far);
}

/* --- what is seen ---------------------------------------------------------------------------------------------------- */

static void sees_together_what_none_shows_alone(void **state)
{
  (void)state;
  uint32_t joint = 0, alone = 0, false_alarms = 0;
  for (uint64_t trial = 0; trial < 20; trial++) {
    seed = 100 + trial;
    white(800, 8);
    for (uint32_t i = 400; i < 800; i++)
      for (uint32_t j = 0; j < 8; j++)
        value[i][j] += 0.9;
    struct heard *h = run("", 520, 8);
    for (uint32_t i = 0; i < h->changes; i++) {
      joint += llabs(h->instant[i] / SECOND - 400) <= 15;
      false_alarms += llabs(h->instant[i] / SECOND - 400) > 15;
    }
    free(h);
    h = run("", 520, 1);
    alone += h->changes;
    free(h);
  }
  assert_true(joint >= 19);
  assert_int_equal(alone, 0);
  assert_int_equal(false_alarms, 0);
}

/* Series without a change, persistent or not, raise no alert. */
static void silent_where_nothing_changes(void **state)
{
  (void)state;
  static const double persistence[] = { 0, 0.5, 0.9, 0.99, 1 };
  for (uint32_t k = 0; k < 5; k++) {
    seed = 50 + k;
    white(ROWS, 8);
    for (uint32_t i = 1; i < ROWS; i++)
      for (uint32_t j = 0; j < 8; j++)
        value[i][j] += persistence[k] * value[i - 1][j];
    struct heard *h = run("", ROWS, 8);
    print_message("# persistence %.2f: %u alarms in %u rows\n", persistence[k], h->changes, h->n);
    assert_true(h->changes <= 1);
    free(h);
  }
}

/* --- keys ------------------------------------------------------------------------------------------------------------ */

static void keys(void **state)
{
  (void)state;
  struct hk_group_rule r;
  char error[256];
  assert_int_equal(
      hk_group_parse(" shortest = 8, hop=1 ,resident=17,wait=2,members=3,interval=250ms,threshold=60", &r, error, 256), 0);
  assert_int_equal(r.shortest, 8);
  assert_int_equal(r.hop, 1);
  assert_int_equal(r.resident, 17);
  assert_int_equal(r.wait, 2);
  assert_int_equal(r.members, 3);
  assert_int_equal(r.interval, SECOND / 4);
  assert_true(hk_group_unit(&r, 3) == 60);
  assert_int_equal(hk_group_parse("threshold=auto", &r, error, 256), 0);
  assert_true(hk_group_unit(&r, 3) == 64);
  static const char *const bad[] = { "shortest=1",  "shortest=100", "hop=0",         "resident=12",  "resident=9999",
                                     "wait=0",      "wait=65",      "members=0",     "interval=0",   "threshold=0",
                                     "threshold=x", "threshold=-1", "threshold=nan", "threshold=1x", "window=6",
                                     "hop",         "hop=-1",       "hop=3x" };
  for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    error[0] = 0;
    assert_int_equal(hk_group_parse(bad[i], &r, error, 256), -EINVAL);
    assert_true(strlen(error) > 0);
  }
  struct hk_group *g;
  r = hk_group_default();
  r.resident = 5;
  assert_int_equal(hk_group_new(&g, &r), -EINVAL);
  r = hk_group_default();
  r.members = 1;
  uint32_t number;
  assert_int_equal(hk_group_new(&g, &r), 0);
  assert_int_equal(hk_group_join(g, &number), 0);
  assert_int_equal(hk_group_join(g, &number), -ENOSPC);
  hk_group_free(g);
  hk_group_free(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_what_it_is_defined_as),     cmocka_unit_test(order_does_not_matter),
    cmocka_unit_test(nobody_waits_for_ever),        cmocka_unit_test(holes_late_points_and_odd_times),
    cmocka_unit_test(values_that_do_not_matter),    cmocka_unit_test(sees_together_what_none_shows_alone),
    cmocka_unit_test(silent_where_nothing_changes), cmocka_unit_test(keys),
  };
  return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
