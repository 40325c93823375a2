/* Families: the detectors that one kernel scores, in one launch however many they are, and what the kernel needs for them.
 *
 * A kernel is compiled for a number of vector elements and of lanes a sensor; a detector is scored by the smallest that holds its
 * window, so which family it is in, and with that every bit of a score, depends on the detector alone. */
#ifndef HK_KERNEL_CHOICE_H
#define HK_KERNEL_CHOICE_H

#include "gpu/backend/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_cuda_family {
  const struct hk_cuda_kernel *kernel;
  uint32_t first, n; /* its detectors: members[first .. first + n - 1] */
  uint32_t size;     /* the largest of theirs */
  uint32_t shared;   /* bytes of shared memory a block */
  uint32_t resident; /* blocks that may run at once: the device holds them, and there is memory for them to work in */
  void *scratch;     /* on the device: where they do */
};

/* Owner: the road that embeds it. */
struct hk_families {
  struct hk_cuda_family *family; /* the widest first */
  uint32_t n;
  uint16_t *of;                  /* by detector: number of its family */
  struct hk_detector *detectors; /* on the device */
  uint16_t *members;             /* on the device: the detectors, family by family */
  unsigned char *scratch;        /* on the device */
};

/* Plans all detectors for the current device and takes the memory; one whose window is 0 is none. blocks: as in struct
 * hk_backend_config. f: all zero. 0, or a negative errno with a message; close is due either way. */
int hk_families_open(struct hk_families *f, const struct hk_detector *detectors, uint32_t n, uint32_t blocks, char *error,
                     size_t size);
void hk_families_close(struct hk_families *f);

/* About how much work a score is, compared with other detectors' alone. */
double hk_family_work(const struct hk_detector *d);

/* 0, or a negative errno for what CUDA said, a cudaError_t, with a message. */
int hk_cuda_refuse(int failed, const char *what, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
