/* The commit thread. It sleeps while there is nothing to commit; a failure is retried a moment later. */
#include "daemon/durable/commit_thread.h"
#include "cpu/monotonic.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/durable.h"

#include "daemon/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define AGAIN 50000000   /* ns from a failure to the next try */
#define LOOK 1000000000  /* ns between two checks of a disk that did not work; and between two beats */
#define END 2            /* s that the thread gets to end */
#define PROBE (1u << 20) /* bytes of room that a disk must have to count as working */

void hk_durable_nudge(struct hk_durable *d)
{
  d->commit.work = true;
  if (!d->commit.asleep)
    return;
  pthread_mutex_lock(&d->commit.sleep);
  pthread_cond_signal(&d->commit.woken);
  pthread_mutex_unlock(&d->commit.sleep);
}

/* Waits until there is work, at most for this time. at_least: minimum time, even if there is work. */
static void commit_thread_rest(struct hk_durable *d, int64_t ns, bool at_least)
{
  const struct timespec until = hk_monotonic_limit(ns);
  int status = 0;
  pthread_mutex_lock(&d->commit.sleep);
  d->commit.asleep = true;
  while (status == 0 && !d->commit.quit && (at_least || !d->commit.work))
    status = pthread_cond_timedwait(&d->commit.woken, &d->commit.sleep, &until);
  d->commit.asleep = false;
  pthread_mutex_unlock(&d->commit.sleep);
}

struct committed {
  struct hk_durable *durable;
  uint32_t shard;
  bool acknowledge;
};

static void on_record(void *arg, const struct hk_record *record)
{
  const struct committed *c = arg;
  struct hk_durable *d = c->durable;
  struct hk_record_points points;
  hk_count(&d->commit.bytes, HK_RECORD_HEADER + record->size);
  if (!c->acknowledge || record->type != HK_RECORD_POINTS || hk_record_points_read(record, &points) != 0)
    return;
  for (uint32_t i = 0; i < points.n_marks; i++)
    hk_feeds_commit(d->feeds, points.marks[i].feed, c->shard, points.marks[i].upto);
}

/* Checks that everything that was committed is where a start would find it. */
static void commit_thread_look_around(struct hk_durable *d)
{
  char why[sizeof d->health.condition.why];
  const char *remedy;
  if (!hk_condition_degraded(d) && !hk_folder_holds(&d->there, why, sizeof why, &remedy))
    hk_condition_lost(d, why, remedy);
}

/* Commits everything that was appended. Returns whether there was anything. */
static bool commit(struct hk_durable *d, int *status)
{
  commit_thread_look_around(d); /* first: new data must go to the same files as acknowledged data */
  bool behind = false; /* whether this round writes what an earlier one could not; then newer events must wait for their points */
  for (uint32_t i = 0; i < d->shards; i++)
    behind |= d->journal[i] && hk_journal_behind(d->journal[i]);
  const bool settles = !behind && hk_condition_settles(d);
  const int64_t begin = hk_now();
  const bool events =
      !behind && hk_journal_take(hk_eventlog_journal(d->events)); /* first: their points are in the journals by now */
  bool any = settles || events;
  uint32_t shard = 0;
  *status = 0;
  for (uint32_t i = 0; settles && i < d->shards; i++)
    hk_feeds_note(d->feeds, i);
  for (uint32_t i = 0; i < d->shards; i++)
    any |= d->journal[i] && hk_journal_take(d->journal[i]);
  if (!any)
    return false;
  for (uint32_t i = 0; i < d->shards; i++) {
    struct committed committed = { d, i, hk_condition_acknowledges(d) };
    const int result = d->journal[i] ? hk_journal_commit(d->journal[i], on_record, &committed) : 0;
    if (result == 0)
      continue;
    *status = result;
    shard = i;
  }
  if (events && *status == 0 && (*status = hk_eventlog_commit(d->events)) != 0)
    shard = HK_DURABLE_EVENTS;
  for (uint32_t i = 0; events && *status == 0 && i < d->loops; i++)
    hk_wake_up(d->loop_wake[i], HK_WAKE_WORK);
  if (*status == 0) {
    hk_count(&d->commit.commits, 1);
    hk_histogram_add(&d->commit.took, hk_now() - begin, 1);
  }
  for (uint32_t i = 0; i < d->shards; i++) {
    if (settles && *status == 0)
      hk_feeds_commit_noted(d->feeds, i);
    hk_wake_up(d->wake[i], HK_WAKE_WORK);
  }
  if (*status == -ESTALE) { /* the disk works, and a retry would hide it */
    hk_folder_doubt(&d->there);
    commit_thread_look_around(d);
    *status = hk_condition_degraded(d) ? 0 : *status;
  }
  hk_condition_commit(d, *status, shard, settles && !hk_condition_degraded(d));
  return true;
}

/* Keeps the positions of the journals on the disk, even if their files are lost. */
static void keep_marks(struct hk_durable *d, bool degraded)
{
  const bool unsure = degraded && hk_journal_sure(hk_eventlog_journal(d->events)) != UINT64_MAX;
  if (d->commit.beat - d->commit.noted < LOOK && !(unsure && !d->commit.unsure))
    return;
  d->commit.noted = d->commit.beat;
  d->commit.unsure = unsure;
  /* If either fails, the journal fails or has failed, and that is reported; this is retried in a second. */
  if (!degraded || hk_journal_note_apart(hk_eventlog_journal(d->events)) == 0)
    (void)hk_marks_sync(d->marks);
}

/* Whether files can be written to the disk. */
static bool works(struct hk_durable *d)
{
  static const char name[] = "probe";
  int file;
  void *zeros = calloc(1, PROBE);
  bool fine = zeros != NULL;
  (void)hk_disk_remove(&d->disk, d->folder, name); /* of an attempt that could not be completed */
  if (fine && hk_disk_create(&d->disk, d->folder, name, &file) == 0) {
    fine = hk_disk_write(&d->disk, file, zeros, PROBE) == 0 && hk_disk_sync(&d->disk, file) == 0;
    close(file);
    fine &= hk_disk_remove(&d->disk, d->folder, name) == 0;
  } else {
    fine = false;
  }
  free(zeros);
  return fine;
}

static void *commit_thread_run(void *arg)
{
  struct hk_durable *d = arg;
  int status = 0;
  hk_thread_name("commit", 0);
  while (!d->commit.quit) {
    d->commit.work = false;
    d->commit.beat = hk_now();
    const bool any = commit(d, &status);
    if (hk_condition_degraded(d) && d->commit.beat - d->commit.probed >= LOOK) {
      d->commit.probed = d->commit.beat;
      if (hk_folder_resume(&d->there) && works(d))
        hk_condition_works(d);
    }
    keep_marks(d, hk_condition_degraded(d));
    if (status != 0)
      commit_thread_rest(d, AGAIN, true);
    else if (!any)
      commit_thread_rest(d, LOOK, false);
  }
  (void)commit(d, &status); /* no thread appends any more */
  if (status == 0)
    (void)commit(d, &status); /* and the records that were not taken because older ones failed */
  if (hk_journal_note_end(hk_eventlog_journal(d->events)) == 0)
    (void)hk_marks_sync(d->marks); /* without it a start uses the former marks, which is safe */
  if (status != 0)
    hk_log(d->log, HK_LOG_ERROR, "ended with points that are not on the disk; they were neither acknowledged nor published");
  return NULL;
}

int hk_commit_start(struct hk_durable *d)
{
  d->commit.beat = d->commit.begun = hk_now();
  const int status = -pthread_create(&d->commit.thread, NULL, commit_thread_run, d);
  d->commit.running = status == 0;
  return status;
}

bool hk_commit_stop(struct hk_durable *d)
{
  if (!d->commit.running)
    return true;
  d->commit.quit = true;
  hk_durable_nudge(d);
  d->commit.running = !hk_thread_join(d->commit.thread, END);
  return !d->commit.running;
}
