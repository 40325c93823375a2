/* Backend: the interface that every compute backend fills (cpu, reference, cuda).
 *
 * All state that belongs to a sensor lives in the backend: ring, baseline, feedback vector, last time, alert. The host knows
 * a sensor only by its slot. Points go in as batches of columns and come back, in the same order, as scores and states
 * aligned with them, and a short list of events.
 *
 *   hk_backend_open -> add(slot, detector, seed)... -> submit(batch) -> ready() -> reap() -> ... -> close
 *
 * Promises of every backend:
 *  - submit never blocks and reap never blocks. Batches come back in the order in which they were submitted.
 *  - The same points in the same order give bit-identical scores, states and events however they are cut into batches.
 *  - A bad value harms one sensor, never its neighbours. A failing device is a status, never an exit.
 *  - Memory is told before it is taken (need) and refused with a figure when it does not fit (add).
 *
 * Errors: 0 is done; a negative errno is passed on; a positive enum hk_refusal is for the caller to handle.
 *
 * Thread: one thread (the shard's) calls everything but what says otherwise; `ready` is called from a thread of the backend. */
#ifndef HK_BACKEND_H
#define HK_BACKEND_H

#include "cpu/detector.h"
#include "cpu/rules/alert.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A point's share of one launch: at most so many points of one sensor may stand in one batch, so that a sensor that floods
 * delays nobody else. The stage keeps later ones back; a batch that breaks this is refused. */
#define HK_BATCH_PER_SENSOR 64

enum hk_refusal {
  HK_AGAIN = 1, /* submit: all places in flight are taken, or one must be made larger; reap first */
  HK_FULL = 2,  /* add: no memory left under the limit, or slot out of range */
};

enum hk_batch_kind {
  HK_BATCH_POINTS,
  /* No points: looks for silent sensors at `arrival`; events come back as notices, as many as there is room for (the next
   * sweep goes on where this one stopped). While it is in flight it names every slot. */
  HK_BATCH_SWEEP,
  /* No points: copies n sensors, named by `slot`, each once, as they are behind all batches before this one, to `bulk`. What the
   * work column then says of each is a struct hk_image; state_of makes its portable state. Slots that are not bound have none.
   * Events, scores and states are not touched. A batch whose images do not fit is refused (-EINVAL). */
  HK_BATCH_EXPORT,
};

/* Bytes a point of the work column. */
#define HK_BATCH_WORK 24

/* One sensor of an export: bytes at .. at + size - 1 of `bulk`, in the backend's own form. */
struct hk_image {
  uint64_t at;
  uint32_t size;     /* 0: the slot was not bound when the batch was submitted */
  uint32_t detector; /* number */
  void *record;      /* the backend's own */
};

/* A batch: columns of n points and, once reaped, their results. Made by hk_batch_new; the caller owns it except between
 * submit and reap, when the backend does. */
struct hk_batch {
  uint32_t kind;          /* enum hk_batch_kind */
  uint32_t n;             /* points */
  uint32_t capacity;      /* of every column */
  uint32_t n_events;      /* out */
  int64_t arrival;        /* ns on the caller's arrival clock (monotonic): when the points came in */
  int64_t idle;           /* sweep: ns of silence after which a sensor is reported HK_EVENT_IDLE; 0 = never */
  uint32_t *slot;         /* in */
  int64_t *time;          /* in: ns since the epoch */
  double *value;          /* in */
  float *score;           /* out: z in [0,1], NaN where none was due */
  uint8_t *state;         /* out: enum hk_state */
  struct hk_event *event; /* out: n_events <= capacity, in order of index */
  void *work;             /* HK_BATCH_WORK * capacity bytes, 8-byte aligned: the backend's own; export: n struct hk_image, out */
  void *bulk;             /* export: memory of the backend's `alloc`, the caller's */
  uint64_t bulk_size;     /* bytes */
  /* out: 0, or a negative errno: nothing was scored, and nothing else here is valid. -EINVAL, -ENOMEM: the batch was refused (it
   * is bad, see submit; there is no room for it), and the backend is well. Any other: the device failed, and goes on failing. */
  int status;
  void *owner;                /* the caller's; the backend does not look at it */
  struct hk_batch *next;      /* for whoever owns the batch at the time */
  struct hk_backend *backend; /* whose memory it is */
};

struct hk_backend_config {
  const struct hk_detector *detectors; /* copied; their places are their numbers. One whose window is 0 is none */
  uint32_t n_detectors;                /* 1..65535 */
  uint32_t max_detectors;              /* numbers that `define` may give a meaning to are below; 0 = n_detectors */
  uint32_t max_sensors;                /* slots are 0..max_sensors-1 */
  uint32_t threads;                    /* cpu: worker threads; 0 = one for each core this process may use */
  uint64_t memory;                     /* bytes that sensors may take; 0 = no limit of our own */
  uint32_t in_flight;                  /* batches between submit and reap; 0 = 4 */
  uint32_t device;                     /* cuda: number of the GPU, from 0; backends that are open at once share nothing */
  uint32_t blocks;                     /* cuda: most of a kernel's blocks that run at once; 0 = as many as the GPU holds */
  void (*ready)(void *arg);            /* a batch has finished; may be NULL. Called from a thread of the backend, must be brief */
  void *ready_arg;
};

/* What a detector's number is to mean. */
struct hk_definition {
  uint32_t number;
  const struct hk_detector *detector; /* copied; NULL: nothing any more */
};

struct hk_backend; /* each backend embeds this struct first */

struct hk_backend_ops {
  const char *name; /* "cpu", "cuda", "reference" */
  /* Bytes that `sensors` sensors of detector number `detector` take. */
  uint64_t (*need)(const struct hk_backend *b, uint32_t detector, uint64_t sensors);
  /* Binds a free slot to a detector and a seed (hk_seed of the name), with no points seen. 0, HK_FULL or negative errno. */
  int (*add)(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed);
  /* Gives n numbers of detectors new meanings, all or none of them, and gives back the memory of sensors that they had. No slot
   * may be bound to them, and no batch in flight. What sensors of other detectors give does not change by a bit. 0, -EBUSY (a
   * slot is bound, or something in flight), -EINVAL (no such number), -ENOTSUP (not computed by this backend), -ENOMEM or another
   * negative errno, with a message. */
  int (*define)(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size);
  /* Sets the bytes that sensors may take, as in struct hk_backend_config; what they have is theirs. */
  void (*limit)(struct hk_backend *b, uint64_t memory);
  /* Frees a slot. No batch in flight may name it. */
  void (*remove)(struct hk_backend *b, uint32_t slot);
  /* Hands a batch over. 0, HK_AGAIN, or -EINVAL (nothing was taken, the batch is still the caller's). A batch in which a slot is
   * not bound or a sensor has over HK_BATCH_PER_SENSOR points is bad: it is refused here, or, by a backend that looks at points
   * on its device, taken and given back with the status -EINVAL. Sensors and other batches are none the worse for it. */
  int (*submit)(struct hk_backend *b, struct hk_batch *batch);
  /* The next finished batch, or NULL when the oldest in flight is not done. */
  struct hk_batch *(*reap)(struct hk_backend *b);
  /* Waits until the oldest batch in flight is done; returns at once when none is in flight. For programs with no loop. */
  void (*wait)(struct hk_backend *b);
  /* State of a sensor, in the portable format of cpu/rules/state.h. No batch in flight may name the slot. export_: returns bytes
   * written, or bytes needed when that is more than size (nothing written then), or a negative errno. import_: 0 or
   * negative errno; the slot is bound already and the detector must be of the same window and gap. */
  int64_t (*export_)(struct hk_backend *b, uint32_t slot, void *state, size_t size);
  int (*import_)(struct hk_backend *b, uint32_t slot, const void *state, size_t size);
  /* Of exports by batches. image_most: bytes that a sensor's image takes of `bulk` at most. state_of: the state of
   * cpu/rules/state.h that an image is, for a sensor of detector d; *size: in, of the image, out, of the state. It stands in the
   * image, which may be changed for that, or in `room`, hk_state_most(d) bytes. Both know nothing but what they are given: any
   * thread. */
  uint64_t (*image_most)(const struct hk_detector *d);
  const void *(*state_of)(void *image, const struct hk_detector *d, void *room, size_t *size);
  /* Memory for batch columns (pinned, for a device). NULL when there is none. `free` may wait for what is in flight. */
  void *(*alloc)(struct hk_backend *b, size_t bytes);
  void (*free)(struct hk_backend *b, void *memory);
  /* Waits for what is in flight (unreaped batches go back to their owner: free them before), then frees everything. Neither
   * close nor free waits for ever: a device that does not answer within seconds is left to itself, with its memory. So a
   * caller that must not hang on such a device frees its batches and closes, and does not `wait`. */
  void (*close)(struct hk_backend *b);
};

struct hk_backend {
  const struct hk_backend_ops *ops;
};

/* Each opens a backend. 0 and *out, or a negative errno with a message. */
int hk_cpu_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);
int hk_reference_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);

/* What `define` asks of any backend: 0, or -EINVAL with a message. n_detectors: of a table with room for `room` of them, whose
 * new number is returned in *n_after. */
int hk_definitions_check(const struct hk_definition *definitions, uint32_t n, uint32_t n_detectors, uint32_t room,
                         uint32_t *n_after, char *error, size_t size);

/* A batch with its columns in one piece of the backend's memory; NULL when there is none. Free it before the backend. */
struct hk_batch *hk_batch_new(struct hk_backend *b, uint32_t capacity);
void hk_batch_free(struct hk_batch *batch); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
