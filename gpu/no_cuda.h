/* The answer of a build without nvcc to whoever asks for a GPU. */
#ifndef HK_NO_CUDA_H
#define HK_NO_CUDA_H

#include <errno.h>
#include <stdio.h>

/* Writes why there is no GPU to error (size bytes), and returns -ENODEV. */
static inline int hk_no_cuda(char *error, size_t size)
{
  snprintf(error, size, "this build has no CUDA backend (meson option gpu)");
  return -ENODEV;
}

#endif
