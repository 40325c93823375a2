/* The saver's thread: writes slices to a file, and removes files that are no longer needed. */
#include "daemon/scoring/snapshot_thread.h"
#include "cpu/backend/state_size.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/snapshot_write.h"
#include "daemon/scoring/hand_over.h"

#include "cpu/rules/state.h"
#include "daemon/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END 2 /* s that the thread gets to end */
#define KEEP 2
#define PATIENCE 60000000000 /* ns within which the journal must be written, and the broker have confirmed */

void hk_saver_send(struct hk_saver *v, struct hk_save_order *order)
{
  order->next = NULL;
  pthread_mutex_lock(&v->lock);
  *v->tail = order;
  v->tail = &order->next;
  pthread_cond_signal(&v->changed);
  pthread_mutex_unlock(&v->lock);
}

void hk_saver_fail(struct hk_saver *v, const char *why)
{
  pthread_mutex_lock(&v->lock);
  if (!v->failed)
    snprintf(v->condition.why, sizeof v->condition.why, "%s", why);
  v->failed = true;
  pthread_mutex_unlock(&v->lock);
}

struct hk_saver_condition hk_saver_condition(struct hk_saver *v)
{
  pthread_mutex_lock(&v->lock);
  const struct hk_saver_condition condition = v->condition;
  pthread_mutex_unlock(&v->lock);
  return condition;
}

static void fail(struct hk_saver *v, const char *doing, int status)
{
  char why[sizeof v->condition.why];
  snprintf(why, sizeof why, "%s: %s", doing, strerror(-status));
  hk_saver_fail(v, why);
}

static const struct hk_disk *disk_of(const struct hk_saver *v)
{
  return &v->place.durable->disk;
}

static int folder_of(const struct hk_saver *v)
{
  return v->place.durable->shard_folder[v->place.shard->number];
}

/* Whether a file contains the sensors of a partition. */
static bool takes(const struct hk_save_file *f, uint32_t partition)
{
  return !f->held || f->held->partition == partition;
}

/* Writes the positions of feeds in the shard; to the file of a partition, its feed alone. */
static int write_feeds(struct hk_saver *v, struct hk_save_file *f)
{
  int status = 0;
  for (uint32_t i = 0; i < v->n_feeds && status == 0; i++) {
    const struct hk_saved_feed *saved = &v->feeds[i];
    const struct hk_record_feed feed = { saved->feed->number, saved->feed->name, saved->owner, saved->feed->used };
    const bool its =
        f->held && feed.name.length == strlen(f->held->feed) && memcmp(feed.name.data, f->held->feed, feed.name.length) == 0;
    if (!f->held || its)
      status = hk_snapshot_feed(f->writer, &feed, its && f->held->base > saved->upto ? f->held->base : saved->upto);
  }
  return status;
}

static int begin_file(struct hk_saver *v, struct hk_save_file *f)
{
  struct hk_snapshot_about about = v->progress.about;
  if (f->held)
    about.epoch = f->held->epoch;
  const int status = hk_snapshot_create(&f->writer, disk_of(v), f->folder, &about);
  if (status == 0)
    return write_feeds(v, f);
  f->writer = NULL;
  return status;
}

static void begin(struct hk_saver *v)
{
  struct hk_save_output *o = &v->output;
  pthread_mutex_lock(&v->lock);
  v->condition.running = true;
  pthread_mutex_unlock(&v->lock);
  o->sensors = o->last = o->events = 0;
  o->n = v->place.shared ? v->n_held : 1;
  o->file = calloc(o->n + 1, sizeof *o->file);
  int status = o->file ? 0 : -ENOMEM;
  o->n = o->file ? o->n : 0;
  for (uint32_t i = 0; i < o->n; i++) {
    o->file[i].held = v->place.shared ? &v->held[i] : NULL;
    o->file[i].folder = v->place.shared ? v->held[i].folder : folder_of(v);
    if (status == 0 && !v->failed)
      status = begin_file(v, &o->file[i]);
  }
  for (uint32_t i = 0; i < v->n_feeds; i++)
    hk_feed_release(v->feeds[i].feed);
  if (status != 0)
    fail(v, "beginning the file", status);
}

/* Closes the written files, and removes unfinished ones. */
static void close_files(struct hk_saver *v)
{
  for (uint32_t i = 0; i < v->output.n; i++)
    hk_snapshot_close(v->output.file[i].writer);
  for (uint32_t i = 0; i < v->n_held; i++)
    close(v->held[i].folder);
  free(v->output.file);
  free(v->held);
  v->output.file = NULL;
  v->held = NULL;
  v->output.n = v->n_held = 0;
}

/* Makes room for the state of any sensor of a slice. */
static bool room_for(struct hk_saver *v, const struct hk_slice *slice)
{
  size_t most = 0;
  for (uint32_t i = 0; i < slice->n_detectors; i++) {
    const size_t size = hk_state_most(&slice->detectors[i].detector);
    most = size > most ? size : most;
  }
  if (most <= v->output.room_size)
    return true;
  free(v->output.room);
  v->output.room = malloc(most);
  v->output.room_size = v->output.room ? most : 0;
  return v->output.room != NULL;
}

static int write_sensor(struct hk_saver *v, struct hk_save_file *f, const struct hk_slice *slice, const struct hk_saved_sensor *s,
                        uint16_t detector)
{
  const struct hk_batch *b = slice->delivery->batch;
  const struct hk_image *image = (const struct hk_image *)b->work + s->image;
  size_t size = image->size;
  const void *state =
      b->backend->ops->state_of((char *)b->bulk + image->at, &slice->detectors[s->detector].detector, v->output.room, &size);
  const struct hk_snapshot_sensor sensor = { .slot = s->slot,
                                             .generation = s->generation,
                                             .detector = detector,
                                             .name = { slice->names + s->name, s->name_size },
                                             .alerts = s->alerts,
                                             .state = state,
                                             .state_size = (uint32_t)size };
  return hk_snapshot_add(f->writer, &sensor);
}

/* Writes the machines whose series are in the slice. */
static int write_machines(struct hk_save_file *f, const struct hk_slice *slice)
{
  const char *data = slice->machines.data;
  int status = 0;
  hk_snapshot_begin(f->writer, HK_PART_MACHINES, slice->position, 0);
  for (uint32_t i = 0; i < slice->n_machines && status == 0; i++) {
    const struct hk_saved_machine *m = &slice->machine[i];
    struct hk_machine_memory memory = m->memory;
    memory.members = (const void *)(data + m->places.members);
    memory.changes = (const void *)(data + m->places.changes);
    memory.rows = data + m->places.rows;
    if (m->whole && takes(f, m->partition))
      status = hk_snapshot_add_machine(f->writer, &memory, m->generation);
  }
  return status != 0 ? status : hk_snapshot_end(f->writer);
}

static int write_owners(struct hk_save_file *f, const struct hk_slice *slice)
{
  int status = 0;
  hk_snapshot_begin(f->writer, HK_PART_OWNERS, 0, 0);
  for (uint32_t i = 0; i < slice->n && status == 0; i++) {
    const struct hk_saved_sensor *s = &slice->sensors[i];
    if (s->owner != 0 && takes(f, s->partition))
      status = hk_snapshot_add_owner(f->writer, &(struct hk_snapshot_owner){ s->slot, s->generation, s->owner });
  }
  return status != 0 ? status : hk_snapshot_end(f->writer);
}

static int write_counters(struct hk_save_file *f, const struct hk_slice *slice)
{
  int status = 0;
  hk_snapshot_begin(f->writer, HK_PART_COUNTERS, 0, 0);
  for (uint32_t i = 0; i < slice->n && status == 0; i++) {
    const struct hk_saved_sensor *s = &slice->sensors[i];
    if (s->rate.known && takes(f, s->partition))
      status = hk_snapshot_add_counter(f->writer, &(struct hk_snapshot_counter){ s->slot, s->generation, s->rate });
  }
  return status != 0 ? status : hk_snapshot_end(f->writer);
}

static int write_provisional(struct hk_save_file *f, const struct hk_slice *slice)
{
  const char *saved = slice->provisional.data;
  int status = 0;
  hk_snapshot_begin(f->writer, HK_PART_PROVISIONAL, 0, 0);
  for (uint32_t i = 0; i < slice->n && status == 0; i++) {
    const struct hk_saved_sensor *s = &slice->sensors[i];
    if (s->provisional_size > 0 && takes(f, s->partition))
      status = hk_snapshot_add_provisional(
          f->writer, &(struct hk_snapshot_provisional){ s->slot, s->generation, saved, s->provisional_size });
    saved += s->provisional_size;
  }
  return status != 0 ? status : hk_snapshot_end(f->writer);
}

static int write_slice(struct hk_saver *v, struct hk_save_file *f, const struct hk_slice *slice)
{
  uint16_t detectors[HK_EXPORT_SENSORS]; /* numbers within the file, by those of the slice */
  int status = room_for(v, slice) ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < slice->n_detectors && status == 0; i++)
    status = hk_snapshot_detector(f->writer, hk_string(slice->detectors[i].name), &detectors[i]);
  if (status == 0)
    hk_snapshot_begin(f->writer, HK_PART_SENSORS, slice->position, slice->arrival);
  for (uint32_t i = 0; i < slice->n && status == 0; i++)
    if (takes(f, slice->sensors[i].partition))
      status = write_sensor(v, f, slice, &slice->sensors[i], detectors[slice->sensors[i].detector]);
  if (status == 0)
    status = hk_snapshot_end(f->writer);
  if (status == 0 && slice->n_machines > 0)
    status = write_machines(f, slice);
  if (status == 0)
    status = write_owners(f, slice);
  if (status == 0)
    status = write_counters(f, slice);
  return status != 0 || slice->provisional.size == 0 ? status : write_provisional(f, slice);
}

static void save_slice(struct hk_saver *v, struct hk_slice *slice)
{
  int status = 0;
  for (uint32_t i = 0; i < v->output.n && status == 0 && !v->failed; i++)
    status = write_slice(v, &v->output.file[i], slice);
  if (status != 0)
    fail(v, "writing", status);
  v->output.sensors += slice->n;
  v->output.last = slice->position > v->output.last ? slice->position : v->output.last;
  v->output.events = slice->events > v->output.events ? slice->events : v->output.events;
  struct hk_delivery *p = slice->delivery;
  atomic_store_explicit(&slice->busy, false, memory_order_release);
  hk_delivery_release(p, &v->output.counters);
}

/* Removes all but the newest. Files that cannot be removed are tried again with the next snapshot. */
static void remove_old(struct hk_saver *v, int folder)
{
  uint64_t *numbers;
  size_t n;
  if (hk_disk_list(disk_of(v), folder, HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n) != 0)
    return;
  for (size_t i = 0; i + KEEP < n; i++) {
    char name[HK_DISK_NAME_MAX];
    hk_disk_name(name, HK_SNAPSHOT_STEM, numbers[i], HK_SNAPSHOT_SUFFIX);
    (void)hk_disk_remove(disk_of(v), folder, name);
  }
  free(numbers);
}

/* Whether a partition of the snapshot is still held; true if it is of no partitions. */
static bool counts(const struct hk_saver *v)
{
  bool any = !v->place.shared;
  for (uint32_t i = 0; i < v->output.n && !any; i++)
    any = hk_partitions_hold(v->place.shard->requests.partitions, v->output.file[i].held);
  return any;
}

/* Logs whether snapshots wait for scores (score_gate.h), if that has changed. */
static void tell_waiting(const struct hk_saver *v, bool without)
{
  struct hk_log *log = v->place.shard->all->log;
  if (v->output.scores.without && !without)
    hk_log(
        log, HK_LOG_WARNING,
        "[cluster] snapshots no longer wait for the broker to confirm scores: if this scorer dies now, other machines lack some");
  else if (!v->output.scores.without && without)
    hk_log(log, HK_LOG_NOTICE, "[cluster] snapshots wait for the broker to confirm scores again");
}

/* What is to be on the disk, or at the broker, and is not, in words; NULL: nothing. */
static const char *lacks(struct hk_saver *v)
{
  const struct hk_shard *s = v->place.shard;
  if (!hk_durable_covers(v->place.durable, s->number, v->output.last))
    return "the journal is not written";
  if (s->all->events && !hk_eventlog_safe(s->all->events, v->output.events))
    return v->place.shared ? "the broker has not confirmed its events" : "the log of events is not written";
  if (v->place.shared && !hk_score_wait_over(&v->output.scores, &s->all->scores, hk_now()))
    return "the broker has not confirmed its scores";
  return NULL;
}

/* Waits until points, events and shared scores are where they survive us, which must precede the sensors: until then a crash
 * undoes both. False: abandoned. */
static bool await_others(struct hk_saver *v)
{
  const struct timespec moment = { 0, 1000000 };
  const int64_t until = hk_now() + PATIENCE;
  const bool without = v->output.scores.without;
  const char *why;
  if (v->place.shared)
    hk_score_wait_begin(&v->output.scores, &v->place.shard->all->scores, hk_now());
  while (!v->failed && counts(v) && (why = lacks(v)) != NULL) {
    if (hk_now() > until)
      hk_saver_fail(v, why);
    (void)nanosleep(&moment, NULL);
  }
  tell_waiting(v, without);
  return !v->failed;
}

/* Records a new snapshot, so that older ones may be removed. */
static void keep(struct hk_saver *v)
{
  v->output.kept[1] = v->output.kept[0];
  v->output.kept[0] = v->progress.about.begin;
  v->output.logged_by[1] = v->output.logged_by[0];
  v->output.logged_by[0] = v->progress.logged;
  v->output.n_kept = v->output.n_kept < KEEP ? v->output.n_kept + 1 : KEEP;
  if (hk_durable_snapshot_done(v->place.durable, v->place.shard->number, v->progress.about.begin, v->progress.begun,
                               v->output.n_kept == KEEP ? v->output.kept[1] : 0, v->output.logged_by[KEEP - 1]))
    remove_old(v, folder_of(v));
}

/* Completes the files on the disk. Partitions that are no longer held are another machine's to save. *bytes: of all files. */
static int finish_files(struct hk_saver *v, uint64_t *bytes)
{
  int status = 0;
  for (uint32_t i = 0; i < v->output.n && status == 0; i++) {
    const struct hk_save_file *f = &v->output.file[i];
    if (f->held && !hk_partitions_hold(v->place.shard->requests.partitions, f->held))
      continue;
    status = hk_snapshot_finish(f->writer);
    *bytes += hk_snapshot_bytes(f->writer);
    if (status == 0 && f->held)
      remove_old(v, f->folder);
  }
  return status;
}

static void finish(struct hk_saver *v)
{
  struct hk_shard *s = v->place.shard;
  uint64_t bytes = 0;
  const bool whole = !v->failed && await_others(v);
  const int status = whole ? finish_files(v, &bytes) : 0;
  if (status != 0)
    fail(v, "finishing the file", status);
  const bool good = !v->failed;
  const int64_t took = hk_wall() - v->progress.about.made;
  close_files(v);
  if (good && !v->place.shared) {
    hk_folder_saved(&v->place.durable->there, s->number, v->progress.about.number);
    keep(v); /* before it is reported, so that the report can be relied on */
  }
  pthread_mutex_lock(&v->lock);
  struct hk_saver_condition *c = &v->condition;
  c->running = false;
  c->made += good;
  c->failed += !good;
  if (good) {
    c->last = v->progress.about.made;
    c->took = took;
    c->sensors = v->output.sensors;
    c->bytes = bytes;
    c->why[0] = 0;
  }
  const struct hk_saver_condition told = *c;
  pthread_mutex_unlock(&v->lock);
  if (good)
    hk_log(s->all->log, HK_LOG_DEBUG, "snapshot of shard %u: %llu sensors, %llu bytes, %.2f s", s->number,
           (unsigned long long)told.sensors, (unsigned long long)told.bytes, (double)told.took * 1e-9);
  else
    hk_log_peer(s->all->log, &v->output.failures, HK_LOG_ERROR, "snapshot",
                "of shard %u was abandoned: %s; the previous one is kept, and the next is taken on schedule", s->number,
                told.why);
  atomic_store_explicit(&v->over, true, memory_order_release);
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
}

static void *snapshot_thread_run(void *arg)
{
  struct hk_saver *v = arg;
  hk_thread_name("saver", v->place.shard->number);
  pthread_mutex_lock(&v->lock);
  for (;;) {
    while (!v->first && !v->quit)
      pthread_cond_wait(&v->changed, &v->lock);
    struct hk_save_order *order = v->first;
    if (!order)
      break;
    v->first = order->next;
    if (!v->first)
      v->tail = &v->first;
    pthread_mutex_unlock(&v->lock);
    if (order->kind == HK_SAVE_SLICE)
      save_slice(v, (struct hk_slice *)order);
    else if (order->kind == HK_SAVE_BEGIN)
      begin(v);
    else
      finish(v);
    pthread_mutex_lock(&v->lock);
  }
  pthread_mutex_unlock(&v->lock);
  return NULL;
}

/* Removes unfinished files of a crash. *number: the highest of the existing files. */
static int clean(struct hk_saver *v)
{
  uint64_t *numbers;
  size_t n;
  int status = hk_disk_list(disk_of(v), folder_of(v), HK_SNAPSHOT_STEM, HK_SNAPSHOT_UNFINISHED, &numbers, &n);
  for (size_t i = 0; i < n && status == 0; i++) {
    char name[HK_DISK_NAME_MAX];
    hk_disk_name(name, HK_SNAPSHOT_STEM, numbers[i], HK_SNAPSHOT_UNFINISHED);
    v->progress.number = numbers[i] > v->progress.number ? numbers[i] : v->progress.number;
    status = hk_disk_remove(disk_of(v), folder_of(v), name);
  }
  free(numbers);
  if (status == 0)
    status = hk_disk_list(disk_of(v), folder_of(v), HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n);
  if (status == 0) {
    v->progress.number = n > 0 && numbers[n - 1] > v->progress.number ? numbers[n - 1] : v->progress.number;
    free(numbers);
  }
  return status;
}

int hk_saver_open(struct hk_saver **out, const struct hk_saver_place *place)
{
  struct hk_saver *v = calloc(1, sizeof *v);
  if (!v)
    return -ENOMEM;
  v->place = *place;
  v->tail = &v->first;
  v->progress.ended = hk_now();
  v->output.kept[0] = place->begin;
  v->output.n_kept = place->restored;
  pthread_mutex_init(&v->lock, NULL);
  pthread_cond_init(&v->changed, NULL);
  int status = v->place.shared ? 0 : clean(v); /* folders of partitions are new */
  if (status == 0)
    status = -pthread_create(&v->output.thread, NULL, snapshot_thread_run, v);
  v->output.running = status == 0;
  *out = v;
  return status;
}

bool hk_saver_close(struct hk_saver *v)
{
  if (!v)
    return true;
  hk_saver_fail(v, "the daemon ends");
  pthread_mutex_lock(&v->lock);
  v->quit = true;
  pthread_cond_signal(&v->changed);
  pthread_mutex_unlock(&v->lock);
  if (v->output.running && !hk_thread_join(v->output.thread, END))
    return false;
  close_files(v);
  for (uint32_t i = 0; i < HK_EXPORTS; i++) {
    free(v->slice[i].detectors);
    free(v->slice[i].names);
    free(v->slice[i].machine);
    hk_buffer_free(&v->slice[i].machines);
    hk_buffer_free(&v->slice[i].provisional);
  }
  pthread_cond_destroy(&v->changed);
  pthread_mutex_destroy(&v->lock);
  free(v->progress.left);
  free(v->feeds);
  free(v->output.room);
  free(v);
  return true;
}
