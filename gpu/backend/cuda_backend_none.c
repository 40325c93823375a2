/* A build without nvcc: there is no GPU. */
#include "gpu/cuda.h"

#include <errno.h>
#include <stdio.h>

uint32_t hk_cuda_devices(void)
{
  return 0;
}

int hk_cuda_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  (void)config;
  *out = NULL;
  snprintf(error, size, "no GPU support in this build: install nvcc and build with -Dgpu=enabled, or use the cpu backend");
  return -ENODEV;
}

const char *hk_cuda_failure(struct hk_backend *b)
{
  (void)b;
  return "";
}
