/* Wide bands on the GPU: the cases of the host in every way to cut and block them, and larger ones compared with LAPACK;
 * matrices whose segments are singular; NaN, infinities, and the smallest numbers. Skips without a GPU. */
#include "gpu/band/wide_gpu.h"
#include "gpu/band/wide_plan.h"
#include "tests/backend/band_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct hk_band_wide_way WAYS[] = {
  { 0, 0 }, { 1, 32 }, { 2, 32 }, { 3, 32 }, { 5, 32 }, { 1, 64 }, { 2, 128 }, { 4, 128 }, { 1, 256 }, { 3, 512 },
};
#define WAY_COUNT (sizeof WAYS / sizeof *WAYS)

static struct hk_band_wide *open_wide(const struct hk_band_shape *shape, const struct hk_band_wide_way *way)
{
  struct hk_band_wide *w;
  char error[256];
  if (hk_band_wide_open(&w, shape, way, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  return w;
}

static void solve(struct band_case *c, const struct hk_band_wide_way *way)
{
  struct hk_band_wide *w = open_wide(&c->shape, way);
  for (uint32_t i = 0; i < c->shape.n; i++)
    c->x[i] = NAN;
  assert_int_equal(hk_band_wide_solve(w, c->a, c->b, c->x, c->outcome), 0);
  hk_band_wide_close(w);
}

static void look_at(const struct band_case *c, const struct hk_band_wide_way *way)
{
  const char *fault = band_fault(c, 0);
  if (!fault && c->kind == BAND_DOMINANT && c->outcome->whole) /* no segment of such a matrix is bad */
    fault = "segments were not enough";
  if (fault)
    fail_msg("n %u, %u below, %u above, kind %d, %u segments, blocks of %u: %s (%.2f eps, said %.2f; status %d, column %u, "
             "refined %u, whole "
             "%u)",
             c->shape.n, c->shape.below, c->shape.above, c->kind, way->segments, way->block, fault, band_error(c, 0),
             c->outcome->error / 2.220446049250313e-16, c->outcome->status, c->outcome->singular, c->outcome->refined,
             c->outcome->whole);
}

static void in_every_way(struct hk_band_shape shape, uint64_t seed)
{
  shape.systems = 1;
  for (int kind = 0; kind < BAND_KINDS; kind++) {
    struct band_case c;
    if (!band_suits(&shape, (enum band_kind)kind))
      continue;
    assert_true(band_make(&c, shape, (enum band_kind)kind, seed + (uint64_t)kind));
    for (size_t i = 0; i < WAY_COUNT; i++) {
      solve(&c, &WAYS[i]);
      look_at(&c, &WAYS[i]);
    }
    band_drop(&c);
  }
}

static void every_shape_and_kind(void **state)
{
  (void)state;
  for (size_t k = 0; k < BAND_WIDE_COUNT; k++)
    in_every_way(BAND_WIDE_SHAPES[k], 1000 * k);
}

static void thin_ones(void **state)
{
  (void)state;
  for (size_t k = 0; k < BAND_SHAPE_COUNT; k += 3)
    in_every_way(BAND_SHAPES[k], 1000 * k);
}

/* Whether this GPU, in this build, takes a shape: it needs clusters of thread blocks from 545 diagonals on. */
static bool takes(const struct hk_band_shape *shape, const struct hk_band_wide_way *way)
{
  struct hk_band_wide *w;
  char error[256];
  const int status = hk_band_wide_open(&w, shape, way, 0, error, sizeof error);
  if (status != -EINVAL || shape->below <= 544 || !strstr(error, "clusters")) {
    assert_int_equal(status, 0);
    hk_band_wide_close(w);
    return true;
  }
  print_message("# %u diagonals below: %s\n", shape->below, error);
  return false;
}

/* The solution of a well-conditioned matrix is LAPACK's but for rounding, and the same bits when it is solved again. */
static void as_lapack(const struct hk_band_shape shape, enum band_kind kind, struct hk_band_wide_way way)
{
  struct band_case host, device;
  if (!takes(&shape, &way))
    return;
  assert_true(band_make(&host, shape, kind, 77));
  assert_true(band_make(&device, shape, kind, 77));
  double *again = malloc(shape.n * sizeof *again);
  struct hk_band_wide *w = open_wide(&shape, &way);
  assert_non_null(again);
  assert_int_equal(hk_band_wide_solve(w, device.a, device.b, again, device.outcome), 0);
  assert_int_equal(hk_band_wide_solve(w, device.a, device.b, device.x, device.outcome), 0);
  look_at(&device, &way);
  assert_memory_equal(again, device.x, shape.n * sizeof *again);
  if (kind == BAND_DOMINANT) {
    assert_int_equal(hk_band_solve(&shape, host.a, host.b, host.x, host.outcome, 1), 0);
    for (uint32_t row = 0; row < shape.n; row++)
      if (!(fabs(device.x[row] - host.x[row]) <= 1e-14))
        fail_msg("row %u: %.17g for %.17g", row, device.x[row], host.x[row]);
  }
  for (uint32_t row = 0; row < shape.n; row++)
    device.b[row] = cos(row);
  assert_int_equal(hk_band_wide_solve_with(w, device.b, device.x, device.outcome), 0);
  look_at(&device, &way);
  hk_band_wide_close(w);
  free(again);
  band_drop(&host);
  band_drop(&device);
}

static void large(void **state)
{
  (void)state;
  const struct hk_band_wide_way chosen = { 0, 0 }, alone = { 1, 0 }, two = { 2, 64 }, many = { 13, 32 }, most = { 24, 64 };
  as_lapack((struct hk_band_shape){ 1, 20001, 100, 100 }, BAND_RANDOM, chosen);
  as_lapack((struct hk_band_shape){ 1, 20003, 100, 70 }, BAND_DOMINANT, many);
  as_lapack((struct hk_band_shape){ 1, 30001, 201, 201 }, BAND_DOMINANT, most); /* large tiles of borders, odd distances */
  as_lapack((struct hk_band_shape){ 1, 9001, 316, 316 }, BAND_WEAK, chosen);
  as_lapack((struct hk_band_shape){ 1, 9003, 316, 300 }, BAND_DOMINANT, two);
  as_lapack((struct hk_band_shape){ 1, 6001, 545, 545 }, BAND_RANDOM, chosen); /* the first that needs two thread blocks */
  as_lapack((struct hk_band_shape){ 1, 6001, 700, 800 }, BAND_RANDOM, alone);
  as_lapack((struct hk_band_shape){ 1, 8001, 1024, 1024 }, BAND_DOMINANT, chosen);
  as_lapack((struct hk_band_shape){ 1, 8001, 2000, 1900 }, BAND_WEAK, chosen);
}

/* Panels over a cluster of thread blocks, so small that compute-sanitizer's racecheck ends. */
static void small_cluster(void **state)
{
  (void)state;
  as_lapack((struct hk_band_shape){ 1, 600, 560, 40 }, BAND_RANDOM, (struct hk_band_wide_way){ 1, 32 });
}

static void widest(void **state)
{
  (void)state;
  as_lapack((struct hk_band_shape){ 1, 13001, 4096, 4096 }, BAND_RANDOM, (struct hk_band_wide_way){ 0, 0 });
  as_lapack((struct hk_band_shape){ 1, 9001, 4096, 100 }, BAND_DOMINANT, (struct hk_band_wide_way){ 1, 0 });
}

/* The last column of a segment has numbers only in the separator behind it: that segment is singular, the matrix is not. */
static void singular_segment(void **state)
{
  (void)state;
  const struct hk_band_shape shape = { 1, 2000, 40, 40 };
  const struct hk_band_wide_way way = { 4, 32 };
  for (uint32_t segment = 0; segment < 4; segment++) {
    struct hk_wide_plan plan;
    struct band_case c;
    hk_wide_plan_make(&plan, &shape, &way, true);
    const struct hk_wide_segment *s = &plan.segment[segment];
    const uint32_t column = s->turned ? s->low - s->n + 1 : s->low + s->n - 1;
    assert_true(band_make(&c, shape, BAND_RANDOM, segment));
    for (uint32_t row = column - shape.above; row <= column + shape.below; row++)
      if (s->turned ? row >= column : row <= column)
        c.a[hk_band_at(&shape, 0, row, column)] = 0;
    solve(&c, &way);
    look_at(&c, &way);
    assert_int_equal(c.outcome->whole, 1);
    band_drop(&c);
  }
}

/* The rows that LAPACK's dgbtrf chooses as pivots, in the order of A. */
static void lapack_pivots(const struct band_case *c, uint32_t *row)
{
  const struct hk_band_shape *s = &c->shape;
  struct hk_band_work work;
  assert_int_equal(hk_band_open(&work, s), 0);
  assert_int_equal(hk_band_factorise(&work, s, 0, c->a).status, 0);
  for (uint32_t i = 0; i < s->n; i++)
    row[i] = i;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t with = (uint32_t)work.pivot[i] - 1, chosen = row[with];
    row[with] = row[i];
    row[i] = chosen;
  }
  hk_band_close(&work);
}

/* Not of ties: LAPACK takes the first row where it stands after exchanges, the GPU the first one of A. */
static void pivots_as_lapack(void **state)
{
  static const struct hk_band_shape shapes[] = { { 1, 1003, 60, 60 },   { 1, 2000, 100, 70 },  { 1, 700, 5, 300 },
                                                 { 1, 1500, 316, 316 }, { 1, 1300, 600, 600 }, { 1, 31, 40, 20 } };
  (void)state;
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
    for (uint32_t i = 0; i < 9; i++) {
      const enum band_kind kind = (enum band_kind[]){ BAND_RANDOM, BAND_WEAK, BAND_GRADED }[i % 3];
      const struct hk_band_wide_way way = { 1, (uint32_t[]){ 32, 64, 128 }[i / 3] };
      struct band_case c;
      if (!takes(&shapes[k], &way) || !band_suits(&shapes[k], kind))
        continue;
      assert_true(band_make(&c, shapes[k], kind, 31 * k + i));
      const uint32_t n = c.shape.n;
      uint32_t *wanted = malloc(2 * n * sizeof *wanted), *is = wanted + n;
      assert_non_null(wanted);
      struct hk_band_wide *w = open_wide(&c.shape, &way);
      assert_int_equal(hk_band_wide_solve(w, c.a, c.b, c.x, c.outcome), 0);
      assert_int_equal(hk_band_wide_pivots(w, is), 0);
      lapack_pivots(&c, wanted);
      for (uint32_t column = 0; column < n; column++)
        if (is[column] != wanted[column])
          fail_msg("shape %zu, kind %d, blocks of %u, column %u: row %u for %u", k, kind, way.block, column, is[column],
                   wanted[column]);
      hk_band_wide_close(w);
      free(wanted);
      band_drop(&c);
    }
}

static void what_is_not_finite(void **state)
{
  (void)state;
  const struct hk_band_shape shape = { 1, 900, 50, 60 };
  for (size_t i = 0; i < 4; i++) {
    struct band_case c;
    assert_true(band_make(&c, shape, BAND_DOMINANT, 9));
    c.b[7] = INFINITY;
    solve(&c, &WAYS[i]);
    assert_int_equal(c.outcome->status, -ERANGE);
    c.b[7] = 1;
    c.a[hk_band_at(&shape, 0, 470, 471)] = NAN;
    solve(&c, &WAYS[i]);
    assert_true(c.outcome->status != 0);
    band_drop(&c);
  }
}

/* Numbers below the normal ones under the diagonal; then all of them near the end of the normal ones. */
static void smallest_numbers(void **state)
{
  (void)state;
  const struct hk_band_shape shape = { 1, 1300, 45, 45 };
  for (size_t i = 0; i < WAY_COUNT; i++) {
    struct band_case c;
    assert_true(band_make(&c, shape, BAND_DOMINANT, i));
    for (uint32_t row = 0; row < shape.n; row++)
      for (uint32_t column = row < 45 ? 0 : row - 45; column < row; column++)
        c.a[hk_band_at(&shape, 0, row, column)] *= 1e-310;
    solve(&c, &WAYS[i]);
    look_at(&c, &WAYS[i]);
    for (uint32_t row = 0; row < shape.n; row++) {
      c.b[row] *= 1e-290;
      for (uint32_t column = row < 45 ? 0 : row - 45; column < shape.n && column <= row + 45; column++)
        c.a[hk_band_at(&shape, 0, row, column)] *= 1e-290;
    }
    solve(&c, &WAYS[i]);
    look_at(&c, &WAYS[i]);
    band_drop(&c);
  }
}

static void limits(void **state)
{
  (void)state;
  struct hk_band_wide *w;
  char error[256];
  const struct hk_band_shape two = { 2, 100, 17, 1 }, wide = { 1, 100, HK_BAND_WIDE_MAX + 1, 1 },
                             vast = { 1, 30000000, 500, 500 }, right = { 1, 100, 17, 17 };
  const struct hk_band_wide_way odd = { 0, 48 };
  assert_int_equal(hk_band_wide_open(&w, &two, NULL, 0, error, sizeof error), -EINVAL);
  assert_int_equal(hk_band_wide_open(&w, &wide, NULL, 0, error, sizeof error), -EINVAL);
  assert_int_equal(hk_band_wide_open(&w, &right, &odd, 0, error, sizeof error), -EINVAL);
  assert_int_equal(hk_band_wide_open(&w, &vast, NULL, 0, error, sizeof error), -ENOMEM);
  assert_non_null(strstr(error, "not free"));
  double b = 1, x;
  struct hk_band_outcome outcome;
  w = open_wide(&right, NULL);
  assert_int_equal(hk_band_wide_solve_with(w, &b, &x, &outcome), -EINVAL); /* no factors */
  hk_band_wide_close(w);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_and_kind), cmocka_unit_test(thin_ones),        cmocka_unit_test(large),
    cmocka_unit_test(pivots_as_lapack),     cmocka_unit_test(singular_segment), cmocka_unit_test(what_is_not_finite),
    cmocka_unit_test(smallest_numbers),     cmocka_unit_test(limits),           cmocka_unit_test(widest),
    cmocka_unit_test(small_cluster),
  };
  const struct hk_band_shape shape = { 1, 1, 0, 0 };
  struct hk_band_wide *w;
  char error[256];
  const int status = hk_band_wide_open(&w, &shape, NULL, 0, error, sizeof error);
  if (status == -ENODEV) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  hk_band_wide_close(w);
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("wide bands on the GPU", tests, NULL, NULL);
}
