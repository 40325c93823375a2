/* Shard: the sensors of one device, the thread that feeds it, and the batches that go to and fro.
 *
 * The thread takes chunks from the lanes of all loops in turn and makes batches of them (the stage). A batch is launched as soon
 * as anything waits and the device has nothing to do, or little enough (turn.c), so batches grow by themselves under load and a
 * point waits for no timer. They grow as far as one takes a quarter of a second or so: where scores are dear (wide windows,
 * exact SVD, the CPU) results keep flowing, and silence means that something is wrong. Results go to the loops in the order in
 * which the batches were launched. The thread sleeps when there is nothing to do, at once or, with `busy_poll`, after it has
 * looked again for so long.
 *
 * What can go wrong with a batch:
 *  - it is refused, by submit or when it comes back (-EINVAL, -ENOMEM): its points are dropped and counted, the device goes on;
 *  - it comes back with any other status, too many in a row found no memory, or nothing has come back from a device for
 *    the configuration's `device_timeout`, or it failed at something else: the device is lost (failover.c). All that was in
 *    flight is dropped and counted, the device is abandoned, and the CPU goes on in its place, or nothing does. A backend that is
 *    no device of its own (cpu, reference) is never lost: it fails with the whole process or not at all.
 *
 * Thread: its own, but for what says otherwise. */
#ifndef HK_SHARD_H
#define HK_SHARD_H

#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/durable/event_log.h"
#include "daemon/intake/lane.h"
#include "daemon/scoring/batch_stage.h"
#include "daemon/scoring/commit_gate.h"
#include "daemon/scoring/derivation.h"
#include "daemon/scoring/device.h"
#include "daemon/scoring/device_queue.h"
#include "daemon/scoring/progress.h"
#include "daemon/scoring/rates.h"
#include "daemon/sensors/alert_memory.h"
#include "daemon/sensors/registry.h"

#include <uv.h>

/* How a device was lost. */
struct hk_loss {
  int64_t time;             /* ns, wall clock; 0: no device was lost */
  const char *device;       /* its backend's name */
  char why[256];            /* in words */
  uint32_t batches, points; /* that were in flight */
};

struct hk_groups;
struct hk_maintenance;
struct hk_look;
struct hk_note;
struct hk_retired;
struct hk_durable;
struct hk_saver;

/* What a reload wants of every shard, in this order; each is answered before the next is asked. */
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
  bool waits;        /* no chunk is to be begun before it has gone on */
  bool completing;   /* all that are to go are on their way; sensors get the companions that they lack */
  uint32_t slot;     /* the registry's: the next to look at */
  uint32_t *leaving; /* sensors that are to go, n of them */
  uint32_t n;
  uint32_t let_go;   /* so far, with */
  uint32_t machines; /* so many series of machines */
  uint32_t joined;   /* companions that were added */
  uint32_t alone;    /* sensors for whose companions there is no room */
};

/* What shards have in common; set before they start. */
struct hk_shards {
  const struct hk_config *config; /* that the daemon was started with */
  const struct hk_backend_kind *kinds;
  struct hk_log *log;
  struct hk_registry *registry;
  struct hk_durable *durable;
  struct hk_eventlog *events; /* NULL: there is none, and events go with the batches that they come of */
  struct hk_maintenance *maintenance;
  struct hk_shard *shard; /* all n of them */
  uint32_t n, n_loops;
  pthread_mutex_t replay;       /* of the groups of all shards while journals are replayed */
  int64_t stall;                /* ns without progress after which a shard counts as stalled */
  atomic_uint_fast64_t settled; /* moves whenever points were dealt with: sources may have room, goodbyes be due */
  void (*ended)(void *arg);     /* a shard was lost, and nothing goes on in its place. Called from its thread */
  void *arg;
};

struct hk_shard {
  struct hk_shards *all;
  const struct hk_config *config; /* that is in force, for this thread alone: a reload changes it between two turns */
  uint32_t number;
  struct hk_lane *lanes; /* from each loop */
  uv_loop_t uv;
  bool open, running;
  pthread_t thread;
  struct hk_wake wake;
  uv_timer_t check, second;
  atomic_bool quit;
  struct hk_counters counters;

  /* Under lock for other threads to read; changed by this one. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct hk_device *device; /* NULL: it was lost, and nothing is computed at the time, or any more */
  struct hk_loss loss;
  char excuse[256]; /* why the CPU and not the GPU, where the choice was ours; else "" */
  bool moving;      /* the device was lost, and what goes on in its place is on its way */
  char failure[256];
  const struct hk_device *_Atomic failed; /* another thread found this device failing, as `failure` says */

  struct hk_device *abandoned;
  struct hk_stage *stage;
  struct hk_alerts *alerts;        /* by slot within the shard */
  struct hk_cursor cursor;         /* the chunk that is being taken, or a piece of points that were made of it */
  struct hk_derivation derivation; /* the latter */
  struct hk_groups *groups;        /* of its sensors */
  uint32_t turn;                   /* the lane whose turn it is */
  struct hk_note *_Atomic notes;   /* list of alerts that were acknowledged; any thread puts them there */
  struct hk_note *noted;           /* list: of those, not on the disk yet */
  struct hk_look *_Atomic looks;   /* list of states that somebody wants to see; any thread puts them there */
  struct hk_look *looking;         /* list: of those, not taken yet */
  int64_t looked;                  /* ns: when launching was last held up for one */
  struct hk_device_queue queue;
  struct hk_saver *saver;  /* takes snapshots; NULL: none are */
  uv_timer_t saves;        /* the saver's: a thread that sleeps is woken for its slices */
  int64_t ahead;           /* ns of the arrival clock over hk_now: it goes on where a snapshot ended */
  struct hk_parcel *sweep; /* NULL while in flight or being published */
  struct hk_commit_gate gate;
  atomic_bool replaying;                      /* at the start: nobody is silent yet */
  struct hk_retired *retired, **retired_tail; /* sensors that are being forgotten */
  uint64_t retirements;                       /* so far */
  uint64_t retire_steps;                      /* that these have taken */
  const struct hk_revision *revision;         /* what main has asked for, and */
  atomic_uint asked, answered;                /* how often it has asked, and was answered */
  struct hk_review review;                    /* main looks when it is answered */
  bool holding;                               /* nothing is launched: a reload waits until nothing is in flight */
  uint64_t beat_most;                         /* ms between two beats, at most */
  bool sweep_due;
  bool put_off; /* a sweep found silent sensors that a reload's review kept: it is repeated before the next review */
  struct hk_stall stall;
  _Atomic int64_t beat; /* ns: when the thread was last seen running */
  struct hk_rates rates;
  struct hk_log_quota failures, forgetful, alert_lines;
};

/* Slots are the registry's, or count within a shard: number s / n of shard s % n is slot s. */
static inline uint32_t hk_slot_within(const struct hk_shards *all, uint32_t slot)
{
  return slot / all->n;
}
static inline uint32_t hk_slot_outside(const struct hk_shard *shard, uint32_t within)
{
  return within * shard->all->n + shard->number;
}

/* The device failed at something that another thread wanted of it; or (NULL) there was none. Returns when there is another one,
 * or none any more. Thread: a loop's, which holds no lock. */
void hk_shard_failed(struct hk_shard *shard, const struct hk_slot_binding *device, const char *why);

/* For any thread.
 * ns for which nothing has come back though something is in flight. Time in which the thread did not run does not count. */
int64_t hk_shard_stalled(const struct hk_shard *shard);
/* Whether nothing is computed any more. */
bool hk_shard_lost(struct hk_shard *shard);
/* Name of the backend that computes; "none" when none does. */
const char *hk_shard_backend(struct hk_shard *shard);
/* Bytes that so many sensors of a detector take; 0 when nothing computes. */
uint64_t hk_shard_need(struct hk_shard *shard, uint32_t detector, uint64_t sensors);

/* --- between the files of the shard ---------------------------------------------------------------------------------- */

/* Of the points that were taken, so many are in a batch or a chain; the rest is in the chunk that is being taken. Not while
 * points are made of it (hk_derive_within). */
static inline uint64_t hk_shard_staged(const struct hk_shard *s)
{
  return hk_gate_position(&s->gate) - (s->cursor.chunk ? s->cursor.chunk->n - s->cursor.at : 0);
}

/* ms between two looks at the device, as the configuration says; and sets the clock anew by that. */
uint64_t hk_shard_check_period(const struct hk_shard *shard);
void hk_shard_watch(struct hk_shard *shard);
/* Bytes that sensors may take where they are computed now; and where the CPU computes in the place of a device that was lost. */
uint64_t hk_shard_memory(const struct hk_shard *shard);
uint64_t hk_shard_host_memory(const struct hk_config *config);

#endif
