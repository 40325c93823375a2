/* Reads a snapshot. No section is used before its checksum was checked, and nothing of a file before its end was: a file that
 * was cut between two sections looks valid until there. */
#include "daemon/durable/snapshot_read.h"
#include "daemon/base/limits.h"
#include "daemon/durable/snapshot_format.h"

#include "proto/wire/name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hk_snapshot_reader {
  const struct hk_disk *disk;
  int file;
  struct hk_snapshot_about about;
  uint64_t salt, size, at; /* at: offset of the next section */
  uint64_t parts, sensors, chain;
  bool ended;
  uint8_t *payload;
  size_t room;
  char *why;
  size_t why_size;
};

static const char *type_name(uint32_t type)
{
  static const char *const names[] = {
    "?", "DETECTOR", "FEED", "SENSORS", "END", "MACHINES", "OWNERS", "COUNTERS", "PROVISIONAL"
  };
  return names[type >= HK_PART_DETECTOR && type <= HK_PART_PROVISIONAL ? type : 0];
}

static int snapshot_read_read_head(struct hk_snapshot_reader *r)
{
  struct hk_snapshot_head head;
  int status = hk_disk_read(r->disk, r->file, 0, &head, sizeof head);
  if (status != 0) {
    snprintf(r->why, r->why_size, "its head: %s", status == -ENODATA ? "the file ends within" : strerror(-status));
    return status == -ENODATA ? -EBADMSG : status;
  }
  if (memcmp(head.magic, HK_SNAPSHOT_MAGIC, sizeof head.magic) != 0) {
    snprintf(r->why, r->why_size, "its head: it does not begin as a snapshot does");
    return -EBADMSG;
  }
  const bool good = head.checksum == hk_snapshot_checksum(&head);
  if (head.version != HK_SNAPSHOT_VERSION && (good || head.version > 255)) {
    snprintf(r->why, r->why_size, "it is of version %" PRIu32 "; this hankeld reads version %d", head.version,
             HK_SNAPSHOT_VERSION);
    return good ? -EPROTONOSUPPORT : -EBADMSG;
  }
  if (!good || head.shards == 0 || head.shard >= head.shards || head.shards > HK_SHARDS_MAX) {
    snprintf(r->why, r->why_size, "its head is damaged");
    return -EBADMSG;
  }
  r->about = (struct hk_snapshot_about){ .shard = head.shard,
                                         .shards = head.shards,
                                         .number = head.number,
                                         .epoch = head.epoch,
                                         .begin = head.begin,
                                         .order = head.order,
                                         .made = head.made,
                                         .together = head.together != 0 };
  r->salt = head.salt;
  r->at = sizeof head;
  return 0;
}

int hk_snapshot_open(struct hk_snapshot_reader **out, const struct hk_disk *disk, int folder, const char *name, char *why,
                     size_t size)
{
  struct hk_snapshot_reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(why, size, "no memory");
    return -ENOMEM;
  }
  r->disk = disk;
  r->file = -1;
  r->why = why;
  r->why_size = size;
  int status = hk_disk_open(disk, folder, name, &r->file, &r->size);
  if (status != 0)
    snprintf(why, size, "%s", strerror(-status));
  else
    status = snapshot_read_read_head(r);
  if (status != 0) {
    hk_snapshot_read_close(r);
    return status;
  }
  *out = r;
  return 0;
}

const struct hk_snapshot_about *hk_snapshot_of(const struct hk_snapshot_reader *r)
{
  return &r->about;
}

static int damaged(const struct hk_snapshot_reader *r, const struct hk_part_head *head, const char *what)
{
  snprintf(r->why, r->why_size, "section %" PRIu64 " (%s, at byte %" PRIu64 "): %s", r->parts + 1, type_name(head->type), r->at,
           what);
  return -EBADMSG;
}

/* Reads; the file must not end within. */
static int snapshot_read_read_all(struct hk_snapshot_reader *r, const struct hk_part_head *head, uint64_t at, void *data,
                                  size_t size)
{
  const int status = hk_disk_read(r->disk, r->file, at, data, size);
  if (status == -ENODATA)
    return damaged(r, head, "the file ends within");
  if (status != 0)
    snprintf(r->why, r->why_size, "reading at byte %" PRIu64 ": %s", at, strerror(-status));
  return status;
}

static int check_end(struct hk_snapshot_reader *r, const struct hk_part_head *head)
{
  struct hk_file_end end;
  if (head->size != sizeof end)
    return damaged(r, head, "it has another size");
  memcpy(&end, r->payload, sizeof end);
  if (end.parts != r->parts || end.sensors != r->sensors || end.bytes != r->at || end.chain != r->chain)
    return damaged(r, head, "the preceding sections are not the ones that were written");
  if (r->at + sizeof *head + head->size != r->size)
    return damaged(r, head, "the file continues after it");
  r->ended = true;
  return 0;
}

int hk_snapshot_next(struct hk_snapshot_reader *r, struct hk_snapshot_part *out)
{
  struct hk_part_head head = { 0 };
  if (r->ended)
    return 0;
  int status = snapshot_read_read_all(r, &head, r->at, &head, sizeof head);
  if (status != 0)
    return status;
  if (head.size > HK_SNAPSHOT_PART_MAX || head.size % 8 != 0 || head.size > r->size - r->at - sizeof head)
    return damaged(r, &head,
                   head.size > HK_SNAPSHOT_PART_MAX || head.size % 8 != 0 ? "its head is damaged" : "the file ends within");
  if (head.size > r->room) {
    uint8_t *payload = realloc(r->payload, head.size);
    if (!payload) {
      snprintf(r->why, r->why_size, "no memory");
      return -ENOMEM;
    }
    r->payload = payload;
    r->room = head.size;
  }
  status = snapshot_read_read_all(r, &head, r->at + sizeof head, r->payload, head.size);
  if (status != 0)
    return status;
  if (hk_part_checksum(&head, r->payload, r->salt) != head.checksum)
    return damaged(r, &head, "its checksum is wrong");
  *out = (struct hk_snapshot_part){ .type = head.type,
                                    .count = head.count,
                                    .at = r->at,
                                    .position = head.position,
                                    .arrival = head.arrival,
                                    .size = head.size,
                                    .payload = r->payload };
  if (head.type == HK_PART_END) {
    status = check_end(r, &head);
    return status != 0 ? status : 1;
  }
  if (head.type < HK_PART_DETECTOR || head.type > HK_PART_PROVISIONAL) { /* no damage: its checksum is right */
    snprintf(r->why, r->why_size, "section %" PRIu64 " is of type %" PRIu32 ", of a later hankeld", r->parts + 1, head.type);
    return -EPROTONOSUPPORT;
  }
  r->sensors += head.type == HK_PART_SENSORS ? head.count : 0;
  r->chain = hk_part_chain(r->chain, head.checksum);
  r->parts++;
  r->at += sizeof head + head.size;
  return 1;
}

void hk_snapshot_read_close(struct hk_snapshot_reader *r)
{
  if (!r)
    return;
  if (r->file >= 0)
    close(r->file);
  free(r->payload);
  free(r);
}

/* A string after `before` bytes, which ends with the payload. */
static int read_string(const struct hk_snapshot_part *p, size_t before, uint32_t length, struct hk_string *out)
{
  if (hk_padded(length) != p->size - before)
    return -EBADMSG;
  *out = (struct hk_string){ (const char *)p->payload + before, length };
  return 0;
}

int hk_snapshot_detector_read(const struct hk_snapshot_part *p, uint16_t *number, struct hk_string *name)
{
  uint32_t words[2];
  if (p->size < sizeof words)
    return -EBADMSG;
  memcpy(words, p->payload, sizeof words);
  if (words[0] >= UINT16_MAX || words[1] > UINT16_MAX)
    return -EBADMSG;
  *number = (uint16_t)words[0];
  return read_string(p, sizeof words, words[1], name);
}

int hk_snapshot_feed_read(const struct hk_snapshot_part *p, struct hk_record_feed *feed, uint64_t *upto)
{
  struct hk_snapshot_part named = *p; /* without the fields after the name, which older files lack */
  uint32_t words[2];
  const size_t before = sizeof words + sizeof *upto;
  if (p->size < before)
    return -EBADMSG;
  memcpy(words, p->payload, sizeof words);
  memcpy(upto, p->payload + sizeof words, sizeof *upto);
  if (words[1] > UINT16_MAX)
    return -EBADMSG;
  *feed = (struct hk_record_feed){ .number = words[0] };
  const size_t end = before + hk_padded(words[1]), tail = sizeof feed->owner + sizeof feed->used;
  if (p->size == end + tail) {
    memcpy(&feed->owner, p->payload + end, sizeof feed->owner);
    memcpy(&feed->used, p->payload + end + sizeof feed->owner, sizeof feed->used);
    named.size -= tail;
  }
  if (read_string(&named, before, words[1], &feed->name) != 0)
    return -EBADMSG;
  return hk_name_valid(feed->name.data, feed->name.length) ? 0 : -EBADMSG;
}

static bool snapshot_read_is_standing(const struct hk_file_alert *a)
{
  return a->kind >= HK_EVENT_RAISED && a->kind <= HK_EVENT_CORRECTED;
}

static struct hk_event snapshot_read_event(const struct hk_file_alert *a, uint32_t slot)
{
  return (struct hk_event){ .index = UINT32_MAX,
                            .slot = slot,
                            .number = a->number,
                            .kind = a->kind,
                            .channel = a->channel,
                            .marks = a->marks,
                            .time = a->time,
                            .from = a->from,
                            .instant = a->instant,
                            .score = a->score,
                            .margin = a->margin,
                            .before = a->before,
                            .after = a->after,
                            .spread_before = a->spread_before,
                            .spread_after = a->spread_after,
                            .held = a->held,
                            .similar = a->similar,
                            .similar_from = a->similar_from,
                            .likeness = a->likeness,
                            .severity = (float)a->severity / 1000 };
}

static void take_segments(const uint8_t *at, uint32_t n, struct hk_segments *out)
{
  struct hk_file_segments head;
  memcpy(&head, at, sizeof head);
  *out = (struct hk_segments){ .n = n, .number = head.number, .from = head.from };
  at += sizeof head;
  for (uint32_t i = 0; i < n; i++, at += sizeof(struct hk_file_segment)) {
    struct hk_file_segment s;
    memcpy(&s, at, sizeof s);
    out->kept[i] = (struct hk_segment){ .from = s.from, .level = s.level, .spread = s.spread, .number = s.number };
    memcpy(out->kept[i].sketch.of, s.sketch, sizeof s.sketch);
  }
}

int hk_snapshot_sensor_next(const struct hk_snapshot_part *p, size_t *at, struct hk_snapshot_sensor *out)
{
  struct hk_file_sensor s;
  struct hk_file_alert a = { 0 };
  uint64_t held = 0;
  if (*at == p->size)
    return 0;
  if (p->size - *at < sizeof s)
    return -EBADMSG;
  memcpy(&s, p->payload + *at, sizeof s);
  if (s.raised > HK_FLAP_MAX)
    return -EBADMSG;
  if (s.stands && p->size - *at - sizeof s < sizeof a)
    return -EBADMSG;
  memcpy(&a, p->payload + *at + sizeof s, s.stands ? sizeof a : 0);
  if (a.note != 0 && a.note != sizeof(struct hk_novelty_note))
    return -EBADMSG;
  const size_t flaps = s.raised > 0 ? sizeof held + s.raised * sizeof(int64_t) : 0;
  const size_t alert = s.stands ? sizeof a + a.note : 0, name = hk_padded(s.name_size), state = hk_padded(s.state_size);
  const size_t segments = s.segments > 0 ? sizeof(struct hk_file_segments) + s.segments * sizeof(struct hk_file_segment) : 0;
  if (s.stands > 1 || s.segments > HK_SEGMENTS || p->size - *at - sizeof s < alert + flaps + segments + name + state)
    return -EBADMSG;
  const uint8_t *behind = p->payload + *at + sizeof s;
  memcpy(&held, behind + alert, flaps > 0 ? sizeof held : 0);
  const char *text = (const char *)behind + alert + flaps + segments;
  if (!hk_name_valid(text, s.name_size) || (s.stands && !snapshot_read_is_standing(&a)) || a.by_size > sizeof a.by ||
      (a.by_size > 0 && !hk_name_valid(a.by, a.by_size)) || held > UINT32_MAX)
    return -EBADMSG;
  *out = (struct hk_snapshot_sensor){
    .slot = s.slot,
    .generation = s.generation,
    .detector = s.detector,
    .name = { text, s.name_size },
    .alerts = { .points = s.points,
                .events = s.events,
                .number = s.number,
                .stands = s.stands,
                .raised = s.raised,
                .held = (uint32_t)held },
    .state = behind + alert + flaps + segments + name,
    .state_size = s.state_size,
  };
  memcpy(out->alerts.time, behind + alert + sizeof held, s.raised * sizeof *out->alerts.time);
  if (s.segments > 0)
    take_segments(behind + alert + flaps, s.segments, &out->alerts.segments);
  memcpy(out->alerts.standing.by, a.by, a.by_size);
  out->alerts.standing.acknowledged = a.acknowledged;
  if (s.stands)
    out->alerts.standing.event = snapshot_read_event(&a, s.slot);
  memcpy(&out->alerts.standing.event.novelty, behind + sizeof a, a.note);
  *at += sizeof s + alert + flaps + segments + name + state;
  return 1;
}

int hk_snapshot_machine_next(const struct hk_snapshot_part *p, size_t *at, struct hk_machine_memory *out, uint8_t *generation)
{
  struct hk_file_machine m;
  struct hk_file_alert a = { 0 };
  if (*at == p->size)
    return 0;
  if (p->size - *at < sizeof m)
    return -EBADMSG;
  memcpy(&m, p->payload + *at, sizeof m);
  const size_t alert = m.stands ? sizeof a : 0, members = m.members * sizeof *out->members;
  const size_t changes = m.changes * sizeof *out->changes;
  if (m.told > 1 || m.stands > 1 || m.rows_size % 8 != 0 || p->size - *at - sizeof m < alert + members + changes + m.rows_size)
    return -EBADMSG;
  const uint8_t *behind = p->payload + *at + sizeof m;
  memcpy(&a, behind, alert);
  if (m.stands && !snapshot_read_is_standing(&a))
    return -EBADMSG;
  const void *first = behind + alert, *second = behind + alert + members;
  *out = (struct hk_machine_memory){ .slot = m.slot,
                                     .number = m.number,
                                     .told = m.told,
                                     .stands = m.stands,
                                     .standing = snapshot_read_event(&a, m.slot),
                                     .n_changes = m.changes,
                                     .n_members = m.members,
                                     .changes = second,
                                     .members = first,
                                     .rows = behind + alert + members + changes,
                                     .rows_size = m.rows_size };
  *generation = m.generation;
  *at += sizeof m + alert + members + changes + m.rows_size;
  return 1;
}

int hk_snapshot_owner_next(const struct hk_snapshot_part *p, size_t *at, struct hk_snapshot_owner *out)
{
  struct hk_file_owner o;
  if (*at == p->size)
    return 0;
  if (p->size - *at < sizeof o)
    return -EBADMSG;
  memcpy(&o, p->payload + *at, sizeof o);
  if (o.owner == 0)
    return -EBADMSG;
  *out = (struct hk_snapshot_owner){ o.slot, o.generation, o.owner };
  *at += sizeof o;
  return 1;
}

int hk_snapshot_counter_next(const struct hk_snapshot_part *p, size_t *at, struct hk_snapshot_counter *out)
{
  struct hk_file_counter c;
  if (*at == p->size)
    return 0;
  if (p->size - *at < sizeof c)
    return -EBADMSG;
  memcpy(&c, p->payload + *at, sizeof c);
  if (c.kind > HK_RATE_GAUGE || c.seen > HK_RATE_LOOK || c.rises > HK_RATE_RISES || c.time < 0 || !isfinite(c.value))
    return -EBADMSG;
  *out = (struct hk_snapshot_counter){
    .slot = c.slot,
    .generation = c.generation,
    .rate = { .time = c.time, .value = c.value, .known = 1, .kind = c.kind, .seen = c.seen, .rises = c.rises, .resets = c.resets }
  };
  *at += sizeof c;
  return 1;
}

int hk_snapshot_provisional_next(const struct hk_snapshot_part *p, size_t *at, struct hk_snapshot_provisional *out)
{
  struct hk_file_provisional head;
  if (*at == p->size)
    return 0;
  if (p->size - *at < sizeof head)
    return -EBADMSG;
  memcpy(&head, p->payload + *at, sizeof head);
  if (head.size == 0 || head.size > HK_PROVISIONAL_SAVED || p->size - *at - sizeof head < hk_padded(head.size))
    return -EBADMSG;
  *out = (struct hk_snapshot_provisional){ head.slot, head.generation, p->payload + *at + sizeof head, head.size };
  *at += sizeof head + hk_padded(head.size);
  return 1;
}
