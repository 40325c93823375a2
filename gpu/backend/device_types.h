/* The types shared by the host side and the kernels of the CUDA backend: the layout of device memory.
 *
 * The kernels' arithmetic is that of
 * cpu/MATHEMATICS.md; the order of each sum depends only on the detector, so a score does not depend on the division of points
 * into batches.
 *
 * A batch on the device (batch_kernels.h):
 *
 *   hk_cuda_apply     sensors that came and went since the last batch
 *   hk_cuda_group     points told apart by sensor: a task a sensor, tasks listed by detector; not for few points, which the host
 *                     tells apart (small_batch.h)
 *   a launch for each kernel that has tasks (kernel_choice.h), next to each other; before that of novelty six for each round of
 *                     runs, and one (novelty/runs.cu), where sensors may have several points; the last block answers */
#ifndef HK_DEVICE_TYPES_H
#define HK_DEVICE_TYPES_H

#include "cpu/backend.h"
#include "cpu/graph/graph.h"
#include "cpu/limit/limit.h"
#include "cpu/novelty/novelty.h"
#include "cpu/rules/alert.h"
#include "cpu/shift/shift.h"
#include "gpu/backend/lag_groups.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t points at one; said here so that this header needs no CUDA */

#define HK_CUDA_NONE UINT32_MAX
#define HK_CUDA_SECTOR 32u /* bytes that memory is read by, also where it is told what will be read */

/* A sensor on the device: this header, then the feedback vector (hk_cuda_padded(w) floats), then the ring (span floats), then the
 * data of a graph, shift, novelty (and its groups of lags) or limit; for these the feedback vector is unused. Initialised by
 * hk_cuda_apply when the sensor is added: all zero except the seed and the slot. */
struct hk_cuda_record {
  struct hk_window window;
  struct hk_alert alert;
  uint32_t slot;
  uint32_t anew; /* 1: no score since the window began; the feedback vector is a0, whatever is stored */
};

/* Vectors of w numbers are padded with zeros to a multiple of 4. */
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
  const uint64_t bytes = d->algorithm == HK_ALGORITHM_GRAPH   ? hk_graph_bytes(d, sizeof(float))
                         : d->algorithm == HK_ALGORITHM_SHIFT ? hk_shift_bytes(d, sizeof(float))
                         : d->algorithm == HK_ALGORITHM_NOVELTY
                             ? hk_novelty_bytes(d, sizeof(float)) + hk_lag_groups(d) * sizeof(struct hk_lag_group)
                         : d->algorithm == HK_ALGORITHM_LIMIT ? hk_limit_bytes(sizeof(float))
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

/* The groups of lags of a novelty, hk_lag_groups(d). */
HK_INLINE struct hk_lag_group *hk_cuda_lag_groups(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return (struct hk_lag_group *)((char *)record + hk_cuda_own_at(d) + hk_novelty_bytes(d, sizeof(float)));
}

HK_INLINE struct hk_limit_view hk_cuda_limit(struct hk_cuda_record *record, const struct hk_detector *d)
{
  return hk_limit_view((char *)record + hk_cuda_own_at(d), d);
}

/* Maps slots to sensors. Device memory; owner: struct hk_records. */
struct hk_cuda_directory {
  struct hk_cuda_record **record; /* by slot; NULL = not bound */
  uint16_t *detector;             /* by slot */
  uint32_t *last;                 /* by slot: a point of the batch being grouped; HK_CUDA_NONE between batches */
  uint32_t *list;                 /* by detector: where its tasks begin in struct hk_cuda_work */
  uint32_t max;                   /* slots */
  uint32_t n_detectors;
};

/* Bytes of the directory for each slot. */
#define HK_CUDA_SLOT_BYTES (sizeof(struct hk_cuda_record *) + sizeof(uint16_t) + sizeof(uint32_t))

/* The new binding of a slot; or, with slot = HK_CUDA_NONE, where a detector's list of tasks begins: at `seed`. */
struct hk_cuda_command {
  struct hk_cuda_record *record; /* on the device; NULL: the slot is free */
  uint64_t seed;
  uint32_t slot;
  uint32_t image; /* offset of the whole record in the memory of the commands; 0: a new sensor */
  uint32_t bytes; /* bytes of the image */
  uint16_t detector;
  uint16_t unused;
};

/* The points of one sensor in a batch. */
struct hk_cuda_task {
  struct hk_cuda_record *record; /* on the device */
  uint32_t first, count;         /* its points, in order: columns.order[first .. first + count - 1] */
};

/* Columns of a batch. Score and state are in device memory or, for small batches, in pinned memory of the host; the events, which
 * are few, always in that of the host. */
struct hk_cuda_columns {
  const int64_t *time;
  const double *value;
  const uint32_t *order; /* indices of points, grouped by sensor */
  float *score;
  uint8_t *state;
  struct hk_event *event;  /* in no order */
  uint32_t *n_events;      /* on the device; may exceed capacity, then the rest was not written */
  uint32_t capacity;       /* capacity of `event` */
  int64_t arrival;         /* ns */
  const uint32_t *refused; /* on the device; not 0: the batch is malformed, nothing of it is scored */
};

/* Why a batch was refused. */
enum hk_cuda_refusal {
  HK_CUDA_UNBOUND = 1, /* a slot is not bound */
  HK_CUDA_TOO_MANY = 2 /* more than HK_BATCH_PER_SENSOR points of a sensor */
};

/* Counters of the current batch, on the device; zero between batches. */
struct hk_cuda_counters {
  uint32_t refused; /* enum hk_cuda_refusal */
  uint32_t events;
  uint32_t ordered; /* points that have a place in order */
  uint32_t blocks;  /* finished blocks, of all launches */
};

/* Work space of the current batch, on the device. Owner: the backend. */
struct hk_cuda_work {
  struct hk_cuda_counters *counters;
  uint32_t *n_tasks;          /* by detector; zero between batches */
  uint32_t *taken;            /* by family: portions that warps have taken; zero between batches */
  uint32_t *next;             /* by point: another point of the same sensor */
  uint32_t *order;            /* see struct hk_cuda_columns */
  struct hk_cuda_task *tasks; /* detector d's begin at directory.list[d] */
};

/* The answer of a batch to the host, written after all else: one word, written atomically. From the top: 2 bits refusal (enum
 * hk_cuda_refusal), 30 bits events, 32 bits number of the batch. */
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

/* The end of a batch, which the last block writes. */
struct hk_cuda_end {
  uint64_t *answer; /* pinned memory of the host */
  uint64_t number;  /* number of the batch */
  uint32_t blocks;  /* blocks of all its launches */
  uint32_t n_detectors, n_families;
};

#define HK_CUDA_SMALL_BATCH 104 /* as many as a launch has room for: see struct hk_cuda_launch */

/* A batch of few points, grouped by sensor on the host and passed as an argument of the launch. */
struct hk_cuda_small_batch {
  uint32_t n; /* number of tasks; 0: the device groups the points */
  struct hk_cuda_task task[HK_CUDA_SMALL_BATCH];
  int64_t time[HK_CUDA_SMALL_BATCH]; /* of the points; those of a task are contiguous */
  double value[HK_CUDA_SMALL_BATCH];
  uint8_t order[HK_CUDA_SMALL_BATCH]; /* their indices in the batch */
  uint16_t detector[HK_CUDA_SMALL_BATCH];
};

/* The arguments of a kernel: the tasks of the detectors that it scores. */
struct hk_cuda_launch {
  const struct hk_detector *detectors; /* all of them, on the device */
  const uint16_t *members;             /* those of this kernel, on the device */
  uint32_t n_members;
  uint32_t family;      /* number of the kernel's family */
  uint32_t size;        /* size of the family */
  uint32_t warps;       /* warps that share the tasks: not all of them if other kernels run concurrently */
  uint32_t points;      /* of the batch */
  uint32_t tasks;       /* maximum number of tasks */
  void *scratch;        /* work memory of the blocks, on the device */
  const uint32_t *list; /* `list` of the directory */
  struct hk_cuda_work work;
  struct hk_cuda_columns columns;
  struct hk_cuda_end end;
  struct hk_cuda_small_batch small;
};

#ifdef __cplusplus
}
#endif
#endif
