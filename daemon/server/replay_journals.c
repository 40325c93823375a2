#include "daemon/server/replay_journals.h"

#include "daemon/base/systemd.h"
#include "daemon/durable/journal_read.h"
#include "daemon/scoring/alert_log.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/groups.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/slots.h"
#include "daemon/server/journal_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE 50000     /* ns between two checks for room */
#define TELL 1000000000 /* ns between two signs of life to the service manager */

struct replay {
  struct hk_recovery *out;
  struct hk_log *log;
  struct hk_journal_source sources[HK_SHARDS_MAX];
  uint32_t n_sources, of; /* of: number of former shards */
  struct hk_source *points;
  int64_t told;
  uint32_t slot[HK_CHUNK_POINTS];
  int64_t time[HK_CHUNK_POINTS];
  double value[HK_CHUNK_POINTS];
};

/* --- points ---------------------------------------------------------------------------------------------------------- */

/* Waits while shards work. -EIO: nothing is computed any more. */
static int wait(struct replay *r)
{
  const struct timespec moment = { 0, PAUSE };
  (void)nanosleep(&moment, NULL);
  if (hk_now() - r->told < TELL)
    return 0;
  r->told = hk_now();
  hk_notify("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=restoring");
  bool lost = true;
  for (uint32_t i = 0; i < r->out->durable->shards; i++)
    lost &= hk_shard_lost(&r->out->shard[i]);
  return lost ? -EIO : 0;
}

/* Waits until all given points are scored. */
static int replay_journals_drain(struct replay *r)
{
  int status = 0;
  while (status == 0 && (!hk_chunk_pool_seal(r->out->pool) || hk_source_pending(r->points) > 0))
    status = wait(r);
  return status;
}

/* Gives the first n points of the columns to the shards; `derived` of them were derived. */
static int replay_journals_give(struct replay *r, uint32_t n, uint32_t derived)
{
  const struct hk_columns columns = { r->slot, r->time, r->value };
  int status = 0;
  while (status == 0 && hk_chunk_pool_room(r->out->pool) < n)
    status = wait(r);
  if (status != 0)
    return status;
  hk_count(&r->out->counters->in, n);
  hk_count(&r->out->counters->derived, derived);
  hk_fill_slots(&r->out->pool->filling, r->points, n, &columns);
  r->out->points += n - derived;
  return 0;
}

/* Adds a point of a record to the columns, unless the snapshot has it. Returns their new number. */
static uint32_t replay_journals_put(struct replay *r, uint32_t slot, const struct hk_record_points *p, uint32_t i,
                                    uint64_t position, uint32_t n)
{
  const uint64_t *skip = r->out->restored->skip;
  if (skip && position + i < skip[slot])
    return n;
  r->slot[n] = slot;
  r->time[n] = p->time[i];
  r->value[n] = p->value[i];
  return n + 1;
}

/* Adds the points derived from a record's point for its machine to the columns, as above. */
static uint32_t replay_journals_put_series(struct replay *r, struct hk_groups *groups, const struct hk_groups_replayed *point,
                                           uint32_t n)
{
  const struct hk_columns to = { r->slot, r->time, r->value };
  const uint64_t *skip = r->out->restored->skip;
  const uint32_t end = hk_groups_replay(groups, point, &to, n);
  return end > n && skip && point->position < skip[r->slot[n]] ? n : end;
}

/* As above for its field, which may exceed the room: then some points are given meanwhile. *derived counts them. */
static int put_residuals(struct replay *r, const struct hk_groups_replayed *point, uint32_t *n, uint32_t *derived)
{
  struct hk_groups *fields = r->out->shard[point->slot % r->out->durable->shards].machines.fields;
  const struct hk_columns to = { r->slot, r->time, r->value };
  const uint64_t *skip = r->out->restored->skip;
  int status = 0;
  if (!hk_groups_any(fields))
    return 0;
  hk_fields_replay(fields, point);
  for (bool whole = false; !whole && status == 0;) {
    uint32_t end = *n, kept = *n;
    whole = hk_fields_make(fields, &to, &end, HK_CHUNK_POINTS);
    for (uint32_t i = *n; i < end; i++) {
      if (skip && point->position < skip[r->slot[i]])
        continue;
      r->slot[kept] = r->slot[i];
      r->time[kept] = r->time[i];
      r->value[kept++] = r->value[i];
    }
    *derived += kept - *n;
    *n = kept;
    if (!whole) {
      status = replay_journals_give(r, *n, *derived);
      *n = *derived = 0;
    }
  }
  return status;
}

/* Gives the needed points of a record, and the points derived from it, whose sensors may be in other slices of the snapshot. */
static int give_some(struct replay *r, const struct hk_journal_source *s, const struct hk_record_points *p, uint64_t position)
{
  const uint32_t shards = hk_journal_shards(s->reader);
  uint32_t n = 0, derived = 0;
  int status = 0;
  for (uint32_t i = 0; i < p->n && status == 0; i++) {
    const uint64_t slot = (uint64_t)p->slot[i] * shards + s->shard;
    uint8_t generation;
    if (slot >= r->out->max_sensors || !hk_registry_generation(r->out->registry, (uint32_t)slot, &generation)) {
      r->out->unknown++;
      continue;
    }
    const uint32_t first = n, own = n = replay_journals_put(r, (uint32_t)slot, p, i, position, n);
    for (uint32_t companion = (uint32_t)slot; (companion = hk_registry_next_companion(r->out->registry, companion)) != slot;)
      n = replay_journals_put(r, companion, p, i, position, n);
    r->out->skipped += own == first;
    const struct hk_groups_replayed point = { (uint32_t)slot, shards, position + i, p->time[i], p->value[i] };
    const struct hk_shard *on = &r->out->shard[slot % r->out->durable->shards];
    n = replay_journals_put_series(r, on->machines.groups, &point, n);
    n = replay_journals_put_series(r, on->machines.seconds, &point, n);
    derived += n - own;
    status = put_residuals(r, &point, &n, &derived);
    if (status == 0 && n > HK_CHUNK_POINTS - 2 * HK_ALGORITHMS - 2 * HK_GROUPS_OF_ONE) {
      status = replay_journals_give(r, n, derived);
      n = derived = 0;
    }
  }
  return n > 0 && status == 0 ? replay_journals_give(r, n, derived) : status;
}

static int replay_journals_points(struct replay *r, struct hk_journal_source *s, const struct hk_record *record)
{
  struct hk_record_points p;
  const uint64_t end = record->position + record->count;
  if (hk_record_points_read(record, &p) != 0) {
    hk_log(r->log, HK_LOG_ERROR, "a record of shard %u's journal, at position %" PRIu64 ", cannot be read and is skipped",
           s->shard, record->position);
    return 0;
  }
  if (s->begun && record->position > s->reached) {
    r->out->lost += record->position - s->reached;
    s->hole = !r->out->restored->damaged; /* a newer snapshot had them, so that they were acknowledged */
    r->out->hole |= s->hole;
    hk_log(r->log, HK_LOG_ERROR,
           "shard %u: %" PRIu64 " points, from position %" PRIu64 " on, are not in the journal and are lost; "
           "their sensors see a gap",
           s->shard, record->position - s->reached, s->reached);
  }
  if (s->begun && p.n > 0 && end <= s->reached) { /* a repetition, or in the snapshot */
    r->out->skipped += end <= s->from ? p.n : 0;
    return 0;
  }
  s->begun = true;
  if (s->reached < end)
    s->reached = end;
  for (uint32_t i = 0; i < p.n_marks && !s->hole; i++) {
    hk_feeds_restore_part(r->out->durable->feeds, p.marks[i].feed, s->shard, p.marks[i].upto);
    hk_feeds_restore_used(r->out->durable->feeds, p.marks[i].feed, hk_wall());
  }
  return give_some(r, s, &p, record->position);
}

/* For all kinds of machines alike. */
static void each_registered(const struct hk_shard *s)
{
  hk_groups_registered(s->machines.groups);
  hk_groups_registered(s->machines.seconds);
  hk_groups_registered(s->machines.fields);
}

static void each_retired(const struct hk_shard *s, uint32_t within)
{
  hk_groups_retired(s->machines.groups, within);
  hk_groups_retired(s->machines.seconds, within);
  hk_groups_retired(s->machines.fields, within);
}

static void each_go_on(const struct hk_shard *s)
{
  hk_groups_go_on(s->machines.groups);
  hk_groups_go_on(s->machines.seconds);
  hk_groups_go_on(s->machines.fields);
}

/* --- sensors and feeds ----------------------------------------------------------------------------------------------- */

/* Whether the snapshot has a change already: the change preceded the begin of the snapshot, or the slice with a later sensor
 * of the slot. */
static bool is_past(const struct replay *r, const struct hk_journal_source *s, uint8_t generation, bool used)
{
  const struct hk_restored *restored = r->out->restored;
  if (s->shard < restored->shards && s->change.order <= restored->order[s->shard])
    return true;
  return used && (int8_t)(s->change.generation - generation) < 0;
}

static int change(struct replay *r, struct hk_journal_source *s)
{
  struct hk_registry *registry = r->out->registry;
  const struct hk_record_sensor *c = &s->change;
  uint8_t generation;
  s->waits = false;
  if (r->out->durable->order < c->order)
    r->out->durable->order = c->order;
  if (c->slot >= r->out->max_sensors) {
    hk_log(r->log, HK_LOG_WARNING, "%.*s is not restored: its slot is beyond max_sensors = %u", (int)c->name.length, c->name.data,
           r->out->max_sensors);
    return 0;
  }
  struct hk_shard *shard = &r->out->shard[c->slot % r->out->durable->shards];
  const bool used = hk_registry_generation(registry, c->slot, &generation), there = used && generation == c->generation;
  int status = 0;
  if (is_past(r, s, used ? generation : 0, used))
    return 0;
  if (s->type == HK_RECORD_REGISTER) {
    char why[HK_REGISTRY_FULL_MAX];
    const int refusal = hk_registry_restore(registry, c->slot, c->generation, c->name, c->detector);
    if (refusal != 0)
      hk_log(r->log, HK_LOG_WARNING, "%.*s is not restored: %s", (int)c->name.length, c->name.data,
             refusal == HANKEL_NO_DETECTOR ? "no detector matches it any more" : hk_registry_full(registry, why));
    else
      hk_registry_restore_owner(registry, c->slot, c->generation, c->owner);
    if (refusal == 0 && hk_registry_detector_of(registry, hk_registry_detector(registry, c->slot))->group)
      for (uint32_t i = 0; i < r->out->durable->shards; i++)
        each_registered(&r->out->shard[i]);
    return 0;
  }
  if (!there)
    return 0;
  status = replay_journals_drain(r);
  if (status != 0)
    return status;
  if (hk_registry_holds(registry, c->slot))
    each_retired(shard, hk_slot_within(shard->all, c->slot));
  if (s->type == HK_RECORD_RETIRE && hk_registry_holds(registry, c->slot)) {
    hk_registry_retire(registry, c->slot);
  } else if (s->type == HK_RECORD_RELEASE) {
    if (hk_registry_holds(registry, c->slot))
      hk_registry_retire(registry, c->slot);
    hk_shard_forget_replayed(shard, c->slot);
    hk_registry_release(registry, c->slot);
  }
  return 0;
}

static void replay_journals_feed(struct replay *r, const struct hk_record *record)
{
  struct hk_record_feed f;
  int status = hk_record_feed_read(record, &f);
  if (status == 0)
    status = hk_feeds_restore(r->out->durable->feeds, &f);
  if (status != 0)
    hk_log(r->log, HK_LOG_WARNING, "a feed is not restored, and starts over: %s", strerror(-status));
}

static void feed_gone(struct replay *r, const struct hk_record *record)
{
  uint32_t number;
  if (hk_record_feed_gone_read(record, &number) == 0)
    hk_feeds_restore_gone(r->out->durable->feeds, number);
}

/* Releases sensors that were being forgotten when the journals end. */
static void forget_retired(struct hk_recovery *out)
{
  uint8_t generation;
  for (uint32_t slot = 0; slot < hk_registry_slots(out->registry); slot++)
    if (hk_registry_generation(out->registry, slot, &generation) && !hk_registry_holds(out->registry, slot))
      hk_shard_forget_replayed(&out->shard[slot % out->durable->shards], slot);
}

/* --- journals -------------------------------------------------------------------------------------------------------- */

/* Skips an unused record: records its position, and its order, which must not be reused. */
static void replay_journals_pass_over(struct replay *r, struct hk_journal_source *s, const struct hk_record *record)
{
  struct hk_record_sensor c;
  const uint64_t end = record->position + record->count;
  const bool sensor = record->type == HK_RECORD_REGISTER || record->type == HK_RECORD_RETIRE || record->type == HK_RECORD_RELEASE;
  s->behind = end > s->behind ? end : s->behind;
  if (sensor && hk_record_sensor_read(record, &c) == 0 && r->out->durable->order < c.order)
    r->out->durable->order = c.order;
}

/* Whether the snapshot has a record because it is from another number of shards: then its marks have another meaning, too.
 * When the number of shards changes, positions continue after all former ones. */
static bool is_before(const struct replay *r, const struct hk_journal_source *s, const struct hk_record *record)
{
  const uint32_t shards = r->out->restored->shards;
  return shards > 0 && hk_journal_shards(s->reader) != shards && record->position + record->count <= s->from;
}

/* Where the journal of a shard is needed from: for one that the snapshot does not know, after everything that it knows. */
static uint64_t needed_from(const struct hk_restored *restored, uint32_t shard)
{
  uint64_t from = 0;
  for (uint32_t i = 0; i < restored->shards; i++)
    from = restored->from[i] > from ? restored->from[i] : from;
  return shard < restored->shards ? restored->from[shard] : from;
}

/* Continues up to a change of a sensor, or to the end. */
static int replay_journals_advance(struct replay *r, struct hk_journal_source *s)
{
  struct hk_record record;
  int status = 0;
  while (status == 0 && !s->waits) {
    const int got = hk_journal_next(s->reader, &record);
    if (got <= 0)
      return got;
    if (s->damaged && !s->over)
      hk_journal_source_judge(s, &record);
    if (s->over) {
      replay_journals_pass_over(r, s, &record);
      continue;
    }
    const bool before = is_before(r, s, &record);
    if (!before)
      r->of = hk_journal_shards(s->reader);
    switch (record.type) {
    case HK_RECORD_POINTS:
      status = before ? 0 : replay_journals_points(r, s, &record);
      break;
    case HK_RECORD_REGISTER:
    case HK_RECORD_RETIRE:
    case HK_RECORD_RELEASE:
      s->waits = hk_record_sensor_read(&record, &s->change) == 0;
      s->type = record.type;
      break;
    case HK_RECORD_FEED:
      replay_journals_feed(r, &record);
      break;
    case HK_RECORD_FEED_GONE:
      feed_gone(r, &record);
      break;
    default:
      hk_log(r->log, HK_LOG_ERROR, "shard %u's journal has a record of type %u, which this version does not know and skips",
             s->shard, record.type);
    }
  }
  return status;
}

static int replay_journals_replay(struct replay *r)
{
  int status = 0;
  while (status == 0) {
    struct hk_journal_source *next = NULL;
    for (uint32_t i = 0; i < r->n_sources && status == 0; i++) {
      struct hk_journal_source *s = &r->sources[i];
      status = replay_journals_advance(r, s);
      if (s->waits && (!next || s->change.order < next->change.order))
        next = s;
    }
    if (!next || status != 0)
      break;
    status = change(r, next);
  }
  return status == 0 ? replay_journals_drain(r) : status;
}

static int open_sources(struct replay *r, char *error, size_t size)
{
  const struct hk_restored *restored = r->out->restored;
  int status = 0;
  for (uint32_t i = 0; i < HK_SHARDS_MAX && status == 0; i++) {
    bool there;
    status = hk_journal_source_open(&r->sources[r->n_sources], r->out->durable, i, needed_from(restored, i), restored->shards > 0,
                                    &there, error, size);
    r->n_sources += there;
  }
  return status;
}

static void close_sources(struct replay *r)
{
  for (uint32_t i = 0; i < r->n_sources; i++)
    hk_journal_source_close(&r->sources[i]);
}

/* Where the shards continue: at their positions, or, if the number of shards has changed, after all of them. */
static void find_positions(struct replay *r)
{
  const struct hk_durable *d = r->out->durable;
  uint64_t most = 0;
  for (uint32_t i = 0; i < r->n_sources; i++)
    most = r->sources[i].reached > most ? r->sources[i].reached : most;
  for (uint32_t i = 0; i < d->shards; i++)
    r->out->position[i] = r->of == d->shards && i < r->n_sources ? r->sources[i].reached : most;
}

static uint64_t replay_journals_left(const struct replay *r)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < r->n_sources; i++)
    bytes += hk_journal_left(r->sources[i].reader);
  return bytes;
}

static int mend(struct replay *r, char *error, size_t size)
{
  int status = 0;
  for (uint32_t i = 0; i < r->n_sources && status == 0; i++)
    status = hk_journal_source_mend(&r->sources[i], &r->out->lost, error, size);
  return status;
}

int hk_recover(struct hk_recovery *out, char *error, size_t size)
{
  struct hk_durable *d = out->durable;
  struct replay *r = calloc(1, sizeof *r);
  const int64_t begin = hk_now();
  int status = 0;
  error[0] = 0;
  if (r)
    *r = (struct replay){ .out = out, .log = d->log, .points = hk_source_new(), .told = begin };
  if (!r || !r->points) {
    snprintf(error, size, "state = %s: no memory to read it", d->path);
    free(r);
    return -ENOMEM;
  }
  r->of = out->restored->shards > 0 ? out->restored->shards : d->shards;
  for (uint32_t i = 0; i < out->restored->shards; i++)
    d->order = out->restored->order[i] > d->order ? out->restored->order[i] : d->order;
  status = open_sources(r, error, size);
  const uint64_t bytes = status == 0 ? replay_journals_left(r) : 0;
  if (bytes > 0)
    hk_log(d->log, HK_LOG_INFO, "replaying %.1f MiB of the journal in %s", (double)bytes / (1 << 20), d->path);
  if (status == 0)
    status = replay_journals_replay(r);
  if (status == 0)
    status = mend(r, error, size);
  if (status == 0) {
    find_positions(r);
    hk_registry_part_companions(out->registry);
    for (uint32_t i = 0; i < d->shards; i++)
      each_go_on(&out->shard[i]);
    forget_retired(out);
    hk_registry_restored(out->registry);
    hk_feeds_restored(d->feeds, r->of);
    out->other_shards = r->of != d->shards;
    /* A snapshot is needed after a change of the number of shards, or of the mode without journals. */
    if (r->of != d->shards || out->hole || (d->mode == HK_DURABILITY_SNAPSHOT && bytes > 0))
      d->health.wants_snapshot = UINT64_MAX;
    if (bytes > 0)
      hk_log(d->log, out->unknown + out->lost > 0 ? HK_LOG_WARNING : HK_LOG_INFO,
             "replayed the journal in %.2f s: points %" PRIu64 ", sensors %u, feeds %u; points in the snapshot %" PRIu64
             ", of sensors that are not restored %" PRIu64 ", lost %" PRIu64,
             (double)(hk_now() - begin) * 1e-9, out->points, hk_registry_count(out->registry), hk_feeds_survey(d->feeds).n,
             out->skipped, out->unknown, out->lost);
  } else if (!error[0]) {
    snprintf(error, size, "state = %s: replaying the journal: %s", d->path, strerror(-status));
  }
  close_sources(r);
  hk_source_close(r->points);
  free(r);
  return status;
}
