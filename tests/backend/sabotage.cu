/* See sabotage.h. */
#include "tests/backend/sabotage.h"

#include <cuda_runtime_api.h>

#define PIECES 65536

static volatile int *hung; /* pinned; 0 ends the kernel */
static void *taken[PIECES];
static int n_taken;

__global__ void sabotage_write(unsigned long long address)
{
  *(volatile int *)address = 1;
}

__global__ void sabotage_spin(const volatile int *on)
{
  while (*on)
    __nanosleep(1000);
}

int sabotage_illegal(void)
{
  cudaStream_t stream;
  const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error)
    return (int)error;
  sabotage_write<<<1, 1, 0, stream>>>(8);
  return (int)cudaGetLastError();
}

int sabotage_hang(void)
{
  cudaStream_t stream;
  int processors;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (!error)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  if (!error)
    error = cudaMallocHost((void **)&hung, sizeof *hung);
  if (error)
    return (int)error;
  *hung = 1;
  sabotage_spin<<<2 * processors, 1024, 0, stream>>>(hung);
  return (int)cudaGetLastError();
}

void sabotage_release(void)
{
  *hung = 0;
}

int sabotage_take(size_t leave)
{
  size_t left = 0, all = 0;
  cudaError_t error = cudaMemGetInfo(&left, &all);
  for (size_t piece = all; !error && left > leave && n_taken < PIECES;) {
    piece = piece < left - leave ? piece : left - leave;
    if (cudaMalloc(&taken[n_taken], piece) == cudaSuccess)
      n_taken++;
    else
      piece /= 2;
    (void)cudaGetLastError();
    if (piece < 4096)
      break;
    error = cudaMemGetInfo(&left, &all);
  }
  return (int)error;
}

void sabotage_give(void)
{
  while (n_taken > 0)
    (void)cudaFree(taken[--n_taken]);
}
