/* Shard: the sensors of one device, the thread that feeds it, and the batches that go to it and come back.
 *
 * The thread takes chunks from the lanes of all loops in turn and makes batches of them (the stage). A batch is launched as soon
 * as any point waits and the device has little or nothing to do (turn.c), so batches grow under load and no point waits for a
 * timer. A batch is limited to what takes about a quarter of a second: if scores are expensive (wide windows, exact SVD, the CPU)
 * results keep flowing, and silence means a fault. Results go to the loops in the order in which the batches were launched. When
 * there is nothing to do the thread sleeps, at once or, with `busy_poll`, after it has polled for that time.
 *
 * What can go wrong with a batch:
 *  - it is refused, by submit or when it comes back (-EINVAL, -ENOMEM): its points are dropped and counted, the device goes on;
 *  - it comes back with any other status, too many consecutive ones found no memory, nothing has come back from a device for the
 *    configuration's `device_timeout`, or the device failed at something else: the device is lost (failover.c). All that was in
 *    flight is dropped and counted, the device is abandoned, and the CPU replaces it, or nothing does. A backend that is no
 *    separate device (cpu, reference) is never lost: it fails with the whole process or not at all.
 *
 * Thread: its own, unless stated otherwise. */
#ifndef HK_SHARD_H
#define HK_SHARD_H

#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/durable/event_log.h"
#include "daemon/intake/lane.h"
#include "daemon/scoring/commit_gate.h"
#include "daemon/scoring/device_queue.h"
#include "daemon/scoring/late_points.h"
#include "daemon/scoring/progress.h"
#include "daemon/scoring/score_gate.h"
#include "daemon/scoring/shard_parts.h"
#include "daemon/sensors/alert_memory.h"
#include "daemon/sensors/registry.h"

struct hk_groups;
struct hk_provisional;
struct hk_maintenance;
struct hk_durable;
struct hk_saver;
struct hk_relay;

/* What shards have in common; set before they start. */
struct hk_shards {
  const struct hk_config *config; /* that the daemon was started with */
  const struct hk_backend_kind *kinds;
  struct hk_log *log;
  struct hk_registry *registry;
  struct hk_durable *durable;
  struct hk_eventlog *events;  /* NULL: none; events are published with their batches */
  struct hk_score_gate scores; /* what snapshots of shared partitions wait for */
  struct hk_maintenance *maintenance;
  bool relays;            /* to a broker: the one shard scores nothing */
  struct hk_relay *relay; /* if so; else NULL */
  struct hk_shard *shard; /* n of them */
  uint32_t n, n_loops;
  pthread_mutex_t replay;       /* protects the groups of all shards during replay of journals */
  int64_t stall;                /* ns without progress after which a shard counts as stalled */
  atomic_uint_fast64_t settled; /* changes when points were processed: sources may have room, goodbyes be due */
  void (*ended)(void *arg);     /* a shard was lost without replacement. Called from its thread */
  void *arg;
};

struct hk_shard {
  struct hk_shards *all;
  const struct hk_config *config; /* in force, for this thread alone: a reload changes it between two turns */
  uint32_t number;
  struct hk_lane *lanes; /* from each loop */
  struct hk_counters counters;
  struct hk_shard_life life;

  /* Written by the shard's thread, under the lock so that other threads can read. */
  pthread_mutex_t lock;
  struct hk_device *device; /* NULL: lost; nothing is computed at present, or ever again */
  struct hk_failover failover;

  struct hk_device_queue queue;
  struct hk_taking taking;
  struct hk_stage *stage;
  struct hk_alerts *alerts; /* by slot within the shard */
  struct hk_shard_machines {
    struct hk_groups *groups;  /* of its sensors */
    struct hk_groups *seconds; /* the same for second groups: the novelty of those with statistic = both */
    struct hk_groups *fields;  /* the same for fields (field_rows.h) */
  } machines;
  struct hk_rates rates;
  struct hk_provisional *provisional; /* of sensors whose windows are not full; NULL: no detector wanted any so far */
  struct hk_commit_gate gate;
  struct hk_saver *saver; /* takes snapshots; NULL: none are taken */
  struct hk_evictions evictions;
  struct hk_shard_reload reload;
  struct hk_shard_requests requests;
  struct hk_stall stall;
  int64_t ahead;         /* ns: arrival clock minus hk_now: the clock continues where a snapshot ended */
  atomic_bool replaying; /* at the start: no sensor counts as silent yet */
  struct hk_shard_quotas {
    struct hk_log_quota failures, forgetful, alerts, counters;
    struct hk_late_points late;
  } quotas; /* of lines in the log, and what they are about */
};

/* Slots are the registry's, or count within a shard: slot s of the registry is slot s / n of shard s % n. */
static inline uint32_t hk_slot_within(const struct hk_shards *all, uint32_t slot)
{
  return slot / all->n;
}
static inline uint32_t hk_slot_outside(const struct hk_shard *shard, uint32_t within)
{
  return within * shard->all->n + shard->number;
}

/* For any thread.
 * ns for which nothing has come back while something is in flight. Time in which the thread did not run does not count. */
int64_t hk_shard_stalled(const struct hk_shard *shard);
/* Name of the backend that computes; "none" when none does. */
const char *hk_shard_backend(struct hk_shard *shard);
/* Bytes that this number of sensors of a detector takes; 0 if nothing computes. */
uint64_t hk_shard_need(struct hk_shard *shard, uint32_t detector, uint64_t sensors);

/* --- between the files of the shard ---------------------------------------------------------------------------------- */

/* Number of taken points that are in a batch or a chain; the rest is in the chunk that is being taken. Not valid while points are
 * derived from that chunk (hk_derive_within). */
static inline uint64_t hk_shard_staged(const struct hk_shard *s)
{
  return hk_commit_gate_position(&s->gate) - hk_taking_left(&s->taking);
}

/* Period of the device check by the configuration, ms; hk_shard_watch sets the timer accordingly. */
uint64_t hk_shard_check_period(const struct hk_shard *shard);
void hk_shard_watch(struct hk_shard *shard);
/* Limits for the memory of sensors, bytes: where they are computed now; and if the CPU replaces a lost device. */
uint64_t hk_shard_memory(const struct hk_shard *shard);
uint64_t hk_shard_host_memory(const struct hk_config *config);

#endif
