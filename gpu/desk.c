/* Copies to a GPU and back: see desk.h. */
#include "gpu/desk.h"

#include "cpu/monotonic.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Devices on which an operation hung, whoever waited for it, by bit: to free memory there, or to ask for some, waits for all
 * operations, for good. */
static atomic_uint desk_hung;

static unsigned desk_bit(const struct hk_desk *d)
{
  return 1u << ((unsigned)d->device % 32);
}

int hk_desk_open(struct hk_desk *d, int device, size_t size)
{
  d->device = device;
  d->size = size > HK_DESK_LEAST ? size : HK_DESK_LEAST;
  if (atomic_load(&desk_hung) & desk_bit(d))
    return (int)cudaErrorLaunchTimeout;
  cudaError_t failed = cudaSetDevice(device);
  if (!failed)
    failed = cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaMallocHost((void **)&d->memory, d->size);
  return (int)failed;
}

void hk_desk_close(struct hk_desk *d, void *memory)
{
  if (atomic_load(&desk_hung) & desk_bit(d))
    return;
  (void)cudaSetDevice(d->device);
  if (d->stream)
    (void)cudaStreamDestroy(d->stream);
  (void)cudaFree(memory);
  (void)cudaFreeHost(d->memory);
}

int hk_desk_wait(struct hk_desk *d, int failed)
{
  const int64_t begin = hk_monotonic();
  cudaError_t waited;
  while ((waited = cudaStreamQuery(d->stream)) == cudaErrorNotReady) {
    const int64_t took = hk_monotonic() - begin;
    if (took > HK_DESK_PATIENCE * (int64_t)1000000000) {
      atomic_fetch_or(&desk_hung, desk_bit(d));
      return -ETIMEDOUT;
    }
    if (took > 2000000)
      usleep(50);
  }
  if (!failed && !waited)
    return 0;
  (void)cudaGetLastError();
  return -EIO;
}

int hk_desk_up(struct hk_desk *d, void *there, const void *here, size_t bytes)
{
  int status = hk_desk_wait(d, (int)cudaSetDevice(d->device));
  for (size_t at = 0, n; status == 0 && at < bytes; at += n) {
    n = bytes - at < d->size ? bytes - at : d->size;
    memcpy(d->memory, (const char *)here + at, n);
    status = hk_desk_wait(d, (int)cudaMemcpyAsync((char *)there + at, d->memory, n, cudaMemcpyHostToDevice, d->stream));
  }
  return status;
}

int hk_desk_down(struct hk_desk *d, void *here, const void *there, size_t bytes)
{
  int status = hk_desk_wait(d, (int)cudaSetDevice(d->device));
  for (size_t at = 0, n; status == 0 && at < bytes; at += n) {
    n = bytes - at < d->size ? bytes - at : d->size;
    status = hk_desk_wait(d, (int)cudaMemcpyAsync(d->memory, (const char *)there + at, n, cudaMemcpyDeviceToHost, d->stream));
    if (status == 0)
      memcpy((char *)here + at, d->memory, n);
  }
  return status;
}

int hk_desk_tell(int status, char *error, size_t size)
{
  if (status == -ETIMEDOUT)
    snprintf(error, size, "the GPU has not answered for %d s", HK_DESK_PATIENCE);
  else if (status != 0)
    snprintf(error, size, "the GPU failed");
  return status;
}
