/* Opens and closes the state folder. */
#include "daemon/durable/durable.h"

#include "cpu/monotonic.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/journal_segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int durable_say(char *error, size_t size, const struct hk_durable *d, int status, const char *what)
{
  snprintf(error, size, "state = %s: %s: %s", d->path, what, strerror(-status));
  return status;
}

/* Whether a folder has files of an earlier run. */
static bool any_state(const struct hk_durable *d, int folder)
{
  uint64_t *numbers;
  size_t journals = 0, snapshots = 0;
  if (hk_disk_list(&d->disk, folder, "journal", "hkj", &numbers, &journals) == 0)
    free(numbers);
  if (hk_disk_list(&d->disk, folder, "snapshot", "hks", &numbers, &snapshots) == 0)
    free(numbers);
  return journals + snapshots > 0;
}

/* With durability = none: logs if there is state that could have been restored. */
static void look_for_state(const struct hk_durable *d, const char *path)
{
  char name[HK_CONFIG_PATH_MAX + 16];
  snprintf(name, sizeof name, "%s/shard-0", path);
  const int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  if (any_state(d, folder))
    hk_log(d->log, HK_LOG_WARNING,
           "durability = none: the state of an earlier run in %s is not restored and becomes outdated; durability = journal or "
           "snapshot restores it, and an empty folder ends this message",
           path);
  close(folder);
}

/* Opens the marks. If they should exist and do not, it is unknown what else is missing. */
static int open_marks(struct hk_durable *d, char *error, size_t size)
{
  const struct hk_journal_place events = hk_eventlog_place(&d->disk, d->folder, 0);
  struct hk_journal_mark mark;
  uint32_t version = 0, newest = 0;
  int status = hk_journal_version(&events, &newest);
  for (uint32_t i = 0; i < d->shards && status == 0; i++) {
    const struct hk_journal_place place = { .disk = &d->disk, .folder = d->shard_folder[i], .stem = "journal", .suffix = "hkj" };
    status = hk_journal_version(&place, &version);
    newest = version > newest ? version : newest;
  }
  if (status == 0)
    status = hk_marks_open(&d->marks, &d->disk, d->folder);
  if (status != 0)
    return durable_say(error, size, d, status, HK_MARKS_FILE);
  if (newest < HK_JOURNAL_VERSION || hk_marks_get(d->marks, HK_MARK_EVENTS, &mark))
    return 0;
  hk_log(d->log, HK_LOG_WARNING,
         "state = %s: the file " HK_MARKS_FILE " is missing or damaged: it is unknown whether the end of a journal or of the "
         "event log is lost; event positions continue far beyond the existing ones",
         d->path);
  mark = (struct hk_journal_mark){ .apart = true };
  status = hk_marks_put(d->marks, HK_MARK_EVENTS, &mark);
  return status != 0 ? durable_say(error, size, d, status, HK_MARKS_FILE) : 0;
}

/* Locks the folder for this daemon, and makes one for each shard. Returns 0, or a negative errno with a message. */
static int take_folder(struct hk_durable *d, char *error, size_t size)
{
  int status = hk_disk_folder(&d->disk, AT_FDCWD, d->path, &d->folder);
  if (status != 0)
    return durable_say(error, size, d, status, "cannot be opened or made");
  status = hk_disk_lock(&d->disk, d->folder, &d->lock);
  if (status == -EWOULDBLOCK)
    snprintf(error, size, "state = %s: another daemon uses it", d->path);
  else if (status != 0)
    (void)durable_say(error, size, d, status, "lock");
  for (uint32_t i = 0; i < d->shards && status == 0; i++) {
    char name[32];
    snprintf(name, sizeof name, "shard-%u", i);
    status = hk_disk_folder(&d->disk, d->folder, name, &d->shard_folder[i]);
    if (status != 0)
      (void)durable_say(error, size, d, status, name);
  }
  if (status == 0) {
    status = hk_disk_sync_folder(&d->disk, d->folder);
    if (status != 0)
      (void)durable_say(error, size, d, status, "fsync");
  }
  return status;
}

int hk_durable_open(struct hk_durable *d, const struct hk_config *config, uint32_t shards, struct hk_log *log, char *error,
                    size_t size)
{
  d->mode = config->durability;
  d->shards = shards;
  d->path = config->state;
  d->log = log;
  d->folder = d->lock = -1;
  d->segment = config->journal_segment;
  d->journal_wait = config->journal_wait;
  pthread_mutex_init(&d->commit.sleep, NULL);
  hk_monotonic_condition(&d->commit.woken);
  pthread_mutex_init(&d->health.lock, NULL);
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    d->shard_folder[i] = -1;
  int status = hk_feeds_new(&d->feeds, shards);
  if (status != 0) {
    snprintf(error, size, "start: %s", strerror(-status));
    return status;
  }
  hk_feeds_limit(d->feeds, config->max_feeds_per_peer, config->feed_expiry);
  if (d->mode == HK_DURABILITY_NONE) {
    if (config->state[0])
      look_for_state(d, config->state);
    return 0;
  }
  status = take_folder(d, error, size);
  if (d->folder < 0)
    return status;
  if (status == 0)
    status = open_marks(d, error, size);
  if (status == 0)
    status = hk_eventlog_open(&d->events, &d->disk, d->folder, config->event_log, d->marks, d->log, error, size);
  d->there = (struct hk_state_folder){ .disk = &d->disk,
                                       .log = d->log,
                                       .path = d->path,
                                       .shards = shards,
                                       .folder = &d->folder,
                                       .lock = &d->lock,
                                       .shard_folder = d->shard_folder,
                                       .journal = d->journal,
                                       .marks = d->marks,
                                       .events = status == 0 ? hk_eventlog_journal(d->events) : NULL };
  return status;
}

static void remove_all(const struct hk_durable *d, int folder, const char *stem, const char *suffix)
{
  uint64_t *numbers;
  size_t n;
  if (hk_disk_list(&d->disk, folder, stem, suffix, &numbers, &n) != 0)
    return;
  for (size_t i = 0; i < n; i++) {
    char name[HK_DISK_NAME_MAX];
    hk_disk_name(name, stem, numbers[i], suffix);
    if (hk_disk_remove(&d->disk, folder, name) != 0)
      hk_log(d->log, HK_LOG_WARNING, "state = %s: %s is left from an earlier run, no longer needed, and could not be removed",
             d->path, name);
  }
  free(numbers);
}

/* The journal of a shard is being removed. */
static void forget_mark(struct hk_durable *d, uint32_t shard)
{
  struct hk_journal_mark mark;
  if (!hk_marks_get(d->marks, shard, &mark) || mark.segment == 0)
    return;
  mark = (struct hk_journal_mark){ 0 };
  const int status = hk_marks_end(d->marks, shard, &mark);
  if (status != 0)
    hk_log(d->log, HK_LOG_WARNING, "state = %s: %s cannot be written: %s; the next start may miss a journal that is not needed",
           d->path, HK_MARKS_FILE, strerror(-status));
}

void hk_durable_forget_past(struct hk_durable *d)
{
  for (uint32_t i = d->mode == HK_DURABILITY_SNAPSHOT ? 0 : d->shards; i < HK_SHARDS_MAX; i++)
    forget_mark(d, i);
  for (uint32_t i = 0; i < d->shards && d->mode == HK_DURABILITY_SNAPSHOT; i++)
    remove_all(d, d->shard_folder[i], "journal", "hkj");
  for (uint32_t i = d->shards; i < HK_SHARDS_MAX; i++) {
    char name[32];
    snprintf(name, sizeof name, "shard-%u", i);
    const int folder = openat(d->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
      continue;
    remove_all(d, folder, "journal", "hkj");
    remove_all(d, folder, "snapshot", "hks");
    close(folder);
  }
}

/* Writes a change of the registry to the journal of the slot's shard. */
static void on_change(void *arg, enum hk_registry_change change, const struct hk_registry_changed *s)
{
  static const uint32_t types[] = {
    [HK_REGISTRY_ADDED] = HK_RECORD_REGISTER, [HK_REGISTRY_RETIRED] = HK_RECORD_RETIRE, [HK_REGISTRY_RELEASED] = HK_RECORD_RELEASE
  };
  struct hk_durable *d = arg;
  const uint64_t order = ++d->order;
  const struct hk_record_sensor sensor = { order, s->slot, s->generation, s->name, hk_string(s->detector), s->owner };
  struct hk_journal *journal = d->journal[s->slot % d->shards];
  if (hk_record_sensor(journal, types[change], &sensor) != 0) {
    hk_durable_give_up(d, "no memory for its journal");
    (void)hk_record_sensor(journal, types[change], &sensor);
  }
  hk_durable_nudge(d);
}

uint64_t hk_durable_order(struct hk_durable *d, struct hk_registry *registry)
{
  hk_registry_read(registry); /* no change is incomplete then */
  const uint64_t order = d->order;
  hk_registry_read_end(registry);
  return order;
}

int hk_durable_begin(struct hk_durable *d, const uint64_t position[], struct hk_registry *registry, char *error, size_t size)
{
  int status = 0;
  for (uint32_t i = 0; d->mode == HK_DURABILITY_JOURNAL && i < d->shards && status == 0; i++) {
    const struct hk_journal_place place = { &d->disk, d->shard_folder[i], "journal",  "hkj",    HK_JOURNAL_POINTS,
                                            i,        d->shards,          d->segment, d->marks, i };
    status = hk_journal_new(&d->journal[i], &place, position[i]);
    if (status == 0)
      status = hk_journal_note(d->journal[i]);
  }
  if (status == 0 && d->events)
    status = hk_journal_note(hk_eventlog_journal(d->events));
  if (status == 0 && d->mode == HK_DURABILITY_JOURNAL) {
    hk_feeds_journal(d->feeds, d->journal);
    hk_registry_on_change(registry, on_change, d);
  }
  if (status == 0 && d->mode != HK_DURABILITY_NONE)
    status = hk_folder_begin(&d->there);
  if (status == 0 && d->mode != HK_DURABILITY_NONE)
    status = hk_commit_start(d);
  if (status != 0)
    (void)durable_say(error, size, d, status, "journal");
  return status;
}

bool hk_durable_stop(struct hk_durable *d)
{
  return hk_commit_stop(d);
}

void hk_durable_close(struct hk_durable *d)
{
  if (!d->log)
    return; /* was not opened */
  for (uint32_t i = 0; i < d->shards; i++) {
    hk_journal_free(d->journal[i]);
    if (d->shard_folder[i] >= 0)
      close(d->shard_folder[i]);
  }
  hk_eventlog_free(d->events);
  hk_marks_free(d->marks);
  if (d->folder >= 0)
    close(d->folder);
  if (d->lock >= 0)
    close(d->lock);
  hk_feeds_free(d->feeds);
  pthread_mutex_destroy(&d->health.lock);
  pthread_cond_destroy(&d->commit.woken);
  pthread_mutex_destroy(&d->commit.sleep);
}

void hk_durable_adopt(struct hk_durable *d, const struct hk_config *config)
{
  d->journal_wait = config->journal_wait;
  hk_feeds_limit(d->feeds, config->max_feeds_per_peer, config->feed_expiry);
}
