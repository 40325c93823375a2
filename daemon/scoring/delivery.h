/* Delivery: what a shard gives to loops: a batch that is scored (or never will be), what is to be forgotten, words for the peers.
 *
 * A delivery goes to every loop that has a use for it, is only read there, and comes back to its shard when the last one has let
 * it go; before that the points of its batch are counted as dealt with, and their sources told. Each loop gets the deliveries of
 * a shard in the same order. */
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
  HK_DELIVERY_RETIRE,  /* whatever names the shard's retired sensors is to be sealed, and a token sent behind it */
  HK_DELIVERY_FORGET,  /* the slots are about to be other sensors' */
  HK_DELIVERY_WORDS,   /* for every peer that can be told */
  HK_DELIVERY_EXPORT,  /* for the saver: it goes to no loop */
};

struct hk_delivery {
  enum hk_delivery_kind kind;
  struct hk_shard *shard;
  struct hk_device *device; /* whose batch it is; NULL: it is freed when it comes back, if nobody else wants it */
  struct hk_batch *batch;   /* RESULTS, DROPPED */
  struct hk_run *runs;      /* of the batch's points, in their order: as many as it has capacity */
  uint32_t n_runs;
  uint64_t *sequence;      /* RESULTS: of each point among its sensor's; NULL where nothing outlives the daemon */
  uint64_t events;         /* RESULTS: position in the event log of the last event that came of it; 0: none did */
  struct hk_stamps stamps; /* of its oldest point */
  uint64_t position;       /* of the shard: all its points were taken before */
  int64_t
      reached; /* ns, of the data: of its shard, no point before this is still to come or to be scored behind it; 0: not known */
  uint64_t late, rejected, scored, unscored; /* points: what became of them */
  uint64_t failed, device_lost;
  const uint32_t *slots; /* FORGET */
  uint32_t n_slots;
  char *words;         /* WORDS */
  char *by;            /* RESULTS: who acknowledged the alerts that its events are about; NULL: they are about other things */
  atomic_uint holders; /* loops that have it */
  bool back;           /* RETIRE, FORGET: it has come back */
  struct hk_delivery *next; /* for whoever owns it at the time */
};

#endif
