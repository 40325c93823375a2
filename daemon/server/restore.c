/* Restores the state before any peer is served: the snapshots while nothing else runs, the journals while shards run and loops
 * do not. */
#include "daemon/server/restore.h"

#include "daemon/base/systemd.h"
#include "daemon/durable/disk_health.h"
#include "daemon/scoring/alert_log.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/scoring/snapshot_thread.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/slots.h"
#include "daemon/server/load_snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE 60000000000 /* ns that the snapshots after a change of the number of shards get */

int hk_server_restore_snapshots(struct hk_server *s, char *error, size_t size)
{
  struct hk_durable *d = &s->durable;
  struct hk_restoration *r = s->restoration = calloc(1, sizeof *r);
  int status = 0;
  if (!r) {
    snprintf(error, size, "no memory to restore the state");
    return -ENOMEM;
  }
  *r = (struct hk_restoration){
    .durable = d, .registry = s->shards.registry, .shard = s->shard, .max_sensors = s->config->max_sensors
  };
  const bool shared = s->config->cluster.state[0];
  if (!hk_config_saves(s->config))
    return 0;
  status = shared ? 0 : hk_snapshot_restore(r, error, size);
  for (uint32_t i = 0; i < s->shards.n && status == 0; i++) {
    const struct hk_saver_place place = { .shard = &s->shard[i],
                                          .durable = d,
                                          .epoch = r->epoch,
                                          .restored = r->same[i],
                                          .begin = r->restored.from[i],
                                          .shared = shared };
    if (shared) /* all machines share the clock by which sensors are silent */
      s->shard[i].ahead = hk_wall() - hk_now();
    status = hk_saver_open(&s->shard[i].saver, &place);
    if (status != 0)
      snprintf(error, size, "state = %s: shard-%u: %s", d->path, i, strerror(-status));
  }
  return status;
}

/* A shard continues after everything that its sensors have seen. */
static uint64_t position_of(const struct hk_server *s, const struct hk_recovery *recovery, uint32_t shard)
{
  const struct hk_restoration *r = s->restoration;
  uint64_t position = recovery->position[shard];
  for (uint32_t i = 0; i < r->restored.shards; i++)
    if ((i == shard || r->restored.shards != s->shards.n) && r->position[i] > position)
      position = r->position[i];
  return position;
}

/* Adds the companions that the configuration has added since to restored sensors. */
static void complete_sensors(struct hk_server *s)
{
  struct hk_registry *registry = s->shards.registry;
  const uint32_t slots = hk_registry_slots(registry);
  uint32_t alone = 0, added;
  for (uint32_t slot = 0; slot < slots; slot++)
    if (hk_registry_holds(registry, slot) && !hk_registry_derived(registry, slot))
      alone += hk_registry_complete(registry, slot, &added) != 0;
  if (alone > 0) {
    char why[HK_REGISTRY_FULL_MAX];
    hk_log(&s->log, HK_LOG_WARNING, "%u sensors have no room for their further algorithms: %s", alone,
           hk_registry_full(registry, why));
  }
}

/* A shard's position of a feed has another meaning if the number of shards has changed, or if a journal has a gap. So nothing
 * new is journaled until snapshots contain everything: after a crash in between, the two meanings would be confused. */
static void await_snapshots(struct hk_server *s)
{
  const struct timespec moment = { 0, 1000000 };
  const int64_t begin = hk_now();
  bool fails = false;
  int64_t told = begin;
  for (uint32_t i = 0; i < s->shards.n; i++)
    hk_wake_up(&s->shard[i].life.wake, HK_WAKE_WORK);
  while (!hk_durable_saved(&s->durable) && !fails) {
    (void)nanosleep(&moment, NULL);
    fails = hk_now() - begin > PATIENCE;
    for (uint32_t i = 0; i < s->shards.n; i++)
      fails |= hk_saver_condition(s->shard[i].saver).failed > 0;
    if (hk_now() - told > 1000000000) {
      hk_notify("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=taking snapshots");
      told = hk_now();
    }
  }
  if (fails)
    hk_log(s->durable.log, HK_LOG_WARNING,
           "the state was restored from another number of devices, or after a gap in a journal, and is in no snapshot yet: until "
           "it is, a crash may lose points of feeds");
}

int hk_server_restore(struct hk_server *s, char *error, size_t size)
{
  struct hk_durable *d = &s->durable;
  struct hk_recovery *recovery = calloc(1, sizeof *recovery);
  int status = 0;
  if (!recovery) {
    snprintf(error, size, "no memory to restore the state");
    return -ENOMEM;
  }
  *recovery = (struct hk_recovery){ .durable = d,
                                    .registry = s->shards.registry,
                                    .shard = s->shard,
                                    .pool = &s->net.loops[0].scored.pool,
                                    .counters = &s->net.loops[0].counters,
                                    .max_sensors = s->config->max_sensors,
                                    .restored = &s->restoration->restored };
  if (d->mode != HK_DURABILITY_NONE)
    status = hk_recover(recovery, error, size);
  d->health.renews = s->restoration->renews || recovery->other_shards;
  for (uint32_t i = 0; i < s->shards.n; i++)
    recovery->position[i] = position_of(s, recovery, i);
  if (status == 0 && d->events)
    hk_eventlog_hold(d->events);
  for (uint32_t i = 0; status == 0 && d->events && i < s->shards.n; i++)
    hk_shard_events_replayed(&s->shard[i]);
  if (status == 0 && d->events) {
    status = hk_shards_clear_orphans(&s->shards);
    if (status != 0)
      snprintf(error, size, "no memory for the alerts that stood");
    hk_eventlog_replayed(d->events);
  }
  if (status == 0)
    status = hk_durable_begin(d, recovery->position, s->shards.registry, error, size);
  for (uint32_t i = 0; status == 0 && i < s->shards.n; i++) {
    hk_commit_gate_begin(&s->shard[i].gate, recovery->position[i], d->journal[i]);
    s->shard[i].replaying = false;
  }
  if (status == 0 && (recovery->other_shards || recovery->hole) && d->mode == HK_DURABILITY_JOURNAL)
    await_snapshots(s);
  if (status == 0)
    complete_sensors(s);
  s->replayed = recovery->points;
  s->lost = recovery->lost;
  free(recovery);
  free(s->restoration->restored.skip);
  s->restoration->restored.skip = NULL;
  return status;
}
