/* A build without nvcc: there is no GPU. */
#include "gpu/field/correlate_gpu.h"
#include "gpu/no_cuda.h"

int hk_correlate_gpu(const struct hk_correlate_task *task, uint32_t device, char *error, size_t size)
{
  (void)task, (void)device;
  return hk_no_cuda(error, size);
}
