/* The road of batches over the device, host side: memory and streams (batch.c), and what is put on them for a batch (launch.c;
 * batch_kernels.cu has the kernels).
 *
 * Three streams: `up` copies columns to the device, `down` copies scores and states back, `main` has everything between. So
 * copies of one batch run while another is scored, and all work on sensors is in the order of `main`, where batches follow each
 * other. Families of detectors (kernel_choice.h) run next to each other on side streams that leave `main` and come back to it.
 *
 * Thread: one (the shard's), but for hk_road_await. */
#ifndef HK_CUDA_BATCH_H
#define HK_CUDA_BATCH_H

#include "gpu/backend/kernel_choice.h"
#include "gpu/backend/records.h"

/* A batch is waited for without sleep for so many ns: a small one is done sooner than a thread wakes. */
#define HK_ROAD_SPIN_NS 200000

/* Streams for families that are scored next to each other; more families than that wait for each other. CUDA keeps only
 * CUDA_DEVICE_MAX_CONNECTIONS streams apart on the device (8 unless told): more made no difference where that was measured. */
#define HK_ROAD_SIDES 12

/* A batch's place on the device. */
struct hk_road_place {
  struct hk_batch *batch;                    /* set by hk_road_launch */
  uint64_t images;                           /* bytes of an export; set by the caller of that */
  uint64_t number;                           /* of the batch, from 1 */
  bool small;                                /* nothing is copied: kernels read and write the batch's own memory */
  uint64_t *answer;                          /* pinned; see hk_cuda_answer */
  unsigned char *device;                     /* columns */
  struct CUevent_st *up, *scored, *finished; /* not of small batches */
};

/* The columns of a place on the device, with room for a multiple of 16 points. */
struct hk_road_columns {
  struct hk_cuda_points points;
  float *score;
  uint8_t *state;
};
#define HK_ROAD_POINT_BYTES (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t) + sizeof(float) + 1)

static inline struct hk_road_columns hk_road_columns(const struct hk_road_place *p, uint32_t room)
{
  struct hk_road_columns d;
  d.points.time = (int64_t *)p->device;
  d.points.value = (double *)(d.points.time + room);
  d.points.slot = (uint32_t *)(d.points.value + room);
  d.score = (float *)(d.points.slot + room);
  d.state = (uint8_t *)(d.score + room);
  return d;
}

/* What falls to a family of a batch. */
struct hk_road_part {
  uint32_t tasks; /* at most; 0: it is not launched */
  uint32_t warps; /* among which they are shared out */
  double work;    /* about; see hk_family_work */
};

/* Owner: the backend that embeds it. */
struct hk_road {
  struct hk_detector *detectors; /* our copy */
  uint32_t n_detectors, max_detectors;
  uint32_t device, blocks; /* as in struct hk_backend_config */
  struct hk_families families;
  struct hk_records records;
  uint32_t sweep_slab, sweep_record; /* where the next sweep begins */
  struct CUstream_st *main, *up, *down, *side[HK_ROAD_SIDES];
  struct CUevent_st *fork, *joined[HK_ROAD_SIDES];
  struct hk_cuda_work work;
  uint32_t room;                  /* points of a batch that there is memory for */
  unsigned char *images;          /* of the export under way */
  uint64_t images_size;           /* bytes */
  struct CUevent_st *images_free; /* they have been copied down */
  uint64_t tasks;                 /* that there is memory for */
  struct hk_road_part *parts;     /* of a batch: one for each family */
  struct hk_road_place *places;
  uint64_t *answers; /* of the places, side by side */
  uint32_t n_places;
};

/* r: all zero. 0, or a negative errno with a message; close is due either way. */
int hk_road_open(struct hk_road *r, const struct hk_backend_config *config, uint32_t places, char *error, size_t size);
/* Everything on the device is done. */
void hk_road_close(struct hk_road *r);

/* As in struct hk_backend_ops; no batch is in flight. */
int hk_road_define(struct hk_road *r, const struct hk_definition *definitions, uint32_t n, char *error, size_t size);

/* Makes room for batches of so many points; no batch is on the device. 0, or a negative errno with a message: there is room for
 * none now. */
int hk_road_room(struct hk_road *r, uint32_t points, char *error, size_t size);

/* Makes room for exports of so many bytes; no batch is on the device. 0, or a negative errno with a message. */
int hk_road_images(struct hk_road *r, uint64_t bytes, char *error, size_t size);

/* Tells the device which sensors came and went, and makes room for the tasks of all. 0; -ENOMEM with a message: nothing is lost,
 * but no batch can be launched now; any other negative errno with a message. */
int hk_road_ready(struct hk_road *r, char *error, size_t size);

/* Puts a batch on the streams; there is room for it, and hk_road_ready was called. 0 or a cudaError_t: then a part of it may be
 * there. */
int hk_road_launch(struct hk_road *r, struct hk_road_place *place, struct hk_batch *batch, uint64_t number);

/* Waits until the device is done with a batch, without sleep for a short time, for it may be soon. 0 or a cudaError_t. Any
 * thread. */
int hk_road_await(const struct hk_road *r, const struct hk_road_place *place);
/* After hk_road_launch has failed: waits until no part of the batch is on the device, well or not. Any thread. */
void hk_road_drain(const struct hk_road *r);

#endif
