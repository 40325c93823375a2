#include "daemon/bridge/cluster_state.h"

#include "daemon/base/grow.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/sensors/register.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEM "epoch"
#define SUFFIX "hkp"
#define WHY 128

/* The state that is being restored. */
struct work {
  struct hk_cluster *c;
  const struct hk_disk *disk;
  int partition;    /* its folder */
  char **detectors; /* of the current file, by its numbers */
  uint32_t n_detectors;
  uint32_t *map, slots, room; /* by the file's slots */
  bool fed;                   /* the file records how far the log was read */
  struct hk_cluster_taken *out;
  char name[HK_DISK_NAME_MAX], why[WHY]; /* the last snapshot, and its reader's error; "": none */
  uint32_t number;                       /* of the partition; and where that snapshot is: */
  uint64_t epoch;
  uint32_t shard;
};

static bool stops(void *arg)
{
  hk_cluster_alive(arg);
  return hk_cluster_stops(arg);
}

int hk_cluster_state_order(struct hk_cluster *c, const struct hk_partition_order *order, const int *folder)
{
  const struct hk_shards *all = c->net->shards;
  int status = 0;
  for (uint32_t i = 0; i < all->n; i++) {
    struct hk_partition_order o = *order;
    if (folder)
      o.held.folder = folder[i];
    const int one = hk_partitions_ask(&all->shard[i], &o, stops, c);
    status = status != 0 ? status : one;
    if (one != 0 && folder)
      close(folder[i]);
  }
  return status;
}

int hk_cluster_state_open(const struct hk_cluster *c, int *out, char why[HK_ENGINE_WHY])
{
  const struct hk_disk *disk = &c->net->durable->disk;
  char name[HK_SECTION_TEXT + 16];
  int base, status = hk_disk_folder_there(disk, AT_FDCWD, c->rule.state, &base);
  if (status != 0) {
    snprintf(why, HK_ENGINE_WHY, "state = shared:%.180s: %s", c->rule.state, strerror(-status));
    return status;
  }
  snprintf(name, sizeof name, "%s-%" PRIu32, c->rule.name, c->rule.partitions);
  status = hk_disk_folder(disk, base, name, out);
  if (status != 0)
    snprintf(why, HK_ENGINE_WHY, "state = shared:%.180s: %s", c->rule.state, strerror(-status));
  close(base);
  return status;
}

/* --- choosing -------------------------------------------------------------------------------------------------------------- */

/* The path of the last snapshot, below the partition's folder. */
static void say_where(const struct work *w, char out[WHY])
{
  char epoch[HK_DISK_NAME_MAX];
  hk_disk_name(epoch, STEM, w->epoch, SUFFIX);
  snprintf(out, WHY, "%.40s/shard-%" PRIu32 "/%.40s", epoch, w->shard, w->name);
}

static int shard_folder(const struct work *w, int epoch, uint32_t shard, bool make, int *out)
{
  char name[32];
  snprintf(name, sizeof name, "shard-%" PRIu32, shard);
  return make ? hk_disk_folder(w->disk, epoch, name, out) : hk_disk_folder_there(w->disk, epoch, name, out);
}

static int open_epoch(const struct work *w, uint64_t number, int *out)
{
  char name[HK_DISK_NAME_MAX];
  hk_disk_name(name, STEM, number, SUFFIX);
  return hk_disk_folder_there(w->disk, w->partition, name, out);
}

/* Opens a snapshot, and reads it as a whole. Returns 0: it is valid; -EBADMSG: it is damaged; or another negative errno. */
static int open_whole(struct work *w, int folder, struct hk_snapshot_reader **out)
{
  struct hk_snapshot_part part;
  int status = hk_snapshot_open(out, w->disk, folder, w->name, w->why, WHY);
  if (status != 0)
    return status;
  while ((status = hk_snapshot_next(*out, &part)) == 1)
    hk_cluster_alive(w->c);
  hk_snapshot_read_close(*out);
  return status == 0 ? hk_snapshot_open(out, w->disk, folder, w->name, w->why, WHY) : status;
}

/* Opens the newest valid snapshot of a folder. -ENOENT: there is none. Damaged ones are left out; one that cannot be read for
 * another reason (the disk, memory, a newer hankeld has written it) is an error, because an older state, or none, in its place
 * would lose what it has. */
static int open_good(struct work *w, int folder, struct hk_snapshot_reader **out)
{
  uint64_t *numbers;
  size_t n;
  int status = hk_disk_list(w->disk, folder, HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n);
  for (bool found = false; status == 0 && !found;) {
    if (n-- == 0) {
      status = -ENOENT;
      break;
    }
    hk_disk_name(w->name, HK_SNAPSHOT_STEM, numbers[n], HK_SNAPSHOT_SUFFIX);
    status = open_whole(w, folder, out);
    found = status == 0;
    if (status == -ENOENT)
      status = -EAGAIN; /* its writer has replaced it meanwhile, since it does not know yet that it has lost its lease */
    if (status != -EBADMSG)
      continue;
    char where[WHY];
    say_where(w, where);
    hk_log(w->c->net->log, HK_LOG_ERROR, "[cluster] state: %s of partition %" PRIu32 " is damaged and left out: %s", where,
           w->number, w->why);
    w->why[0] = 0;
    status = 0;
  }
  free(numbers);
  return status;
}

/* Whether all shards of an epoch's holder have one: 0; -ENOENT: not; or another negative errno. *shards: their number. */
static int look_for_shards(struct work *w, int epoch, uint32_t *shards)
{
  int status = 0;
  *shards = 1;
  for (uint32_t i = 0; i < *shards && status == 0; i++) {
    struct hk_snapshot_reader *reader;
    int folder;
    w->shard = i;
    status = shard_folder(w, epoch, i, false, &folder);
    if (status != 0)
      break;
    status = open_good(w, folder, &reader);
    close(folder);
    if (status != 0)
      break;
    *shards = hk_snapshot_of(reader)->shards;
    hk_snapshot_read_close(reader);
  }
  return status;
}

/* Makes the epoch after the newest. */
static int make_epoch(struct work *w, uint64_t newest, int *out)
{
  char name[HK_DISK_NAME_MAX];
  for (w->out->epoch = newest + 1;; w->out->epoch++) {
    hk_disk_name(name, STEM, w->out->epoch, SUFFIX);
    if (mkdirat(w->partition, name, 0700) == 0)
      break;
    if (errno != EEXIST)
      return -errno;
  }
  int status = hk_disk_sync_folder(w->disk, w->partition);
  if (status == 0)
    status = hk_disk_folder_there(w->disk, w->partition, name, out);
  if (status != 0)
    (void)unlinkat(w->partition, name, AT_REMOVEDIR);
  return status;
}

/* --- restoring ------------------------------------------------------------------------------------------------------------- */

static int keep_detector(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_string name;
  uint16_t number;
  if (hk_snapshot_detector_read(part, &number, &name) != 0 || number != w->n_detectors)
    return -EBADMSG;
  char **more = realloc(w->detectors, (w->n_detectors + 1) * sizeof *more);
  if (!more)
    return -ENOMEM;
  w->detectors = more;
  w->detectors[w->n_detectors] = strndup(name.data, name.length);
  return w->detectors[w->n_detectors++] ? 0 : -ENOMEM;
}

/* Every holder has another feed; a file has only its writer's. */
static int keep_position(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_record_feed feed;
  uint64_t upto;
  const int status = hk_snapshot_feed_read(part, &feed, &upto);
  if (status == 0 && upto < w->out->at)
    w->out->at = upto;
  w->fed = true;
  return status;
}

/* Makes room for the file's slots up to this one. */
static bool make_map(struct work *w, uint32_t slot)
{
  while (w->slots <= slot) {
    uint32_t *map = hk_grow(w->map, w->slots, &w->room, sizeof *map, 1024);
    if (!map)
      return false;
    w->map = map;
    w->map[w->slots++] = UINT32_MAX;
  }
  return true;
}

/* Makes the sensors that peers feed, with their companions, before shards restore their states. */
static int register_sensors(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_snapshot_sensor sensor;
  size_t at = 0;
  uint32_t slot;
  int more;
  while ((more = hk_snapshot_sensor_next(part, &at, &sensor)) > 0) {
    if (sensor.detector >= w->n_detectors || !hk_name_valid(sensor.name.data, sensor.name.length))
      return -EBADMSG;
    if (!make_map(w, sensor.slot))
      return -ENOMEM;
    if (!strchr(w->detectors[sensor.detector], HK_DERIVED_MARK) &&
        hk_registry_take(w->c->net->shards->registry, sensor.name.data, sensor.name.length, &slot) != 0)
      w->out->gone++;
  }
  return more;
}

static int order(struct work *w, enum hk_partition_what what, const struct hk_snapshot_part *part)
{
  const struct hk_shards *all = w->c->net->shards;
  struct hk_partition_order o = {
    .what = what, .part = part, .detectors = w->detectors, .n_detectors = w->n_detectors, .map = w->map, .slots = w->slots
  };
  int status = 0;
  for (uint32_t i = 0; i < all->n && status == 0; i++)
    status = hk_partitions_ask(&all->shard[i], &o, stops, w->c);
  w->out->sensors += o.sensors;
  w->out->anew += o.anew;
  w->out->gone += o.gone;
  return status;
}

static int take_part(struct work *w, const struct hk_snapshot_part *part)
{
  int status = 0;
  switch (part->type) {
  case HK_PART_DETECTOR:
    return keep_detector(w, part);
  case HK_PART_FEED:
    return keep_position(w, part);
  case HK_PART_SENSORS:
    status = register_sensors(w, part);
    return status == 0 ? order(w, HK_PARTITION_SENSORS, part) : status;
  case HK_PART_MACHINES:
    return order(w, HK_PARTITION_MACHINES, part);
  case HK_PART_COUNTERS:
    return order(w, HK_PARTITION_COUNTERS, part);
  case HK_PART_PROVISIONAL:
    return order(w, HK_PARTITION_PROVISIONAL, part);
  case HK_PART_END:
    return order(w, HK_PARTITION_LATEST, part);
  default:
    return 0;
  }
}

static void forget_file(struct work *w)
{
  for (uint32_t i = 0; i < w->n_detectors; i++)
    free(w->detectors[i]);
  free(w->detectors);
  free(w->map);
  w->detectors = NULL;
  w->map = NULL;
  w->n_detectors = w->slots = w->room = 0;
}

static int restore_shard(struct work *w, int epoch, uint32_t shard)
{
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  int folder, more = 0, status = shard_folder(w, epoch, shard, false, &folder);
  w->shard = shard;
  if (status != 0)
    return status;
  status = open_good(w, folder, &reader);
  close(folder);
  if (status != 0)
    return status;
  w->fed = false;
  while (status == 0 && (more = hk_snapshot_next(reader, &part)) == 1) {
    hk_cluster_alive(w->c);
    status = take_part(w, &part);
  }
  hk_snapshot_read_close(reader);
  forget_file(w);
  status = status != 0 ? status : more;
  return status == 0 && !w->fed ? -EBADMSG : status;
}

/* Returns 0: it is restored; -ENOENT: it is not complete, and nothing of it was restored; or another negative errno. */
static int restore_epoch(struct work *w, uint64_t number)
{
  uint32_t shards = 0;
  w->epoch = number;
  int epoch, status = open_epoch(w, number, &epoch);
  if (status != 0)
    return status;
  status = look_for_shards(w, epoch, &shards);
  if (status == 0) {
    w->out->from = number;
    w->out->at = UINT64_MAX;
    for (uint32_t i = 0; i < shards && status == 0; i++)
      status = restore_shard(w, epoch, i);
    status = status == -ENOENT ? -EAGAIN : status;
  }
  close(epoch);
  return status;
}

/* Restores the newest complete epoch; without any, nothing. */
static int restore(struct work *w, const uint64_t *epochs, size_t n)
{
  int status = -ENOENT;
  while (n > 0 && status == -ENOENT)
    status = restore_epoch(w, epochs[--n]);
  return status == -ENOENT ? 0 : status;
}

static int make_folders(struct work *w, int epoch)
{
  const uint32_t shards = w->c->net->shards->n;
  uint32_t made = 0;
  int status = 0;
  for (; made < shards && status == 0; made += status == 0)
    status = shard_folder(w, epoch, made, true, &w->out->folder[made]);
  while (status != 0 && made-- > 0)
    close(w->out->folder[made]);
  return status;
}

/* --- taking -------------------------------------------------------------------------------------------------------------- */

static void remove_files(const struct work *w, int folder, const char *suffix)
{
  uint64_t *numbers;
  size_t n;
  if (hk_disk_list(w->disk, folder, HK_SNAPSHOT_STEM, suffix, &numbers, &n) != 0)
    return;
  for (size_t i = 0; i < n; i++) {
    char name[HK_DISK_NAME_MAX];
    hk_disk_name(name, HK_SNAPSHOT_STEM, numbers[i], suffix);
    (void)hk_disk_remove(w->disk, folder, name);
  }
  free(numbers);
}

/* Removes an epoch that a newer complete one has replaced (replaced), or one to which nothing was written: with a file it stays.
 */
static void remove_epoch(const struct work *w, uint64_t number, bool replaced)
{
  char name[HK_DISK_NAME_MAX];
  int epoch, folder;
  if (open_epoch(w, number, &epoch) != 0)
    return;
  for (uint32_t i = 0; i < HK_SHARDS_MAX && shard_folder(w, epoch, i, false, &folder) == 0; i++) {
    if (replaced) {
      remove_files(w, folder, HK_SNAPSHOT_SUFFIX);
      remove_files(w, folder, HK_SNAPSHOT_UNFINISHED);
    }
    close(folder);
    snprintf(name, sizeof name, "shard-%" PRIu32, i);
    (void)unlinkat(epoch, name, AT_REMOVEDIR);
  }
  close(epoch);
  hk_disk_name(name, STEM, number, SUFFIX);
  (void)unlinkat(w->partition, name, AT_REMOVEDIR);
}

/* Says why a partition was not taken. A file that no try will read keeps it from all machines. */
static void take_failed(const struct work *w, int status, char why[HK_ENGINE_WHY])
{
  const struct hk_cluster_rule *r = &w->c->rule;
  const bool stays = status == -EIO || status == -EPROTONOSUPPORT;
  char where[WHY];
  say_where(w, where);
  if (w->why[0])
    snprintf(why, HK_ENGINE_WHY, "its state in %.48s: %.24s-%" PRIu32 "/%" PRIu32 "/%.58s: %.50s%s", r->state, r->name,
             r->partitions, w->number, where, w->why, stays ? "; move it away to go on without it" : "");
  else
    snprintf(why, HK_ENGINE_WHY, "its state in %.60s: %.120s", r->state,
             status == -EBADMSG ? "its layout is wrong" : strerror(-status));
}

void hk_cluster_state_drop(struct hk_cluster *c, int state, uint32_t partition, uint64_t epoch)
{
  struct work w = { .c = c, .disk = &c->net->durable->disk };
  char name[16];
  snprintf(name, sizeof name, "%" PRIu32, partition);
  if (hk_disk_folder_there(w.disk, state, name, &w.partition) != 0)
    return;
  remove_epoch(&w, epoch, false);
  close(w.partition);
}

int hk_cluster_state_take(struct hk_cluster *c, int state, uint32_t partition, struct hk_cluster_taken *out,
                          char why[HK_ENGINE_WHY])
{
  struct work w = { .c = c, .disk = &c->net->durable->disk, .out = out, .number = partition };
  char name[16];
  uint64_t *epochs = NULL;
  size_t n = 0;
  int epoch;
  *out = (struct hk_cluster_taken){ .epoch = 0 };
  snprintf(name, sizeof name, "%" PRIu32, partition);
  int status = hk_disk_folder(w.disk, state, name, &w.partition);
  if (status == 0) {
    status = hk_disk_list(w.disk, w.partition, STEM, SUFFIX, &epochs, &n);
    if (status == 0)
      status = make_epoch(&w, n > 0 ? epochs[n - 1] : 0, &epoch);
    if (status == 0) {
      status = restore(&w, epochs, n);
      if (status == 0)
        status = make_folders(&w, epoch);
      close(epoch);
      if (status != 0)
        remove_epoch(&w, out->epoch, false); /* every attempt makes one */
      for (size_t i = 0; i < n && status == 0 && epochs[i] < out->from; i++)
        remove_epoch(&w, epochs[i], true);
    }
    close(w.partition);
  }
  free(epochs);
  if (status != 0)
    take_failed(&w, status, why);
  return status;
}
