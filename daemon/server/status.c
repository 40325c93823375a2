/* The status report of the daemon: one JSON object. PROTOCOL.md and hankel-status(1) document it; keys are only ever added. */
#include "daemon/server/status.h"
#include "daemon/base/counter_table.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/journal_segments.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/scoring/snapshot_thread.h"
#include "daemon/scoring/stall.h"
#include "daemon/sensors/maintenance.h"
#include "daemon/sensors/novelty_shown.h"
#include "daemon/server/cluster_view.h"
#include "daemon/server/incident_status.h"
#include "daemon/server/model_status.h"
#include "daemon/server/reload.h"

#include "cpu/sst/kernels.h"
#include "proto/wire/event_message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALERTS 100u /* maximum number of standing alerts that are shown one by one */

/* The separator before the next member; the buffer is empty if there was no memory. */
static const char *comma(const struct hk_buffer *out)
{
  return out->size == 0 || out->data[out->size - 1] == '{' ? "" : ",";
}

static void field(struct hk_buffer *out, const char *name, uint64_t value)
{
  hk_buffer_print(out, "%s\"%s\":%" PRIu64, comma(out), name, value);
}

static void begin(struct hk_buffer *out, const char *name)
{
  hk_buffer_print(out, ",\"%s\":{", name);
}

static void end(struct hk_buffer *out)
{
  hk_buffer_put(out, "}", 1);
}

/* Appends the counters of a section. */
static void counted(struct hk_buffer *out, const char *section, const struct hk_counters *c)
{
  for (const struct hk_counter_row *row = hk_counter_table; row->section; row++)
    if (strcmp(row->section, section) == 0)
      field(out, row->name, hk_counter_of(c, row));
}

static void text(struct hk_buffer *out, const char *name, const char *value)
{
  hk_buffer_print(out, "%s\"%s\":", comma(out), name);
  hk_json_string(out, value, strlen(value));
}

/* Appends a sensor of which all points are late, if most points are. */
static void status_late(struct hk_buffer *out, struct hk_server *s)
{
  uint32_t within;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    if (!hk_late_shown(&s->shard[i].quotas.late, hk_now(), &within))
      continue;
    const uint32_t slot = hk_slot_outside(&s->shard[i], within);
    hk_registry_read(s->shards.registry);
    const bool is_there = hk_registry_holds(s->shards.registry, slot);
    if (is_there)
      text(out, "late_sensor", hk_registry_name(s->shards.registry, slot).data);
    hk_registry_read_end(s->shards.registry);
    if (is_there)
      return;
  }
}

static void status_points(struct hk_buffer *out, struct hk_server *s, const struct hk_counters *c)
{
  begin(out, "points");
  counted(out, "points", c);
  field(out, "dropped", hk_counters_dropped(c));
  field(out, "pending", hk_counters_pending(c));
  status_late(out, s);
  end(out);
  begin(out, "dropped");
  counted(out, "dropped", c);
  end(out);
}

static void time_in_seconds(struct hk_buffer *out, const char *name, int64_t seconds)
{
  char when[HK_TIME_TEXT_MAX];
  hk_time_text(seconds, when);
  text(out, name, when);
}

static void time_of_day(struct hk_buffer *out, const char *name, int64_t ns)
{
  time_in_seconds(out, name, ns / 1000000000);
}

/* The computing backend, and the condition of the device: "ok", "lost", or "none" (the CPU computes, and nothing was lost). */
static void device(struct hk_buffer *out, struct hk_server *s, const struct hk_config *config, const struct hk_counters *c)
{
  struct hk_device_condition now = hk_shard_condition(&s->shard[0]);
  uint32_t batches = now.loss.batches;
  for (uint32_t i = 1; i < s->shards.n; i++) { /* a lost one is reported */
    const struct hk_device_condition other = hk_shard_condition(&s->shard[i]);
    batches += other.loss.batches;
    if (other.loss.time != 0 && now.loss.time == 0)
      now = other;
  }
  const struct hk_loss *loss = &now.loss;
  const char *excuse = hk_shard_excuse(&s->shard[0]);
  const bool lost = loss->time != 0;
  begin(out, "device");
  text(out, "state", lost ? "lost" : now.own ? "ok" : "none");
  text(out, "on_failure", config->on_device_failure == HK_DEVICE_FAILURE_CPU ? "cpu" : "stop");
  if (lost) {
    text(out, "name", loss->device);
    time_of_day(out, "since", loss->time);
  }
  if (lost || excuse[0])
    text(out, "why", lost ? loss->why : excuse);
  field(out, "batches_lost", batches);
  field(out, "points_lost", c->device_lost);
  end(out);
}

/* Appends the snapshots of a shard. */
static void snapshots(struct hk_buffer *out, struct hk_saver *saver)
{
  const struct hk_saver_condition now = hk_saver_condition(saver);
  field(out, "snapshots", now.made);
  field(out, "snapshots_failed", now.failed);
  if (now.last != 0) {
    time_of_day(out, "snapshot_time", now.last);
    field(out, "snapshot_sensors", now.sensors);
    field(out, "snapshot_bytes", now.bytes);
    field(out, "snapshot_took_ms", (uint64_t)now.took / 1000000);
  }
  if (now.why[0])
    text(out, "snapshot_why", now.why);
}

/* Appends the state of durability, and of the disk. */
static void durability(struct hk_buffer *out, struct hk_server *s)
{
  static const char *const states[] = { "ok", "failing", "degraded", "recovering" }; /* enum hk_durable_state */
  struct hk_durable *d = &s->durable;
  struct hk_eventlog *events = s->shards.events;
  const struct hk_durable_condition now = hk_durable_condition(d);
  begin(out, "durability");
  text(out, "mode", hk_durability_name(d->mode));
  text(out, "state", d->mode == HK_DURABILITY_NONE ? "none" : states[now.state]);
  if (now.since != 0)
    time_of_day(out, "since", now.since);
  if (now.why[0])
    text(out, "why", now.why);
  field(out, "replayed", s->replayed);
  field(out, "lost", s->lost);
  const struct hk_feeds_survey feeds = hk_feeds_survey(d->feeds);
  field(out, "feeds", feeds.n);
  field(out, "feeds_refused", feeds.refused);
  field(out, "feeds_expired", feeds.expired);
  field(out, "commits", d->commit.commits);
  field(out, "bytes", d->commit.bytes);
  field(out, "commit_p50_us", hk_histogram_quantile(&d->commit.took, 0.5) / 1000);
  field(out, "commit_p99_us", hk_histogram_quantile(&d->commit.took, 0.99) / 1000);
  if (events) {
    field(out, "events_first", hk_eventlog_first(events));
    field(out, "events_last", hk_eventlog_last(events));
    field(out, "events_shown", hk_eventlog_shown(events));
    field(out, "events_lost", hk_eventlog_lost(events));
    field(out, "events_bytes", hk_eventlog_bytes(events));
  }
  hk_buffer_print(out, ",\"shards\":[");
  for (uint32_t i = 0; i < s->shards.n; i++) {
    hk_buffer_print(out, "%s{", i ? "," : "");
    field(out, "position", hk_commit_gate_position(&s->shard[i].gate));
    if (d->journal[i]) {
      if (now.state < HK_DURABLE_DEGRADED) /* else it bounds the published results, and is not on disk */
        field(out, "committed", hk_journal_committed(d->journal[i]));
      field(out, "journal_from", hk_journal_begins(d->journal[i]));
      field(out, "journal_bytes", hk_journal_bytes(d->journal[i]));
    }
    if (s->shard[i].saver)
      snapshots(out, s->shard[i].saver);
    end(out);
  }
  hk_buffer_put(out, "]", 1);
  end(out);
}

struct sum {
  uint64_t machines, members;
};

/* Number of machines and their members, over all shards. */
static struct sum sum_of(const struct hk_server *s, bool fields)
{
  struct sum sum = { 0 };
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const struct hk_groups_count *count = hk_groups_count(fields ? s->shard[i].machines.fields : s->shard[i].machines.groups);
    sum.machines += count->machines;
    sum.members += count->members;
  }
  return sum;
}

static void groups(struct hk_buffer *out, const struct hk_server *s)
{
  const struct sum groups = sum_of(s, false), fields = sum_of(s, true);
  begin(out, "groups");
  field(out, "machines", groups.machines);
  field(out, "members", groups.members);
  end(out);
  begin(out, "fields");
  field(out, "fields", fields.machines);
  field(out, "members", fields.members);
  end(out);
  hk_models_json(out, s);
}

static void sensors(struct hk_buffer *out, struct hk_server *s, const struct hk_config *config, const struct hk_counters *c)
{
  char why[HK_REGISTRY_FULL_MAX];
  uint64_t memory = 0;
  for (uint32_t i = 0; i < config->n_detectors; i++)
    memory += hk_shard_need(&s->shard[0], config->detectors[i].number,
                            hk_registry_count_of(s->shards.registry, config->detectors[i].number));
  begin(out, "sensors");
  field(out, "count", hk_registry_count(s->shards.registry));
  field(out, "max", config->max_sensors);
  counted(out, "sensors", c);
  field(out, "memory_bytes", memory);
  field(out, "memory_limit_bytes", config->memory);
  text(out, "refused_because", hk_registry_full(s->shards.registry, why));
  end(out);
  begin(out, "derived");
  field(out, "sensors", hk_registry_count_derived(s->shards.registry));
  counted(out, "derived", c);
  field(out, "companions_lacking", hk_registry_lacking(s->shards.registry));
  end(out);
  groups(out, s);
  hk_buffer_print(out, ",\"detectors\":[");
  for (uint32_t i = 0; i < config->n_detectors && !config->detectors[i].group; i++) {
    const struct hk_config_detector *d = &config->detectors[i];
    hk_buffer_print(out, "%s{\"name\":", i ? "," : "");
    hk_json_string(out, d->name, strlen(d->name));
    hk_buffer_print(out, ",\"match\":");
    hk_json_string(out, d->match, strlen(d->match));
    text(out, "algorithm", hk_algorithm_name(d->detector.algorithm));
    field(out, "window", d->detector.window);
    field(out, "sensors", hk_registry_count_of(s->shards.registry, d->number));
    field(out, "bytes_a_sensor", hk_shard_need(&s->shard[0], d->number, config->max_sensors) / config->max_sensors);
    end(out);
  }
  hk_buffer_put(out, "]", 1);
}

static void input(struct hk_buffer *out, const struct hk_counters *c)
{
  begin(out, "input");
  counted(out, "input", c);
  end(out);
  begin(out, "lines");
  counted(out, "lines", c);
  end(out);
  begin(out, "udp");
  counted(out, "udp", c);
  end(out);
}

/* When the listeners' certificates expire. */
static void certificates(struct hk_buffer *out, const struct hk_gates *gates)
{
  const char *comma = "";
  int64_t left;
  hk_buffer_print(out, ",\"certificates\":[");
  for (uint32_t i = 0; i < gates->n; i++) {
    if (!hk_gate_left(&gates->gate[i], &left))
      continue;
    hk_buffer_print(out, "%s{\"name\":", comma);
    hk_json_string(out, gates->gate[i].name, strlen(gates->gate[i].name));
    time_in_seconds(out, "expires", hk_wall() / 1000000000 + left); /* some are valid until the year 9999 */
    text(out, "state", left > 0 ? "good" : "expired");
    if (hk_gate_crl_left(&gates->gate[i], &left)) {
      if (left != INT64_MAX)
        time_in_seconds(out, "crl_expires", hk_wall() / 1000000000 + left);
      text(out, "crl", left > 0 ? "good" : "expired");
    }
    end(out);
    comma = ",";
  }
  hk_buffer_put(out, "]", 1);
}

/* Appends accepted and refused peers. */
static void security(struct hk_buffer *out, struct hk_server *s, const struct hk_config *config, const struct hk_counters *c)
{
  uint32_t newcomers, shut_out;
  const struct hk_address_limits_most most = { .failures = config->max_failures };
  hk_address_limits_survey(s->net.limits, &most, hk_now(), &newcomers, &shut_out);
  begin(out, "security");
  field(out, "newcomers", newcomers);
  field(out, "addresses_shut_out", shut_out);
  field(out, "turned_away", s->net.turned_away);
  counted(out, "security", c);
  if (s->net.gates.any_tls)
    certificates(out, &s->net.gates);
  end(out);
}

/* Appends the shard that has stalled for the longest time. */
static void stall(struct hk_buffer *out, struct hk_server *s)
{
  char why[HK_STALL_WHY], most_why[HK_STALL_WHY] = "";
  int64_t most = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const int64_t lasts = hk_stall_lasts(&s->shard[i], why);
    if (lasts <= most)
      continue;
    most = lasts;
    memcpy(most_why, why, sizeof most_why);
  }
  field(out, "stalled_s", (uint64_t)most / 1000000000);
  text(out, "stalled_because", most_why);
}

static void output(struct hk_buffer *out, struct hk_server *s, const struct hk_config *config, const struct hk_counters *c)
{
  uint64_t subscribers = 0, subscriptions = 0, queued = 0, held_back = 0, in_flight = 0, most = 0;
  struct hk_histogram took = { 0 };
  for (uint32_t i = 0; i < s->net.n_loops; i++) {
    subscribers += s->net.loops[i].shared.subscribers;
    subscriptions += s->net.loops[i].shared.subscriptions;
    queued += s->net.loops[i].shared.queued;
    held_back += s->net.loops[i].shared.held_back;
  }
  for (uint32_t i = 0; i < s->shards.n; i++) {
    in_flight += hk_queue_in_flight(&s->shard[i].queue);
    hk_histogram_sum(&took, &s->shard[i].queue.took);
    const uint32_t its = hk_queue_most(&s->shard[i].queue);
    most = its > most ? its : most;
  }
  begin(out, "events");
  counted(out, "events", c);
  end(out);
  begin(out, "connections");
  field(out, "open", hk_peer_feeds_taken(&s->net.peer_feeds));
  field(out, "max", s->net.capacity.connections);
  counted(out, "connections", c);
  field(out, "held_back", held_back);
  end(out);
  security(out, s, config, c);
  begin(out, "subscribers");
  field(out, "count", subscribers);
  field(out, "subscriptions", subscriptions);
  field(out, "queued_bytes", queued);
  counted(out, "subscribers", c);
  end(out);
  begin(out, "batches");
  counted(out, "batches", c);
  field(out, "in_flight", in_flight);
  field(out, "points_at_most", most);
  field(out, "points_waiting", hk_counters_waiting(c));
  field(out, "backlog", config->backlog);
  field(out, "p50_us", hk_histogram_quantile(&took, 0.5) / 1000);
  field(out, "p99_us", hk_histogram_quantile(&took, 0.99) / 1000);
  stall(out, s);
  end(out);
}

/* Appends a standing alert: its number, its begin, and who acknowledged it. */
static void status_alert(struct hk_buffer *out, struct hk_registry *registry, const struct hk_standing *s)
{
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, s->event.slot);
  hk_buffer_print(out, "{\"sensor\":");
  hk_json_string(out, name.data, name.length);
  hk_registry_read_end(registry);
  field(out, "number", s->event.number);
  text(out, "channel", hankel_channel_name(s->event.channel));
  time_of_day(out, "instant", s->event.instant);
  const float severity = hk_severity_told(s->event.severity);
  hk_buffer_print(out, ",\"severity\":%.3f,\"level\":\"%s\",\"before\":", (double)severity, hankel_severity_name(severity));
  hk_json_number(out, s->event.before, 9);
  hk_buffer_print(out, ",\"after\":");
  hk_json_number(out, s->event.after, 9);
  const uint32_t kind = hk_novelty_shown(&s->event).kind;
  if (kind != HANKEL_NO_NOVELTY)
    text(out, "novelty", hankel_novelty_name(kind));
  hk_buffer_print(out, ",\"maintenance\":%s", s->event.marks & HANKEL_MAINTENANCE ? "true" : "false");
  if (s->silent != 0)
    time_of_day(out, "stale", hk_wall() - (hk_now() - s->silent));
  if (s->acknowledged != 0) {
    text(out, "by", s->by);
    time_of_day(out, "acknowledged", s->acknowledged);
  }
  end(out);
}

/* A key precedes it. */
struct standing {
  struct hk_standing_key key;
  uint32_t at;
};

/* Appends the standing alerts, some of them one by one, and the maintenance windows. */
static void status_alerts(struct hk_buffer *out, struct hk_server *s)
{
  const size_t most = (size_t)s->shards.n * ALERTS;
  struct hk_standing *standing = malloc(most * sizeof *standing);
  struct standing *order = malloc(most * sizeof *order);
  struct hk_alerts_sum sum;
  const uint32_t n = hk_server_alerts(s, standing, standing && order ? ALERTS : 0, &sum);
  for (uint32_t i = 0; i < n; i++)
    order[i] = (struct standing){ hk_standing_key(&standing[i]), i };
  if (n > 1) /* each shard's alerts are sorted */
    qsort(order, n, sizeof *order, hk_standing_order);
  hk_buffer_print(out, ",\"alerts\":{\"first\":[");
  for (uint32_t i = 0; i < n && i < ALERTS; i++) {
    if (i > 0)
      hk_buffer_put(out, ",", 1);
    status_alert(out, s->shards.registry, &standing[order[i].at]);
  }
  hk_buffer_put(out, "]", 1);
  field(out, "standing", sum.standing);
  field(out, "acknowledged", sum.acknowledged);
  end(out);
  hk_buffer_print(out, ",\"maintenance\":");
  hk_maintenance_show(s->shards.maintenance, hk_wall(), out);
  free(standing);
  free(order);
}

/* Appends where a point's time goes, from socket to socket. */
static void latency(struct hk_buffer *out, const struct hk_server *s)
{
  hk_buffer_print(out, ",\"latency\":{");
  for (int i = 0; i < HK_LEGS; i++) {
    struct hk_histogram sum = { 0 };
    for (uint32_t k = 0; k < s->net.n_loops; k++)
      hk_histogram_sum(&sum, &s->net.loops[k].latency.leg[i]);
    hk_buffer_print(out, "%s\"%s\":{\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}", i ? "," : "", hk_leg_name((enum hk_leg)i),
                    (double)hk_histogram_quantile(&sum, 0.5) / 1e3, (double)hk_histogram_quantile(&sum, 0.99) / 1e3,
                    (double)hk_histogram_quantile(&sum, 0.999) / 1e3);
  }
  end(out);
}

/* Appends an object for each loop: its received data, and its number of connections. */
static void loops(struct hk_buffer *out, const struct hk_server *s)
{
  hk_buffer_print(out, ",\"loops\":[");
  for (uint32_t i = 0; i < s->net.n_loops; i++) {
    const struct hk_loop *l = &s->net.loops[i];
    hk_buffer_print(out, "%s{\"name\":\"loop %u\"", i ? "," : "", i);
    field(out, "connections", l->shared.n_connections);
    field(out, "points_in", l->counters.in);
    field(out, "datagrams", l->counters.datagrams);
    end(out);
  }
  hk_buffer_put(out, "]", 1);
}

void hk_status_json(struct hk_loop *loop, struct hk_buffer *out)
{
  struct hk_server *s = loop->net->server;
  struct hk_counters sum;
  hk_loop_survey(loop);
  hk_server_sum(s, &sum);
  hk_buffer_print(out, "{\"version\":\"%s\",\"backend\":\"%s\"", HANKELD_VERSION, hk_shard_backend(&s->shard[0]));
  hk_buffer_print(out, ",\"kernels\":\"%s\"", hk_kernels_name());
  field(out, "threads", loop->config->threads ? loop->config->threads : uv_available_parallelism());
  field(out, "devices", s->shards.n);
  field(out, "uptime_s", (uint64_t)(hk_now() - s->started) / 1000000000);
  hk_buffer_print(out, ",\"configuration\":");
  hk_reload_status(s, out);
  device(out, s, loop->config, &sum);
  durability(out, s);
  status_points(out, s, &sum);
  sensors(out, s, loop->config, &sum);
  input(out, &sum);
  output(out, s, loop->config, &sum);
  status_alerts(out, s);
  hk_incident_status(s->incidents, out);
  const struct hk_outside outside = hk_cluster_view_outside(s);
  hk_outside_status(out, &outside);
  latency(out, s);
  loops(out, s);
  end(out);
}
