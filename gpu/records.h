/* The sensors of the CUDA backend as the host sees them: which slot is bound to which record on the device, where records
 * live, and how the points of a batch are told apart by sensor.
 *
 * Records of a detector stand side by side in slabs of device memory; a slab is never moved nor given back before close.
 * The host reads no record: a task says where it lies, and whether it has to be made ready for a new sensor first.
 *
 * Thread: one (the shard's). */
#ifndef HK_RECORDS_H
#define HK_RECORDS_H

#include "gpu/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_cuda_slot {
  struct hk_cuda_record *record; /* on the device; NULL = free */
  uint64_t seed;
  uint32_t task; /* of the batch last looked through */
  uint16_t detector;
  uint8_t fresh; /* 1: no task has made the record ready yet; it is all zero */
};

struct hk_cuda_slab {
  unsigned char *base; /* on the device */
  uint32_t detector;
  uint32_t records, used; /* room for, and handed out so far */
};

/* The tasks of one detector in a batch: tasks[first .. first + n - 1]. */
struct hk_cuda_group {
  uint32_t detector, first, n;
};

struct hk_cuda_pool;

/* Owner: the backend that embeds it. */
struct hk_records {
  const struct hk_detector *detectors; /* the backend's */
  uint32_t n_detectors;
  uint32_t max;               /* slots */
  uint64_t memory, limit;     /* bytes in slabs; limit 0 = none */
  struct CUstream_st *stream; /* the backend's; all work on records is in its order */
  struct hk_cuda_slot *slots;
  struct hk_cuda_pool *pools; /* one for each detector */
  struct hk_cuda_slab *slabs;
  uint32_t n_slabs;
  struct hk_cuda_task *draft; /* tasks in order of appearance; room for n_draft */
  uint32_t n_draft;
  struct hk_cuda_group *groups; /* of the batch last looked through; room for n_detectors */
  uint32_t n_groups;
};

/* r: all zero but detectors, n_detectors, max, limit and stream. 0 or -ENOMEM; close is due either way. */
int hk_records_open(struct hk_records *r);
void hk_records_close(struct hk_records *r);

/* As in struct hk_backend_ops. Memory is taken a slab at a time, so `need` grows in steps: it is what adding so many
 * sensors takes from the limit when none was there. */
uint64_t hk_records_need(const struct hk_records *r, uint32_t detector, uint64_t sensors);

/* 0; HK_FULL or a negative errno with a message. */
int hk_records_add(struct hk_records *r, uint32_t slot, uint32_t detector, uint64_t seed, char *error, size_t size);
/* Frees a slot and clears its record. 0, or the cudaError_t (the slot is free all the same). */
int hk_records_remove(struct hk_records *r, uint32_t slot);

/* The slot's entry, or NULL when it is not bound. */
struct hk_cuda_slot *hk_records_at(const struct hk_records *r, uint32_t slot);

/* As in struct hk_backend_ops, with a message where the device failed (-EIO). Waits for what is in flight. */
int64_t hk_records_export(struct hk_records *r, uint32_t slot, void *state, size_t size, char *error, size_t error_size);
int hk_records_import(struct hk_records *r, uint32_t slot, const void *state, size_t size, char *error, size_t error_size);

/* Tells the points of a batch apart by sensor, into tasks and order (room for batch->n each) and r->groups. Returns the
 * number of tasks; -EINVAL: a slot is not bound or a sensor has over HK_BATCH_PER_SENSOR points; -ENOMEM. */
int64_t hk_records_tasks(struct hk_records *r, const struct hk_batch *batch, struct hk_cuda_task *tasks, uint32_t *order);

#ifdef __cplusplus
}
#endif
#endif
