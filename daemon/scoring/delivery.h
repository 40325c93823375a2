/* Delivery: a message of a shard to loops: a batch that is scored (or never will be), slots to forget, or an error for peers.
 *
 * A delivery goes to every loop that needs it. Loops only read it; it returns to its shard when the last loop has released it.
 * Before that the points of its batch are counted as processed, for their sources. Each loop gets the deliveries of a shard in
 * the same order. */
#ifndef HK_DELIVERY_H
#define HK_DELIVERY_H

#include "cpu/backend.h"
#include "daemon/base/counters.h"
#include "daemon/base/latency.h"
#include "daemon/intake/chunk.h"
#include "daemon/scoring/reach.h"

struct hk_shard;
struct hk_device;

enum hk_delivery_kind {
  HK_DELIVERY_RESULTS, /* of a batch of points, or notices of a sweep: slots are the registry's */
  HK_DELIVERY_DROPPED, /* this batch of points gets no results: slots are the registry's, all else is invalid */
  HK_DELIVERY_RETIRE,  /* loops seal the chunks that name the shard's retired sensors, and send a token after them */
  HK_DELIVERY_FORGET,  /* the slots are about to be given to other sensors */
  HK_DELIVERY_WORDS,   /* for every peer whose protocol has errors */
  HK_DELIVERY_EXPORT,  /* for the saver; goes to no loop */
};

/* Of a batch: points of the daemon's own series. */
struct hk_derived_results {
  uint64_t late, rejected;
};

struct hk_delivery {
  enum hk_delivery_kind kind;
  struct hk_shard *shard;
  struct hk_device *device; /* the batch's device; NULL: freed when it returns, unless it is a delivery of the shard */
  struct hk_batch *batch;   /* RESULTS, DROPPED */
  struct hk_run *runs;      /* of the batch's points, in their order; room for as many as the batch's capacity */
  uint32_t n_runs;
  uint64_t *sequence;      /* RESULTS: each point's sequence number within its sensor; NULL without durability */
  uint64_t events;         /* RESULTS: position in the event log of the last event that it caused; 0: none */
  struct hk_stamps stamps; /* of its oldest point */
  uint64_t position;       /* of the shard: all its points were taken before */
  struct hk_batch_reach reach;
  uint64_t late, rejected, scored, unscored; /* points: their results */
  struct hk_derived_results derived;         /* of the late and rejected ones, those of the daemon's own series */
  uint64_t failed, device_lost;
  const uint32_t *slots; /* FORGET */
  uint32_t n_slots;
  char *words;              /* WORDS */
  char *by;                 /* RESULTS: who acknowledged its events' alerts; NULL: other kinds of events */
  atomic_uint holders;      /* number of loops that hold it */
  bool back;                /* RETIRE, FORGET: it has returned to the shard */
  struct hk_delivery *next; /* for its current owner */
};

#endif
