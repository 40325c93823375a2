/* Device queue: the batches of a shard's device, and where each is.
 *
 *   free -> (filled by the turn) -> in flight -> back: with the loops, or held by the commit gate -> returned -> free
 *              kept, if the device had no place for it
 *
 * Export batches go the same way, from a list of their own.
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
  bool put_off; /* a sweep found silent sensors that a reload's review kept: it is repeated before the next review */
};

/* Used here and in device_queue.c alone, except `sweeps`; all zero: no device. */
struct hk_device_queue {
  struct hk_delivery *flying[HK_IN_FLIGHT]; /* ring of the batches in flight, oldest first */
  uint32_t first;                           /* of the ring */
  atomic_uint in_flight, most;              /* most: points of the next batch */
  struct hk_delivery *free;                 /* list: batches of points that are not in use */
  struct hk_delivery *filled;               /* refused for lack of a place; goes first */
  struct hk_delivery *exports;              /* list: export batches that are not in use */
  bool exporting;                           /* an export that names slots is in flight, or waits for a place */
  struct hk_delivery *_Atomic returned;     /* list of deliveries that came back; any thread adds to it */
  struct hk_sweeps sweeps;
  uint64_t made, gone;      /* batches that were filled or swept; batches that were handed to the loops */
  uint32_t refusals;        /* consecutive ones for lack of memory */
  int64_t back_at;          /* ns: when a batch last came back */
  uint64_t back;            /* number of batches that have come back */
  int64_t watched;          /* ns: the last check whether the device is alive, */
  uint64_t back_then;       /* and `back` at that time */
  _Atomic int64_t stalled;  /* ns of checked time for which nothing came back while something was in flight */
  struct hk_histogram took; /* batches, from launch to results */
};

/* Takes over the batches of a device, none of which is in use. */
void hk_queue_adopt(struct hk_device_queue *queue, struct hk_device *device);
/* The device is lost: nothing is in flight or kept any more; the device owns the free batches. */
void hk_queue_abandon(struct hk_device_queue *queue);

/* hk_queue_put: a batch of points, an export or a sweep was submitted. hk_queue_pop: the oldest of them is back, or never will
 * be. */
void hk_queue_put(struct hk_device_queue *queue, struct hk_delivery *delivery);
struct hk_delivery *hk_queue_pop(struct hk_device_queue *queue);
/* The i-th batch in flight, oldest first. */
const struct hk_delivery *hk_queue_flying(const struct hk_device_queue *queue, uint32_t i);

/* A batch of points came back with results, at the time in its stamps: records how long the device had it, and sets how many
 * points the next batch may have. before: when the previous batch had come back. */
void hk_queue_pace(struct hk_device_queue *queue, const struct hk_delivery *delivery, int64_t before);
/* A batch came back at `now`. Returns when the previous one had. */
int64_t hk_queue_back(struct hk_device_queue *queue, int64_t now);
/* A batch was refused for lack of memory. Returns whether too many were, consecutively. */
bool hk_queue_refused(struct hk_device_queue *queue);

/* Checks whether anything has come back since the last check; the first check only begins. Of the time between two checks at most
 * `most` ns count, which are returned: if the thread did not run (the process was stopped, the machine was busy), the device's
 * own threads may not have run either. */
int64_t hk_queue_watch(struct hk_device_queue *queue, int64_t now, int64_t most);

/* Takes the first free batch, which hk_queue_free has shown, into use. */
void hk_queue_use(struct hk_device_queue *queue);
/* Returns a batch of points, or an export, to the free ones. */
void hk_queue_give(struct hk_device_queue *queue, struct hk_delivery *delivery);
void hk_queue_give_export(struct hk_device_queue *queue, struct hk_delivery *delivery);
/* Takes the first free export into use, which is to be submitted; hk_queue_end_export: it is back, or never will be. */
void hk_queue_begin_export(struct hk_device_queue *queue);

/* Thread: any. The last holder of a delivery has released it. */
void hk_queue_return(struct hk_device_queue *queue, struct hk_delivery *delivery);
/* List of returned batches, unordered; NULL: none. */
struct hk_delivery *hk_queue_returned(struct hk_device_queue *queue);

static inline void hk_queue_end_export(struct hk_device_queue *q)
{
  q->exporting = false;
}

/* Keeps a filled batch for which the device had no place. */
static inline void hk_queue_keep(struct hk_device_queue *q, struct hk_delivery *p)
{
  q->filled = p;
}

/* The kept batch; NULL: none. */
static inline struct hk_delivery *hk_queue_kept(const struct hk_device_queue *q)
{
  return q->filled;
}

/* The next free batch of points, or export; NULL: none. */
static inline struct hk_delivery *hk_queue_free(const struct hk_device_queue *q)
{
  return q->free;
}
static inline struct hk_delivery *hk_queue_free_export(const struct hk_device_queue *q)
{
  return q->exports;
}
/* Whether no export is in use. */
static inline bool hk_queue_exports_home(const struct hk_device_queue *q)
{
  uint32_t n = 0;
  for (const struct hk_delivery *p = q->exports; p; p = p->next)
    n++;
  return n == HK_EXPORTS;
}
static inline bool hk_queue_exporting(const struct hk_device_queue *q)
{
  return q->exporting;
}

/* Count sweeps that were made, and batches that were handed to the loops or have nothing for them. Once as many are gone as were
 * made at a given time, all points from before it were handed over. */
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

/* Thread: any. ns for which nothing has come back while something is in flight. */
static inline int64_t hk_queue_stalled(const struct hk_device_queue *q)
{
  return q->stalled;
}

/* Thread: any. Batches in flight; maximum number of points of the next one. */
static inline uint32_t hk_queue_in_flight(const struct hk_device_queue *q)
{
  return q->in_flight;
}
static inline uint32_t hk_queue_most(const struct hk_device_queue *q)
{
  return q->most;
}

#endif
