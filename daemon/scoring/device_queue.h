/* Device queue: the batches of a shard's device, and where each is.
 *
 *   free -> (filled by the turn) -> in flight -> back: with the loops, or held by the commit gate -> returned -> free
 *              kept, where the device had no place for it
 *
 * Batches that export go the same way, from a list of their own.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_DEVICE_QUEUE_H
#define HK_DEVICE_QUEUE_H

#include "daemon/base/histogram.h"
#include "daemon/scoring/device.h"

/* The batch that finds a device's silent sensors. */
struct hk_sweeps {
  struct hk_delivery *delivery; /* NULL while in flight or being published */
  bool due;
  bool put_off; /* one found silent sensors that a reload's review kept: it is repeated before the next review */
};

/* Used here and in device_queue.c alone, except `sweeps`; all zero: no device. */
struct hk_device_queue {
  struct hk_delivery *flying[HK_IN_FLIGHT]; /* ring of the batches in flight, oldest first */
  uint32_t first;                           /* of the ring */
  atomic_uint in_flight, most;              /* most: points of the next batch */
  struct hk_delivery *free;                 /* list: batches of points that are not in use */
  struct hk_delivery *filled;               /* was refused for want of a place; goes first */
  struct hk_delivery *exports;              /* list: batches that export, and are not in use */
  bool exporting;                           /* an export is on its way, that names slots, or waits for a place */
  struct hk_delivery *_Atomic returned;     /* list of deliveries that came back; any thread puts them there */
  struct hk_sweeps sweeps;
  uint64_t made, gone;      /* batches that were filled or swept; that were handed to the loops */
  uint32_t refusals;        /* for want of memory, in a row */
  int64_t back_at;          /* ns: when a batch last came back */
  uint64_t back;            /* batches that have come back */
  int64_t watched;          /* ns: when we last looked whether the device is alive, */
  uint64_t back_then;       /* and how many had come back then */
  _Atomic int64_t stalled;  /* ns that nothing has come back, while something was in flight and we looked */
  struct hk_histogram took; /* batches, from launch to results */
};

/* The batches are those of a device now, none of which is in use. */
void hk_queue_adopt(struct hk_device_queue *queue, struct hk_device *device);
/* The device is lost: nothing is in flight or kept any more; free batches are the device's. */
void hk_queue_abandon(struct hk_device_queue *queue);

/* A batch was submitted, of points, an export or a sweep; and the oldest of them is back, or will never be. */
void hk_queue_put(struct hk_device_queue *queue, struct hk_delivery *delivery);
struct hk_delivery *hk_queue_pop(struct hk_device_queue *queue);
/* The i-th of those in flight, the oldest first. */
const struct hk_delivery *hk_queue_flying(const struct hk_device_queue *queue, uint32_t i);

/* A batch of points came back now, as its stamps say, with results: how long the device had it, and how many points the next may
 * have. before: when a batch had come back before. */
void hk_queue_pace(struct hk_device_queue *queue, const struct hk_delivery *delivery, int64_t before);
/* A batch came back at `now`. Returns when one had before that. */
int64_t hk_queue_back(struct hk_device_queue *queue, int64_t now);
/* A batch was refused for want of memory: whether too many were, in a row. */
bool hk_queue_refused(struct hk_device_queue *queue);

/* Looks whether anything has come back since the last look; the first only begins. Of the time between two looks no more than
 * `most` ns count, which it returns: where the thread did not run (the process was stopped, the machine was busy) the device's
 * own threads may not have run either. */
int64_t hk_queue_watch(struct hk_device_queue *queue, int64_t now, int64_t most);

/* Takes the first that is free into use, which hk_queue_free has shown. */
void hk_queue_use(struct hk_device_queue *queue);
/* Returns a batch of points, or of an export, to the free ones. */
void hk_queue_give(struct hk_device_queue *queue, struct hk_delivery *delivery);
void hk_queue_give_export(struct hk_device_queue *queue, struct hk_delivery *delivery);
/* An export is to be submitted, the first that is free; and it is back, or will never be. */
void hk_queue_begin_export(struct hk_device_queue *queue);

/* Thread: any. A delivery has no holder any more. */
void hk_queue_return(struct hk_device_queue *queue, struct hk_delivery *delivery);
/* List of returned batches, unordered; NULL: none. */
struct hk_delivery *hk_queue_returned(struct hk_device_queue *queue);

static inline void hk_queue_end_export(struct hk_device_queue *q)
{
  q->exporting = false;
}

/* Keeps a batch that was filled and found no place. */
static inline void hk_queue_keep(struct hk_device_queue *q, struct hk_delivery *p)
{
  q->filled = p;
}

/* The batch that is kept; NULL: none. */
static inline struct hk_delivery *hk_queue_kept(const struct hk_device_queue *q)
{
  return q->filled;
}

/* The next batch of points, or export, that is free; NULL: none. */
static inline struct hk_delivery *hk_queue_free(const struct hk_device_queue *q)
{
  return q->free;
}
static inline struct hk_delivery *hk_queue_free_export(const struct hk_device_queue *q)
{
  return q->exports;
}
static inline bool hk_queue_exporting(const struct hk_device_queue *q)
{
  return q->exporting;
}

/* Counts sweeps that were made, and batches that were handed to the loops or have nothing for them: once as many were handed over
 * as were made by a time, all points from before it were. */
static inline void hk_queue_count_sweep(struct hk_device_queue *q)
{
  q->made++;
}
static inline void hk_queue_count_gone(struct hk_device_queue *q)
{
  q->gone++;
}
static inline uint64_t hk_queue_made(const struct hk_device_queue *q)
{
  return q->made;
}
static inline uint64_t hk_queue_gone(const struct hk_device_queue *q)
{
  return q->gone;
}

/* Thread: any. ns for which nothing has come back though something is in flight. */
static inline int64_t hk_queue_stalled(const struct hk_device_queue *q)
{
  return q->stalled;
}

/* Thread: any. Batches in flight; points of the next one, at most. */
static inline uint32_t hk_queue_in_flight(const struct hk_device_queue *q)
{
  return q->in_flight;
}
static inline uint32_t hk_queue_most(const struct hk_device_queue *q)
{
  return q->most;
}

#endif
