/* A build without nvcc: there is no GPU. */
#include "gpu/cuda.h"
#include "gpu/field/correlate_gpu.h"
#include "gpu/field/focus_gpu.h"
#include "gpu/field/residual_gpu.h"

#include <errno.h>
#include <stdio.h>

int hk_residual_gpu_open(struct hk_residual_gpu **out, const struct hk_residual *host, uint32_t device, char *error, size_t size)
{
  (void)host, (void)device;
  *out = NULL;
  snprintf(error, size, "this build has no CUDA backend (meson option gpu)");
  return -ENODEV;
}

void hk_residual_gpu_close(struct hk_residual_gpu *g)
{
  (void)g;
}

int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  (void)g, (void)x, (void)r, (void)n;
  return -ENODEV;
}

int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host)
{
  (void)g, (void)host;
  return -ENODEV;
}

int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host)
{
  (void)g, (void)host;
  return -ENODEV;
}

static int stub_residual_open(void **out, const void *host, uint32_t number, char *error, size_t size)
{
  struct hk_residual_gpu *g;
  *out = NULL;
  return hk_residual_gpu_open(&g, host, number, error, size);
}

uint64_t hk_focus_gpu_bytes(const struct hk_focus_line *line)
{
  (void)line;
  return 0;
}

int hk_focus_gpu_open(struct hk_focus_gpu **out, const struct hk_focus_line *line, uint32_t device, char *error, size_t size)
{
  (void)line;
  *out = NULL;
  return hk_residual_gpu_open(&(struct hk_residual_gpu *){ NULL }, NULL, device, error, size);
}

void hk_focus_gpu_close(struct hk_focus_gpu *g)
{
  (void)g;
}

int hk_focus_gpu_begin(struct hk_focus_gpu *g, int64_t row, const double *x, uint32_t rows)
{
  (void)g, (void)row, (void)x, (void)rows;
  return -ENODEV;
}

int hk_focus_gpu_wait(struct hk_focus_gpu *g)
{
  (void)g;
  return -ENODEV;
}

int hk_focus_gpu_row(struct hk_focus_gpu *g, uint32_t k, struct hk_focus_gpu_row *out)
{
  (void)g, (void)k, (void)out;
  return -ENODEV;
}

int hk_focus_gpu_write(struct hk_focus_gpu *g, const struct hk_focus_line *line)
{
  (void)g, (void)line;
  return -ENODEV;
}

int hk_focus_gpu_read(struct hk_focus_gpu *g, struct hk_focus_line *line)
{
  (void)g, (void)line;
  return -ENODEV;
}

static int stub_focus_open(void **out, const void *line, uint32_t number, char *error, size_t size)
{
  struct hk_focus_gpu *g;
  *out = NULL;
  return hk_focus_gpu_open(&g, line, number, error, size);
}

int hk_correlate_gpu(const struct hk_correlate_task *task, uint32_t device, char *error, size_t size)
{
  (void)task;
  return hk_residual_gpu_open(&(struct hk_residual_gpu *){ NULL }, NULL, device, error, size);
}

/* Only `open` is ever called, because it always fails. */
const struct hk_offload_kind hk_cuda_residual = { .open = stub_residual_open };
const struct hk_offload_kind hk_cuda_focus = { .open = stub_focus_open };
