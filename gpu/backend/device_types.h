/* What host side and kernels of the CUDA backend share: the layout of device memory and the launchers.
 *
 * Launchers put work on a stream, wait for nothing and return the launch error: 0 or a cudaError_t. The kernels' arithmetic is
 * that of cpu/MATHEMATICS.md; every sum is taken in an order that depends on the detector alone, so that a score does not depend
 * on how points were cut into batches.
 *
 * A batch on the device:
 *
 *   hk_cuda_apply     sensors that came and went since the last batch
 *   hk_cuda_group     points told apart by sensor: a task a sensor, tasks listed by detector; not for few points, which the host
 *                     tells apart (small_batch.h)
 *   a launch for each kernel that has tasks (kernel_choice.h), next to each other; the block that ends last gives the answer */
#ifndef HK_DEVICE_TYPES_H
#define HK_DEVICE_TYPES_H

#include "cpu/backend.h"
#include "cpu/graph/graph.h"
#include "cpu/limit/limit.h"
#include "cpu/novelty/novelty.h"
#include "cpu/shift/shift.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t points at one; said here so that this header needs no CUDA */

#define HK_CUDA_NONE UINT32_MAX
#define HK_CUDA_SECTOR 32u /* bytes that memory is read by, also where it is told what will be read */

/* A sensor on the device: this header, then the feedback vector (hk_cuda_padded(w) floats), then the ring (span floats), then
 * what graphs, shifts, novelty and limits have of their own; the feedback vector of these is nothing.
 * Made ready by hk_cuda_apply when the sensor is added: all zero but the seed and the slot. */
struct hk_cuda_record {
  struct hk_window window;
  struct hk_alert alert;
  uint32_t slot;
  uint32_t anew; /* 1: no score was made since the window began; the feedback vector is a0, whatever stands there */
};

/* Vectors of w numbers are kept with zeros up to a multiple of 4. */
HK_INLINE uint32_t hk_cuda_padded(uint32_t window)
{
  return (window + 3) & ~3u;
}

/* Bytes of a record up to the end of the ring, where the graph, the shift, the novelty or the limit begins. */
HK_INLINE uint64_t hk_cuda_own_at(const struct hk_detector *d)
{
  const uint64_t floats = hk_cuda_padded(d->window) + hk_detector_span(d);
  return (sizeof(struct hk_cuda_record) + floats * sizeof(float) + 15) & ~(uint64_t)15;
}

/* Bytes of a graph, shift, novelty or limit, a multiple of 16. */
HK_INLINE uint64_t hk_cuda_own_bytes(const struct hk_detector *d)
{
  const uint64_t bytes = d->algorithm == HK_ALGORITHM_GRAPH     ? hk_graph_bytes(d, sizeof(float))
                         : d->algorithm == HK_ALGORITHM_SHIFT   ? hk_shift_bytes(d, sizeof(float))
                         : d->algorithm == HK_ALGORITHM_NOVELTY ? hk_novelty_bytes(d, sizeof(float))
                         : d->algorithm == HK_ALGORITHM_LIMIT   ? hk_limit_bytes(sizeof(float))
                                                                : 0;
  return (bytes + 15) & ~(uint64_t)15;
}

/* Bytes of one sensor's record. */
HK_INLINE uint64_t hk_cuda_record_bytes(const struct hk_detector *d)
{
  return hk_cuda_own_at(d) + hk_cuda_own_bytes(d);
}

HK_INLINE float *hk_cuda_feedback(struct hk_cuda_record *record)
{
  return (float *)(record + 1);
}

HK_INLINE float *hk_cuda_ring(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_cuda_feedback(record) + hk_cuda_padded(d->window);
}

HK_INLINE struct hk_graph_view hk_cuda_graph(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_graph_view_at((char *)record + hk_cuda_own_at(d), d);
}

HK_INLINE struct hk_shift_view hk_cuda_shift(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_shift_view((char *)record + hk_cuda_own_at(d), d);
}

HK_INLINE struct hk_novelty_view hk_cuda_novelty(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_novelty_view((char *)record + hk_cuda_own_at(d), d);
}

HK_INLINE struct hk_limit_view hk_cuda_limit(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_limit_view((char *)record + hk_cuda_own_at(d), d);
}

/* Which sensor a slot is. Device memory; owner: struct hk_records. */
struct hk_cuda_directory {
  struct hk_cuda_record **record; /* by slot; NULL = not bound */
  uint16_t *detector;             /* by slot */
  uint32_t *last;                 /* by slot: a point of the batch being grouped; HK_CUDA_NONE between batches */
  uint32_t *list;                 /* by detector: where its tasks begin in struct hk_cuda_work */
  uint32_t max;                   /* slots */
  uint32_t n_detectors;
};

/* Bytes a slot of it. */
#define HK_CUDA_SLOT_BYTES (sizeof(struct hk_cuda_record *) + sizeof(uint16_t) + sizeof(uint32_t))

/* What a slot is to be from now on, or (slot = HK_CUDA_NONE) where a detector's list of tasks begins: at `seed`. */
struct hk_cuda_command {
  struct hk_cuda_record *record; /* on the device; NULL: the slot is free */
  uint64_t seed;
  uint32_t slot;
  uint32_t image; /* where in the memory that has the commands the whole record stands; 0: the sensor is a new one */
  uint32_t bytes; /* of the image */
  uint16_t detector;
  uint16_t unused;
};

/* The points of one sensor in a batch. */
struct hk_cuda_task {
  struct hk_cuda_record *record; /* on the device */
  uint32_t first, count;         /* its points, in order: columns.order[first .. first + count - 1] */
};

/* Columns of a batch. Score and state lie in device memory or, for small batches, in the host's pinned memory; the events, which
 * are few, always in the host's. */
struct hk_cuda_columns {
  const int64_t *time;
  const double *value;
  const uint32_t *order; /* indices of points, grouped by sensor */
  float *score;
  uint8_t *state;
  struct hk_event *event;  /* in no order */
  uint32_t *n_events;      /* on the device; may exceed capacity, then the rest was not written */
  uint32_t capacity;       /* of event */
  int64_t arrival;         /* ns */
  const uint32_t *refused; /* on the device; not 0: the batch is bad, score nothing of it */
};

/* Why a batch was refused. */
enum hk_cuda_refusal {
  HK_CUDA_UNBOUND = 1, /* a slot is not bound */
  HK_CUDA_TOO_MANY = 2 /* over HK_BATCH_PER_SENSOR points of a sensor */
};

/* Counters of the batch under way, on the device; zero between batches. */
struct hk_cuda_counters {
  uint32_t refused; /* enum hk_cuda_refusal */
  uint32_t events;
  uint32_t ordered; /* points that have a place in order */
  uint32_t blocks;  /* that have ended, of all launches */
};

/* Work space of the batch under way, on the device. Owner: the backend. */
struct hk_cuda_work {
  struct hk_cuda_counters *counters;
  uint32_t *n_tasks;          /* by detector; zero between batches */
  uint32_t *taken;            /* by family: portions that warps have taken; zero between batches */
  uint32_t *next;             /* by point: one more of its sensor's */
  uint32_t *order;            /* see struct hk_cuda_columns */
  struct hk_cuda_task *tasks; /* detector d's begin at directory.list[d] */
};

/* What the host hears of a batch, once all else of it has been written: a word, which arrives whole. From the top: 2 bits refusal
 * (enum hk_cuda_refusal), 30 bits events, 32 bits number of the batch. */
#define HK_CUDA_EVENTS_MOST 0x3fffffffu
HK_INLINE uint64_t hk_cuda_answer(uint64_t number, uint32_t events, uint32_t refused)
{
  const uint32_t most = events < HK_CUDA_EVENTS_MOST ? events : HK_CUDA_EVENTS_MOST;
  return (uint64_t)refused << 62 | (uint64_t)most << 32 | (uint32_t)number;
}
HK_INLINE uint32_t hk_cuda_answered(uint64_t answer)
{
  return (uint32_t)answer;
}
HK_INLINE uint32_t hk_cuda_events(uint64_t answer)
{
  return (uint32_t)(answer >> 32) & HK_CUDA_EVENTS_MOST;
}
HK_INLINE uint32_t hk_cuda_refused(uint64_t answer)
{
  return (uint32_t)(answer >> 62);
}

/* How a batch ends: what the last block does. */
struct hk_cuda_end {
  uint64_t *answer; /* pinned memory of the host */
  uint64_t number;  /* of the batch */
  uint32_t blocks;  /* of all its launches */
  uint32_t n_detectors, n_families;
};

#define HK_CUDA_FEW 104 /* as many as a launch has room for: see struct hk_cuda_launch */

/* A batch of few points, told apart by sensor on the host: it goes up with the launch. */
struct hk_cuda_few {
  uint32_t n; /* tasks; 0: the device tells the points apart */
  struct hk_cuda_task task[HK_CUDA_FEW];
  int64_t time[HK_CUDA_FEW]; /* of the points, those of a task in a row */
  double value[HK_CUDA_FEW];
  uint8_t order[HK_CUDA_FEW]; /* their indices in the batch */
  uint16_t detector[HK_CUDA_FEW];
};

/* What a launch of a kernel is given: the tasks of the detectors that it scores. */
struct hk_cuda_launch {
  const struct hk_detector *detectors; /* all of them, on the device */
  const uint16_t *members;             /* those of this kernel, on the device */
  uint32_t n_members;
  uint32_t family;      /* number of the kernel's family */
  uint32_t size;        /* of the family */
  uint32_t warps;       /* among which the tasks are shared out: fewer than there are, where others run at the same time */
  void *scratch;        /* on the device: what its blocks work in */
  const uint32_t *list; /* of the directory */
  struct hk_cuda_work work;
  struct hk_cuda_columns columns;
  struct hk_cuda_end end;
  struct hk_cuda_few few;
};

/* Loads the kernels below, so that the first batch does not wait for it. */
int hk_cuda_road_load(void);

/* Carries out n commands, the first being number `first` at `memory`. That is pinned, has the images too, and must stay until the
 * stream has passed this. Each slot and each list is named once at most. */
int hk_cuda_apply(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const void *memory, uint32_t first,
                  uint32_t n);

/* Points as they come. */
struct hk_cuda_points {
  uint32_t *slot;
  int64_t *time;
  double *value;
};

/* Tells n >= 1 points apart by sensor: fills in work's n_tasks, tasks and order; marks a bad batch as refused. points: on the
 * device. from: NULL, or pinned columns of the host that are brought to `points` first, by the same kernels: for small batches.
 */
int hk_cuda_group(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const struct hk_cuda_work *work,
                  const struct hk_cuda_points *from, const struct hk_cuda_points *points, uint32_t n);

/* Ends a batch that scores nothing: end->blocks does not count. */
int hk_cuda_finish(struct CUstream_st *stream, const struct hk_cuda_work *work, const struct hk_cuda_end *end);

/* Looks for sensors gone silent or back among n records of one detector. Notices go to columns->event; a sensor for which
 * there is no place stays as it was. idle: as in struct hk_batch. */
int hk_cuda_sweep(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_directory *directory,
                  void *records, uint32_t n, int64_t idle, const struct hk_cuda_columns *columns);

/* Copies records as they are to where their images stand, from `to` on; those of size 0 are left out. images: pinned memory of
 * the host; to: on the device, or pinned too. */
int hk_cuda_fetch(struct CUstream_st *stream, const struct hk_image *images, uint32_t n, void *to);

#ifdef __cplusplus
}
#endif
#endif
