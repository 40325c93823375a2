/* Wide bands of processes on a GPU: see matrix_gpu.h. */
#include "gpu/model/matrix_gpu.h"
#include "cpu/model/matrix_shape.h"
#include "gpu/band/wide_gpu.h"

static int open_wide(void **out, const struct hk_band_shape *shape, uint32_t number, char *error, size_t size)
{
  struct hk_band_wide *wide;
  const int status = hk_band_wide_open(&wide, shape, NULL, number, error, size);
  *out = wide;
  return status;
}

static void close_wide(void *solver)
{
  hk_band_wide_close(solver);
}

static int solve_wide(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  return hk_band_wide_solve(solver, a, b, x, outcome);
}

static int solve_wide_with(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  (void)a; /* it is on the device */
  return hk_band_wide_solve_with(solver, b, x, outcome);
}

static const struct hk_matrix_band wide_band = { open_wide, close_wide, solve_wide, solve_wide_with, true };

static int matrix_gpu_open(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size)
{
  return hk_pipelines_matrix_open(out, plan, &wide_band, number, error, size);
}

uint64_t hk_matrix_gpu_bytes(const struct hk_model_plan *plan)
{
  const struct hk_band_shape shape = hk_matrix_band_of(plan->matrix);
  return hk_band_wide_bytes(&shape, NULL) + (hk_band_matrix(&shape) + 2 * hk_band_vector(&shape)) * sizeof(double);
}

const struct hk_pipelines_kind hk_matrix_gpu = { matrix_gpu_open,
                                                 hk_pipelines_matrix_close,
                                                 hk_pipelines_matrix_step,
                                                 hk_pipelines_matrix_put,
                                                 hk_pipelines_matrix_get,
                                                 hk_pipelines_matrix_get_line,
                                                 true };
