/* What host side and kernels of the CUDA backend share: the layout of device memory and the launchers.
 *
 * Launchers put work on a stream, wait for nothing and return the launch error: 0 or a cudaError_t. The kernels' arithmetic is
 * that of cpu/MATHEMATICS.md; every sum is taken in an order that depends on the detector alone, so that a score does not depend
 * on how points were cut into batches. */
#ifndef HK_KERNELS_H
#define HK_KERNELS_H

#include "cpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t points at one; said here so that this header needs no CUDA */

/* A sensor on the device: this header, then the feedback vector (hk_cuda_padded(w) floats), then the ring (span floats).
 * All zero is a record that no sensor has used. */
struct hk_cuda_record {
  struct hk_window window;
  struct hk_alert alert;
  uint32_t slot;
  uint32_t unused[3]; /* what follows begins at a multiple of 16 bytes */
};

/* Vectors of w numbers are kept with zeros up to a multiple of 4. */
HK_INLINE uint32_t hk_cuda_padded(uint32_t window)
{
  return (window + 3) & ~3u;
}

/* Bytes of one sensor's record. */
HK_INLINE uint64_t hk_cuda_record_bytes(const struct hk_detector *d)
{
  const uint64_t floats = hk_cuda_padded(d->window) + hk_detector_span(d);
  return (sizeof(struct hk_cuda_record) + floats * sizeof(float) + 15) & ~(uint64_t)15;
}

HK_INLINE float *hk_cuda_feedback(struct hk_cuda_record *record)
{
  return (float *)(record + 1);
}

HK_INLINE float *hk_cuda_ring(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_cuda_feedback(record) + hk_cuda_padded(d->window);
}

/* The points of one sensor in a batch. */
struct hk_cuda_task {
  struct hk_cuda_record *record; /* on the device */
  uint64_t seed;
  uint32_t slot;
  uint32_t first, count; /* its points, in order: columns.order[first .. first + count - 1] */
  uint32_t fresh;        /* 1: the record is to be made ready for this sensor first */
};

/* Columns of a batch. In device memory, but for the events, which are few and go straight to the host. */
struct hk_cuda_columns {
  const int64_t *time;
  const double *value;
  const uint32_t *order; /* indices of points, grouped by sensor */
  float *score;
  uint8_t *state;
  struct hk_event *event; /* pinned host memory; in no order */
  uint32_t *n_events;     /* on the device; may exceed capacity, then the rest was not written */
  uint32_t capacity;      /* of event */
  int64_t arrival;        /* ns */
};

/* How a detector's kernel runs on this device, and the device memory that each of its blocks works in:
 * the Krylov basis, s vectors of w floats (s = the most Lanczos steps; w for svd), and 2 r s doubles for eigenvectors of the
 * tridiagonal matrix. Default detector: 4 KB; svd with w = 1024, r = 12: 4.4 MB. */
struct hk_cuda_plan {
  uint32_t threads;  /* of a block; by the window alone */
  uint32_t shared;   /* bytes of shared memory */
  uint32_t resident; /* blocks that the device holds at once */
  uint64_t scratch;  /* bytes that one block works in */
};

int hk_cuda_plan(const struct hk_detector *d, struct hk_cuda_plan *plan);

/* Scores n tasks of one detector. Tasks (device memory) are taken by `blocks` blocks, each with plan->scratch bytes at
 * scratch. */
int hk_cuda_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, uint32_t blocks,
                  void *scratch, const struct hk_cuda_task *tasks, uint32_t n, const struct hk_cuda_columns *columns);

/* Looks for sensors gone silent or back among n records of one detector. Notices go to columns->event; a sensor for which
 * there is no place stays as it was. idle: as in struct hk_batch. */
int hk_cuda_sweep(struct CUstream_st *stream, const struct hk_detector *d, void *records, uint32_t n, int64_t idle,
                  const struct hk_cuda_columns *columns);

#ifdef __cplusplus
}
#endif
#endif
