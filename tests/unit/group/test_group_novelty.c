/* The novelty of a group: S compared with a plain recomputation of its definition, the begin and end of alerts, values that must
 * not matter, states, keys. */
#include "cpu/group/state.h"
#include "tests/unit/support/group.h"

#include <errno.h>
#include <string.h>

/* --- the definition, plainly ----------------------------------------------------------------------------------------- */

static double mean[ROWS][MEMBERS], weight[ROWS][MEMBERS], rarity[ROWS], severity[ROWS];

/* The slow means of the recording, and the inverse spreads of these up to each row. */
static void slow_means(uint32_t rows, uint32_t members)
{
  for (uint32_t j = 0; j < members; j++) {
    double first = NAN, f = 0, mu = 0, var = 0, n = 0;
    for (uint32_t i = 0; i < rows; i++) {
      mean[i][j] = weight[i][j] = NAN;
      if (isnan(value[i][j]))
        continue;
      first = isnan(first) ? value[i][j] : first;
      n++;
      f += (value[i][j] - first - f) / fmin(n, 4);
      const double before = mu;
      mu += (f - mu) / n; /* no recording here is 10,000 rows long */
      var += ((f - before) * (f - mu) - var) / n;
      mean[i][j] = f;
      weight[i][j] = sqrt(var) > 1e-6 * fabs(first) ? 1 / sqrt(var) : 0;
    }
  }
}

/* The distance of a row to the nearest one of the last `resident` that are at least 30 rows older; NaN: there is none. */
static double distance_of(uint32_t row, uint32_t members, uint32_t resident)
{
  double least = NAN;
  for (uint32_t back = 30; back < 30 + resident && back <= row; back++) {
    double sum = 0, both = 0, there = 0;
    for (uint32_t j = 0; j < members; j++) {
      const double off = (mean[row][j] - mean[row - back][j]) * weight[row][j];
      there += !isnan(mean[row][j]);
      both += !isnan(off);
      sum += isnan(off) ? 0 : off * off;
    }
    if (2 * both >= there && !(sqrt(sum / both) >= least))
      least = sqrt(sum / both);
  }
  return least;
}

static int descending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* -log10 of the share of blocks of 20 of these n distances that have one as large as q. */
static double rarity_of(const double *q_before, uint32_t n, double q, double prior, double observations)
{
  static double top[ROWS];
  const uint32_t blocks = n / 20;
  if (blocks < 4)
    return 0;
  for (uint32_t b = 0; b < blocks; b++) {
    top[b] = 0;
    for (uint32_t i = 20 * b; i < 20 * b + 20; i++)
      top[b] = fmax(top[b], q_before[i]);
  }
  qsort(top, blocks, sizeof *top, descending);
  const uint32_t k = (uint32_t)fmin(fmin(60, fmax(5, floor(0.3 * blocks))), blocks);
  const double u = top[k - 1], s0 = -log10(k / (blocks + 1.0));
  double h = 0;
  for (uint32_t i = 0; i < k; i++)
    h += log(top[i] / u);
  return q > u ? s0 + (k - 1 + observations) * log10(1 + log(q / u) / (h + observations * prior)) : fmax(0, s0 * q / u);
}

static void define(uint32_t rows, uint32_t members, uint32_t resident)
{
  static double q[ROWS];
  uint32_t n = 0;
  slow_means(rows, members);
  for (uint32_t i = 0; i < rows; i++) {
    const double distance = distance_of(i, members, resident);
    rarity[i] = severity[i] = NAN;
    if (isnan(distance))
      continue;
    q[n++] = distance + 0.2;
    if (n <= 60)
      continue;
    const uint32_t second = n > 70 ? n - 71 : 0, first = n - 61;
    rarity[i] = severity[i] = 0;
    for (int list = 0; list < 2; list++) {
      if (list == 1 && n <= 70)
        continue;
      const double *before = list == 0 ? q + 60 : q + 70;
      rarity[i] += 0.5 * rarity_of(before, list == 0 ? first : second, q[n - 1], 0.2, 20);
      severity[i] += 0.5 * rarity_of(before, list == 0 ? first : second, q[n - 1], 0.25, 5);
    }
    severity[i] = fmax(0, severity[i] - log10(2));
  }
}

/* Members of a machine: they follow a load together. */
static void machine(uint32_t rows, uint32_t members)
{
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < members; j++)
      value[i][j] = 100 * j + (1 + j) * (sin(6.283185307179586 * i / 120) + 0.1 * noise());
}

static void is_what_it_is_defined_as(void **state)
{
  (void)state;
  enum { N = 900, M = 4, RESIDENT = 200 };
  seed = 3;
  machine(N, M);
  for (uint32_t i = 500; i < 530; i++)
    value[i][2] -= 7; /* values that each member has had before, but not in this combination */
  for (uint32_t i = 0; i < N; i++)
    value[i][3] = i > 0 && uniform() < 0.2 ? NAN : 42; /* one member is constant and has holes, */
  for (uint32_t i = 300; i < 303; i++)
    value[i][1] = NAN; /* and one that is away */
  struct heard *h = run("statistic=novelty,novelty.resident=200,wait=6", N, M);
  uint32_t scored = 0;
  assert_int_equal(h->changes, 1);
  for (uint32_t i = 0; i < 6; i++) /* a member takes part six rows after its first value */
    for (uint32_t j = 0; j < M; j++)
      value[i][j] = NAN;
  define(N, M, RESIDENT);
  for (uint32_t k = 0; k < h->n; k++) {
    const struct hk_group_tick *t = &h->tick[k];
    const uint32_t row = (uint32_t)(t->time / SECOND);
    if (isnan(t->statistic)) {
      assert_true(isnan(t->score) && row < 160);
      continue;
    }
    scored++;
    if (fabs(t->statistic - rarity[row]) > 1e-5)
      fail_msg("row %u: %.9g is not %.9g", row, t->statistic, rarity[row]);
    assert_true(fabs(t->score - t->statistic / (t->statistic + 1.6)) < 1e-12);
    if (t->change == HK_GROUP_CHANGED || t->change == HK_GROUP_GRAVER) {
      assert_true(fabs(t->severity - severity[row]) < 1e-5);
      assert_int_equal(t->foremost, 2);
      assert_int_equal(t->instant, t->time - 3 * SECOND);
      assert_true(fabs(t->after - (mean[row][2] + value[6][2])) < 1e-9 && t->before > t->after + 1);
      assert_true(t->spread_before > 0 && t->spread_after == 0);
    }
  }
  assert_true(scored > N - 170);
  free(h);
}

/* --- alerts ---------------------------------------------------------------------------------------------------------- */

static const struct hk_group_tick *find(const struct heard *h, enum hk_group_change change, uint32_t from)
{
  for (uint32_t k = from; k < h->n; k++)
    if (h->tick[k].change == change)
      return &h->tick[k];
  return NULL;
}

/* A new state raises an alert, becomes more severe, and is settled; when it returns, it is known. */
static void what_has_been_is_not_new(void **state)
{
  (void)state;
  enum { N = 2200, M = 5 };
  seed = 5;
  machine(N, M);
  for (uint32_t i = 0; i < N; i++)
    if ((i >= 1200 && i < 1210) || (i >= 1800 && i < 1810))
      value[i][3] += (i < 1500 ? i - 1200 : i - 1800) * 2; /* against the others */
  struct heard *h = run("statistic=novelty", N, M);
  assert_int_equal(h->changes, 1);
  const struct hk_group_tick *raised = find(h, HK_GROUP_CHANGED, 0), *graver = find(h, HK_GROUP_GRAVER, 0);
  assert_true(raised->time >= 1200 * SECOND && raised->time < 1210 * SECOND && raised->foremost == 3);
  assert_true(graver && graver->time > raised->time && graver->severity >= raised->severity + 0.01);
  const struct hk_group_tick *settled = find(h, HK_GROUP_SETTLED, 0);
  assert_true(settled->time > 1230 * SECOND && settled->time < 1260 * SECOND && settled->severity >= graver->severity);
  assert_null(find(h, HK_GROUP_SETTLED, (uint32_t)(settled - h->tick) + 1));
  free(h);
}

/* A member changes beyond its range so far, and stays there: the alert is settled after 100 rows. Constant and silent members are
 * no novelty. */
static void an_alert_ends(void **state)
{
  (void)state;
  enum { N = 1500, M = 4 };
  seed = 6;
  white(N, M);
  for (uint32_t i = 0; i < N; i++) {
    value[i][0] = 5;
    value[i][1] += i >= 1000 ? pow(1.1, i - 995) : 0; /* never what it was */
    if (i >= 700)
      value[i][3] = NAN;
  }
  struct heard *h = run("statistic=novelty,novelty.threshold=2", N, M);
  const struct hk_group_tick *raised = find(h, HK_GROUP_CHANGED, 0), *settled = find(h, HK_GROUP_SETTLED, 0);
  assert_true(raised && raised->time >= 1000 * SECOND && raised->time < 1010 * SECOND && raised->members == 3);
  assert_true(settled && settled->time - raised->time >= 101 * SECOND && settled->time - raised->time < 150 * SECOND);
  for (uint32_t k = 0; k < h->n; k++)
    assert_true(isnan(h->tick[k].score) || (h->tick[k].score >= 0 && h->tick[k].score < 1));
  free(h);
}

/* Huge values are survived. */
static void huge_values(void **state)
{
  (void)state;
  enum { N = 600, M = 3 };
  seed = 8;
  white(N, M);
  for (uint32_t i = 300; i < N; i++)
    value[i][i % M] = i % 2 ? 1e30 : -1e30;
  struct heard *h = run("statistic=novelty", N, M);
  for (uint32_t k = 0; k < h->n; k++)
    assert_true(isnan(h->tick[k].score) || (h->tick[k].score >= 0 && h->tick[k].score < 1));
  free(h);
}

/* --- states ---------------------------------------------------------------------------------------------------------- */

static void goes_on_from_its_state(void **state)
{
  (void)state;
  enum { N = 1000, M = 4 };
  static const char keys[] = "statistic=novelty,novelty.resident=150,novelty.threshold=1.3";
  struct hk_group_rule rule;
  char error[256];
  assert_int_equal(hk_group_parse(keys, &rule, error, sizeof error), 0);
  seed = 12;
  machine(N, M);
  for (uint32_t i = 400; i < 640; i++)
    value[i][i / 100 % M] += 3 + 0.02 * i;
  for (uint32_t i = 0; i < N; i += 7)
    value[i][i % M] = NAN;
  struct heard *h = run(keys, N, M), *other = calloc(1, sizeof *other);
  uint32_t number[M];
  struct hk_group *g = group_of(keys, M, number);
  assert_non_null(other);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t j = 0; j < M; j++) {
      if (isnan(value[i][j]))
        continue;
      if (i % 17 == j)
        g = over(g, i % 2 ? &rule : NULL);
      hk_group_put(g, number[j], (int64_t)i * SECOND, value[i][j]);
      listen(other, g);
    }
  hk_group_free(g);
  assert_true(h->changes >= 2 && other->n == h->n);
  for (uint32_t i = 0; i < h->n; i++) {
    assert_memory_equal(&other->tick[i].statistic, &h->tick[i].statistic, sizeof(double));
    assert_memory_equal(&other->tick[i].severity, &h->tick[i].severity, sizeof(double));
    assert_memory_equal(&other->tick[i].before, &h->tick[i].before, sizeof(double));
    assert_int_equal(other->tick[i].change, h->tick[i].change);
  }
  free(other);
  free(h);
}

static void what_is_no_state_is_refused(void **state)
{
  (void)state;
  uint32_t number[3];
  struct hk_group *g = group_of("statistic=novelty,novelty.resident=100", 3, number), *again;
  struct hk_group_rule rule, joint = hk_group_default();
  char error[256];
  seed = 13;
  machine(400, 3);
  struct hk_group_tick tick;
  for (uint32_t i = 0; i < 400; i++)
    for (uint32_t j = 0; j < 3; j++) {
      hk_group_put(g, number[j], (int64_t)i * SECOND, value[i][j]);
      while (hk_group_next(g, &tick))
        ;
    }
  const size_t size = hk_group_state_size(g);
  uint8_t *bytes = malloc(size), *wrong = malloc(size);
  assert_true(bytes && wrong);
  hk_group_write(g, bytes);
  hk_group_free(g);
  assert_int_equal(hk_group_parse("statistic=novelty,novelty.resident=101", &rule, error, sizeof error), 0);
  assert_int_equal(hk_group_read(&again, &rule, bytes, size), -EINVAL);  /* other rows, */
  assert_int_equal(hk_group_read(&again, &joint, bytes, size), -EINVAL); /* another statistic */
  assert_int_equal(hk_group_read(&again, NULL, bytes, size - 8), -EBADMSG);
  uint32_t refused = 0;
  for (size_t at = 0; at < size; at += at < 800 ? 1 : 41) { /* any byte is refused, or the group can continue */
    for (int bit = 0; bit < 8; bit += 3) {
      memcpy(wrong, bytes, size);
      wrong[at] ^= (uint8_t)(1u << bit);
      if (hk_group_read(&again, NULL, wrong, size) != 0) {
        refused++;
        continue;
      }
      for (uint32_t j = 0; j < 3; j++)
        if (hk_group_has(again, number[j])) {
          hk_group_put(again, number[j], (int64_t)401 * SECOND, value[0][j]);
          while (hk_group_next(again, &tick))
            ;
        }
      hk_group_free(again);
    }
  }
  assert_true(refused > 300);
  free(bytes);
  free(wrong);
}

/* --- keys ------------------------------------------------------------------------------------------------------------ */

static void keys(void **state)
{
  (void)state;
  struct hk_group_rule rule;
  struct hk_group *g;
  char error[256];
  assert_int_equal(hk_group_parse("statistic=both,novelty.threshold=2.5", &rule, error, sizeof error), 0);
  assert_true(rule.statistic == HK_GROUP_BOTH && rule.novelty_threshold == 2.5 && rule.novelty_resident == 2500);
  assert_int_equal(hk_group_new(&g, &rule), -EINVAL); /* these are two */
  const char *wrong[] = { "statistic=new",        "statistic=",          "novelty.threshold=0",  "novelty.threshold=x",
                          "novelty.threshold=41", "novelty.resident=99", "novelty.resident=4067" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(hk_group_parse(wrong[i], &rule, error, sizeof error), -EINVAL);
    assert_non_null(strstr(error, "not "));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_what_it_is_defined_as),
    cmocka_unit_test(what_has_been_is_not_new),
    cmocka_unit_test(an_alert_ends),
    cmocka_unit_test(huge_values),
    cmocka_unit_test(goes_on_from_its_state),
    cmocka_unit_test(what_is_no_state_is_refused),
    cmocka_unit_test(keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
