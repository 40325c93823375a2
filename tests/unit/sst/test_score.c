/* Scoring on the CPU: every instruction set of this processor, compared with plain loops and LAPACK in double. */
#include "cpu/lapack.h"
#include "cpu/sst/kernels.h"
#include "cpu/sst/reference.h"
#include "cpu/sst/score.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* after the standard ones */
#include <setjmp.h>

#include <cmocka.h>

/* A task with memory of its own. */
struct sensor {
  struct hk_window window;
  float *ring, *feedback;
};

static struct hk_detector detector(const char *text)
{
  struct hk_detector d;
  char error[200];
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s", error);
  return d;
}

static double noise(uint64_t seed, uint32_t t)
{
  double sum = 0;
  for (uint32_t i = 0; i < 4; i++)
    sum += hk_random_element(seed * 7919, 4 * t + i);
  return sum * 0.87;
}

/* Kinds of series; those after KINDS have a past of low rank. */
enum kind { SINE, STEP, NOISE, CLEAN, SPIKE, IDLE, KINDS, SINE_THEN_NOISE, COMB_THEN_SINE };

static double series(enum kind kind, uint64_t seed, uint32_t t, uint32_t change)
{
  const double level = 20 + (double)(seed % 5);
  switch (kind) {
  case SINE:
    return level + sin(6.283185307 * t / (t < change ? 40.3 : 25.1) + (double)seed) + 0.2 * noise(seed, t);
  case STEP:
    return level + (t >= change) + 0.3 * noise(seed, t);
  case CLEAN:
    return sin(6.283185307 * t / (t < change ? 17.3 : 11.7) + (double)seed);
  case SPIKE:
    return level + (t == change ? 10 : 0) + 1e-3 * noise(seed, t);
  case SINE_THEN_NOISE:
    return t < change ? sin(0.37 * t + (double)seed) : 1 + noise(seed, t);
  case COMB_THEN_SINE:
    return t < change ? (t + seed) % 4 == 0 : 1 + sin(0.2 * t) + 0.2 * noise(seed, t);
  case IDLE:
    return t < 5 ? 1 : 3;
  default:
    return 1e6 + noise(seed, t);
  }
}

/* A sensor with `points` points so far, and a change in the middle of its last span. */
static struct sensor sensor_new(const struct hk_detector *d, enum kind kind, uint64_t seed, uint32_t points)
{
  const uint32_t span = hk_detector_span(d);
  struct sensor s = { .ring = calloc(span, sizeof(float)), .feedback = calloc(d->window, sizeof(float)) };
  s.window.seed = seed * 0x9e3779b97f4a7c15u;
  hk_feedback_reset(s.feedback, s.window.seed, d->window);
  for (uint32_t t = 0; t < points; t++)
    hk_window_take(&s.window, s.ring, d, (int64_t)t * 1000000000, series(kind, seed, t, points - d->window - d->gap / 2), 0,
                   false);
  assert_int_equal(s.window.count, span);
  return s;
}

static void sensor_free(struct sensor *s)
{
  free(s->ring);
  free(s->feedback);
}

static struct hk_task task_of(const struct sensor *s)
{
  return (struct hk_task){ .window = &s->window, .ring = s->ring, .feedback = s->feedback, .z = -1, .share = -1 };
}

/* The score in double, of the samples that the kernels see, and the next feedback vector. */
static struct hk_reference_score oracle(const struct hk_detector *d, const struct sensor *s, double *feedback)
{
  const uint32_t w = d->window, span = hk_detector_span(d), reach = 2 * w - 1;
  float line[HK_SPAN_MAX], before[2 * HK_WINDOW_MAX];
  double past[2 * HK_WINDOW_MAX], present[2 * HK_WINDOW_MAX], a0[HK_WINDOW_MAX];
  struct hk_reference *reference;
  struct hk_reference_score e;
  hk_window_copy(&s->window, s->ring, span, line);
  const struct hk_span_kind kind = hk_span_prepare(&s->window, d, line, before);
  for (uint32_t i = 0; i < reach; i++) {
    past[i] = (double)before[i];
    present[i] = (double)line[d->gap + i];
  }
  for (uint32_t i = 0; i < w; i++)
    feedback[i] = (double)s->feedback[i];
  hk_reference_random(a0, s->window.seed, w);
  assert_int_equal(hk_reference_new(&reference, w), 0);
  assert_int_equal(
      hk_reference_score(reference, d, kind.past_zero ? NULL : past, kind.present_zero ? NULL : present, a0, feedback, &e), 0);
  hk_reference_free(reference);
  return e;
}

/* ---- the parts ---- */

static float *block(size_t numbers, uint32_t lanes)
{
  const size_t bytes = (numbers * lanes * sizeof(float) + 63) / 64 * 64;
  float *b = aligned_alloc(64, bytes + 64);
  memset(b, 0, bytes);
  return b;
}

static void product_matches_plain_loops(void **state)
{
  (void)state;
  static const uint32_t large[] = { 77, 96, 100, 127, 128, 159, 160, 161, 192, 200, 319, 320, 321, 511, 640, 1023, 1024 };
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    for (uint32_t c = 0; c < 61 + sizeof large / sizeof *large; c++) {
      const uint32_t w = c < 61 ? c + 4 : large[c - 61], lanes = (*k)->lanes;
      const struct hk_shape shape = hk_shape(w);
      assert_true(shape.padded >= w && shape.padded >> shape.levels << shape.levels == shape.padded);
      float *x = block(2 * shape.padded, lanes), *v = block(shape.padded, lanes), *y = block(shape.padded, lanes);
      float *tree = block(hk_tree_size(shape.padded, shape.levels), lanes), *sum = block(2 * shape.padded, lanes);
      for (uint32_t i = 0; i < 2 * w - 1; i++)
        for (uint32_t l = 0; l < lanes; l++)
          x[i * lanes + l] = (float)hk_random_element(l, i);
      for (uint32_t i = 0; i < w; i++)
        for (uint32_t l = 0; l < lanes; l++)
          v[i * lanes + l] = (float)hk_random_element(1000 * (l + 1), i);
      (*k)->split(tree, x, &shape);
      (*k)->product(y, x, tree, v, sum, &shape);
      for (uint32_t l = 0; l < lanes; l++) {
        double worst = 0;
        for (uint32_t i = 0; i < w; i++) {
          double exact = 0;
          for (uint32_t j = 0; j < w; j++)
            exact += (double)x[(i + j) * lanes + l] * (double)v[j * lanes + l];
          worst = fmax(worst, fabs(exact - (double)y[i * lanes + l]));
        }
        /* |H| |v| is about w/3 times the root of that; float32 rounds at 6e-8 */
        if (worst > 3e-7 * w)
          fail_msg("%s, w = %u, lane %u: off by %g", (*k)->name, w, l, worst);
      }
      free(x);
      free(v);
      free(y);
      free(tree);
      free(sum);
    }
  }
}

static void spans_are_prepared_as_defined(void **state)
{
  (void)state;
  static const char *const detectors[] = {
    "window=20,gap=7",       "window=20,gap=7,scale=window",   "window=20,gap=7,scale=none",
    "window=33,gap=100",     "window=33,gap=100,scale=window", "window=4,gap=1",
    "window=100,scale=none", "window=100,scale=window"
  };
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    for (uint32_t c = 0; c < sizeof detectors / sizeof *detectors; c++) {
      const struct hk_detector d = detector(detectors[c]);
      const uint32_t lanes = (*k)->lanes, span = hk_detector_span(&d), reach = 2 * d.window - 1, n = lanes - 1;
      struct hk_work work = { .shape = hk_shape(d.window) };
      work.lines = block(span, lanes);
      work.past = block(2 * work.shape.padded, lanes);
      work.present = block(2 * work.shape.padded, lanes);
      struct sensor s[HK_LANES_MAX];
      struct hk_task task[HK_LANES_MAX];
      for (uint32_t l = 0; l < n; l++) {
        s[l] = sensor_new(&d, l % KINDS, l, 4 * span + 3 * l);
        task[l] = task_of(s + l);
      }
      (*k)->load(&work, &d, task, n);
      for (uint32_t l = 0; l < lanes; l++) {
        float line[HK_SPAN_MAX] = { 0 }, past[2 * HK_WINDOW_MAX] = { 0 };
        struct hk_span_kind kind = { 1, 1 };
        if (l < n) {
          hk_window_copy(&s[l].window, s[l].ring, span, line);
          kind = hk_span_prepare(&s[l].window, &d, line, past);
        }
        for (uint32_t i = 0; i < 2 * work.shape.padded - 1; i++) {
          const float p = i < reach && !kind.past_zero ? past[i] : 0, now = i < reach && !kind.present_zero ? line[d.gap + i] : 0;
          if (work.past[i * lanes + l] != p || work.present[i * lanes + l] != now)
            fail_msg("%s, %s, lane %u, sample %u: %.9g %.9g, should be %.9g %.9g", (*k)->name, detectors[c], l, i,
                     (double)work.past[i * lanes + l], (double)work.present[i * lanes + l], (double)p, (double)now);
        }
      }
      for (uint32_t l = 0; l < n; l++)
        sensor_free(s + l);
      free(work.lines);
      free(work.past);
      free(work.present);
    }
  }
}

/* Tridiagonal matrices: random, graded, falling apart, all zero, constant. */
static float t_diagonal(uint32_t kind, uint32_t lane, uint32_t i)
{
  const float x = (float)hk_random_element(lane, i);
  return kind == 0 ? x : kind == 1 ? x * powf(0.3f, (float)i) : kind == 2 ? x : kind == 3 ? 0 : 1;
}

static float t_beside(uint32_t kind, uint32_t lane, uint32_t i)
{
  const float x = (float)fabs(hk_random_element(lane + 99, i));
  return kind == 0   ? x
         : kind == 1 ? x * powf(0.3f, (float)i)
         : kind == 2 ? (i % 3 == lane % 3 ? 0 : x)
         : kind == 3 ? 0
                     : x * 1e-3f;
}

static void eigen_matches_lapack(void **state)
{
  char why[HK_LIBRARY_WHY];
  assert_int_equal(hk_lapack_load(why, sizeof why), 0);
  (void)state;
  static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 10, 13, 20, 40, 128 };
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    for (uint32_t c = 0; c < 5 * sizeof sizes / sizeof *sizes; c++) {
      const uint32_t n = sizes[c / 5], kind = c % 5, lanes = (*k)->lanes;
      float *d = block(n, lanes), *e = block(n, lanes), *rows = block((size_t)n * n, lanes);
      for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = 0; l < lanes; l++) {
          d[i * lanes + l] = t_diagonal(kind, l, i);
          e[i * lanes + l] = t_beside(kind, l, i);
          rows[(i * n + i) * lanes + l] = 1;
        }
      (*k)->eigen(d, e, n, rows, n);
      for (uint32_t l = 0; l < lanes; l++) {
        double exact[128], beside[128], norm = 1e-30, wrong = 0, residual = 0, apart = 0;
        for (uint32_t i = 0; i < n; i++) {
          exact[i] = (double)t_diagonal(kind, l, i);
          beside[i] = (double)t_beside(kind, l, i);
        }
        assert_int_equal(hk_lapack.dstev_work(LAPACK_COL_MAJOR, 'N', (lapack_int)n, exact, beside, NULL, 1, NULL), 0);
        double mine[128];
        for (uint32_t i = 0; i < n; i++) {
          norm = fmax(norm, fabs(exact[i]));
          mine[i] = (double)d[i * lanes + l];
          for (uint32_t j = i; j > 0 && mine[j] < mine[j - 1]; j--) {
            const double swap = mine[j];
            mine[j] = mine[j - 1];
            mine[j - 1] = swap;
          }
        }
        for (uint32_t i = 0; i < n; i++)
          wrong = fmax(wrong, fabs(mine[i] - exact[i]));
#define Y(row, column) ((double)rows[((row)*n + (column)) * lanes + l])
        for (uint32_t c1 = 0; c1 < n; c1++) {
          double length = 0;
          for (uint32_t i = 0; i < n; i++) {
            double t = (double)t_diagonal(kind, l, i) * Y(i, c1) - (double)d[c1 * lanes + l] * Y(i, c1);
            t += i > 0 ? (double)t_beside(kind, l, i - 1) * Y(i - 1, c1) : 0;
            t += i + 1 < n ? (double)t_beside(kind, l, i) * Y(i + 1, c1) : 0;
            residual = fmax(residual, fabs(t));
            length += Y(i, c1) * Y(i, c1);
          }
          apart = fmax(apart, fabs(length - 1));
        }
        if (wrong > 5e-7 * sqrt(n) * norm || residual > 5e-7 * sqrt(n) * norm || apart > 2e-6 * sqrt(n))
          fail_msg("%s, n = %u, kind %u, lane %u: eigenvalue off by %g, residual %g, length %g", (*k)->name, n, kind, l,
                   wrong / norm, residual / norm, apart);
      }
      free(d);
      free(e);
      free(rows);
    }
  }
}

/* ---- the whole score ---- */

/* Runs one tick of n sensors with each instruction set, and checks it against the oracle where the problem is well posed. */
static void check_scores(const char *text, double most, double mean_most)
{
  const struct hk_detector d = detector(text);
  const uint32_t n = HK_GROUP;
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    setenv("HANKELD_KERNELS", (*k)->name, 1);
    assert_string_equal(hk_kernels_name(), (*k)->name);
    struct hk_scorer *scorer;
    assert_int_equal(hk_scorer_new(&scorer, &d, 1), 0);
    double sum = 0, worst = 0;
    uint32_t counted = 0;
    struct sensor s[HK_GROUP];
    struct hk_task task[HK_GROUP];
    struct hk_reference_score e[HK_GROUP];
    static double feedback[HK_GROUP][HK_WINDOW_MAX];
    for (uint32_t l = 0; l < n; l++) {
      s[l] = sensor_new(&d, l % KINDS, l, 2 * hk_detector_span(&d) + 11 * l);
      task[l] = task_of(s + l);
      e[l] = oracle(&d, s + l, feedback[l]);
    }
    hk_score(scorer, &d, task, n);
    for (uint32_t l = 0; l < n; l++) {
      const double off = fabs((double)task[l].z - e[l].z);
      double length = 0, apart = 0;
      for (uint32_t i = 0; i < d.window; i++) {
        length += (double)s[l].feedback[i] * (double)s[l].feedback[i];
        apart = fmax(apart, fabs((double)s[l].feedback[i] - feedback[l][i]));
      }
      assert_true(fabs(length - 1) < 1e-5);
      if (e[l].present_gap > 1e-3 && apart > 1e-4)
        fail_msg("%s, %s, sensor %u: feedback vector off by %g", (*k)->name, text, l, apart);
      if (!(task[l].z >= 0 && task[l].z <= 1 && fabs((double)task[l].share - e[l].share) < 1e-4))
        fail_msg("%s, %s, sensor %u: z %g, share %g, should be %g, %g", (*k)->name, text, l, (double)task[l].z,
                 (double)task[l].share, e[l].z, e[l].share);
      if (e[l].present_gap > 1e-3 && e[l].past_gap > 1e-3) {
        sum += off;
        worst = fmax(worst, off);
        counted++;
      }
    }
    if (worst > most || (counted && sum / counted > mean_most))
      fail_msg("%s, %s: error mean %g, most %g over %u sensors", (*k)->name, text, counted ? sum / counted : 0, worst, counted);
    hk_scorer_free(scorer);
    for (uint32_t l = 0; l < n; l++)
      sensor_free(s + l);
  }
  unsetenv("HANKELD_KERNELS");
}

static void ika_matches_the_definition(void **state)
{
  (void)state;
  static const char *const detectors[] = {
    "window=4,rank=1",
    "window=5,rank=2",
    "window=8",
    "window=13",
    "window=24",
    "window=37",
    "window=48",
    "window=77",
    "window=96",
    "window=100",
    "window=96,gap=10",
    "window=200",
    "window=48,rank=1",
    "window=96,rank=6,krylov=20",
    "window=48,products=40",
    "window=96,preset=precise",
    "window=96,scale=window",
    "window=320",
  };
  for (uint32_t i = 0; i < sizeof detectors / sizeof *detectors; i++)
    check_scores(detectors[i], 2e-4, 1e-5);
}

static void ika_variants_match_the_definition(void **state)
{
  (void)state;
  check_scores("window=48,present=power", 2e-4, 1e-5);
  check_scores("window=48,operator=gram,krylov=6", 2e-4, 1e-5);
  check_scores("window=77,operator=gram,krylov=8,present=power,products=10", 2e-4, 1e-5);
  /* looser: without re-orthogonalisation rounding grows, most where the past is nearly of low rank */
  check_scores("window=48,krylov=5,reorthogonalise=no", 2e-3, 1e-4);
  check_scores("window=50,preset=paper,scale=baseline", 2e-2, 2e-3);
}

static void svd_matches_lapack(void **state)
{
  (void)state;
  static const char *const detectors[] = {
    "algorithm=svd,window=4,rank=1",    "algorithm=svd,window=5,rank=4",   "algorithm=svd,window=9,rank=3",
    "algorithm=svd,window=32,rank=3",   "algorithm=svd,window=50,rank=5",  "algorithm=svd,window=100,rank=3",
    "algorithm=svd,window=100,rank=12", "algorithm=svd,window=201,rank=3",
  };
  for (uint32_t i = 0; i < sizeof detectors / sizeof *detectors; i++)
    check_scores(detectors[i], 1e-4, 1e-5);
}

/* A past of a rank below r spans only its rank, although rounding adds to it; and a double eigenvalue counts twice, although a
 * Krylov space has it once. */
static void pasts_of_low_rank(void **state)
{
  (void)state;
  static const struct {
    enum kind kind;
    const char *detector;
  } cases[] = {
    { SINE_THEN_NOISE, "window=40,gap=85,scale=none" },
    { SINE_THEN_NOISE, "window=40,gap=85,scale=none,operator=gram" },
    { SINE_THEN_NOISE, "window=40,gap=85,scale=none,algorithm=svd" },
    { COMB_THEN_SINE, "window=40,gap=85,scale=none,algorithm=svd,rank=4" },
  };
  for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const struct hk_detector d = detector(cases[c].detector);
    for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
      setenv("HANKELD_KERNELS", (*k)->name, 1);
      struct hk_scorer *scorer;
      assert_int_equal(hk_scorer_new(&scorer, &d, 1), 0);
      for (uint32_t seed = 0; seed < 8; seed++) {
        struct sensor s = sensor_new(&d, cases[c].kind, seed, hk_detector_span(&d) + 5);
        struct hk_task task = task_of(&s);
        double feedback[HK_WINDOW_MAX];
        const struct hk_reference_score e = oracle(&d, &s, feedback);
        hk_score(scorer, &d, &task, 1);
        if (fabs((double)task.z - e.z) > 1e-4)
          fail_msg("%s, %s, seed %u: z %g, should be %g", (*k)->name, cases[c].detector, seed, (double)task.z, e.z);
        sensor_free(&s);
      }
      hk_scorer_free(scorer);
    }
  }
  unsetenv("HANKELD_KERNELS");
}

/* Bit for bit the same, alone and at any place of any group, over several ticks. */
static void neighbours_change_nothing(void **state)
{
  (void)state;
  static const char *const detectors[] = { "window=50", "window=33,operator=gram,present=power", "window=40,preset=paper",
                                           "algorithm=svd,window=40,rank=3" };
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    setenv("HANKELD_KERNELS", (*k)->name, 1);
    for (uint32_t c = 0; c < sizeof detectors / sizeof *detectors; c++) {
      const struct hk_detector d = detector(detectors[c]);
      struct hk_scorer *scorer;
      assert_int_equal(hk_scorer_new(&scorer, &d, 1), 0);
      struct hk_task alone[HK_GROUP], task[HK_GROUP];
      struct sensor s[HK_GROUP], other[HK_GROUP];
      for (uint32_t l = 0; l < HK_GROUP; l++) {
        s[l] = sensor_new(&d, l % KINDS, l, 2 * hk_detector_span(&d) + l);
        other[l] = sensor_new(&d, l % KINDS, l, 2 * hk_detector_span(&d) + l);
        alone[l] = task_of(s + l);
      }
      for (uint32_t tick = 0; tick < 4; tick++) {
        for (uint32_t l = 0; l < HK_GROUP; l++)
          hk_score(scorer, &d, alone + l, 1);
        /* the other orders: reversed, in groups of 16, 11 + 5, 1 + 15, 3 + 13 */
        static const uint32_t first[] = { 16, 11, 1, 3 };
        for (uint32_t l = 0; l < HK_GROUP; l++)
          task[l] = task_of(other + (l + 5 * tick) % HK_GROUP);
        hk_score(scorer, &d, task, first[tick]);
        hk_score(scorer, &d, task + first[tick], HK_GROUP - first[tick]);
        for (uint32_t l = 0; l < HK_GROUP; l++) {
          const uint32_t which = (l + 5 * tick) % HK_GROUP;
          if (memcmp(&task[l].z, &alone[which].z, sizeof(float)) != 0 ||
              memcmp(&task[l].share, &alone[which].share, sizeof(float)) != 0 ||
              memcmp(s[which].feedback, other[which].feedback, d.window * sizeof(float)) != 0)
            fail_msg("%s, %s, tick %u: sensor %u scores %.9g alone, %.9g in place %u", (*k)->name, detectors[c], tick, which,
                     (double)alone[which].z, (double)task[l].z, l);
        }
        for (uint32_t l = 0; l < HK_GROUP; l++) {
          const int64_t time = s[l].window.last_time + 1000000000;
          const double value = series(l % KINDS, l, (uint32_t)(time / 1000000000), 100);
          hk_window_take(&s[l].window, s[l].ring, &d, time, value, 0, false);
          hk_window_take(&other[l].window, other[l].ring, &d, time, value, 0, false);
        }
      }
      for (uint32_t l = 0; l < HK_GROUP; l++) {
        sensor_free(s + l);
        sensor_free(other + l);
      }
      hk_scorer_free(scorer);
    }
  }
  unsetenv("HANKELD_KERNELS");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(product_matches_plain_loops),
    cmocka_unit_test(spans_are_prepared_as_defined),
    cmocka_unit_test(eigen_matches_lapack),
    cmocka_unit_test(ika_matches_the_definition),
    cmocka_unit_test(ika_variants_match_the_definition),
    cmocka_unit_test(svd_matches_lapack),
    cmocka_unit_test(pasts_of_low_rank),
    cmocka_unit_test(neighbours_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
