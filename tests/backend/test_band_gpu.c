/* Band matrices on the GPU: the cases of the host and of the emulated kernels, and one large enough to fill a device, whose
 * well-conditioned solutions are LAPACK's but for rounding. Skips where there is no GPU. */
#include "gpu/band/band_gpu.h"
#include "tests/backend/band_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct hk_band_gpu *open_gpu(const struct hk_band_shape *shape)
{
  struct hk_band_gpu *g;
  char error[256];
  if (hk_band_gpu_open(&g, shape, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  return g;
}

static void look_at(const struct band_case *c)
{
  for (uint32_t i = 0; i < c->shape.systems; i++) {
    const char *fault = band_fault(c, i);
    if (fault)
      fail_msg("%u x %u, %u below, %u above, kind %d, system %u: %s (%.2f eps)", c->shape.systems, c->shape.n, c->shape.below,
               c->shape.above, c->kind, i, fault, band_error(c, i));
  }
}

static void every_shape_and_kind(void **state)
{
  (void)state;
  for (size_t k = 0; k < BAND_SHAPE_COUNT; k++)
    for (int kind = 0; kind < BAND_KINDS; kind++) {
      struct band_case c;
      if (!band_suits(&BAND_SHAPES[k], (enum band_kind)kind))
        continue;
      assert_true(band_make(&c, BAND_SHAPES[k], (enum band_kind)kind, 1000 * k + (uint64_t)kind));
      struct hk_band_gpu *g = open_gpu(&c.shape);
      assert_int_equal(hk_band_gpu_solve(g, c.a, c.b, c.x, c.outcome), 0);
      look_at(&c);
      hk_band_gpu_close(g);
      band_drop(&c);
    }
}

/* Also the same bits when it is solved again. */
static void as_lapack(const struct hk_band_shape shape, enum band_kind kind)
{
  struct band_case host, device;
  assert_true(band_make(&host, shape, kind, 77));
  assert_true(band_make(&device, shape, kind, 77));
  struct hk_band_gpu *g = open_gpu(&shape);
  double *again = malloc(hk_band_vector(&shape) * sizeof *again);
  assert_non_null(again);
  assert_int_equal(hk_band_solve(&shape, host.a, host.b, host.x, host.outcome, 8), 0);
  assert_int_equal(hk_band_gpu_solve(g, device.a, device.b, again, device.outcome), 0);
  assert_int_equal(hk_band_gpu_solve(g, device.a, device.b, device.x, device.outcome), 0);
  look_at(&device);
  for (uint32_t i = 0; i < shape.systems; i++)
    for (uint32_t row = 0; row < shape.n; row++) {
      const size_t at = hk_band_of(&shape, i, row);
      assert_true(device.x[at] == again[at]);
      if (kind == BAND_DOMINANT && !(fabs(device.x[at] - host.x[at]) <= 1e-14))
        fail_msg("system %u, row %u: %.17g for %.17g", i, row, device.x[at], host.x[at]);
    }
  free(again);
  hk_band_gpu_close(g);
  band_drop(&host);
  band_drop(&device);
}

static void large(void **state)
{
  (void)state;
  as_lapack((struct hk_band_shape){ 1000, 2002, 2, 2 }, BAND_PIPES);
  as_lapack((struct hk_band_shape){ 1001, 999, 2, 2 }, BAND_DOMINANT);
  as_lapack((struct hk_band_shape){ 300, 1001, 3, 3 }, BAND_DOMINANT);
  as_lapack((struct hk_band_shape){ 300, 1001, 4, 4 }, BAND_RANDOM);
  as_lapack((struct hk_band_shape){ 300, 1001, 8, 8 }, BAND_DOMINANT);
  as_lapack((struct hk_band_shape){ 300, 1001, 16, 16 }, BAND_DOMINANT);
  as_lapack((struct hk_band_shape){ 300, 1001, 16, 16 }, BAND_WEAK);
}

static void limits(void **state)
{
  (void)state;
  struct hk_band_gpu *g;
  char error[256];
  const struct hk_band_shape wide = { 1, 100, 17, 1 }, vast = { 4000000, 2000000, 16, 16 };
  assert_int_equal(hk_band_gpu_open(&g, &wide, 0, error, sizeof error), -EINVAL);
  assert_int_equal(hk_band_gpu_open(&g, &vast, 0, error, sizeof error), -ENOMEM);
  assert_non_null(strstr(error, "not free"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_and_kind),
    cmocka_unit_test(large),
    cmocka_unit_test(limits),
  };
  const struct hk_band_shape shape = { 1, 1, 0, 0 };
  struct hk_band_gpu *g;
  char error[256];
  const int status = hk_band_gpu_open(&g, &shape, 0, error, sizeof error);
  if (status == -ENODEV) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  hk_band_gpu_close(g);
  return cmocka_run_group_tests_name("band on the GPU", tests, NULL, NULL);
}
