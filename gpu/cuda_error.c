#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>

int hk_cuda_code(int failed)
{
  switch (failed) {
  case cudaErrorMemoryAllocation:
    return -ENOMEM;
  case cudaErrorNoDevice:
  case cudaErrorInvalidDevice:
  case cudaErrorInsufficientDriver:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorUnsupportedPtxVersion:
  case cudaErrorDevicesUnavailable:
  case cudaErrorSystemNotReady:
    return -ENODEV;
  default:
    return -EIO;
  }
}

const char *hk_cuda_words(int failed)
{
  return failed == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one older than this build needs"
                                               : cudaGetErrorString((cudaError_t)failed);
}

int hk_cuda_error(char *error, size_t size, int failed, const char *what, uint64_t bytes)
{
  (void)cudaGetLastError();
  if (failed == cudaErrorMemoryAllocation)
    snprintf(error, size, "%s %llu bytes on the GPU, which are not free there", what, (unsigned long long)bytes);
  else
    snprintf(error, size, "CUDA: %s", hk_cuda_words(failed));
  return hk_cuda_code(failed);
}
