/* Durable: the state that survives restarts: the state folder with the journals of the shards, and the thread that commits them.
 *
 *     shard, loop:     append to a journal, hk_durable_nudge
 *     commit thread:   takes all appended records, writes and syncs them, advances feeds, wakes shards, and repeats
 *     shard:           publishes results once hk_durable_covers is true for their points
 *
 * So all records appended during one commit make the next: the slower the disk, the larger the commits. There is no timer.
 *
 * States of the disk; every change is logged, with a remedy:
 *  - OK: all that was published is on the disk.
 *  - FAILING: a commit failed, or takes long. It is retried; results and acknowledgements wait, and when too many of them wait,
 *    senders wait too.
 *  - DEGRADED: FAILING has lasted for `journal_wait`. The daemon goes on without the disk: results are published, points are not
 *    acknowledged, and a crash would lose what came since. It checks every second whether the disk works again.
 *  - RECOVERING: the disk works again: the journals are written again, and a snapshot is being made of what they lack. Then OK.
 *
 * With durability = none there are only feeds, which count what shards have taken as committed. With durability = snapshot there
 * are no journals. */
#ifndef HK_DURABLE_H
#define HK_DURABLE_H

#include "daemon/base/counters.h"
#include "daemon/base/histogram.h"
#include "daemon/base/limits.h"
#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/durable/event_log.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_records.h"
#include "daemon/durable/marks.h"
#include "daemon/durable/named_feeds.h"
#include "daemon/durable/state_folder.h"
#include "daemon/sensors/registry.h"

enum hk_durable_state { HK_DURABLE_OK, HK_DURABLE_FAILING, HK_DURABLE_DEGRADED, HK_DURABLE_RECOVERING };

/* For status. */
struct hk_durable_condition {
  enum hk_durable_state state;
  int64_t since; /* ns, wall clock: begin of this state; 0: the start */
  char why[256]; /* "" if OK */
};

/* The commit thread; used by commit_thread.c. */
struct hk_commit_thread {
  pthread_t thread;
  bool running;
  pthread_mutex_t sleep;
  pthread_cond_t woken;
  atomic_bool asleep, work, quit;
  int64_t noted;             /* ns: when marks were last synced, */
  bool unsure;               /* and whether positions beyond the mark were published then */
  int64_t probed;            /* ns: when it last checked whether the disk works again */
  hk_counter commits, bytes; /* so far */
  struct hk_histogram took;  /* commits that wrote something */
  _Atomic int64_t beat;      /* ns: when it was last seen running, */
  int64_t begun; /* ns: when it began: records that a replay appended before have waited for the disk only since then */
};

/* The condition of the disk, and what is missing for a recovery; used by disk_health.c. */
struct hk_disk_health {
  pthread_mutex_t lock; /* of these: */
  struct hk_durable_condition condition;
  int64_t failing_since;          /* ns (hk_now); 0: it does not fail */
  uint64_t needed[HK_SHARDS_MAX]; /* RECOVERING: the position that a snapshot must reach, */
  bool missing[HK_SHARDS_MAX];    /* RECOVERING: and whether none has reached it yet */
  int64_t resumed;                /* ns, hk_now: when the journals last resumed; sensors registered before are in no journal */
  bool saved[HK_SHARDS_MAX];      /* a snapshot of the shard was made in this run */
  bool renews;                    /* written at the start: this run's snapshots begin a new epoch beside the restored one */
  uint64_t logged[HK_SHARDS_MAX]; /* events up to this position are in all kept snapshots of the shard */
  bool settling;                  /* points that shards have taken count as committed after the next commit */
  atomic_uint_fast64_t wants_snapshot; /* a bit for each shard */
};

struct hk_durable {
  uint32_t mode; /* enum hk_durability */
  uint32_t shards;
  const char *path; /* of the state folder; owner: the configuration */
  struct hk_disk disk;
  struct hk_log *log;
  int folder, lock;                /* -1: none */
  int shard_folder[HK_SHARDS_MAX]; /* DIR/shard-N; -1: none */
  struct hk_state_folder there;    /* whether the files still exist; the commit thread's */
  struct hk_feeds *feeds;
  struct hk_marks *marks;                    /* positions of all journals; NULL with durability = none */
  struct hk_eventlog *events;                /* NULL with durability = none */
  struct hk_journal *journal[HK_SHARDS_MAX]; /* in mode journal, once hk_durable_begin was called; else NULL */
  struct hk_wake *wake[HK_SHARDS_MAX];       /* of the shards */
  struct hk_wake *loop_wake[HK_LOOPS_MAX];   /* of the loops */
  uint32_t loops;
  _Atomic int64_t journal_wait; /* ns */
  uint64_t segment;             /* bytes */
  atomic_uint_fast64_t order;   /* of the last REGISTER, RETIRE or RELEASE */
  struct hk_commit_thread commit;
  struct hk_disk_health health;
};

/* A number instead of a shard's: the event log. */
#define HK_DURABLE_EVENTS UINT32_MAX

/* Opens the state folder of the configuration, which no other daemon may use. durable: zeroed. Returns 0, or a negative errno
 * with a message; to close in either case. Thread: main, here and below unless stated otherwise. */
int hk_durable_open(struct hk_durable *durable, const struct hk_config *config, uint32_t shards, struct hk_log *log, char *error,
                    size_t size);
/* After the restore: begins the journals, each at its shard's position, and the commit thread. Returns 0, or a negative errno
 * with a message. */
int hk_durable_begin(struct hk_durable *durable, const uint64_t position[], struct hk_registry *registry, char *error,
                     size_t size);
/* Commits the remaining records, if the disk works, and stops the thread. False: the thread hangs. */
bool hk_durable_stop(struct hk_durable *durable);
void hk_durable_close(struct hk_durable *durable);

/* Another configuration is in force. */
void hk_durable_adopt(struct hk_durable *durable, const struct hk_config *config);

/* --- for any thread -------------------------------------------------------------------------------------------------- */

/* Whether the results of a shard's points up to a position may be published. */
static inline bool hk_durable_covers(const struct hk_durable *d, uint32_t shard, uint64_t position)
{
  return !d->journal[shard] || hk_journal_committed(d->journal[shard]) >= position;
}
/* The order of the last complete change of a sensor, which a snapshot that begins now contains. */
uint64_t hk_durable_order(struct hk_durable *durable, struct hk_registry *registry);

/* --- between the files ----------------------------------------------------------------------------------------------- */

/* All shards have snapshots: removes files of runs with other keys, or with more shards. */
void hk_durable_forget_past(struct hk_durable *durable);

#endif
