/* Families: the detectors that one kernel scores, in one launch however many they are, and what the kernel needs for them.
 *
 * A kernel is compiled for a number of vector elements and of lanes a sensor; a detector is scored by the smallest that holds its
 * window, so which family it is in, and with that every bit of a score, depends on the detector alone. */
#ifndef HK_FAMILY_H
#define HK_FAMILY_H

#include "gpu/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel as compiled. `size` is what a detector's room grows with: see hk_cuda_choose. */
struct hk_cuda_kernel {
  uint32_t window;                    /* widest that it holds */
  uint32_t side;                      /* sensors that a warp scores side by side */
  uint32_t warps;                     /* of a block; 1: a block scores as one */
  uint32_t (*shared)(uint32_t size);  /* bytes of shared memory a block */
  uint64_t (*scratch)(uint32_t size); /* bytes of device memory that a block works in */
  /* Lets blocks have up to `most` bytes of shared memory, and tells how many with `shared` bytes fit a multiprocessor. 0 or a
   * cudaError_t. */
  int (*fit)(uint32_t most, uint32_t shared, uint32_t *blocks);
  int (*launch)(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *launch);
};

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

/* The kernel for a detector, and its size: for ika the most Lanczos steps, for svd and shift the window, for graph
 * samples of the ring. */
const struct hk_cuda_kernel *hk_ika_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_svd_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_graph_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_shift_choose(const struct hk_detector *d, uint32_t *size);

/* About how much work a score is, compared with other detectors' alone. */
double hk_family_work(const struct hk_detector *d);

/* 0, or a negative errno for what CUDA said, a cudaError_t, with a message. */
int hk_cuda_refuse(int failed, const char *what, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
