/* Families: a family is the detectors that one kernel scores, in one launch whatever their number, and the resources of the
 * kernel.
 *
 * A kernel is compiled for a number of vector elements and of lanes for each sensor; a detector is scored by the smallest kernel
 * that holds its window, so its family, and with it each bit of a score, depends only on the detector. */
#ifndef HK_KERNEL_CHOICE_H
#define HK_KERNEL_CHOICE_H

#include "gpu/backend/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_cuda_family {
  const struct hk_cuda_kernel *kernel;
  uint32_t first, n; /* its detectors: members[first .. first + n - 1] */
  uint32_t size;     /* the largest size of its detectors */
  uint32_t shared;   /* bytes of shared memory for each block */
  uint32_t resident; /* maximum of concurrent blocks, limited by the device and by `scratch` */
  void *scratch;     /* work memory of the blocks, on the device */
};

/* Owner: the struct hk_cuda_batches that embeds it. */
struct hk_families {
  struct hk_cuda_family *family; /* the widest first */
  uint32_t n;
  uint16_t *of;                  /* by detector: number of its family */
  struct hk_detector *detectors; /* on the device */
  uint16_t *members;             /* on the device: the detectors, family by family */
  unsigned char *scratch;        /* on the device */
};

/* Plans all detectors for the current device and allocates the memory; detectors with window 0 are undefined. blocks: as in
 * struct hk_backend_config. f: all zero. Returns 0, or a negative errno with a message; call hk_families_close in both cases. */
int hk_families_open(struct hk_families *f, const struct hk_detector *detectors, uint32_t n, uint32_t blocks, char *error,
                     size_t size);
void hk_families_close(struct hk_families *f);

/* Approximate work of a score, relative to other detectors. */
double hk_family_work(const struct hk_detector *d);

/* Converts a cudaError_t. Returns 0, or a negative errno with a message. */
int hk_cuda_refuse(int failed, const char *what, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
