/* Backend: the interface that every compute backend implements (cpu, reference, cuda).
 *
 * The backend owns all state of a sensor: ring, baseline, feedback vector, last time, alert. The host knows a sensor only by its
 * slot. Points enter as batches of columns and return, in the same order, as scores and states aligned with them, and a short
 * list of events.
 *
 *   hk_backend_open -> add(slot, detector, seed)... -> submit(batch) -> ready() -> reap() -> ... -> close
 *
 * Promises of every backend:
 *  - submit never blocks and reap never blocks. Batches return in the order of submission.
 *  - The same points in the same order give bit-identical scores, states and events, in whatever batches they come.
 *  - A bad value affects only its own sensor. A failing device is a status, never an exit.
 *  - Memory can be estimated before it is allocated (need); what exceeds the limit is refused (add).
 *
 * Errors: 0 means done; a negative errno is forwarded; the caller handles a positive enum hk_refusal.
 *
 * Thread: one thread (the shard's) calls all functions unless stated otherwise; a thread of the backend calls `ready`. */
#ifndef HK_BACKEND_H
#define HK_BACKEND_H

#include "cpu/detector.h"
#include "cpu/rules/event.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of points of one sensor in a batch, so that a sensor with many points does not delay the others. The stage keeps
 * the rest for later batches; a batch that exceeds it is refused. */
#define HK_BATCH_PER_SENSOR 64

enum hk_refusal {
  HK_AGAIN = 1, /* submit: all places for batches in flight are taken, or one must be enlarged; reap first */
  HK_FULL = 2,  /* add: the memory limit is reached, or the slot is out of range */
};

enum hk_batch_kind {
  HK_BATCH_POINTS,
  /* No points: finds sensors that are silent at `arrival`, and reports them by events, as many as there is room for; the next
   * sweep continues where this one stopped. While in flight it counts as naming every slot. */
  HK_BATCH_SWEEP,
  /* No points: copies n sensors, which `slot` names, each once, to `bulk`, in their state after all earlier batches. The work
   * column then holds a struct hk_image for each; state_of converts that to the portable state. Unbound slots have no image.
   * Events, scores and states are not written. A batch whose images do not fit is refused (-EINVAL). */
  HK_BATCH_EXPORT,
};

/* Bytes of the work column for each point. */
#define HK_BATCH_WORK 24

/* One sensor of an export: bytes at .. at + size - 1 of `bulk`, in the format of the backend. */
struct hk_image {
  uint64_t at;
  uint32_t size;     /* 0: the slot was not bound when the batch was submitted */
  uint32_t detector; /* its detector's number */
  void *record;      /* private to the backend */
};

/* A batch: columns of n points and, once reaped, their results. Created by hk_batch_new. Owner: the backend between submit and
 * reap, otherwise the caller. */
struct hk_batch {
  uint32_t kind;          /* enum hk_batch_kind */
  uint32_t n;             /* points */
  uint32_t capacity;      /* of every column */
  uint32_t n_events;      /* out */
  int64_t arrival;        /* ns on the caller's arrival clock (monotonic): when the points arrived */
  int64_t idle;           /* sweep: ns of silence after which a sensor is reported HK_EVENT_IDLE; 0 = never */
  uint32_t *slot;         /* in */
  int64_t *time;          /* in: ns since the epoch */
  double *value;          /* in */
  float *score;           /* out: z in [0,1]; NaN: no score was due */
  uint8_t *state;         /* out: enum hk_state */
  struct hk_event *event; /* out: n_events <= capacity, in order of index */
  void *work;         /* HK_BATCH_WORK * capacity bytes, 8-byte aligned: private to the backend; export: n struct hk_image, out */
  void *bulk;         /* export: memory from the backend's `alloc`, owned by the caller */
  uint64_t bulk_size; /* bytes */
  /* out: 0, or a negative errno: nothing was scored, and no other field is valid. -EINVAL, -ENOMEM: the batch was refused because
   * it is malformed (see submit) or does not fit into memory; the backend still works. Others: the device failed, and all later
   * batches fail. */
  int status;
  void *owner;                /* for the caller; the backend does not read it */
  struct hk_batch *next;      /* for the current owner of the batch */
  struct hk_backend *backend; /* the backend that allocated it */
};

struct hk_backend_config {
  const struct hk_detector *detectors; /* copied; the index is the detector's number. window = 0: the number is undefined */
  uint32_t n_detectors;                /* 1..65535 */
  uint32_t max_detectors;              /* `define` accepts numbers below it; 0 = n_detectors */
  uint32_t max_sensors;                /* slots are 0..max_sensors-1 */
  uint32_t threads;                    /* cpu: worker threads; 0 = one for each core this process may use */
  uint64_t memory;                     /* maximum bytes of all sensors; 0 = the backend sets no limit */
  uint32_t in_flight;                  /* batches between submit and reap; 0 = 4 */
  uint32_t device;                     /* cuda: number of the GPU, from 0; open backends share nothing */
  uint32_t blocks;                     /* cuda: maximum of concurrent blocks of a kernel; 0 = as many as the GPU holds */
  void (*ready)(void *arg);            /* a batch has finished; may be NULL. Called from a thread of the backend; must be brief */
  void *ready_arg;
};

/* The new meaning of a detector's number. */
struct hk_definition {
  uint32_t number;
  const struct hk_detector *detector; /* copied; NULL: undefines the number */
};

struct hk_backend; /* each backend embeds this struct first */

struct hk_backend_ops {
  const char *name; /* "cpu", "cuda", "reference" */
  /* Bytes of memory for `sensors` sensors of detector number `detector`. */
  uint64_t (*need)(const struct hk_backend *b, uint32_t detector, uint64_t sensors);
  /* Binds a free slot to a detector and a seed (hk_seed of the name), without points. Returns 0, HK_FULL or a negative errno. */
  int (*add)(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed);
  /* Redefines n detector numbers, all or none of them, and frees the memory of their former sensors. No slot may be bound to
   * them, and no batch in flight. Results of sensors with other detectors do not change by a bit. Returns 0, -EBUSY (a slot is
   * bound, or a batch in flight), -EINVAL (no such number), -ENOTSUP (this backend does not compute it), -ENOMEM or another
   * negative errno, with a message. */
  int (*define)(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size);
  /* Sets the maximum bytes of all sensors, as in struct hk_backend_config; sensors keep the memory they have. */
  void (*limit)(struct hk_backend *b, uint64_t memory);
  /* Frees a slot. No batch in flight may name it. */
  void (*remove)(struct hk_backend *b, uint32_t slot);
  /* Submits a batch. Returns 0; or HK_AGAIN or -EINVAL, and the batch remains the caller's. A batch that names an unbound slot or
   * has more than HK_BATCH_PER_SENSOR points of a sensor is malformed: it is refused here or, by a backend that checks points on
   * its device, accepted and returned with status -EINVAL. Sensors and other batches are unaffected. */
  int (*submit)(struct hk_backend *b, struct hk_batch *batch);
  /* Returns the next finished batch, or NULL if the oldest one in flight is not finished. */
  struct hk_batch *(*reap)(struct hk_backend *b);
  /* Waits until the oldest batch in flight is finished; returns at once if none is. For programs without an event loop. */
  void (*wait)(struct hk_backend *b);
  /* Writes or reads the state of a sensor, in the portable format of cpu/rules/state.h. No batch in flight may name the slot.
   * export_: returns the bytes written; or the bytes needed if that exceeds size, and nothing was written; or a negative errno.
   * import_: returns 0 or a negative errno; the slot is already bound, and the detector must have the same window and gap. */
  int64_t (*export_)(struct hk_backend *b, uint32_t slot, void *state, size_t size);
  int (*import_)(struct hk_backend *b, uint32_t slot, const void *state, size_t size);
  /* For exports by batches. image_most: maximum bytes of a sensor's image in `bulk`. state_of: converts an image to the state of
   * cpu/rules/state.h, for a sensor of detector d; *size: in, of the image; out, of the state. The result lies in the image,
   * which may be modified, or in `room`, hk_state_most(d) bytes. Both use nothing but their arguments: any thread. */
  uint64_t (*image_most)(const struct hk_detector *d);
  const void *(*state_of)(void *image, const struct hk_detector *d, void *room, size_t *size);
  /* Memory for batch columns (pinned, for a device); NULL: out of memory. `free` may wait for batches in flight. */
  void *(*alloc)(struct hk_backend *b, size_t bytes);
  void (*free)(struct hk_backend *b, void *memory);
  /* Waits for batches in flight, then frees everything. Batches that were not reaped return to their owner: free them before.
   * Neither close nor free waits forever: a device that does not answer within seconds is abandoned with its memory. So a caller
   * that must not hang on such a device frees its batches and closes, without `wait`. */
  void (*close)(struct hk_backend *b);
};

struct hk_backend {
  const struct hk_backend_ops *ops;
};

/* Opens a backend. Returns 0 and *out, or a negative errno with a message. */
int hk_cpu_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);
int hk_reference_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);

/* Checks the arguments of `define`, for any backend. n_detectors: current number of detectors of a table with room for `room`;
 * *n_after: the new number. Returns 0, or -EINVAL with a message. */
int hk_definitions_check(const struct hk_definition *definitions, uint32_t n, uint32_t n_detectors, uint32_t room,
                         uint32_t *n_after, char *error, size_t size);

/* Allocates a batch, with its columns in one piece of the backend's memory; NULL: out of memory. Free it before closing the
 * backend. */
struct hk_batch *hk_batch_new(struct hk_backend *b, uint32_t capacity);
void hk_batch_free(struct hk_batch *batch); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
