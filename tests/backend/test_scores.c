/* Conformance, first half: scores and states of a backend against the oracle in double (oracle.h), for every parameter that
 * changes the arithmetic and every kind of signal. Arguments: BACKEND quick|whole|cases|edges|brief|sanitize: some cases, all of
 * them, all but the widths that fill lanes, these alone, all with few scores each in large batches, or so few that a sanitizer
 * which slows scores down a thousand times gets through: each kernel of the CUDA backend and each parameter that changes its way
 * once, with the last point of windows that the CPU backend has filled. But for the whole, the CPU backend has a quarter of the
 * scores, each of which differs by a point from the one before: nearly all of the time goes into the oracle.
 *
 * States agree always. Scores agree (error at most 1e-6 on average, 2e-4 at most) where the data determine them:
 *
 *  - where the gap between H2's first and second singular value, and the one between H1's r-th and next, are over 1e-3 of the
 *    first; at a closed gap the leading directions are any of a plane, and the float32 of the ring decides which;
 *  - ika chooses among Ritz values, not among singular values; it agrees, too, wherever the gaps between those are open,
 *    however close the singular values are.
 *
 * Without re-orthogonalisation (preset paper) rounding decides when ghosts of converged Ritz values appear, so float32 and
 * double part where the spectrum falls steeply. Gross agreement is asked then, both gaps open: 1e-4 on average and 2e-2 at most,
 * but for one score, and one in 200, which may be anything: it depends on the processor, too, whose LAPACK the oracle is. */
#include "tests/backend/harness.h"
#include "tests/backend/oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct backend_kind *kind;

/* Run in seconds. */
static const char *const quick_cases[] = {
  "window=4,gap=1,rank=1",
  "window=15",
  "window=16",
  "window=17",
  "window=50",
  "window=96",
  "window=100",
  "window=48,rank=1,krylov=2,products=1",
  "window=20,rank=3,krylov=20",
  "window=48,preset=precise",
  "window=48,preset=paper",
  "window=48,operator=gram",
  "window=48,present=power",
  "window=48,scale=none",
  "window=48,scale=window",
  "window=48,fill=linear,max_fill=10",
  "window=17,rank=4",
  "window=48,algorithm=svd",
  "window=100,algorithm=svd",
  "window=48,algorithm=svd,solver=full",
};

static const char *const more_cases[] = {
  "window=5,gap=3,rank=2",
  "window=7,rank=3",
  "window=31",
  "window=32",
  "window=33",
  "window=47",
  "window=48",
  "window=49",
  "window=63",
  "window=64",
  "window=65",
  "window=77",
  "window=95",
  "window=97",
  "window=127",
  "window=128",
  "window=129",
  "window=200",
  "window=255,gap=20",
  "window=256,gap=20",
  "window=257,gap=20",
  "window=320,gap=20",
  "window=512,gap=9",
  "window=1023,gap=1",
  "window=1024,gap=8",
  "window=24,gap=4096",
  "window=48,rank=1,krylov=3,products=2",
  "window=48,rank=5",
  "window=48,rank=8,krylov=20,products=12",
  "window=40,rank=19,krylov=20,products=40",
  "window=96,preset=paper,gap=20",
  "window=100,preset=precise",
  "window=65,operator=gram,products=12,krylov=12",
  "window=77,present=power,products=20",
  "window=48,rank=1,krylov=3,present=power,operator=gram,reorthogonalise=no",
  "window=48,reorthogonalise=no,krylov=5",
  "window=33,scale=window,gap=65",
  "window=48,baseline=1",
  "window=48,stride=7",
  "window=20,stride=100",
  "window=48,max_fill=0",
  "window=4,algorithm=svd,rank=2,gap=1",
  "window=16,algorithm=svd",
  "window=17,algorithm=svd,rank=5",
  "window=49,algorithm=svd,rank=12",
  "window=129,algorithm=svd",
  "window=255,algorithm=svd,gap=20",
  "window=320,algorithm=svd,rank=12,gap=20",
  "window=1024,algorithm=svd,gap=8",
  "window=48,algorithm=svd,scale=window",
  "window=129,algorithm=svd,rank=5,solver=full",
  "window=320,algorithm=svd,rank=12,gap=20,solver=full",
};

/* With the others all tiles of rows of the CPU's kernels (kernels_hankel.c: 7 or 12 at most), and all rests behind them. */
static const char *const tile_cases[] = {
  "window=6,rank=3", "window=9,rank=3", "window=13", "window=23", "window=26", "window=34", "window=35", "window=37", "window=38",
};

/* Widths that fill the lanes of a kernel to the last element: the CUDA backend's, which has compiled sizes. Each is met with one
 * less and one more, with so few Krylov vectors that they fit registers, and with more. */
static const uint32_t full_widths[] = { 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448 };
static const uint32_t full_widths_of_many[] = { 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 896 };

/* Widths that fill the lanes of each kernel to the last element, and widths that do not; then other cases. */
static const char *const sanitize_cases[] = {
  "window=9",
  "window=31",
  "window=48",
  "window=50",
  "window=77",
  "window=96",
  "window=100",
  "window=127",
  "window=160,gap=20",
  "window=191,gap=20",
  "window=200,gap=20",
  "window=250,gap=20",
  "window=320,gap=20",
  "window=383,gap=9",
  "window=448,gap=9",
  "window=500,gap=9",
  "window=700,gap=1",
  "window=1023,gap=1",
  "window=48,preset=precise",
  "window=48,preset=paper",
  "window=33,operator=gram",
  "window=40,present=power",
  "window=33,scale=none",
  "window=33,scale=window,gap=65",
  "window=20,fill=linear,max_fill=10",
  "window=20,rank=3,krylov=20",
  "window=40,rank=19,krylov=20,products=40",
  "window=20,stride=7",
  "window=100,preset=precise",
  "window=100,operator=gram,gap=20",
  "window=100,present=power,gap=20",
  "window=48,algorithm=svd",
  "window=100,algorithm=svd,gap=20",
  "window=150,algorithm=svd,gap=20",
  "window=255,algorithm=svd,gap=20",
  "window=320,algorithm=svd,rank=12,gap=20",
  /* widths of a GPU's kernels, for which the oracle takes longest; the CPU has one for all */
  "window=500,algorithm=svd,gap=8",
  "window=1000,algorithm=svd,gap=8",
};
#define DEAR_CASES 2

#define QUICK_CASES (sizeof quick_cases / sizeof *quick_cases)
#define MORE_CASES (sizeof more_cases / sizeof *more_cases)
#define TILE_CASES (sizeof tile_cases / sizeof *tile_cases)
#define SANITIZE_CASES (sizeof sanitize_cases / sizeof *sanitize_cases)
#define FULL_WIDTHS (sizeof full_widths / sizeof *full_widths)
#define FULL_WIDTHS_OF_MANY (sizeof full_widths_of_many / sizeof *full_widths_of_many)
#define EDGE_CASES (3 * FULL_WIDTHS + 2 * FULL_WIDTHS_OF_MANY)

static char edge_cases[EDGE_CASES][48];
static bool brief, sanitize; /* sanitize: also brief */
static uint32_t fewer = 1;   /* of narrow windows so many times fewer scores than the whole has */

static void write_edge_cases(void)
{
  size_t n = 0;
  for (size_t i = 0; i < FULL_WIDTHS; i++)
    for (uint32_t w = full_widths[i] - 1; w <= full_widths[i] + 1; w++)
      snprintf(edge_cases[n++], sizeof *edge_cases, "window=%u,gap=%u", w, 5 + w % 3);
  for (size_t i = 0; i < FULL_WIDTHS_OF_MANY; i++)
    for (uint32_t w = full_widths_of_many[i]; w <= full_widths_of_many[i] + 1; w++)
      snprintf(edge_cases[n++], sizeof *edge_cases, "window=%u,gap=%u,preset=precise", w, 5 + w % 3);
}

/* The result of a comparison. */
struct tally {
  uint32_t due, compared, far; /* far: of the compared, farther off than they may be */
  double sum, worst;           /* of the others */
};

static bool determined(const struct hk_detector *d, const struct oracle_point *o)
{
  const bool exact = o->exact_gap > ORACLE_OPEN_GAP, ritz = o->ritz_gap > ORACLE_OPEN_GAP;
  return d->reorthogonalise ? exact || (ritz && d->algorithm == HK_ALGORITHM_IKA) : exact && ritz;
}

/* Compares one sensor's results with the oracle's; p may have its last points alone. */
static void compare(const struct hk_detector *d, uint32_t slot, const struct series *series, const struct points *p,
                    const struct results *got, struct tally *tally)
{
  struct oracle_point *want = calloc(series->n, sizeof *want), *o = want + series->n;
  assert_non_null(want);
  oracle_run(d, sensor_seed(slot), series, want);
  for (uint32_t i = 0; i < p->n; i++)
    o -= p->slot[i] == slot;
  for (uint32_t i = 0; i < p->n; i++) {
    if (p->slot[i] != slot)
      continue;
    if (got->state[i] != o->state || isnan(got->score[i]) != isnan(o->z))
      fail_msg("signal %u, point %ld: state %u, score %g; the oracle says %u, %g", slot, (long)(o - want), got->state[i],
               (double)got->score[i], o->state, o->z);
    if (!isnan(o->z))
      tally->due++;
    if (!isnan(o->z) && determined(d, o)) {
      const double off = fabs((double)got->score[i] - o->z);
      tally->compared++;
      if (off > (d->reorthogonalise ? 2e-4 : 2e-2)) {
        tally->far++;
      } else {
        tally->sum += off;
        tally->worst = fmax(tally->worst, off);
      }
    }
    o++;
  }
  free(want);
}

static struct tally all; /* of the cases with re-orthogonalisation */

static void all_scores_match(void **state)
{
  (void)state;
  print_message("# all: %u of %u scores compared, error %.2g on average\n", all.compared, all.due, all.sum / all.compared);
  assert_true(all.due > 0 && 2 * all.compared > all.due);
  assert_true(all.sum / all.compared <= 1e-6);
}

/* How many scores a signal has beside the first. One at least: what a score leaves for the next one is seen in that alone. */
static uint32_t scores_of(uint32_t window)
{
  if (window <= 130)
    return (window <= 70 ? 40 : 20) / fewer;
  const uint32_t whole = window <= 330 ? 6 : window <= 600 ? 4 : 2;
  return fewer == 1 ? whole : 1;
}

/* Wide windows cost the oracle much, with svd most: of the signals STEP, OFFSET, UNDERTONE, TINY and SICK, of STEP, UNDERTONE and
 * SICK, or STEP alone; where there are fewer scores, wide begins earlier. Returns how many signals there are for each that is
 * taken, from STEP on, or 1 for all of them. */
static uint32_t signals_for_one(const struct hk_detector *d)
{
  /* LAPACK takes half a second a score */
  if (d->algorithm == HK_ALGORITHM_SVD && d->window > 600 && (sanitize || fewer > 1))
    return sanitize ? 6 : SIGNALS;
  const uint32_t most = brief || d->algorithm == HK_ALGORITHM_SVD ? 130 : fewer > 1 ? 200 : 330;
  return !sanitize && d->window <= most ? 1 : fewer > 1 && d->window > 600 ? 6 : 3;
}

static void scores_match(void **state)
{
  const char *detector = *state;
  char text[256], error[256];
  struct hk_detector d;
  snprintf(text, sizeof text, "%s,alert=off,interval=1s", detector);
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s: %s", text, error);
  const bool edge = detector >= edge_cases[0] && detector <= edge_cases[EDGE_CASES - 1];
  const uint32_t many = scores_of(d.window);
  const uint32_t scores = sanitize ? 1 : brief ? (d.window < 500 ? 2 : 1) : edge && many > 2 ? 1 + many / 4 : many;
  const uint32_t every = signals_for_one(&d), first = every > 1 ? SIGNAL_STEP : 0;
  struct hk_backend *b = backend_open(kind, &d, 1, SIGNALS);
  assert_non_null(b);
  struct series series[SIGNALS], fed[SIGNALS];
  for (uint32_t i = 0; i < SIGNALS; i++) {
    /* long enough for the sensor with a long hole to warm up twice */
    const uint32_t warm_ups = i == SIGNAL_HOLES && d.window <= 70 ? 2 : 1;
    const bool left_out = i < first || (i - first) % every != 0;
    const uint32_t n = left_out ? 0 : warm_ups * (hk_detector_span(&d) + scores * d.stride);
    series[i] = series_new(i, i, n);
    fed[i] = series_new(i, i, n);
    sensor_add(b, i, 0, i);
  }
  if (sanitize) {
    struct hk_backend *filled = backend_filled(&d, 1, fed, SIGNALS, 1);
    for (uint32_t i = 0; i < SIGNALS; i++)
      sensor_copy(filled, i, b, i);
    filled->ops->close(filled);
  }
  struct points p = points_of(fed, SIGNALS, 1);
  struct results got = results_new(p.n);
  feed(b, &p, 0, p.n, brief ? 5000 : 500, 0, &got);
  struct tally tally = { 0 };
  for (uint32_t i = 0; i < SIGNALS; i++)
    compare(&d, i, &series[i], &p, &got, &tally);
  const double mean = tally.sum / (tally.compared - tally.far);
  print_message("# %s: %u of %u scores compared, error %.2g on average, %.2g at most, %u farther\n", detector, tally.compared,
                tally.due, mean, tally.worst, tally.far);
  if (d.reorthogonalise) {
    all.sum += tally.sum;
    all.compared += tally.compared;
    all.due += tally.due;
  }
  if (!brief && !edge && tally.due > 5) { /* else one hard point weighs too much among few: see all_scores_match */
    assert_true(3 * tally.compared > tally.due);
    assert_true(mean <= (d.reorthogonalise ? 1e-6 : 1e-4));
  }
  assert_true(tally.compared > tally.far && tally.far <= (d.reorthogonalise ? 0 : 1 + tally.compared / 200));
  results_free(&got);
  points_free(&p);
  for (uint32_t i = 0; i < SIGNALS; i++)
    series_free(&series[i]);
  b->ops->close(b);
}

int main(int argc, char **argv)
{
  if (argc != 3 || !(kind = backend_kind(argv[1]))) {
    fprintf(stderr, "usage: %s cpu|cuda|reference quick|whole|cases|edges|brief|sanitize\n", argv[0]);
    return 2;
  }
  if (!backend_present(kind))
    return 0;
  struct CMUnitTest tests[QUICK_CASES + MORE_CASES + TILE_CASES + EDGE_CASES + 1];
  size_t n = 0;
  const bool quick = strcmp(argv[2], "quick") == 0, cases = strcmp(argv[2], "edges") != 0, edges = strcmp(argv[2], "cases") != 0;
  sanitize = strcmp(argv[2], "sanitize") == 0;
  brief = sanitize || strcmp(argv[2], "brief") == 0;
  fewer = strcmp(argv[2], "whole") != 0 && strcmp(argv[1], "cpu") == 0 ? 4 : 1;
  write_edge_cases();
  for (size_t i = 0; i < SANITIZE_CASES - (fewer > 1 ? DEAR_CASES : 0) && sanitize; i++)
    tests[n++] = (struct CMUnitTest){ sanitize_cases[i], scores_match, NULL, NULL, (void *)(uintptr_t)sanitize_cases[i] };
  for (size_t i = 0; i < QUICK_CASES && cases && !sanitize; i++)
    tests[n++] = (struct CMUnitTest){ quick_cases[i], scores_match, NULL, NULL, (void *)(uintptr_t)quick_cases[i] };
  for (size_t i = 0; i < MORE_CASES && cases && !quick && !sanitize; i++)
    tests[n++] = (struct CMUnitTest){ more_cases[i], scores_match, NULL, NULL, (void *)(uintptr_t)more_cases[i] };
  for (size_t i = 0; i < TILE_CASES && cases && !quick && !sanitize && strcmp(argv[1], "cpu") == 0; i++)
    tests[n++] = (struct CMUnitTest){ tile_cases[i], scores_match, NULL, NULL, (void *)(uintptr_t)tile_cases[i] };
  for (size_t i = 0; i < EDGE_CASES && edges && !quick && !sanitize; i++)
    tests[n++] = (struct CMUnitTest){ edge_cases[i], scores_match, NULL, NULL, edge_cases[i] };
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(all_scores_match);
  return _cmocka_run_group_tests("scores", tests, n, NULL, NULL);
}
