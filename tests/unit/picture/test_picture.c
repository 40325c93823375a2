/* Pictures: tiles against plain loops in double, for many shapes, missing pixels, constants and offsets, with each instruction
 * set, which give the same bits. */
#include "cpu/picture/picture.h"
#include "cpu/sst/kernels.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Pictures of six kinds. */
static float pixel(uint32_t kind, uint32_t r, uint32_t i)
{
  const double scene = 40 * sin(r / 9.0) * cos(i / 14.0) + 10 * uniform();
  switch (kind) {
  case 0: /* counts of 16 bits */
    return (float)floor(30000 + 20 * scene);
  case 1: /* nothing but one value */
    return 273.15f;
  case 2: /* noise with dead pixels, some of them in clusters */
    return uniform() < 0.02 || (r % 17 < 4 && i % 23 < 5) ? NAN : (float)scene;
  case 3: /* a large offset */
    return (float)(1e6 + scene);
  case 4: /* most of it missing, and infinite pixels */
    return i > 5 || r % 3 ? NAN : uniform() < 0.1 ? -INFINITY : (float)scene;
  default: /* two values */
    return (float)((r * 7 + i * 5) % 11 < 5);
  }
}

struct plain {
  uint32_t h, w;
  double *at; /* by row; NAN: missing */
};

static double near(const struct plain *p, int64_t r, int64_t i)
{
  r = r < 0 ? 0 : r >= p->h ? p->h - 1 : r;
  i = i < 0 ? 0 : i >= p->w ? p->w - 1 : i;
  return p->at[(size_t)r * p->w + (size_t)i];
}

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct plain plain_new(uint32_t h, uint32_t w)
{
  const struct plain p = { h, w, malloc((size_t)h * w * sizeof *p.at) };
  assert_non_null(p.at);
  return p;
}

static struct plain medians_of(const struct plain *p, int64_t reach)
{
  const struct plain out = plain_new(p->h, p->w);
  for (int64_t r = 0; r < p->h; r++)
    for (int64_t i = 0; i < p->w; i++) {
      double there[25];
      size_t n = 0;
      for (int64_t k = 0; k < (2 * reach + 1) * (2 * reach + 1); k++) {
        const double x = near(p, r + k / (2 * reach + 1) - reach, i + k % (2 * reach + 1) - reach);
        if (!isnan(x))
          there[n++] = x;
      }
      qsort(there, n, sizeof *there, by_size);
      out.at[(size_t)r * p->w + (size_t)i] = n > 0 ? there[(n - 1) / 2] : NAN;
    }
  return out;
}

static struct plain less(const struct plain *y, uint32_t subtract)
{
  const struct plain out = plain_new(y->h, y->w);
  for (int64_t r = 0; r < y->h; r++)
    for (int64_t i = 0; i < y->w; i++) {
      double sum = 0, n = 0;
      for (int64_t k = 0; k < 225; k++) {
        const double x = near(y, r + k / 15 - 7, i + k % 15 - 7);
        sum += isnan(x) ? 0 : x;
        n += !isnan(x);
      }
      const double x = near(y, r, i);
      out.at[(size_t)r * y->w + (size_t)i] =
          subtract == HK_PICTURE_NOTHING ? x
          : subtract == HK_PICTURE_BOX   ? x - sum / n
                                         : 4 * x - near(y, r - 1, i) - near(y, r + 1, i) - near(y, r, i - 1) - near(y, r, i + 1);
    }
  return out;
}

static struct hk_picture_tile tile_of(const struct plain *h, const struct hk_picture_rule *rule, uint32_t row, uint32_t column)
{
  struct hk_picture_tile t = { .most = -INFINITY };
  double apart = 0;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t r = row * rule->tile; r < (row + 1) * rule->tile && r < h->h; r++)
      for (uint32_t i = column * rule->tile; i < (column + 1) * rule->tile && i < h->w; i++) {
        const double x = near(h, r, i);
        t.of += pass;
        if (isnan(x))
          continue;
        t.n += !pass;
        t.mean += pass ? 0 : x;
        t.most = fmax(t.most, x);
        apart += pass ? (x - t.mean / t.n) * (x - t.mean / t.n) : 0;
      }
  t.mean = t.n > 0 ? t.mean / t.n : 0;
  t.spread = t.n > 0 ? sqrt(apart / t.n) : 0;
  t.most = t.n > 0 ? t.most : 0;
  return t;
}

static void close_to(double got, double expected, double within, const char *what, const struct hk_picture_rule *rule)
{
  if (!(fabs(got - expected) <= within))
    fail_msg("%s %.9g, not %.9g within %g (median %u, subtract %u, tile %u)", what, got, expected, within, rule->median,
             rule->subtract, rule->tile);
}

/* Computes a picture with an instruction set. */
static void compute(const char *isa, const struct hk_picture_rule *rule, const struct plain *p, const float *x,
                    struct hk_picture_tile *out)
{
  struct hk_picture *m;
  assert_int_equal(setenv("HANKELD_KERNELS", isa, 1), 0);
  assert_int_equal(hk_picture_new(&m, rule, p->h, p->w), 0);
  for (uint32_t again = 0; again < 2; again++) { /* a picture has no effect on the next one */
    for (uint32_t r = 0; r < p->h; r++)
      for (uint32_t i = 0; i < p->w; i++)
        hk_picture_row(m, r)[i] = again ? x[(size_t)r * p->w + i] : NAN;
    hk_picture_tiles(m, out);
  }
  hk_picture_free(m);
}

static void against_loops(uint32_t kind, uint32_t h, uint32_t w, const struct hk_picture_rule *rule)
{
  const struct plain p = plain_new(h, w);
  float *x = malloc((size_t)h * w * sizeof *x);
  const uint32_t down = hk_picture_tiles_over(h, rule->tile), across = hk_picture_tiles_over(w, rule->tile);
  struct hk_picture_tile *got = calloc((size_t)down * across, sizeof *got), *other = calloc((size_t)down * across, sizeof *got);
  double size = 0;
  assert_true(x && got && other);
  for (uint32_t r = 0; r < h; r++)
    for (uint32_t i = 0; i < w; i++) {
      const size_t at = (size_t)r * w + i;
      x[at] = pixel(kind, r, i);
      p.at[at] = isfinite(x[at]) ? (double)x[at] : NAN;
      size = fmax(size, isfinite(x[at]) ? fabs((double)x[at]) : 0);
    }
  compute("", rule, &p, x, got);
  for (const struct hk_kernels *const *k = hk_kernels_all(); *k; k++) {
    memset(other, 0, (size_t)down * across * sizeof *other);
    compute((*k)->name, rule, &p, x, other);
    assert_memory_equal(got, other, (size_t)down * across * sizeof *got);
  }
  const struct plain y = rule->median > 0 ? medians_of(&p, rule->median / 2) : p, f = less(&y, rule->subtract);
  const double within = rule->subtract == HK_PICTURE_NOTHING ? 0 : (kind == 0 ? 2e-7 : 1e-6) * size;
  for (uint32_t k = 0; k < down * across; k++) {
    const struct hk_picture_tile expected = tile_of(&f, rule, k / across, k % across);
    assert_int_equal(got[k].n, expected.n);
    assert_int_equal(got[k].of, expected.of);
    close_to(got[k].most, expected.most, within, "greatest", rule);
    close_to(got[k].mean, expected.mean, within + 1e-6 * expected.spread + 1e-12 * size, "mean", rule);
    close_to(got[k].spread, expected.spread, 2 * within + 1e-5 * expected.spread + 1e-12 * size, "spread", rule);
  }
  if (rule->median > 0)
    free(y.at);
  free(f.at);
  free(p.at);
  free(x);
  free(got);
  free(other);
}

static void test_shapes(void **state)
{
  (void)state;
  static const uint32_t shape[][3] = { { 1, 1, 4 },   { 2, 3, 4 },   { 16, 16, 16 }, { 15, 31, 8 },   { 33, 47, 16 },
                                       { 48, 64, 8 }, { 5, 130, 7 }, { 70, 4, 32 },  { 32, 48, 1024 } };
  seed = 3;
  for (uint32_t s = 0; s < sizeof shape / sizeof *shape; s++)
    for (uint32_t kind = 0; kind < 6; kind++)
      for (uint32_t median = 0; median <= 5; median += median ? 2 : 3)
        for (uint32_t subtract = HK_PICTURE_BOX; subtract <= HK_PICTURE_NOTHING; subtract++) {
          const struct hk_picture_rule rule = { .median = median, .subtract = subtract, .tile = shape[s][2] };
          against_loops(kind, shape[s][0], shape[s][1], &rule);
        }
}

/* A hot joint of 2 x 2 pixels changes its tile alone; a dead pixel, and a jump of all pixels, change none. */
static void test_joint(void **state)
{
  (void)state;
  const struct hk_picture_rule rule = { .median = 3, .subtract = HK_PICTURE_BOX, .tile = 16 };
  struct hk_picture *m;
  struct hk_picture_tile before[12], after[12];
  assert_int_equal(hk_picture_new(&m, &rule, 48, 64), 0);
  for (uint32_t hot = 0; hot < 2; hot++) {
    for (uint32_t r = 0; r < 48; r++)
      for (uint32_t i = 0; i < 64; i++)
        hk_picture_row(m, r)[i] = (float)(hot * 500 + sin(r / 5.0) + (hot && r / 3 == 7 && i / 3 == 13 ? 20 : 0));
    hk_picture_row(m, 5)[5] = hot ? 60000 : 0;
    hk_picture_tiles(m, hot ? after : before);
  }
  for (uint32_t k = 0; k < 12; k++)
    if (k == 4 * (7 * 3 / 16) + 13 * 3 / 16)
      assert_true(after[k].most > before[k].most + 15);
    else
      assert_true(fabs(after[k].most - before[k].most) < 1);
  hk_picture_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_shapes), cmocka_unit_test(test_joint) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
