/* A build without nvcc: there is no GPU. */
#include "gpu/cuda.h"
#include "gpu/field/focus_gpu.h"
#include "gpu/no_cuda.h"

#include <errno.h>
#include <stddef.h>

uint64_t hk_focus_gpu_bytes(const struct hk_focus_line *line)
{
  (void)line;
  return 0;
}

int hk_focus_gpu_open(struct hk_focus_gpu **out, const struct hk_focus_line *line, uint32_t device, char *error, size_t size)
{
  (void)line, (void)device;
  *out = NULL;
  return hk_no_cuda(error, size);
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

static int focus_none_open(void **out, const void *line, uint32_t number, char *error, size_t size)
{
  struct hk_focus_gpu *g;
  *out = NULL;
  return hk_focus_gpu_open(&g, line, number, error, size);
}

/* Only `open` is ever called, because it always fails. */
const struct hk_offload_kind hk_cuda_focus = { .open = focus_none_open };
