/* Writes a snapshot: a section is built in memory and written as a whole. Written data is synced from time to time, so that
 * the end does not wait for all of it, nor other syncs for this one. */
#include "daemon/durable/snapshot_write.h"
#include "daemon/base/grow.h"
#include "daemon/durable/snapshot_format.h"
#include "proto/wire/event_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define SYNC_EVERY (32u << 20)

struct hk_snapshot_writer {
  const struct hk_disk *disk;
  int folder, file;
  uint64_t number, salt;
  int64_t latest;
  char unfinished[HK_DISK_NAME_MAX];
  bool renamed;
  uint64_t bytes, unsynced, parts, sensors, chain, last;
  char **names; /* of detectors, by the number within the file */
  uint32_t n_names, room_names;
  struct hk_part_head head; /* of the current section */
  uint8_t *payload;
  size_t size, room;
};

static int snapshot_put(struct hk_snapshot_writer *w, const void *data, size_t size)
{
  const int status = hk_disk_write(w->disk, w->file, data, size);
  if (status != 0)
    return status;
  w->bytes += size;
  w->unsynced += size;
  if (w->unsynced < SYNC_EVERY)
    return 0;
  w->unsynced = 0;
  return hk_disk_sync(w->disk, w->file);
}

int hk_snapshot_create(struct hk_snapshot_writer **out, const struct hk_disk *disk, int folder,
                       const struct hk_snapshot_about *about)
{
  struct hk_snapshot_writer *w = calloc(1, sizeof *w);
  if (!w)
    return -ENOMEM;
  struct hk_snapshot_head head = { .version = HK_SNAPSHOT_VERSION,
                                   .together = about->together,
                                   .shard = about->shard,
                                   .shards = about->shards,
                                   .number = about->number,
                                   .epoch = about->epoch,
                                   .begin = about->begin,
                                   .order = about->order,
                                   .made = about->made };
  memcpy(head.magic, HK_SNAPSHOT_MAGIC, sizeof head.magic);
  w->disk = disk;
  w->folder = folder;
  w->number = about->number;
  w->last = about->begin;
  w->latest = about->latest;
  w->file = -1;
  hk_disk_name(w->unfinished, HK_SNAPSHOT_STEM, w->number, HK_SNAPSHOT_UNFINISHED);
  int status = getrandom(&head.salt, sizeof head.salt, 0) == (ssize_t)sizeof head.salt ? 0 : -EIO;
  if (status == 0)
    status = hk_disk_create(disk, folder, w->unfinished, &w->file);
  w->salt = head.salt;
  head.checksum = hk_snapshot_checksum(&head);
  if (status == 0)
    status = snapshot_put(w, &head, sizeof head);
  if (status != 0) {
    hk_snapshot_close(w);
    return status;
  }
  *out = w;
  return 0;
}

/* Makes zeroed room for more bytes in the payload. NULL: no memory. */
static uint8_t *extend(struct hk_snapshot_writer *w, size_t more)
{
  if (w->size + more > w->room) {
    size_t room = w->room ? w->room : 1 << 20;
    while (room < w->size + more)
      room *= 2;
    uint8_t *payload = realloc(w->payload, room);
    if (!payload)
      return NULL;
    w->payload = payload;
    w->room = room;
  }
  uint8_t *at = w->payload + w->size;
  w->size += more;
  return at;
}

static void snapshot_begin(struct hk_snapshot_writer *w, uint32_t type, uint64_t position, int64_t arrival)
{
  w->head = (struct hk_part_head){ .type = type, .position = position, .arrival = arrival };
  w->size = 0;
}

/* Completes the current section. */
static int snapshot_end(struct hk_snapshot_writer *w)
{
  w->head.size = w->size; /* a multiple of 8 */
  w->head.checksum = hk_part_checksum(&w->head, w->payload, w->salt);
  w->chain = hk_part_chain(w->chain, w->head.checksum);
  w->parts++;
  const int status = snapshot_put(w, &w->head, sizeof w->head);
  return status != 0 ? status : snapshot_put(w, w->payload, w->size);
}

/* Copies bytes to the payload, padded with zeros to a multiple of 8. */
static int put_padded(struct hk_snapshot_writer *w, const void *data, size_t size)
{
  const size_t padded = hk_padded(size);
  uint8_t *at = extend(w, padded);
  if (!at)
    return -ENOMEM;
  if (padded > size)
    memset(at + padded - 8, 0, 8);
  if (size > 0)
    memcpy(at, data, size);
  return 0;
}

int hk_snapshot_detector(struct hk_snapshot_writer *w, struct hk_string name, uint16_t *number)
{
  for (uint32_t i = 0; i < w->n_names; i++)
    if (strlen(w->names[i]) == name.length && memcmp(w->names[i], name.data, name.length) == 0) {
      *number = (uint16_t)i;
      return 0;
    }
  if (w->n_names == UINT16_MAX)
    return -ENOSPC;
  char **names = hk_grow(w->names, w->n_names, &w->room_names, sizeof(char *), 64);
  if (!names)
    return -ENOMEM;
  w->names = names;
  char *copy = strndup(name.data, name.length);
  if (!copy)
    return -ENOMEM;
  *number = (uint16_t)w->n_names;
  w->names[w->n_names++] = copy;
  const uint32_t words[2] = { *number, (uint32_t)name.length };
  snapshot_begin(w, HK_PART_DETECTOR, 0, 0);
  w->head.count = 1;
  int status = put_padded(w, words, sizeof words);
  if (status == 0)
    status = put_padded(w, name.data, name.length);
  return status != 0 ? status : snapshot_end(w);
}

int hk_snapshot_feed(struct hk_snapshot_writer *w, const struct hk_record_feed *feed, uint64_t upto)
{
  const uint32_t words[2] = { feed->number, (uint32_t)feed->name.length };
  snapshot_begin(w, HK_PART_FEED, 0, 0);
  w->head.count = 1;
  int status = put_padded(w, words, sizeof words);
  if (status == 0)
    status = put_padded(w, &upto, sizeof upto);
  if (status == 0)
    status = put_padded(w, feed->name.data, feed->name.length);
  if (status == 0)
    status = put_padded(w, &feed->owner, sizeof feed->owner);
  if (status == 0)
    status = put_padded(w, &feed->used, sizeof feed->used);
  return status != 0 ? status : snapshot_end(w);
}

void hk_snapshot_begin(struct hk_snapshot_writer *w, uint32_t type, uint64_t position, int64_t arrival)
{
  snapshot_begin(w, type, position, arrival);
  w->last = position > w->last ? position : w->last;
}

_Static_assert(sizeof(struct hk_novelty_note) == 40, "no padding");

/* A standing alert that is not acknowledged. */
static struct hk_file_alert alert_of(const struct hk_event *e)
{
  return (struct hk_file_alert){ .time = e->time,
                                 .from = e->from,
                                 .instant = e->instant,
                                 .before = e->before,
                                 .after = e->after,
                                 .score = e->score,
                                 .margin = e->margin,
                                 .spread_before = e->spread_before,
                                 .spread_after = e->spread_after,
                                 .number = e->number,
                                 .held = e->held,
                                 .kind = e->kind,
                                 .channel = e->channel,
                                 .marks = e->marks,
                                 .similar = e->similar,
                                 .similar_from = e->similar_from,
                                 .likeness = e->likeness,
                                 .severity = (uint16_t)lroundf(1000 * hk_severity_told(e->severity)) };
}

static int put_segments(struct hk_snapshot_writer *w, const struct hk_segments *s)
{
  const struct hk_file_segments head = { .from = s->from, .number = s->number };
  int status = put_padded(w, &head, sizeof head);
  for (uint32_t i = 0; i < s->n && status == 0; i++) {
    const struct hk_segment *k = &s->kept[i];
    struct hk_file_segment segment = { .from = k->from, .level = k->level, .spread = k->spread, .number = k->number };
    memcpy(segment.sketch, k->sketch.of, sizeof segment.sketch);
    status = put_padded(w, &segment, sizeof segment);
  }
  return status;
}

int hk_snapshot_add(struct hk_snapshot_writer *w, const struct hk_snapshot_sensor *s)
{
  const struct hk_event *e = &s->alerts.standing.event;
  const struct hk_file_sensor sensor = { .slot = s->slot,
                                         .generation = s->generation,
                                         .stands = s->alerts.stands,
                                         .detector = s->detector,
                                         .name_size = (uint16_t)s->name.length,
                                         .state_size = s->state_size,
                                         .points = s->alerts.points,
                                         .events = s->alerts.events,
                                         .number = s->alerts.number,
                                         .raised = s->alerts.raised,
                                         .segments = (uint16_t)s->alerts.segments.n };
  const uint64_t held = s->alerts.held;
  struct hk_file_alert alert = alert_of(e);
  alert.by_size = (uint8_t)strlen(s->alerts.standing.by);
  alert.note = e->novelty.channel != 0 ? sizeof e->novelty : 0;
  alert.acknowledged = s->alerts.standing.acknowledged;
  memcpy(alert.by, s->alerts.standing.by, alert.by_size);
  const size_t before = w->size;
  int status = put_padded(w, &sensor, sizeof sensor);
  if (status == 0 && s->alerts.stands)
    status = put_padded(w, &alert, sizeof alert);
  if (status == 0 && s->alerts.stands)
    status = put_padded(w, &e->novelty, alert.note);
  if (status == 0 && s->alerts.raised > 0)
    status = put_padded(w, &held, sizeof held);
  if (status == 0)
    status = put_padded(w, s->alerts.time, s->alerts.raised * sizeof *s->alerts.time);
  if (status == 0 && s->alerts.segments.n > 0)
    status = put_segments(w, &s->alerts.segments);
  if (status == 0)
    status = put_padded(w, s->name.data, s->name.length);
  if (status == 0)
    status = put_padded(w, s->state, s->state_size);
  if (status != 0)
    w->size = before;
  else
    w->head.count++;
  return status;
}

int hk_snapshot_add_machine(struct hk_snapshot_writer *w, const struct hk_machine_memory *m, uint8_t generation)
{
  const struct hk_file_machine machine = { .slot = m->slot,
                                           .generation = generation,
                                           .told = m->told,
                                           .stands = m->stands,
                                           .number = m->number,
                                           .members = m->n_members,
                                           .changes = m->n_changes,
                                           .rows_size = m->rows_size };
  const struct hk_file_alert alert = alert_of(&m->standing);
  const size_t before = w->size;
  int status = put_padded(w, &machine, sizeof machine);
  if (status == 0 && m->stands)
    status = put_padded(w, &alert, sizeof alert);
  if (status == 0)
    status = put_padded(w, m->members, m->n_members * sizeof *m->members);
  if (status == 0)
    status = put_padded(w, m->changes, m->n_changes * sizeof *m->changes);
  if (status == 0)
    status = put_padded(w, m->rows, m->rows_size);
  if (status != 0)
    w->size = before;
  else
    w->head.count++;
  return status;
}

int hk_snapshot_add_owner(struct hk_snapshot_writer *w, const struct hk_snapshot_owner *o)
{
  const struct hk_file_owner owner = { .slot = o->slot, .generation = o->generation, .owner = o->owner };
  const int status = put_padded(w, &owner, sizeof owner);
  w->head.count += status == 0;
  return status;
}

int hk_snapshot_add_counter(struct hk_snapshot_writer *w, const struct hk_snapshot_counter *c)
{
  const struct hk_file_counter counter = { .slot = c->slot,
                                           .generation = c->generation,
                                           .kind = c->rate.kind,
                                           .seen = c->rate.seen,
                                           .rises = c->rate.rises,
                                           .resets = c->rate.resets,
                                           .time = c->rate.time,
                                           .value = c->rate.value };
  const int status = put_padded(w, &counter, sizeof counter);
  w->head.count += status == 0;
  return status;
}

int hk_snapshot_add_provisional(struct hk_snapshot_writer *w, const struct hk_snapshot_provisional *p)
{
  const struct hk_file_provisional head = { .slot = p->slot, .generation = p->generation, .size = p->size };
  const size_t before = w->size;
  int status = put_padded(w, &head, sizeof head);
  if (status == 0)
    status = put_padded(w, p->saved, p->size);
  if (status != 0)
    w->size = before;
  w->head.count += status == 0;
  return status;
}

int hk_snapshot_end(struct hk_snapshot_writer *w)
{
  if (w->head.count == 0)
    return 0;
  w->sensors += w->head.type == HK_PART_SENSORS ? w->head.count : 0;
  return snapshot_end(w);
}

/* Whether the written file has this name, and was written by no other program. */
static int check_name(const struct hk_snapshot_writer *w, const char *name)
{
  struct hk_disk_file written, named;
  int status = hk_disk_look(w->disk, w->file, NULL, &written);
  if (status == 0)
    status = hk_disk_look(w->disk, w->folder, name, &named);
  return status != 0 ? status : hk_disk_same(&written, &named) && named.size == w->bytes ? 0 : -ESTALE;
}

int hk_snapshot_finish(struct hk_snapshot_writer *w)
{
  const struct hk_file_end last = { .parts = w->parts, .sensors = w->sensors, .bytes = w->bytes, .chain = w->chain };
  char name[HK_DISK_NAME_MAX];
  snapshot_begin(w, HK_PART_END, w->last, w->latest);
  int status = put_padded(w, &last, sizeof last);
  if (status == 0)
    status = snapshot_end(w);
  if (status == 0)
    status = hk_disk_sync(w->disk, w->file);
  hk_disk_name(name, HK_SNAPSHOT_STEM, w->number, HK_SNAPSHOT_SUFFIX);
  if (status == 0)
    status = hk_disk_rename(w->disk, w->folder, w->unfinished, name);
  w->renamed = status == 0;
  if (status == 0)
    status = hk_disk_sync_folder(w->disk, w->folder);
  return status != 0 ? status : check_name(w, name);
}

void hk_snapshot_close(struct hk_snapshot_writer *w)
{
  if (!w)
    return;
  if (w->file >= 0) {
    close(w->file); /* it was synced, or is removed */
    if (!w->renamed)
      (void)hk_disk_remove(w->disk, w->folder, w->unfinished); /* else the next start removes it */
  }
  for (uint32_t i = 0; i < w->n_names; i++)
    free(w->names[i]);
  free(w->names);
  free(w->payload);
  free(w);
}

uint64_t hk_snapshot_bytes(const struct hk_snapshot_writer *w)
{
  return w->bytes;
}
