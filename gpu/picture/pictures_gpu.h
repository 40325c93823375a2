/* Pictures on the GPU: computes what cpu/picture/picture.h does, to the last bit, many pictures at a time.
 *
 * A handle has some places, each with memory of the host for the pixels of several pictures of one size, and a stream of its own:
 * while the pixels of one place are copied and computed, the caller fills another.
 *
 * Handle: one thread at a time. In a build without nvcc hk_pictures_gpu_open returns -ENODEV. */
#ifndef HK_PICTURES_GPU_H
#define HK_PICTURES_GPU_H

#include "cpu/picture/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_pictures_gpu;

struct hk_pictures_size {
  struct hk_picture_rule rule;
  uint32_t height, width;
  uint32_t places;  /* at least 1 */
  uint32_t at_once; /* pictures of a place, at least 1 */
  uint32_t pixel;   /* bytes of the largest pixel: 1, 2 or 4 */
};

/* Bytes of device memory for pictures of a size. */
uint64_t hk_pictures_gpu_bytes(const struct hk_pictures_size *size);

/* Opens a handle on GPU number `device`. Returns 0 and *out, or a negative errno with a message: -ENODEV no usable GPU (compute
 * capability 8.0) or a build without nvcc, -ENOMEM with the number of bytes, -EIO. */
int hk_pictures_gpu_open(struct hk_pictures_gpu **out, const struct hk_pictures_size *size, uint32_t device, char *error,
                         size_t room);
void hk_pictures_gpu_close(struct hk_pictures_gpu *g); /* NULL is allowed */

/* Where the pixels of picture k of a place are to be written, row by row without gaps, once the place has been waited for. kind:
 * enum hk_picture_pixel, of at most the handle's bytes. */
void *hk_pictures_gpu_pixels(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t k);
/* Begins to compute n pictures (1..at_once) of a place, all of one kind; waits for nothing. Returns 0 or -EIO. */
int hk_pictures_gpu_begin(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n);
/* As begin, of the pixels of the last call, which are there already, and nothing is copied there or back; for benchmarks. */
int hk_pictures_gpu_again(struct hk_pictures_gpu *g, uint32_t place, uint32_t kind, uint32_t n);
/* Waits for what was begun in a place. Returns 0, -ETIMEDOUT or -EIO; after an error the handle can only be closed. */
int hk_pictures_gpu_wait(struct hk_pictures_gpu *g, uint32_t place);
/* The tiles of picture k of the place, as of hk_picture_tiles, after it was waited for; valid until the next begin there. */
const struct hk_picture_tile *hk_pictures_gpu_tiles(const struct hk_pictures_gpu *g, uint32_t place, uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
