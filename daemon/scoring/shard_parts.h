/* Parts of a shard (shard.h): each is used only by the file named at it, and by inline functions here; other files call that
 * file's functions. Further parts are in commit_gate.h, device_queue.h, derivation.h, progress.h and rates.h.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_SHARD_PARTS_H
#define HK_SHARD_PARTS_H

#include "daemon/base/log.h"
#include "daemon/base/wake.h"
#include "daemon/scoring/batch_stage.h"
#include "daemon/scoring/derivation.h"
#include "daemon/scoring/device.h"

#include <pthread.h>
#include <uv.h>

struct hk_config;
struct hk_definition;
struct hk_look;
struct hk_note;
struct hk_partitions;
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
  uv_timer_t saves; /* the saver's: a thread that sleeps is woken for its slices */
  atomic_bool quit;
  uint64_t beat_most;   /* ms between two beats, at most */
  _Atomic int64_t beat; /* ns: when the thread was last seen running */
};

/* --- points that are being taken: turn.c, derived_points.c ------------------------------------------------------------ */

struct hk_taking {
  uint32_t turn;                   /* the lane whose turn it is */
  struct hk_cursor cursor;         /* the chunk that is being taken, or a piece of points that were made of it */
  struct hk_derivation derivation; /* the latter */
  int64_t latest;                  /* ns, of the data: of the points that went into batches */
  _Atomic int64_t reached; /* ns, of the data, where incidents are made: all points before it are scored, their events logged */
};

/* Points of the chunk under the cursor that are not taken yet. */
static inline uint32_t hk_taking_left(const struct hk_taking *t)
{
  return t->cursor.chunk ? t->cursor.chunk->n - t->cursor.at : 0;
}

/* Whether a chunk is being taken, or points are still to be made of one. */
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

/* Under the shard's lock for other threads to read; changed by this one. */
struct hk_failover {
  pthread_cond_t changed;
  struct hk_loss loss;
  bool moving;       /* the device was lost, and its replacement is being opened */
  char failure[256]; /* as another thread says, which found `failed` failing */
  const struct hk_device *_Atomic failed;
  struct hk_device *abandoned;
  char excuse[256]; /* why the CPU and not the GPU, where the choice was ours; else "". Does not change */
};

/* Whether another device is to come. */
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

/* Requests of a reload to every shard, in this order; each is answered before the next one. */
enum hk_revise {
  HK_REVISE_LEARN,  /* the backend is to know the new detectors; nothing names them yet */
  HK_REVISE_REVIEW, /* the configuration is in force; sensors that are not their detector's any more are to go */
  HK_REVISE_FORGET, /* the backend may forget the old ones */
};
struct hk_revision {
  enum hk_revise what;
  const struct hk_config *config;
  struct hk_sections *sections;
  const struct hk_definition *learn, *forget;
  uint32_t n_learn, n_forget;
  bool groups; /* these differ */
};

/* How far a shard has got with that. */
struct hk_review {
  int status; /* of LEARN and FORGET: 0, or a negative errno and why; REVIEW: -ENOMEM */
  char why[256];
  bool begun;
  bool waits;        /* no chunk is begun before the reload has continued */
  bool completing;   /* all that are to go are on their way; sensors get the companions that they lack */
  uint32_t slot;     /* of the registry: the next to check */
  uint32_t *leaving; /* sensors that are to go, n of them */
  uint32_t n;
  uint32_t evicted;  /* so far, with */
  uint32_t machines; /* so many series of machines */
  uint32_t joined;   /* companions that were added */
  uint32_t alone;    /* sensors without room for their companions */
};

struct hk_shard_reload {
  const struct hk_revision *revision; /* main's request, and */
  atomic_uint asked, answered;        /* the number of requests, and of answers */
  struct hk_review review;            /* main looks when it is answered */
  bool holding;                       /* nothing is launched: it waits until nothing is in flight */
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
  struct hk_retired *first, **tail; /* list, in the order in which they began */
  uint64_t begun;                   /* so far */
  uint64_t steps;                   /* that these have taken */
};

/* Whether any sensor is. */
static inline bool hk_evictions_any(const struct hk_evictions *e)
{
  return e->first != NULL;
}

/* A number that grows whenever one gets further. */
static inline uint64_t hk_evictions_progress(const struct hk_evictions *e)
{
  return e->begun + e->steps;
}

/* --- what others ask of it: acknowledge.c, look.c and survey.c
 * ------------------------------------------------------------------ */

struct hk_notes {
  struct hk_note *_Atomic posted; /* list of alerts that were acknowledged; any thread puts them there */
  struct hk_note *logged;         /* list: of those, not on the disk yet */
};

struct hk_looks {
  struct hk_look *_Atomic posted; /* list of requested looks; any thread adds to it */
  struct hk_look *waiting;        /* list: of those, not taken yet */
  int64_t held;                   /* ns: when launching was last held up for one */
};

struct hk_surveys {
  struct hk_survey *_Atomic posted; /* list of requested surveys; any thread adds to it */
  struct hk_survey *waiting;        /* list: of those, not taken yet */
  int64_t held;                     /* ns: when launching was last held up for one */
  uint32_t *score;                  /* the last of each slot within the shard, as survey.c packs them */
  struct hk_score_log *log;         /* the last of all together; NULL: none are kept */
};

struct hk_shard_requests {
  struct hk_notes notes;
  struct hk_looks looks;
  struct hk_surveys surveys;
  struct hk_partitions *partitions; /* of a cluster, which it holds for now; NULL: they do not come and go (held_partitions.h) */
};

#endif
