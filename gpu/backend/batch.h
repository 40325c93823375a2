/* Batches on the device, host side: memory and streams (batch.c), and the launches for a batch (launch.c;
 * batch_kernels.cu has the kernels).
 *
 * Three streams: `up` copies columns to the device, `down` copies scores and states back, `main` has everything between. So
 * copies of one batch run while another is scored, and all work on sensors is in the order of `main`, where batches are
 * sequential. Families of detectors (kernel_choice.h) run concurrently on side streams that fork from `main` and join it
 * again.
 *
 * Thread: one (the shard's), except hk_cuda_batches_await and hk_cuda_batches_drain. */
#ifndef HK_CUDA_BATCH_H
#define HK_CUDA_BATCH_H

#include "gpu/backend/batch_kernels.h"
#include "gpu/backend/kernel_choice.h"
#include "gpu/backend/records.h"

/* ns of busy waiting for a batch: a small one finishes before a thread would wake. */
#define HK_CUDA_SPIN_NS 200000

/* Streams for families that are scored concurrently; further families wait. CUDA distinguishes only CUDA_DEVICE_MAX_CONNECTIONS
 * streams on the device (8 by default): more made no difference in measurements. */
#define HK_CUDA_SIDE_STREAMS 12

/* A batch's place on the device. */
struct hk_cuda_batch_place {
  struct hk_batch *batch;                    /* set by hk_cuda_batches_launch */
  uint64_t images;                           /* bytes of an export; set by its caller */
  uint64_t number;                           /* number of the batch, from 1 */
  bool small;                                /* nothing is copied: kernels access the batch's own memory */
  uint64_t *answer;                          /* pinned; see hk_cuda_answer */
  unsigned char *device;                     /* columns */
  struct CUevent_st *up, *scored, *finished; /* not of small batches */
};

/* The columns of a place on the device, with room for a multiple of 16 points. */
struct hk_cuda_batch_columns {
  struct hk_cuda_points points;
  float *score;
  uint8_t *state;
};
#define HK_CUDA_POINT_BYTES (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t) + sizeof(float) + 1)

static inline struct hk_cuda_batch_columns hk_cuda_batch_columns(const struct hk_cuda_batch_place *p, uint32_t room)
{
  struct hk_cuda_batch_columns d;
  d.points.time = (int64_t *)p->device;
  d.points.value = (double *)(d.points.time + room);
  d.points.slot = (uint32_t *)(d.points.value + room);
  d.score = (float *)(d.points.slot + room);
  d.state = (uint8_t *)(d.score + room);
  return d;
}

/* The part of a batch for a family. */
struct hk_cuda_batch_part {
  uint32_t tasks; /* maximum number of tasks; 0: not launched */
  uint32_t warps; /* warps that share the tasks */
  double work;    /* approximate work; see hk_family_work */
};

/* Owner: the backend that embeds it. */
struct hk_cuda_batches {
  struct hk_detector *detectors; /* own copy */
  uint32_t n_detectors, max_detectors;
  uint32_t device, blocks; /* as in struct hk_backend_config */
  struct hk_families families;
  struct hk_records records;
  uint32_t sweep_slab, sweep_record; /* where the next sweep begins */
  struct CUstream_st *main, *up, *down, *side[HK_CUDA_SIDE_STREAMS];
  struct CUevent_st *fork, *joined[HK_CUDA_SIDE_STREAMS];
  struct hk_cuda_work work;
  uint32_t room;                    /* capacity for the points of a batch */
  unsigned char *images;            /* images of the current export */
  uint64_t images_size;             /* bytes */
  struct CUevent_st *images_free;   /* recorded when the images have been copied to the host */
  uint64_t tasks;                   /* capacity for tasks */
  struct hk_cuda_batch_part *parts; /* for a batch: one for each family */
  struct hk_cuda_batch_place *places;
  uint64_t *answers; /* the answers of the places */
  uint32_t n_places;
};

/* r: all zero. Returns 0, or a negative errno with a message; call hk_cuda_batches_close in both cases. */
int hk_cuda_batches_open(struct hk_cuda_batches *r, const struct hk_backend_config *config, uint32_t places, char *error,
                         size_t size);
/* All work on the device must be finished. */
void hk_cuda_batches_close(struct hk_cuda_batches *r);

/* As in struct hk_backend_ops; no batch is in flight. */
int hk_cuda_batches_define(struct hk_cuda_batches *r, const struct hk_definition *definitions, uint32_t n, char *error,
                           size_t size);

/* Allocates memory for batches of `points` points; no batch may be on the device. Returns 0, or a negative errno with a message:
 * then there is room for none. */
int hk_cuda_batches_room(struct hk_cuda_batches *r, uint32_t points, char *error, size_t size);

/* Allocates memory for exports of `bytes` bytes; no batch may be on the device. Returns 0, or a negative errno with a message. */
int hk_cuda_batches_images(struct hk_cuda_batches *r, uint64_t bytes, char *error, size_t size);

/* Sends added and removed sensors to the device, and allocates memory for all tasks. Returns 0; -ENOMEM with a message: nothing
 * is lost, but no batch can be launched now; or another negative errno with a message. */
int hk_cuda_batches_ready(struct hk_cuda_batches *r, char *error, size_t size);

/* Waits until the device has finished a batch, at first by busy waiting. Returns 0 or a cudaError_t. Any thread. */
int hk_cuda_batches_await(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *place);
/* After hk_cuda_batches_launch failed: waits until no part of the batch is on the device, even if the device failed. Any thread.
 */
void hk_cuda_batches_drain(const struct hk_cuda_batches *r);

#endif
