/* The condition of the disk, its consequences for publishing, and the log lines about it. */
#include "daemon/durable/disk_health.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/journal_segments.h"

#include <string.h>

#define SLOW 1000000000 /* ns after which a commit counts as slow */
#define LOOK "look at the disk of the state folder (df, and the kernel's log)"
#define DISK LOOK ". It resumes by itself"

/* To call under the lock. */
static void become(struct hk_durable *d, enum hk_durable_state state, const char *why)
{
  d->health.condition.state = state;
  d->health.condition.since = hk_wall();
  snprintf(d->health.condition.why, sizeof d->health.condition.why, "%s", why);
}

/* To call under the lock: continues without the disk. */
static void degrade(struct hk_durable *d, const char *why, const char *remedy)
{
  for (uint32_t i = 0; i < d->shards; i++)
    if (d->journal[i])
      hk_journal_pause(d->journal[i]);
  hk_journal_pause(hk_eventlog_journal(d->events)); /* events are still published */
  become(d, HK_DURABLE_DEGRADED, why);
  d->health.failing_since = 0;
  d->health.settling = false;
  for (uint32_t i = 0; i < d->shards; i++)
    hk_wake_up(d->wake[i], HK_WAKE_WORK);
  hk_log(d->log, HK_LOG_ERROR,
         "durability is lost: %s. Scoring continues without it: no points are acknowledged, and a crash would lose those that "
         "arrive from now on; %s",
         why, remedy);
}

/* ns for which something has been waiting to be committed. */
static int64_t disk_health_waits(struct hk_durable *d)
{
  const int64_t now = hk_now();
  int64_t most = 0;
  for (uint32_t i = 0; i <= d->shards; i++) {
    struct hk_journal *j = i < d->shards ? d->journal[i] : hk_eventlog_journal(d->events);
    const int64_t appended = j ? hk_journal_waiting_since(j) : 0, since = appended < d->commit.begun ? d->commit.begun : appended;
    if (appended != 0 && now - since > most)
      most = now - since;
  }
  return most;
}

/* To call under the lock, while FAILING: whether that has lasted too long. */
static void disk_health_look(struct hk_durable *d)
{
  char why[sizeof d->health.condition.why + 64];
  const int64_t wait = d->journal_wait;
  if (d->health.condition.state != HK_DURABLE_FAILING || hk_now() - d->health.failing_since < wait)
    return;
  snprintf(why, sizeof why, "%s, for longer than journal_wait = %g s", d->health.condition.why, (double)wait * 1e-9);
  degrade(d, why, DISK);
}

void hk_condition_commit(struct hk_durable *d, int status, uint32_t shard, bool settles)
{
  pthread_mutex_lock(&d->health.lock);
  d->health.settling &= !settles || status != 0;
  const int64_t now = hk_now();
  if (status != 0 && d->health.condition.state == HK_DURABLE_OK) {
    char why[sizeof d->health.condition.why];
    if (shard == HK_DURABLE_EVENTS)
      snprintf(why, sizeof why, "the event log in %.160s cannot be written: %s", d->path, strerror(-status));
    else
      snprintf(why, sizeof why, "the journal in %.160s/shard-%u cannot be written: %s", d->path, shard, strerror(-status));
    become(d, HK_DURABLE_FAILING, why);
    d->health.failing_since = now;
    hk_log(d->log, HK_LOG_WARNING, "%s. Results and acknowledgements wait for it, %g s at most (journal_wait); " LOOK, why,
           (double)d->journal_wait * 1e-9);
  } else if (status != 0 && d->health.condition.state == HK_DURABLE_RECOVERING) {
    degrade(d, strerror(-status), DISK);
  } else if (status == 0 && d->health.condition.state == HK_DURABLE_FAILING) {
    hk_log(d->log, HK_LOG_NOTICE, "the journal is written again after %.1f s; nothing is lost",
           (double)(now - d->health.failing_since) * 1e-9);
    become(d, HK_DURABLE_OK, "");
    d->health.failing_since = 0;
  }
  disk_health_look(d);
  pthread_mutex_unlock(&d->health.lock);
}

void hk_durable_watch(struct hk_durable *d)
{
  if (d->mode == HK_DURABILITY_NONE || !d->commit.running)
    return;
  const int64_t waiting = disk_health_waits(d), wait = d->journal_wait;
  pthread_mutex_lock(&d->health.lock);
  const bool writes = d->health.condition.state == HK_DURABLE_OK || d->health.condition.state == HK_DURABLE_RECOVERING;
  if (writes && waiting >= (wait < SLOW ? wait : SLOW)) {
    const bool recovering = d->health.condition.state == HK_DURABLE_RECOVERING;
    char why[sizeof d->health.condition.why];
    snprintf(why, sizeof why, "the disk of %.160s is slow: a commit has been waiting for %.1f s", d->path,
             (double)waiting * 1e-9);
    if (recovering) {
      degrade(d, why, DISK);
    } else {
      become(d, HK_DURABLE_FAILING, why);
      d->health.failing_since = hk_now() - waiting;
      hk_log(d->log, HK_LOG_WARNING, "%s. Results and acknowledgements wait for it, %g s at most (journal_wait); " LOOK, why,
             (double)wait * 1e-9);
    }
  }
  disk_health_look(d);
  pthread_mutex_unlock(&d->health.lock);
}

void hk_durable_give_up(struct hk_durable *d, const char *why)
{
  pthread_mutex_lock(&d->health.lock);
  if (d->health.condition.state != HK_DURABLE_DEGRADED)
    degrade(d, why, DISK);
  pthread_mutex_unlock(&d->health.lock);
}

void hk_condition_lost(struct hk_durable *d, const char *why, const char *remedy)
{
  pthread_mutex_lock(&d->health.lock);
  if (d->health.condition.state != HK_DURABLE_DEGRADED)
    degrade(d, why, remedy);
  pthread_mutex_unlock(&d->health.lock);
}

bool hk_condition_degraded(struct hk_durable *d)
{
  return hk_durable_condition(d).state == HK_DURABLE_DEGRADED;
}

void hk_condition_works(struct hk_durable *d)
{
  pthread_mutex_lock(&d->health.lock);
  for (uint32_t i = 0; i < d->shards; i++) {
    d->health.missing[i] = true;
    d->health.needed[i] = d->journal[i] ? hk_journal_resume(d->journal[i]) : 0;
  }
  (void)hk_journal_resume(hk_eventlog_journal(d->events));
  d->health.resumed = hk_now();
  become(d, HK_DURABLE_RECOVERING, "the disk works again, and a snapshot is being made of what came meanwhile");
  d->health.wants_snapshot = UINT64_MAX;
  hk_log(d->log, HK_LOG_NOTICE, "%s works again: the journal continues; durability is back after the next snapshot", d->path);
  pthread_mutex_unlock(&d->health.lock);
}

bool hk_durable_wants_snapshot(struct hk_durable *d, uint32_t shard)
{
  const uint64_t bit = (uint64_t)1 << shard;
  return atomic_load_explicit(&d->health.wants_snapshot, memory_order_relaxed) & bit &&
         atomic_fetch_and(&d->health.wants_snapshot, ~bit) & bit;
}

/* To call under the lock: whether everything that RECOVERING needs exists. */
static void look_recovered(struct hk_durable *d)
{
  for (uint32_t i = 0; i < d->shards; i++)
    if (d->health.missing[i])
      return;
  become(d, HK_DURABLE_OK, "");
  d->health.settling = true;
  hk_log(d->log, HK_LOG_NOTICE, "durability is back");
  hk_durable_nudge(d);
}

/* To call under the lock. */
static bool all_saved(const struct hk_durable *d)
{
  for (uint32_t i = 0; i < d->shards; i++)
    if (!d->health.saved[i])
      return false;
  return true;
}

bool hk_durable_saved(struct hk_durable *d)
{
  pthread_mutex_lock(&d->health.lock);
  const bool saved = all_saved(d);
  pthread_mutex_unlock(&d->health.lock);
  return saved;
}

bool hk_durable_together(struct hk_durable *d)
{
  return d->health.renews && !hk_durable_saved(d);
}

/* To call under the lock: the event log need not keep events that all snapshots of all shards contain. */
static void let_events_go(struct hk_durable *d)
{
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < d->shards; i++)
    least = d->health.logged[i] < least ? d->health.logged[i] : least;
  hk_eventlog_keep(d->events, least);
}

bool hk_durable_snapshot_done(struct hk_durable *d, uint32_t shard, uint64_t position, int64_t begun, uint64_t before,
                              uint64_t events)
{
  pthread_mutex_lock(&d->health.lock);
  const bool first = !all_saved(d);
  d->health.saved[shard] = true;
  d->health.logged[shard] = events;
  let_events_go(d);
  const bool whole = all_saved(d), last = first && whole;
  d->health.missing[shard] &= position < d->health.needed[shard] || begun <= d->health.resumed;
  if (d->health.condition.state == HK_DURABLE_RECOVERING)
    look_recovered(d);
  pthread_mutex_unlock(&d->health.lock);
  const int status = whole && d->journal[shard] ? hk_journal_trim(d->journal[shard], before) : 0;
  if (status != 0)
    hk_log(d->log, HK_LOG_WARNING, "a file of the journal in %s/shard-%u that is no longer needed could not be removed: %s",
           d->path, shard, strerror(-status));
  if (last)
    hk_durable_forget_past(d);
  return whole;
}

bool hk_condition_acknowledges(struct hk_durable *d)
{
  const enum hk_durable_state state = hk_durable_condition(d).state;
  return state == HK_DURABLE_OK || state == HK_DURABLE_FAILING;
}

bool hk_condition_settles(struct hk_durable *d)
{
  pthread_mutex_lock(&d->health.lock);
  const bool settles = d->health.settling;
  pthread_mutex_unlock(&d->health.lock);
  return settles;
}

struct hk_durable_condition hk_durable_condition(struct hk_durable *d)
{
  pthread_mutex_lock(&d->health.lock);
  const struct hk_durable_condition condition = d->health.condition;
  pthread_mutex_unlock(&d->health.lock);
  return condition;
}
