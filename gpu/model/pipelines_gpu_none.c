/* A build without nvcc: there is no GPU, neither for lines nor for matrices. */
#include "gpu/model/matrix_gpu.h"
#include "gpu/model/pipelines_gpu.h"
#include "gpu/no_cuda.h"

#include <errno.h>

static int pipelines_open_none(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error,
                               size_t size)
{
  (void)plan, (void)number;
  *out = NULL;
  return hk_no_cuda(error, size);
}

static void close_none(struct hk_pipelines *p)
{
  (void)p;
}

static int step_none(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen)
{
  (void)p, (void)line, (void)dt, (void)seen;
  return -ENODEV;
}

static int put_none(struct hk_pipelines *p, uint32_t line, const double *state)
{
  (void)p, (void)line, (void)state;
  return -ENODEV;
}

static int get_none(struct hk_pipelines *p, double *state)
{
  (void)p, (void)state;
  return -ENODEV;
}

uint64_t hk_pipelines_gpu_bytes(const struct hk_model_plan *plan)
{
  (void)plan;
  return 0;
}

const struct hk_pipelines_kind hk_pipelines_gpu = { pipelines_open_none, close_none, step_none, put_none, get_none, NULL, true };
const struct hk_pipelines_kind hk_matrix_gpu = { pipelines_open_none, close_none, step_none, put_none, get_none, NULL, true };

uint64_t hk_matrix_gpu_bytes(const struct hk_model_plan *plan)
{
  (void)plan;
  return 0;
}
