/* The launchers of the kernels that every batch needs, whatever its detectors. They are asynchronous and return the launch error:
 * 0 or a cudaError_t. */
#ifndef HK_BATCH_KERNELS_H
#define HK_BATCH_KERNELS_H

#include "gpu/backend/device_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernels below, so that the first batch does not wait for that. */
int hk_cuda_road_load(void);

/* Executes n commands, from number `first` on at `memory`. That is pinned, also contains the images, and must remain until the
 * stream has passed this launch. Each slot and each list may be named once. */
int hk_cuda_apply(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const void *memory, uint32_t first,
                  uint32_t n);

/* The points in their order in the batch. */
struct hk_cuda_points {
  uint32_t *slot;
  int64_t *time;
  double *value;
};

/* Groups n >= 1 points by sensor: fills in work's n_tasks, tasks and order; marks a malformed batch as refused. points: on the
 * device. from: NULL, or pinned columns of the host that the same kernels copy to `points` first: for small batches. */
int hk_cuda_group(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const struct hk_cuda_work *work,
                  const struct hk_cuda_points *from, const struct hk_cuda_points *points, uint32_t n);

/* Ends a batch that scores nothing; end->blocks is ignored. */
int hk_cuda_finish(struct CUstream_st *stream, const struct hk_cuda_work *work, const struct hk_cuda_end *end);

/* Finds sensors that became silent, or are back, among n records of one detector. Notices are written to columns->event; a sensor
 * for which there is no room is unchanged. idle: as in struct hk_batch. */
int hk_cuda_sweep(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_directory *directory,
                  void *records, uint32_t n, int64_t idle, const struct hk_cuda_columns *columns);

/* Copies records unchanged to the places of their images, relative to `to`; those of size 0 are omitted. images: pinned memory of
 * the host; to: on the device, or also pinned. */
int hk_cuda_fetch(struct CUstream_st *stream, const struct hk_image *images, uint32_t n, void *to);

#ifdef __cplusplus
}
#endif
#endif
