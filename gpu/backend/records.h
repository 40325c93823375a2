/* The sensors of the CUDA backend, host side: binds slots to records on the device, allocates records, and collects the commands
 * for the device.
 *
 * Records of a detector are contiguous in slabs of device memory; slabs are never moved, and freed only by hk_records_clear and
 * close. Adding and removing change the host's table and add a command (commands.h); the host reads a record only for exports.
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
  uint32_t command;              /* the latest command: see hk_commands_put */
  uint16_t detector;
};

struct hk_cuda_slab {
  unsigned char *base; /* on the device */
  uint32_t detector;
  uint32_t records, used; /* capacity, and records allocated so far */
};

struct hk_cuda_pool;

/* Records fetched for exports: those of consecutive slots, the order in which a snapshot reads them. */
struct hk_cuda_fetched {
  unsigned char *memory; /* pinned: the list of images, then the images */
  struct CUevent_st *done;
  uint32_t first, n; /* slots first .. first + n - 1 were fetched and are up to date */
  uint32_t next;     /* the slot after the last one requested */
};

/* Owner: the backend that embeds it. */
struct hk_records {
  const struct hk_detector *detectors; /* owned by the backend */
  uint32_t n_detectors, max_detectors;
  uint32_t max;               /* slots */
  uint64_t memory, limit;     /* bytes in slabs; limit 0 = none */
  struct CUstream_st *stream; /* stream of the backend; all work on records is in its order */
  struct hk_cuda_directory directory;
  struct hk_commands commands;
  struct hk_cuda_slot *slots; /* address space for all slots, memory for the touched ones */
  struct hk_cuda_pool *pools; /* one for each detector */
  struct hk_cuda_slab *slabs;
  uint32_t n_slabs;
  uint32_t *active; /* detectors with sensors; room for all detectors */
  uint32_t n_active;
  bool grown;        /* slabs were added since hk_records_lists */
  uint32_t room;     /* capacity of the lists, in points of a batch */
  uint64_t list_end; /* tasks in all lists */
  struct hk_cuda_fetched fetched;
};

/* r: all zero except detectors, n_detectors, max_detectors, max, limit and stream. Returns 0, or a negative errno with a message;
 * call hk_records_close in both cases. */
int hk_records_open(struct hk_records *r, char *error, size_t size);
void hk_records_close(struct hk_records *r);

/* As in struct hk_backend_ops. Memory is allocated in slabs, so `need` grows in steps: it is what adding these sensors takes from
 * the limit if none existed. It excludes HK_CUDA_SLOT_BYTES for each slot, which hk_records_open allocates. */
uint64_t hk_records_need(const struct hk_records *r, uint32_t detector, uint64_t sensors);

/* Returns 0; HK_FULL or a negative errno with a message. */
int hk_records_add(struct hk_records *r, uint32_t slot, uint32_t detector, uint64_t seed, char *error, size_t size);
/* Frees a slot. Returns 0, or -EIO with a message; the slot is free in both cases. */
int hk_records_remove(struct hk_records *r, uint32_t slot, char *error, size_t size);

/* Frees the slabs of a detector before its number is redefined. No slot may be bound to it, and no batch in flight. */
void hk_records_clear(struct hk_records *r, uint32_t detector);

/* The slot's entry, or NULL if it is not bound. */
struct hk_cuda_slot *hk_records_at(const struct hk_records *r, uint32_t slot);
/* Upper bound of the sensors of a detector. */
uint32_t hk_records_most(const struct hk_records *r, uint32_t detector);

/* Gives each active detector a list with room for all its tasks in a batch of at most `room` points, and sends all commands.
 * Returns the total number of tasks in all lists, or a negative cudaError_t. */
int64_t hk_records_lists(struct hk_records *r, uint32_t room);

/* Assigns the place of each image of an export. Returns 0, or -EINVAL: they do not fit. *bytes: total size of the images. */
int hk_records_plan(const struct hk_records *r, struct hk_batch *batch, uint64_t *bytes);
/* As in struct hk_backend_ops: an image is a record. */
uint64_t hk_records_image_most(const struct hk_detector *d);
const void *hk_records_state_of(void *image, const struct hk_detector *d, void *room, size_t *size);

/* Discards the fetched records: call before batches change records. */
void hk_records_touch(struct hk_records *r);

/* As in struct hk_backend_ops, with a message if the device failed (-EIO). Export waits for batches in flight. */
int64_t hk_records_export(struct hk_records *r, uint32_t slot, void *state, size_t size, char *error, size_t error_size);
int hk_records_import(struct hk_records *r, uint32_t slot, const void *state, size_t size, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif
#endif
