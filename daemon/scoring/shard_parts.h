/* Parts of a shard (shard.h): each is used only by the file named in its heading, and by inline functions here; other files call
 * that file's functions. Further parts are in commit_gate.h, device_queue.h, derivation.h, late_points.h and progress.h.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_SHARD_PARTS_H
#define HK_SHARD_PARTS_H

#include "daemon/base/log.h"
#include "daemon/base/wake.h"
#include "daemon/scoring/batch_stage.h"
#include "daemon/scoring/derivation.h"
#include "daemon/scoring/device.h"
#include "daemon/scoring/reach.h"

#include <pthread.h>
#include <uv.h>

struct hk_config;
struct hk_definition;
struct hk_look;
struct hk_acknowledgement;
struct hk_partitions;
struct hk_rate;
struct hk_retired;
struct hk_sections;
struct hk_survey;

/* --- thread and clocks: shard_thread.c, shard.c ---------------------------------------------------------------------- */

struct hk_shard_life {
  uv_loop_t uv;
  struct hk_wake wake;
  bool open, running;
  pthread_t thread;
  uv_timer_t check, second;
  uv_timer_t saves; /* of the saver: wakes a sleeping thread for its slices */
  atomic_bool quit;
  uint64_t beat_most;   /* maximum period between two beats, ms */
  _Atomic int64_t beat; /* ns: when the thread was last seen running */
};

/* --- points that are being taken: turn.c, derived_points.c ------------------------------------------------------------ */

struct hk_taking {
  uint32_t turn;                   /* the lane whose turn it is */
  struct hk_cursor cursor;         /* the chunk that is being taken, or a piece of points derived from it */
  struct hk_derivation derivation; /* derives them */
  struct hk_reach reach;           /* how far they have come */
};

/* Number of points of the chunk under the cursor that are not taken yet. */
static inline uint32_t hk_taking_left(const struct hk_taking *t)
{
  return t->cursor.chunk ? t->cursor.chunk->n - t->cursor.at : 0;
}

/* Whether a chunk is being taken, or points are still to be derived from one. */
static inline bool hk_taking_any(const struct hk_taking *t)
{
  return t->cursor.chunk || t->derivation.from;
}

/* --- the device that was lost: failover.c ----------------------------------------------------------------------------- */

/* How a device was lost. */
struct hk_loss {
  int64_t time;             /* ns, wall clock; 0: no device was lost */
  const char *device;       /* its backend's name */
  char why[256];            /* in words */
  uint32_t batches, points; /* that were in flight */
};

/* Written by the shard's thread, under its lock so that other threads can read. */
struct hk_failover {
  pthread_cond_t changed;
  struct hk_loss loss;
  bool moving;       /* the device was lost, and its replacement is being opened */
  char failure[256]; /* the report of another thread, which found `failed` failing */
  const struct hk_device *_Atomic failed;
  struct hk_device *abandoned;
  char excuse[256]; /* why the CPU and not the GPU, if the daemon chose; else "". Does not change */
};

/* Whether a replacement is being opened. */
static inline bool hk_failover_moves(const struct hk_failover *f)
{
  return f->moving;
}

/* Whether a device was lost. */
static inline bool hk_failover_happened(const struct hk_failover *f)
{
  return f->loss.device != NULL;
}

/* --- a reload: shard_reload.c ----------------------------------------------------------------------------------------- */

/* Requests of a reload to every shard, in this order; each is answered before the next. */
enum hk_shard_reload_step {
  HK_SHARD_RELOAD_LEARN,  /* adds the new detectors to the backend; nothing names them yet */
  HK_SHARD_RELOAD_REVIEW, /* the configuration is in force; evicts sensors that are no longer their detector's */
  HK_SHARD_RELOAD_FORGET, /* lets the backend forget the old detectors */
};
struct hk_shard_reload_request {
  enum hk_shard_reload_step what;
  const struct hk_config *config;
  struct hk_sections *sections;
  const struct hk_definition *learn, *forget;
  uint32_t n_learn, n_forget;
  bool groups; /* groups differ */
};

/* Progress of a shard's answer to a request. */
struct hk_review {
  int status; /* of LEARN and FORGET: 0, or a negative errno and why; REVIEW: -ENOMEM */
  char why[256];
  bool begun;
  bool waits;        /* no chunk is begun before the reload has continued */
  bool completing;   /* all evictions have begun; adds missing companions to sensors */
  uint32_t slot;     /* of the registry: the next to check */
  uint32_t *leaving; /* sensors to evict, n of them */
  uint32_t n;
  uint32_t evicted;  /* sensors so far, including */
  uint32_t machines; /* this number of series of machines */
  uint32_t joined;   /* companions that were added */
  uint32_t alone;    /* sensors without room for their companions */
};

struct hk_shard_reload {
  const struct hk_shard_reload_request *request; /* main's request */
  atomic_uint asked, answered;                   /* numbers of requests, and of answers */
  struct hk_review review;                       /* read by main after the answer */
  bool holding;                                  /* launching is suspended until nothing is in flight */
};

/* Whether launching is suspended; whether beginning chunks is. */
static inline bool hk_reload_holds(const struct hk_shard_reload *r)
{
  return r->holding;
}
static inline bool hk_reload_waits(const struct hk_shard_reload *r)
{
  return r->review.waits;
}

/* --- sensors that are being forgotten: evict.c ------------------------------------------------------------------------ */

struct hk_evictions {
  struct hk_retired *first, **tail; /* list of evictions, in the order of their begin */
  uint64_t begun;                   /* number of evictions so far */
  uint64_t steps;                   /* number of their steps so far */
};

/* Whether any sensor is being evicted. */
static inline bool hk_evictions_any(const struct hk_evictions *e)
{
  return e->first != NULL;
}

/* A number that grows whenever an eviction progresses. */
static inline uint64_t hk_evictions_progress(const struct hk_evictions *e)
{
  return e->begun + e->steps;
}

/* --- sensors that are counters: rates.c -------------------------------------------------------------------------------- */

struct hk_rates {       /* all zero: none */
  struct hk_rate *last; /* by slot of the shard; NULL: no sensor needed it yet */
  uint32_t n;
};

/* --- requests of other threads: acknowledge.c, look.c and survey.c ---------------------------------------------------- */

struct hk_acknowledgements {
  struct hk_acknowledgement *_Atomic posted; /* list of acknowledgements; any thread adds to it */
  struct hk_acknowledgement *logged;         /* list: those that are logged, but not on disk yet */
};

struct hk_looks {
  struct hk_look *_Atomic posted; /* list of requested looks; any thread adds to it */
  struct hk_look *waiting;        /* list: those that are not taken yet */
  int64_t held;                   /* ns: when launching was last suspended for a look */
};

struct hk_surveys {
  struct hk_survey *_Atomic posted; /* list of requested surveys; any thread adds to it */
  struct hk_survey *waiting;        /* list: those that are not taken yet */
  int64_t held;                     /* ns: when launching was last suspended for a survey */
  uint32_t *score;                  /* the last score of each slot within the shard, as survey.c packs them */
  struct hk_score_log *log;         /* the last scores of all sensors together; NULL: none are kept */
};

struct hk_shard_requests {
  struct hk_acknowledgements acknowledgements;
  struct hk_looks looks;
  struct hk_surveys surveys;
  struct hk_partitions *partitions; /* partitions of a cluster that it holds; NULL: they do not move (held_partitions.h) */
};

#endif
