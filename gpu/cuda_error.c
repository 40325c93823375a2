#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>

int hk_cuda_error(char *error, size_t size, int failed, const char *what, uint64_t bytes)
{
  (void)cudaGetLastError();
  if (failed == cudaErrorMemoryAllocation) {
    snprintf(error, size, "%s %llu bytes on the GPU, which are not free there", what, (unsigned long long)bytes);
    return -ENOMEM;
  }
  snprintf(error, size, "CUDA: %s", cudaGetErrorString((cudaError_t)failed));
  return failed == cudaErrorNoDevice || failed == cudaErrorInsufficientDriver || failed == cudaErrorInvalidDevice ||
                 failed == cudaErrorNoKernelImageForDevice
             ? -ENODEV
             : -EIO;
}
