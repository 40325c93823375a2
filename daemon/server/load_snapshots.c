/* Restores the chosen snapshots. */
#include "daemon/server/load_snapshots.h"
#include "daemon/base/grow.h"
#include "daemon/durable/snapshot_read.h"

#include "daemon/scoring/failover.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/provisional_results.h"
#include "daemon/scoring/rates.h"
#include "daemon/sensors/slots.h"
#include "daemon/server/choose_snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WHY 256

struct work {
  struct hk_restoration *out;
  struct hk_snapshot_choice choice;
  char **detectors; /* of the current file, by its numbers */
  uint32_t n_detectors;
  struct hk_snapshot_sensor *standing; /* sensors with a standing alert; only slot and alerts are set */
  uint32_t n_standing, room_standing;
  int64_t arrival; /* the latest */
};

/* --- taking over ----------------------------------------------------------------------------------------------------- */

static int snapshots_keep_detector(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_string name;
  uint16_t number;
  if (hk_snapshot_detector_read(part, &number, &name) != 0 || number != w->n_detectors)
    return -EBADMSG;
  char **more = realloc(w->detectors, (w->n_detectors + 1) * sizeof(char *));
  if (!more)
    return -ENOMEM;
  w->detectors = more;
  w->detectors[w->n_detectors] = strndup(name.data, name.length);
  if (!w->detectors[w->n_detectors])
    return -ENOMEM;
  w->n_detectors++;
  return 0;
}

static int keep_feed(struct work *w, const struct hk_snapshot_part *part, uint32_t shard)
{
  struct hk_record_feed feed;
  uint64_t upto;
  int status = hk_snapshot_feed_read(part, &feed, &upto);
  if (status == 0)
    status = hk_feeds_restore(w->out->durable->feeds, &feed);
  if (status == 0)
    hk_feeds_restore_part(w->out->durable->feeds, feed.number, shard, upto);
  return status;
}

/* Restores a sensor's state. False: it starts over. */
static bool snapshots_import(struct hk_device *device, uint32_t within, const struct hk_snapshot_sensor *s)
{
  if (s->state_size == 0)
    return false;
  pthread_mutex_lock(&device->calls);
  const int status = device->backend->ops->import_(device->backend, within, s->state, s->state_size);
  pthread_mutex_unlock(&device->calls);
  return status == 0;
}

static int snapshots_remember(struct work *w, struct hk_shard *shard, const struct hk_snapshot_sensor *s, bool anew)
{
  const uint32_t within = hk_slot_within(shard->all, s->slot);
  struct hk_alerts_memory memory = s->alerts;
  if (anew && memory.number > 0) {
    const struct hk_config_detector *d =
        hk_registry_detector_of(w->out->registry, hk_registry_detector(w->out->registry, s->slot));
    pthread_mutex_lock(&shard->device->calls);
    const int status = hk_device_carry_number(shard->device->backend, &d->detector, within, memory.number);
    pthread_mutex_unlock(&shard->device->calls);
    if (status != 0)
      return status;
  }
  if (memory.stands && !anew) { /* restored later, since present alerts are cleared first */
    struct hk_snapshot_sensor *more = hk_grow(w->standing, w->n_standing, &w->room_standing, sizeof *more, 256);
    if (!more)
      return -ENOMEM;
    w->standing = more;
    w->standing[w->n_standing++] = *s;
    memory.stands = false;
  }
  return hk_alerts_set(shard->alerts, within, &memory);
}

static int snapshots_take_sensor(struct work *w, const struct hk_snapshot_sensor *s, uint64_t position)
{
  struct hk_restoration *o = w->out;
  if (s->detector >= w->n_detectors)
    return -EBADMSG;
  const char *detector = w->detectors[s->detector];
  const int refusal = hk_registry_restore(o->registry, s->slot, s->generation, s->name, hk_string(detector));
  if (refusal != 0) {
    o->gone += refusal == HANKEL_NO_DETECTOR;
    o->full += refusal != HANKEL_NO_DETECTOR;
    return 0;
  }
  struct hk_shard *shard = &o->shard[s->slot % o->durable->shards];
  const uint32_t number = hk_registry_detector(o->registry, s->slot);
  const bool same = strcmp(hk_registry_detector_of(o->registry, number)->name, detector) == 0;
  const bool anew = !same || !snapshots_import(shard->device, hk_slot_within(shard->all, s->slot), s);
  o->sensors++;
  o->anew += anew;
  o->restored.skip[s->slot] = position;
  return snapshots_remember(w, shard, s, anew);
}

static int take_sensors(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_snapshot_sensor sensor;
  size_t at = 0;
  int more, status = 0;
  if (part->arrival > w->arrival)
    w->arrival = part->arrival;
  while (status == 0 && (more = hk_snapshot_sensor_next(part, &at, &sensor)) != 0)
    status = more < 0 ? more : snapshots_take_sensor(w, &sensor, part->position);
  return status;
}

/* Restores a machine whose series was restored with the section before; if it was not, there is no machine. */
static int snapshots_take_machine(struct work *w, const struct hk_machine_memory *m, uint8_t generation, uint64_t position)
{
  struct hk_restoration *o = w->out;
  uint8_t there;
  if (m->slot >= o->max_sensors || !hk_registry_generation(o->registry, m->slot, &there) || there != generation ||
      o->restored.skip[m->slot] != position)
    return 0;
  const struct hk_shard *shard = &o->shard[m->slot % o->durable->shards];
  const uint32_t number = hk_registry_detector(o->registry, m->slot);
  const int status = hk_groups_restore(hk_groups_with(shard, hk_registry_detector_of(o->registry, number)), m, position);
  o->machines++;
  o->machines_anew += status == -EINVAL;
  return status == -EINVAL ? 0 : status;
}

static int take_machines(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_machine_memory machine;
  uint8_t generation;
  size_t at = 0;
  int more, status = 0;
  while (status == 0 && (more = hk_snapshot_machine_next(part, &at, &machine, &generation)) != 0)
    status = more < 0 ? more : snapshots_take_machine(w, &machine, generation, part->position);
  return status;
}

static int take_owners(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_snapshot_owner o;
  size_t at = 0;
  int more;
  while ((more = hk_snapshot_owner_next(part, &at, &o)) > 0)
    hk_registry_restore_owner(w->out->registry, o.slot, o.generation, o.owner);
  return more;
}

/* Restores rates of sensors that were restored with the section before. */
static int take_counters(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_snapshot_counter c;
  struct hk_restoration *o = w->out;
  size_t at = 0;
  uint8_t there;
  int more, status = 0;
  while (status == 0 && (more = hk_snapshot_counter_next(part, &at, &c)) != 0) {
    if (more < 0)
      return more;
    struct hk_shard *shard = &o->shard[c.slot % o->durable->shards];
    if (c.slot < o->max_sensors && hk_registry_generation(o->registry, c.slot, &there) && there == c.generation)
      status = hk_rates_restore(shard, hk_slot_within(shard->all, c.slot), &c.rate);
  }
  return status;
}

/* Restores small windows of sensors that were restored with the section before. */
static int take_provisional(struct work *w, const struct hk_snapshot_part *part)
{
  struct hk_snapshot_provisional p;
  struct hk_restoration *o = w->out;
  size_t at = 0;
  uint8_t there;
  int more, status = 0;
  while (status == 0 && (more = hk_snapshot_provisional_next(part, &at, &p)) != 0) {
    if (more < 0)
      return more;
    struct hk_shard *shard = &o->shard[p.slot % o->durable->shards];
    if (p.slot < o->max_sensors && hk_registry_generation(o->registry, p.slot, &there) && there == p.generation)
      status = hk_provisional_go_on(shard, hk_slot_within(shard->all, p.slot), p.saved, p.size);
  }
  return status;
}

/* Slots of files are distributed over shards anew if their number has changed: then each has data of all files. */
static int take_latest(struct work *w, const struct hk_snapshot_part *part, const struct hk_snapshot_about *of)
{
  const uint32_t shards = w->out->durable->shards;
  for (uint32_t i = 0; i < shards; i++)
    if (of->shards != shards || of->shard == i)
      hk_reach_restore(&w->out->shard[i].taking.reach, part->arrival);
  return 0;
}

static void forget_detectors(struct work *w)
{
  for (uint32_t i = 0; i < w->n_detectors; i++)
    free(w->detectors[i]);
  free(w->detectors);
  w->detectors = NULL;
  w->n_detectors = 0;
}

static int take_parts(struct work *w, struct hk_snapshot_reader *reader, uint32_t shard, char *why, size_t size)
{
  struct hk_snapshot_part part = { 0 };
  int status;
  while ((status = hk_snapshot_next(reader, &part)) == 1) {
    status = part.type == HK_PART_DETECTOR      ? snapshots_keep_detector(w, &part)
             : part.type == HK_PART_FEED        ? keep_feed(w, &part, shard)
             : part.type == HK_PART_SENSORS     ? take_sensors(w, &part)
             : part.type == HK_PART_MACHINES    ? take_machines(w, &part)
             : part.type == HK_PART_OWNERS      ? take_owners(w, &part)
             : part.type == HK_PART_COUNTERS    ? take_counters(w, &part)
             : part.type == HK_PART_PROVISIONAL ? take_provisional(w, &part)
             : part.type == HK_PART_END         ? take_latest(w, &part, hk_snapshot_of(reader))
                                                : 0;
    if (part.position > w->out->position[shard])
      w->out->position[shard] = part.position;
    if (status == 0)
      continue;
    snprintf(why, size, "section at byte %" PRIu64 ": %s", part.at,
             status == -EBADMSG ? "its layout is wrong" : strerror(-status));
    return status;
  }
  return status;
}

static int take_over(struct work *w, const struct hk_found_snapshot *f, char *error, size_t size)
{
  struct hk_snapshot_reader *reader;
  char why[WHY];
  int status = hk_snapshot_open(&reader, &w->out->durable->disk, w->choice.folders[f->folder], f->name, why, sizeof why);
  if (status == 0) {
    status = take_parts(w, reader, f->about.shard, why, sizeof why);
    hk_snapshot_read_close(reader);
  }
  forget_detectors(w);
  if (status != 0)
    snprintf(error, size, "shard-%u/%s: %s", f->folder, f->name, why);
  return status;
}

static int end_those_anew(struct work *w)
{
  int status = 0;
  for (uint32_t i = 0; i < w->out->durable->shards; i++)
    (void)hk_shard_clear_alerts(&w->out->shard[i]);
  for (uint32_t i = 0; i < w->n_standing && status == 0; i++) {
    struct hk_shard *shard = &w->out->shard[w->standing[i].slot % w->out->durable->shards];
    status = hk_alerts_set(shard->alerts, hk_slot_within(shard->all, w->standing[i].slot), &w->standing[i].alerts);
  }
  return status;
}

/* Determines where everything continues. */
static void snapshots_settle(struct work *w)
{
  struct hk_restoration *o = w->out;
  uint64_t newest = 0, epoch = 0;
  for (uint32_t i = 0; i < w->choice.n; i++)
    newest = w->choice.found[i].about.epoch > newest ? w->choice.found[i].about.epoch : newest;
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++) {
    if (!w->choice.chosen[i])
      continue;
    const struct hk_snapshot_about *about = &w->choice.chosen[i]->about;
    epoch = about->epoch;
    o->restored.shards = about->shards;
    o->restored.from[i] = about->begin;
    o->restored.order[i] = about->order;
  }
  o->restored.damaged = hk_snapshot_any_bad(&w->choice);
  const bool same = epoch > 0 && epoch == newest && o->restored.shards == o->durable->shards;
  o->epoch = same ? epoch : newest + 1;
  o->renews = epoch > 0 && !same;
  for (uint32_t i = 0; i < o->durable->shards && same; i++)
    o->same[i] = w->choice.chosen[i] != NULL;
  for (uint32_t i = 0; i < o->durable->shards && w->arrival > 0; i++)
    o->shard[i].ahead = w->arrival - hk_now();
}

static void snapshots_tell(const struct work *w, int64_t began)
{
  const struct hk_restoration *o = w->out;
  hk_log(o->durable->log, HK_LOG_NOTICE, "restored %" PRIu64 " sensors from snapshots in %.2f s", o->sensors,
         (double)(hk_now() - began) * 1e-9);
  if (o->anew > 0)
    hk_log(o->durable->log, HK_LOG_WARNING,
           "%" PRIu64 " of them warm up again: their detector was removed, or its algorithm, window, gap, resident, neighbours, "
           "level or stride changed",
           o->anew);
  if (o->machines_anew > 0)
    hk_log(o->durable->log, HK_LOG_WARNING,
           "%" PRIu64 " of %" PRIu64
           " machines warm up again: their group's interval, resident or wait changed, or it has fewer members",
           o->machines_anew, o->machines);
  if (o->gone > 0)
    hk_log(o->durable->log, HK_LOG_WARNING, "%" PRIu64 " sensors were not restored: no detector matches them any more", o->gone);
  if (o->full > 0) {
    char full[HK_REGISTRY_FULL_MAX];
    hk_log(o->durable->log, HK_LOG_WARNING, "%" PRIu64 " sensors were not restored for lack of room: %s", o->full,
           hk_registry_full(o->registry, full));
  }
}

static int snapshots_restore(struct work *w, char *error, size_t size)
{
  struct hk_restoration *o = w->out;
  const int64_t began = hk_now();
  int status = hk_snapshots_choose(&w->choice, o->durable, error, size);
  if (status != 0 || !hk_snapshot_chosen(&w->choice)) {
    if (status == 0 && hk_snapshot_any_bad(&w->choice))
      hk_log(o->durable->log, HK_LOG_ERROR, "all snapshots are damaged: sensors that are in no journal warm up again");
    snapshots_settle(w);
    return status;
  }
  o->restored.skip = calloc(o->max_sensors, sizeof *o->restored.skip);
  if (!o->restored.skip) {
    snprintf(error, size, "no memory for the positions of %u sensors", o->max_sensors);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < HK_SHARDS_MAX && status == 0; i++)
    status = w->choice.chosen[i] ? take_over(w, w->choice.chosen[i], error, size) : 0;
  if (status == 0) {
    status = end_those_anew(w);
    if (status != 0)
      snprintf(error, size, "no memory for the alerts that stand");
  }
  if (status != 0)
    return status;
  snapshots_settle(w);
  for (uint32_t i = 0; i < o->restored.shards; i++) {
    if (!w->choice.chosen[i])
      hk_log(o->durable->log, HK_LOG_ERROR,
             "there is no undamaged snapshot of shard %u (of %u): its sensors that are in no journal warm up again", i,
             o->restored.shards);
  }
  snapshots_tell(w, began);
  return 0;
}

int hk_snapshot_restore(struct hk_restoration *o, char *error, size_t size)
{
  struct work w = { .out = o };
  const int status = snapshots_restore(&w, error, size);
  hk_snapshot_choice_close(&w.choice);
  free(w.standing);
  return status;
}
