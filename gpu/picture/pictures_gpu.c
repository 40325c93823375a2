/* Host side of pictures on the GPU: memory, streams, copies. See pictures_gpu.h. */
#include "gpu/picture/pictures_gpu.h"
#include "gpu/cuda.h"
#include "gpu/cuda_error.h"
#include "gpu/desk.h"
#include "gpu/picture/pictures_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* One place. Its desk's memory has the pixels of all pictures, and behind these the tiles that come back. */
struct place {
  struct hk_desk desk;
  char *memory; /* of the device: pixels, columns, tiles */
  struct hk_pictures_task task;
};

struct hk_pictures_gpu {
  struct hk_pictures_size size;
  uint32_t tiles; /* of a picture */
  uint32_t n;
  struct place place[];
};

/* --- layout -------------------------------------------------------------------------------------------------------------- */

static size_t up_to(size_t bytes)
{
  return (bytes + 255) / 256 * 256;
}

/* Bytes from a picture to the next. */
static size_t pictures_apart(const struct hk_pictures_size *s, uint32_t pixel)
{
  return up_to((size_t)s->height * s->width * pixel);
}

static uint32_t pixel_bytes(uint32_t kind)
{
  return kind == HK_PICTURE_U8 ? 1 : kind == HK_PICTURE_F32 ? 4 : 2;
}

static size_t pixels_bytes(const struct hk_pictures_size *s)
{
  return s->at_once * pictures_apart(s, s->pixel);
}

static size_t columns_bytes(const struct hk_pictures_size *s)
{
  const size_t rows = (size_t)s->at_once * hk_picture_tiles_over(s->height, s->rule.tile) * HK_PICTURES_COLUMNS;
  return up_to(rows * hk_pictures_pitch(s->width) * sizeof(float));
}

static uint32_t count_tiles(const struct hk_pictures_size *s)
{
  return hk_picture_tiles_over(s->height, s->rule.tile) * hk_picture_tiles_over(s->width, s->rule.tile);
}

static size_t tiles_bytes(const struct hk_pictures_size *s)
{
  return (size_t)s->at_once * count_tiles(s) * sizeof(struct hk_picture_tile);
}

static size_t place_bytes(const struct hk_pictures_size *s)
{
  return pixels_bytes(s) + columns_bytes(s) + tiles_bytes(s);
}

uint64_t hk_pictures_gpu_bytes(const struct hk_pictures_size *s)
{
  return (uint64_t)s->places * place_bytes(s);
}

/* --- handles ------------------------------------------------------------------------------------------------------------- */

static cudaError_t open_place(struct place *p, const struct hk_pictures_size *s, uint32_t device)
{
  cudaError_t failed = (cudaError_t)hk_desk_open(&p->desk, (int)device, pixels_bytes(s) + tiles_bytes(s));
  if (!failed)
    failed = cudaMalloc((void **)&p->memory, place_bytes(s));
  if (failed)
    return failed;
  p->task = (struct hk_pictures_task){ .rule = s->rule, .height = s->height, .width = s->width, .pixels = p->memory };
  p->task.columns = (float *)(void *)(p->memory + pixels_bytes(s));
  p->task.tiles = (struct hk_picture_tile *)(void *)(p->memory + pixels_bytes(s) + columns_bytes(s));
  return cudaSuccess;
}

int hk_pictures_gpu_open(struct hk_pictures_gpu **out, const struct hk_pictures_size *size, uint32_t device, char *error,
                         size_t room)
{
  struct hk_pictures_gpu *g = calloc(1, sizeof *g + size->places * sizeof *g->place);
  cudaError_t failed = cudaSuccess;
  *out = NULL;
  if (!g) {
    snprintf(error, room, "no memory");
    return -ENOMEM;
  }
  g->size = *size;
  g->tiles = count_tiles(size);
  for (; g->n < size->places && !failed; g->n++)
    failed = open_place(&g->place[g->n], size, device);
  if (failed) {
    hk_pictures_gpu_close(g);
    return hk_cuda_error(error, room, (int)failed, "pictures need", hk_pictures_gpu_bytes(size));
  }
  *out = g;
  return 0;
}

void hk_pictures_gpu_close(struct hk_pictures_gpu *g)
{
  for (uint32_t i = 0; g && i < g->n; i++)
    hk_desk_close(&g->place[i].desk, g->place[i].memory);
  free(g);
}

/* --- pictures ------------------------------------------------------------------------------------------------------------ */

void *hk_pictures_gpu_pixels(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t k)
{
  return g->place[place].desk.memory + k * pictures_apart(&g->size, pixel_bytes(kind));
}

int hk_pictures_gpu_again(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n)
{
  struct place *p = &g->place[place];
  p->task.kind = kind;
  p->task.pictures = n;
  p->task.apart = pictures_apart(&g->size, pixel_bytes(kind));
  cudaError_t failed = cudaSetDevice(p->desk.device);
  if (!failed)
    failed = (cudaError_t)hk_pictures_launch(&p->task, p->desk.stream);
  return failed ? -EIO : 0;
}

int hk_pictures_gpu_begin(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n)
{
  struct place *p = &g->place[place];
  const size_t in = n * pictures_apart(&g->size, pixel_bytes(kind)), back = (size_t)n * g->tiles * sizeof *p->task.tiles;
  cudaError_t failed = cudaSetDevice(p->desk.device);
  if (!failed)
    failed = cudaMemcpyAsync(p->memory, p->desk.memory, in, cudaMemcpyHostToDevice, p->desk.stream);
  if (failed || hk_pictures_gpu_again(g, place, kind, n) != 0)
    return -EIO;
  failed = cudaMemcpyAsync(p->desk.memory + pixels_bytes(&g->size), p->task.tiles, back, cudaMemcpyDeviceToHost, p->desk.stream);
  return failed ? -EIO : 0;
}

int hk_pictures_gpu_wait(struct hk_pictures_gpu *g, uint32_t place)
{
  return hk_desk_wait(&g->place[place].desk, 0);
}

const struct hk_picture_tile *hk_pictures_gpu_tiles(const struct hk_pictures_gpu *g, uint32_t place, uint32_t k)
{
  const char *back = g->place[place].desk.memory + pixels_bytes(&g->size);
  return (const struct hk_picture_tile *)(const void *)back + (size_t)k * g->tiles;
}

/* --- for the daemon (cpu/picture/device.h) --------------------------------------------------------------------------------- */

static int pictures_gpu_device_open(void **out, const struct hk_picture_rule *rule, uint32_t height, uint32_t width,
                                    uint32_t number, char *error, size_t room)
{
  const struct hk_pictures_size size = { *rule, height, width, 1, 1, sizeof(float) };
  struct hk_pictures_gpu *g;
  const int status = hk_pictures_gpu_open(&g, &size, number, error, room);
  if (status == 0)
    *out = g;
  return status;
}

static void pictures_gpu_device_close(void *space)
{
  hk_pictures_gpu_close(space);
}

static void *pictures_gpu_device_pixels(void *space)
{
  return hk_pictures_gpu_pixels(space, 0, HK_PICTURE_U8, 0);
}

static int pictures_gpu_device_tiles(void *space, uint32_t kind, const struct hk_picture_tile **out, char *error, size_t room)
{
  int status = hk_pictures_gpu_begin(space, 0, kind, 1);
  if (status == 0)
    status = hk_pictures_gpu_wait(space, 0);
  *out = hk_pictures_gpu_tiles(space, 0, 0);
  return hk_desk_tell(status, error, room);
}

const struct hk_picture_device hk_cuda_pictures = { pictures_gpu_device_open, pictures_gpu_device_close,
                                                    pictures_gpu_device_pixels, pictures_gpu_device_tiles };
