/* Durable: what outlives the daemon: the state folder with the journals of the shards, and the thread that commits them.
 *
 *     shard, loop:     append to a journal, hk_durable_nudge
 *     commit thread:   takes what all have appended, writes and syncs it, tells feeds how far they are, wakes shards, and begins
 * again shard:           hands results over once hk_durable_covers says so
 *
 * So the commits of a moment are one, and what comes meanwhile is the next: the slower the disk, the larger they get. There is no
 * timer.
 *
 * The disk:
 *     OK          what is shown is on the disk.
 *     FAILING     a commit failed, or takes long. It is tried again and again; results and acknowledgements wait, and when too
 * much of them waits, so do senders. DEGRADED    that has lasted for `journal_wait`. The daemon goes on without the disk: results
 * flow, acknowledgements do not, and a crash would take back what came since. It looks every second whether the disk works again.
 *     RECOVERING  it does: the journals are written again, and a snapshot is being made of what they do not have. Then all is OK.
 * Every change is told in the log, with what to do.
 *
 * Where durability = none there is nothing of that but feeds, which count what shards have taken as committed. With snapshot
 * there are no journals either. */
#ifndef HK_DURABLE_H
#define HK_DURABLE_H

#include "daemon/config.h"
#include "daemon/counters.h"
#include "daemon/durable/events.h"
#include "daemon/durable/feeds.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/records.h"
#include "daemon/histogram.h"
#include "daemon/lane.h"
#include "daemon/log.h"
#include "daemon/registry.h"

enum hk_durable_state { HK_DURABLE_OK, HK_DURABLE_FAILING, HK_DURABLE_DEGRADED, HK_DURABLE_RECOVERING };

/* For status. */
struct hk_durable_condition {
  enum hk_durable_state state;
  int64_t since; /* ns, wall clock: when it became so; 0: at the start */
  char why[256]; /* "" when all is well */
};

struct hk_durable {
  uint32_t mode; /* enum hk_durability */
  uint32_t shards;
  const char *path; /* of the state folder; the configuration's */
  struct hk_disk disk;
  struct hk_log *log;
  int folder, lock;                /* -1: none */
  int shard_folder[HK_SHARDS_MAX]; /* DIR/shard-N; -1: none */
  struct hk_feeds *feeds;
  struct hk_eventlog *events;                /* NULL with durability = none */
  struct hk_journal *journal[HK_SHARDS_MAX]; /* in mode journal, once hk_durable_begin was called; else NULL */
  struct hk_wake *wake[HK_SHARDS_MAX];       /* of the shards */
  struct hk_wake *loop_wake[HK_LOOPS_MAX];   /* of the loops */
  uint32_t loops;
  _Atomic int64_t journal_wait; /* ns */
  uint64_t segment;             /* bytes */
  atomic_uint_fast64_t order;   /* of the last REGISTER, RETIRE or RELEASE */

  /* the commit thread */
  pthread_t thread;
  bool running;
  pthread_mutex_t sleep;
  pthread_cond_t woken;
  atomic_bool asleep, work, quit;
  int64_t probed;            /* ns: when it last looked whether the disk works again */
  hk_counter commits, bytes; /* so far */
  struct hk_histogram took;  /* commits that wrote something */
  _Atomic int64_t beat;      /* ns: when it was last seen running, */
  int64_t begun; /* and when it began: what was appended before, by a replay, has not waited for the disk until then */

  pthread_mutex_t lock_condition; /* of these: */
  struct hk_durable_condition condition;
  int64_t failing_since;               /* ns (hk_now); 0: it does not fail */
  uint64_t needed[HK_SHARDS_MAX];      /* RECOVERING: the position that a snapshot must have got to */
  bool missing[HK_SHARDS_MAX];         /* RECOVERING: and has not yet */
  int64_t resumed;                     /* ns, hk_now: when the journals last went on; what registered before is in no journal */
  bool saved[HK_SHARDS_MAX];           /* a snapshot of the shard was made in this run */
  bool renews;                         /* written at the start: this run's snapshots begin an epoch beside what was restored */
  uint64_t logged[HK_SHARDS_MAX];      /* events up to this position are in all snapshots of the shard that are kept */
  bool settling;                       /* what shards have taken counts as committed after the next commit */
  atomic_uint_fast64_t wants_snapshot; /* a bit for each shard */
};

/* No shard's: the event log's. */
#define HK_DURABLE_EVENTS UINT32_MAX

/* Opens the state folder that the configuration names, and no other daemon uses. durable: zeroed. 0, or a negative errno with a
 * message; close it in either case. Thread: main, here and below but for what says otherwise. */
int hk_durable_open(struct hk_durable *durable, const struct hk_config *config, uint32_t shards, struct hk_log *log, char *error,
                    size_t size);
/* All that there was is restored: begins the journals, each at its shard's position, and the commit thread. 0 or a negative errno
 * with a message. */
int hk_durable_begin(struct hk_durable *durable, const uint64_t position[], struct hk_registry *registry, char *error,
                     size_t size);
/* Commits what there is, as far as the disk does, and ends the thread. False: it hangs. */
bool hk_durable_stop(struct hk_durable *durable);
void hk_durable_close(struct hk_durable *durable);

/* Another configuration is in force. */
void hk_durable_adopt(struct hk_durable *durable, const struct hk_config *config);
/* Every second: a commit that takes too long is noticed. */
void hk_durable_watch(struct hk_durable *durable);

/* --- for any thread -------------------------------------------------------------------------------------------------- */

/* Something was appended. */
void hk_durable_nudge(struct hk_durable *durable);
/* The journals can go on no longer, for a reason other than the disk. */
void hk_durable_give_up(struct hk_durable *durable, const char *why);
/* Whether what a shard had taken up to a position may be shown. */
static inline bool hk_durable_covers(const struct hk_durable *d, uint32_t shard, uint64_t position)
{
  return !d->journal[shard] || hk_journal_committed(d->journal[shard]) >= position;
}
struct hk_durable_condition hk_durable_condition(struct hk_durable *durable);
/* The order of the last change of a sensor that is done: in the registry, for a snapshot that is begun now to have it. */
uint64_t hk_durable_order(struct hk_durable *durable, struct hk_registry *registry);

/* --- for snapshots --------------------------------------------------------------------------------------------------- */

/* A snapshot of a shard is wanted at once, whenever the next one would be due. True once for each time that it is. */
bool hk_durable_wants_snapshot(struct hk_durable *durable, uint32_t shard);
/* Whether every shard has one of this run. */
bool hk_durable_saved(struct hk_durable *durable);
/* Whether one that is begun now counts only together with one of every shard; see snapshot.h. */
bool hk_durable_together(struct hk_durable *durable);
/* A snapshot of a shard is on the disk, in its folder, that has all up to `position`, where the shard began to take it, and of
 * each feed what the shard had taken then. Ends RECOVERING when this is what that waits for. begun: ns, hk_now, when it
 * was. before: where the oldest snapshot that is kept began: the journal is needed from there on only, and what is before goes;
 * events: position of the last event then, likewise for the event log. True: every shard has one of this run, so older ones may
 * go; until then only those of the run before are whole. Thread: any. */
bool hk_durable_snapshot_done(struct hk_durable *durable, uint32_t shard, uint64_t position, int64_t begun, uint64_t before,
                              uint64_t events);

/* --- between the files ----------------------------------------------------------------------------------------------- */

/* durable.c: all shards have snapshots: removes what runs with other keys, or with more shards, have left. */
void hk_durable_forget_past(struct hk_durable *durable);
/* commit.c: the thread. */
int hk_commit_start(struct hk_durable *durable);
bool hk_commit_stop(struct hk_durable *durable);
/* condition.c: what a commit came to (0 or a negative errno); whether the disk is to be left alone, and whether it works again.
 */
void hk_condition_commit(struct hk_durable *durable, int status, uint32_t shard, bool settles);
bool hk_condition_degraded(struct hk_durable *durable);
void hk_condition_works(struct hk_durable *durable);
/* Whether what is committed may be acknowledged. */
bool hk_condition_acknowledges(struct hk_durable *durable);
/* Whether all that shards have taken is to be counted as committed by the next commit. */
bool hk_condition_settles(struct hk_durable *durable);

#endif
