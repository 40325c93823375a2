/* Delivery: a message of a shard to loops: a batch that is scored (or never will be), slots to forget, an error for peers.
 *
 * A delivery goes to every loop that needs it, is only read there, and returns to its shard when the last loop has released it;
 * before that the points of its batch are counted as dealt with, for their sources. Each loop gets the deliveries of a shard in
 * the same order. */
#ifndef HK_DELIVERY_H
#define HK_DELIVERY_H

#include "cpu/backend.h"
#include "daemon/base/counters.h"
#include "daemon/base/latency.h"
#include "daemon/intake/chunk.h"

struct hk_shard;
struct hk_device;

enum hk_delivery_kind {
  HK_DELIVERY_RESULTS, /* of a batch of points, or notices of a sweep: slots are the registry's */
  HK_DELIVERY_DROPPED, /* there will be no results of this batch of points: slots are the registry's, all else is not valid */
  HK_DELIVERY_RETIRE,  /* chunks that name the shard's retired sensors are to be sealed, and a token sent after them */
  HK_DELIVERY_FORGET,  /* the slots are about to be other sensors' */
  HK_DELIVERY_WORDS,   /* for every peer whose protocol has errors */
  HK_DELIVERY_EXPORT,  /* for the saver: it goes to no loop */
};

struct hk_delivery {
  enum hk_delivery_kind kind;
  struct hk_shard *shard;
  struct hk_device *device; /* the batch's device; NULL: freed when it returns, unless it is a delivery of the shard */
  struct hk_batch *batch;   /* RESULTS, DROPPED */
  struct hk_run *runs;      /* of the batch's points, in their order: as many as it has capacity */
  uint32_t n_runs;
  uint64_t *sequence;      /* RESULTS: of each point among its sensor's; NULL without durability */
  uint64_t events;         /* RESULTS: position in the event log of the last event that came of it; 0: none did */
  struct hk_stamps stamps; /* of its oldest point */
  uint64_t position;       /* of the shard: all its points were taken before */
  int64_t reached;         /* ns, of the data: no point of its shard before this is still to be scored after it; 0: unknown */
  uint64_t late, rejected, scored, unscored; /* points: their results */
  uint64_t failed, device_lost;
  const uint32_t *slots; /* FORGET */
  uint32_t n_slots;
  char *words;              /* WORDS */
  char *by;                 /* RESULTS: who acknowledged its events' alerts; NULL: other kinds of events */
  atomic_uint holders;      /* loops that have it */
  bool back;                /* RETIRE, FORGET: it has come back */
  struct hk_delivery *next; /* for its owner at the time */
};

#endif
