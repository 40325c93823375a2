/* The sensors of the CUDA backend as the host sees them: which slot is bound to which record on the device, where records
 * live, and what the device is to be told of it.
 *
 * Records of a detector stand side by side in slabs of device memory; a slab is never moved nor given back before close.
 * Adding and removing touch the host's table and leave a command (commands.h); the host reads a record for exports alone.
 *
 * Thread: one (the shard's). */
#ifndef HK_CUDA_RECORDS_H
#define HK_CUDA_RECORDS_H

#include "gpu/backend/commands.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_cuda_slot {
  struct hk_cuda_record *record; /* on the device; NULL = free */
  uint32_t command;              /* the latest one: see hk_commands_put */
  uint16_t detector;
};

struct hk_cuda_slab {
  unsigned char *base; /* on the device */
  uint32_t detector;
  uint32_t records, used; /* room for, and handed out so far */
};

struct hk_cuda_pool;

/* Records fetched for exports: those of slots that follow each other, since that is how a snapshot asks for them. */
struct hk_cuda_fetched {
  unsigned char *memory; /* pinned: the list of images, then the images */
  struct CUevent_st *done;
  uint32_t first, n; /* slots first .. first + n - 1 are there and up to date */
  uint32_t next;     /* the slot after the one last asked for */
};

/* Owner: the backend that embeds it. */
struct hk_records {
  const struct hk_detector *detectors; /* the backend's */
  uint32_t n_detectors, max_detectors;
  uint32_t max;               /* slots */
  uint64_t memory, limit;     /* bytes in slabs; limit 0 = none */
  struct CUstream_st *stream; /* the backend's; all work on records is in its order */
  struct hk_cuda_directory directory;
  struct hk_commands commands;
  struct hk_cuda_slot *slots; /* address space for all, memory for those touched */
  struct hk_cuda_pool *pools; /* one for each detector */
  struct hk_cuda_slab *slabs;
  uint32_t n_slabs;
  uint32_t *active; /* detectors that have sensors; room for all */
  uint32_t n_active;
  bool grown;        /* slabs were added since hk_records_lists */
  uint32_t room;     /* of lists: points of a batch */
  uint64_t list_end; /* tasks in all lists */
  struct hk_cuda_fetched fetched;
};

/* r: all zero but detectors, n_detectors, max_detectors, max, limit and stream. 0, or a negative errno with a message; close is
 * due either way. */
int hk_records_open(struct hk_records *r, char *error, size_t size);
void hk_records_close(struct hk_records *r);

/* As in struct hk_backend_ops. Memory is taken a slab at a time, so `need` grows in steps: it is what adding so many
 * sensors takes from the limit when none was there. HK_CUDA_SLOT_BYTES for each slot are taken by open already. */
uint64_t hk_records_need(const struct hk_records *r, uint32_t detector, uint64_t sensors);

/* 0; HK_FULL or a negative errno with a message. */
int hk_records_add(struct hk_records *r, uint32_t slot, uint32_t detector, uint64_t seed, char *error, size_t size);
/* Frees a slot. 0, or -EIO with a message (the slot is free all the same). */
int hk_records_remove(struct hk_records *r, uint32_t slot, char *error, size_t size);

/* The number of a detector is about to mean another one: gives its slabs back. No slot is bound to it, no batch in flight. */
void hk_records_clear(struct hk_records *r, uint32_t detector);

/* The slot's entry, or NULL when it is not bound. */
struct hk_cuda_slot *hk_records_at(const struct hk_records *r, uint32_t slot);
/* Sensors of a detector are at most so many; and where its list of tasks begins, once hk_records_lists was called. */
uint32_t hk_records_most(const struct hk_records *r, uint32_t detector);
uint32_t hk_records_list(const struct hk_records *r, uint32_t detector);

/* Gives every active detector a list with room for all its tasks in a batch of at most `room` points, and sends all commands.
 * Returns for how many tasks there must be room in all, or a negative cudaError_t. */
int64_t hk_records_lists(struct hk_records *r, uint32_t room);

/* Where each image of an export is to stand. 0, or -EINVAL: there is no room for all. *bytes: that they take together. */
int hk_records_plan(const struct hk_records *r, struct hk_batch *batch, uint64_t *bytes);
/* As in struct hk_backend_ops: an image is a record. */
uint64_t hk_records_image_most(const struct hk_detector *d);
const void *hk_records_state_of(void *image, const struct hk_detector *d, void *room, size_t *size);

/* Forgets what was fetched: batches are about to change records. */
void hk_records_touch(struct hk_records *r);

/* As in struct hk_backend_ops, with a message where the device failed (-EIO). Export waits for what is in flight. */
int64_t hk_records_export(struct hk_records *r, uint32_t slot, void *state, size_t size, char *error, size_t error_size);
int hk_records_import(struct hk_records *r, uint32_t slot, const void *state, size_t size, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif
#endif
