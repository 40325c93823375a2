/* Measures what a score costs on one core, as ratios of figures taken by turns in one run:
 *  - the Hankel products' share of the core's float32 multiply-add peak during a whole score: nominal, counted as 2 *
 *    products * w^2 operations, and real, counted by their multiply-adds and additions (see kernels.h). The nominal share
 *    can exceed 100 %;
 *  - the same score by plain C and OpenBLAS on an explicit matrix (sgemv, sstev);
 *  - the same by plain C alone, without a matrix: loops over the series and over small vectors, in registers of the same
 *    instruction set; and its products alone, without the rest of the score;
 *  - a tick of one sensor alone against one of a full group;
 *  - SVD-SST against ssyrk + ssyevr.
 *
 * Times are the thread's processor time, which other programs hardly change; each figure is the median of ROUNDS
 * rounds. */
#include "cpu/sst/kernels.h"
#include "cpu/sst/score.h"
#include "tests/bench/programs/bench.h"
#include "tests/bench/programs/plain_score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 9
#define SECONDS 0.02 /* of one measurement */

/* Calls of what(arg) a second. */
static double rate(void (*what)(void *), void *arg)
{
  what(arg);
  for (size_t calls = 1;; calls *= 2) {
    const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < calls; i++)
      what(arg);
    const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (took > SECONDS)
      return (double)calls / took;
  }
}

/* ---- the peak ---- */

#define CHAIN 1000
#define SUMS 12

/* Independent multiply-adds in registers; `numbers` in one. */
#define PEAK(name, numbers, isa)                                                                                                 \
  typedef float name##_vec __attribute__((vector_size(4 * numbers)));                                                            \
  isa static void name(void *arg)                                                                                                \
  {                                                                                                                              \
    float *out = arg;                                                                                                            \
    name##_vec sum[SUMS] = { { 0 } }, x = { 0 }, y = { 0 };                                                                      \
    x += out[0];                                                                                                                 \
    y += out[1];                                                                                                                 \
    for (int s = 0; s < SUMS; s++) /* different chains, so that the compiler does not merge them */                              \
      sum[s] += (float)s;                                                                                                        \
    for (int i = 0; i < CHAIN; i++) {                                                                                            \
      _Pragma("GCC unroll 12") for (int s = 0; s < SUMS; s++) sum[s] += x * y;                                                   \
      __asm__ volatile("" : "+x"(x));                                                                                            \
    }                                                                                                                            \
    for (int s = 0; s < SUMS; s++)                                                                                               \
      out[2] += sum[s][0];                                                                                                       \
  }
#ifdef __x86_64__
PEAK(peak_avx2, 8, __attribute__((target("avx2,fma"))))
PEAK(peak_avx512, 16, __attribute__((target("avx512f"))))
#endif
PEAK(peak_portable, 4, )

/* Float32 operations a second. */
static double peak(void)
{
  float x[3] = { 1e-3f, 1e-3f, 0 };
  double best = 4 * rate(peak_portable, x);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    best = fmax(best, 8 * rate(peak_avx2, x));
  if (__builtin_cpu_supports("avx512f"))
    best = fmax(best, 16 * rate(peak_avx512, x));
#endif
  return 2.0 * CHAIN * SUMS * best;
}

/* ---- our scores ---- */

struct ours {
  struct hk_detector d;
  struct hk_scorer *scorer;
  struct hk_window window[HK_GROUP];
  struct hk_task task[HK_GROUP];
  float series[HK_GROUP][SERIES];
};

static float noisy(uint32_t sensor, uint32_t t)
{
  return (float)(sin(0.02 * (5 + sensor) * t) + 0.3 * hk_random_element(sensor, t) + 0.3 * hk_random_element(sensor + 50, t));
}

static void die(const char *what)
{
  fprintf(stderr, "bench_score: %s\n", what);
  exit(1);
}

static struct ours *ours_new(const char *text)
{
  struct ours *o = calloc(1, sizeof *o);
  char error[200];
  if (!o)
    die("no memory");
  if (hk_detector_parse(text, &o->d, error, sizeof error) != 0)
    die(error);
  if (hk_scorer_new(&o->scorer, &o->d, 1) != 0)
    die("no memory");
  const uint32_t span = hk_detector_span(&o->d);
  for (uint32_t l = 0; l < HK_GROUP; l++) {
    o->window[l] = (struct hk_window){ .seed = l, .count = span, .started = 1, .head = l };
    float *feedback = calloc(o->d.window, sizeof *feedback);
    if (!feedback)
      die("no memory");
    hk_feedback_reset(feedback, l, o->d.window);
    for (uint32_t t = 0; t < span; t++)
      o->series[l][t] = noisy(l, t);
    o->task[l] = (struct hk_task){ .window = o->window + l, .ring = o->series[l], .feedback = feedback };
  }
  return o;
}

static void ours_free(struct ours *o)
{
  for (uint32_t l = 0; l < HK_GROUP; l++)
    free(o->task[l].feedback);
  hk_scorer_free(o->scorer);
  free(o);
}

static void ours_score(void *arg)
{
  struct ours *o = arg;
  hk_score(o->scorer, &o->d, o->task, HK_GROUP);
}

/* One tick of one sensor alone. */
static void ours_alone(void *arg)
{
  struct ours *o = arg;
  hk_score(o->scorer, &o->d, o->task, 1);
}

static struct plain *plain_of(const struct ours *o)
{
  struct plain *p = plain_new(&o->d, o->series[0], o->task[0].feedback);
  if (!p)
    die("no memory");
  return p;
}

/* ---- tables ---- */

static void ika_table(void)
{
  static const uint32_t widths[] = { 48, 50, 77, 96, 100, 192, 200, 320, 512 };
  double last = 0;
  printf("IKA-SST, default detector (16 products), %s, one core\n", hk_kernels_name());
  printf("%6s %14s %14s %14s %14s %14s %14s %14s\n", "w", "nominal", "real", "to last width", "x OpenBLAS", "x plain C",
         "x its products", "alone / group");
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    char text[40];
    snprintf(text, sizeof text, "window=%u", widths[i]);
    struct ours *o = ours_new(text);
    struct plain *p = plain_of(o);
    const uint32_t products = o->d.products + o->d.krylov;
    const struct hk_shape shape = hk_shape(widths[i]);
    const double operations = 2.0 * products * widths[i] * widths[i];
    const double made =
        products * (2.0 * (double)hk_shape_multiply_adds(&shape) + (double)hk_shape_additions(shape.padded, shape.levels, 0)) +
        2.0 * (double)hk_tree_size(shape.padded, shape.levels); /* two matrices are cut */
    double part[ROUNDS], times[ROUNDS], loop[ROUNDS], bare[ROUNDS], alone[ROUNDS];
    if (!plain_agree(p))
      die("the plain scores differ");
    for (int round = 0; round < ROUNDS; round++) {
      const double scores = HK_GROUP * rate(ours_score, o);
      part[round] = scores * operations / peak();
      times[round] = scores / rate(plain_ika, p);
      loop[round] = scores / rate(loop_ika, p);
      bare[round] = scores / rate(loop_products, p);
      alone[round] = rate(ours_alone, o) / scores;
    }
    const double share = median(part, ROUNDS);
    printf("%6u %13.0f%% %13.0f%% %14.2f %14.1f %14.1f %14.1f %14.2f\n", widths[i], 100 * share, 100 * share * made / operations,
           last > 0 ? share / last : 1, median(times, ROUNDS), median(loop, ROUNDS), median(bare, ROUNDS), median(alone, ROUNDS));
    last = share;
    plain_free(p);
    ours_free(o);
  }
}

static void svd_table(void)
{
  static const struct {
    uint32_t w, r;
  } cases[] = { { 50, 3 }, { 100, 3 }, { 200, 3 }, { 320, 3 }, { 320, 12 } };
  printf("SVD-SST against ssyrk + ssyevr for the wanted vectors\n%6s %6s %14s\n", "w", "r", "x OpenBLAS");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[60];
    snprintf(text, sizeof text, "algorithm=svd,window=%u,rank=%u", cases[i].w, cases[i].r);
    struct ours *o = ours_new(text);
    struct plain *p = plain_of(o);
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
      times[round] = HK_GROUP * rate(ours_score, o) / rate(plain_svd, p);
    printf("%6u %6u %14.1f\n", cases[i].w, cases[i].r, median(times, ROUNDS));
    plain_free(p);
    ours_free(o);
  }
}

int main(void)
{
  openblas_set_num_threads(1);
  ika_table();
  svd_table();
  return 0;
}
