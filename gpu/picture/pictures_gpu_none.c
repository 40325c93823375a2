/* A build without nvcc: there is no GPU. */
#include "gpu/cuda.h"
#include "gpu/no_cuda.h"
#include "gpu/picture/pictures_gpu.h"

#include <errno.h>

uint64_t hk_pictures_gpu_bytes(const struct hk_pictures_size *size)
{
  (void)size;
  return 0;
}

int hk_pictures_gpu_open(struct hk_pictures_gpu **out, const struct hk_pictures_size *size, uint32_t device, char *error,
                         size_t room)
{
  (void)size, (void)device;
  *out = NULL;
  return hk_no_cuda(error, room);
}

void hk_pictures_gpu_close(struct hk_pictures_gpu *g)
{
  (void)g;
}

void *hk_pictures_gpu_pixels(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t k)
{
  (void)g, (void)place, (void)kind, (void)k;
  return NULL;
}

int hk_pictures_gpu_begin(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n)
{
  (void)g, (void)place, (void)kind, (void)n;
  return -ENODEV;
}

int hk_pictures_gpu_again(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n)
{
  return hk_pictures_gpu_begin(g, place, kind, n);
}

int hk_pictures_gpu_wait(struct hk_pictures_gpu *g, uint32_t place)
{
  (void)g, (void)place;
  return -ENODEV;
}

const struct hk_picture_tile *hk_pictures_gpu_tiles(const struct hk_pictures_gpu *g, uint32_t place, uint32_t k)
{
  (void)g, (void)place, (void)k;
  return NULL;
}

static int pictures_open_none(void **out, const struct hk_picture_rule *rule, uint32_t height, uint32_t width, uint32_t number,
                              char *error, size_t room)
{
  const struct hk_pictures_size size = { *rule, height, width, 1, 1, sizeof(float) };
  struct hk_pictures_gpu *g;
  *out = NULL;
  return hk_pictures_gpu_open(&g, &size, number, error, room);
}

/* And nothing more, where that always fails. */
const struct hk_picture_device hk_cuda_pictures = { .open = pictures_open_none };
