/* See metrics.h. Names: hankel_..., base units, counters end in _total. */
#include "daemon/server/metrics.h"

#include "daemon/base/counter_table.h"
#include "daemon/durable/disk_health.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/stall.h"
#include "daemon/server/incident_status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ns: upper bounds of the buckets of histograms, from 10 us to 10 s */
static const uint64_t bounds[] = { 10000,    30000,     100000,    300000,     1000000,    3000000,    10000000,
                                   30000000, 100000000, 300000000, 1000000000, 3000000000, 10000000000 };

struct text {
  struct hk_buffer *out;
  bool open; /* OpenMetrics: a counter's family has a name without _total */
};

static void family(const struct text *t, const char *name, const char *type, const char *help)
{
  const char *total = strcmp(type, "counter") == 0 && !t->open ? "_total" : "";
  hk_buffer_print(t->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name, total, type);
}

static void metrics_gauge(const struct text *t, const char *name, const char *help, uint64_t value)
{
  family(t, name, "gauge", help);
  hk_buffer_print(t->out, "%s %" PRIu64 "\n", name, value);
}

static void counters(const struct text *t, const struct hk_counters *sum)
{
  char name[96];
  for (const struct hk_counter_row *row = hk_counter_table; row->section; row++) {
    snprintf(name, sizeof name, "hankel_%s_%s", row->section, row->name);
    family(t, name, "counter", row->help);
    hk_buffer_print(t->out, "%s_total %" PRIu64 "\n", name, hk_counter_of(sum, row));
  }
}

/* label: such as `leg="wait"`, or "". */
static void histogram(const struct text *t, const char *name, const char *label, const struct hk_histogram *h)
{
  const char *comma = *label ? "," : "", *left = *label ? "{" : "", *right = *label ? "}" : "";
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    hk_buffer_print(t->out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, label, comma, (double)bounds[i] * 1e-9,
                    hk_histogram_within(h, bounds[i]));
  const uint64_t all = hk_histogram_count(h);
  hk_buffer_print(t->out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, label, comma, all);
  hk_buffer_print(t->out, "%s_sum%s%s%s %.9g\n", name, left, label, right, hk_histogram_total(h) * 1e-9);
  hk_buffer_print(t->out, "%s_count%s%s%s %" PRIu64 "\n", name, left, label, right, all);
}

static void latencies(const struct text *t, const struct hk_server *s)
{
  char label[32];
  family(t, "hankel_latency_seconds", "histogram",
         "Where the time of the oldest point of a batch goes, from socket to socket, by leg.");
  for (int leg = 0; leg < HK_LEGS; leg++) {
    struct hk_histogram sum = { 0 };
    for (uint32_t i = 0; i < s->net.n_loops; i++)
      hk_histogram_sum(&sum, &s->net.loops[i].latency.leg[leg]);
    snprintf(label, sizeof label, "leg=\"%s\"", hk_leg_name((enum hk_leg)leg));
    histogram(t, "hankel_latency_seconds", label, &sum);
  }
  struct hk_histogram took = { 0 };
  for (uint32_t i = 0; i < s->shards.n; i++)
    hk_histogram_sum(&took, &s->shard[i].queue.took);
  family(t, "hankel_batch_duration_seconds", "histogram", "How long a batch was with the device.");
  histogram(t, "hankel_batch_duration_seconds", "", &took);
  family(t, "hankel_commit_duration_seconds", "histogram", "How long a commit of the journal took.");
  histogram(t, "hankel_commit_duration_seconds", "", &s->durable.commit.took);
}

static void metrics_alerts(const struct text *t, struct hk_server *s)
{
  struct hk_alerts_sum sum;
  (void)hk_server_alerts(s, NULL, 0, &sum);
  family(t, "hankel_alerts_standing", "gauge", "Standing alerts, by channel.");
  for (int c = HANKEL_SCORE; c < HK_CHANNELS; c++)
    hk_buffer_print(t->out, "hankel_alerts_standing{channel=\"%s\"} %" PRIu32 "\n", hankel_channel_name(c), sum.of_channel[c]);
  metrics_gauge(t, "hankel_alerts_acknowledged", "Standing alerts that are acknowledged.", sum.acknowledged);
}

static void conditions(const struct text *t, struct hk_server *s)
{
  int64_t stalled = 0;
  uint64_t lost = 0, subscribers = 0, subscriptions = 0, queued = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    char why[HK_STALL_WHY];
    const int64_t lasts = hk_stall_lasts(&s->shard[i], why);
    stalled = lasts > stalled ? lasts : stalled;
    lost += hk_shard_has_lost(&s->shard[i]);
  }
  for (uint32_t i = 0; i < s->net.n_loops; i++) {
    subscribers += s->net.loops[i].shared.subscribers;
    subscriptions += s->net.loops[i].shared.subscriptions;
    queued += s->net.loops[i].shared.queued;
  }
  metrics_gauge(t, "hankel_stalled_seconds", "How long the shard that stalled first has made no progress.",
                (uint64_t)stalled / 1000000000);
  metrics_gauge(t, "hankel_devices_lost", "Devices that were lost.", lost);
  metrics_gauge(t, "hankel_durability_degraded", "1 while durability is lost: a crash would lose acknowledged points.",
                hk_durable_condition(&s->durable).state >= HK_DURABLE_DEGRADED);
  metrics_gauge(t, "hankel_subscribers", "Connections that subscribe.", subscribers);
  metrics_gauge(t, "hankel_subscriptions", "Different subscriptions.", subscriptions);
  metrics_gauge(t, "hankel_subscribers_queued_bytes", "Bytes that wait for subscribers.", queued);
}

/* A row of a bridge's counters. */
static void of_bridge(const struct text *t, const char *name, const char *more, const struct hk_bridge_look *l, uint64_t value)
{
  hk_buffer_print(t->out, "%s{broker=\"%s\"%s} %" PRIu64 "\n", name, l->name, more, value);
}

/* Brokers of messages, by the names of their sections; the families exist without brokers, too. */
static void bridges(const struct text *t, struct hk_server *s)
{
  static const char *const ways[] = { ",way=\"in\"", ",way=\"out\"" }; /* enum hk_bridge_way */
  char name[96];
  struct hk_bridge_look *look = calloc(HK_BRIDGES_MAX, sizeof *look);
  const uint32_t n = look ? hk_bridges_look(s->bridges, look) : 0;
  family(t, "hankel_mqtt_up", "gauge", "1 while the broker has accepted the connection.");
  for (uint32_t i = 0; i < n; i++)
    of_bridge(t, "hankel_mqtt_up", ways[look[i].way], &look[i], look[i].state == HK_BRIDGE_CONNECTED);
  family(t, "hankel_mqtt_waiting", "gauge",
         "Messages in flight: in, not acknowledged to the broker yet; out, not taken by it yet.");
  for (uint32_t i = 0; i < n; i++)
    of_bridge(t, "hankel_mqtt_waiting", ways[look[i].way], &look[i], look[i].waiting);
  for (const struct hk_counter_row *row = hk_bridge_counter_table; row->section; row++) {
    snprintf(name, sizeof name, "hankel_%s_%s", row->section, row->name);
    family(t, name, "counter", row->help);
    strcat(name, "_total");
    for (uint32_t i = 0; i < n; i++)
      if (strcmp(row->section, hk_bridge_section(look[i].way)) == 0)
        of_bridge(t, name, "", &look[i], hk_bridge_counter_of(&look[i], row));
  }
  free(look);
}

/* For a daemon with [cluster]. */
static void cluster(const struct text *t, struct hk_server *s)
{
  struct hk_cluster_look l, p;
  struct hk_cluster_part *part = calloc(HK_PARTITIONS_MAX, sizeof *part);
  hk_cluster_look(s->cluster, &l);
  hk_cluster_look(s->publishing, &p);
  const uint32_t n = part ? hk_cluster_parts(s->cluster, part) : 0;
  if (l.role != HK_CLUSTER_NONE) {
    metrics_gauge(t, "hankel_cluster_up", "1 while there is a connection to the broker.",
                  l.state == HK_BRIDGE_CONNECTED && (p.role == HK_CLUSTER_NONE || p.state == HK_BRIDGE_CONNECTED));
    metrics_gauge(t, "hankel_cluster_partitions", "Partitions that this machine publishes to, or scores.", l.partitions);
    metrics_gauge(t, "hankel_cluster_waiting", "Of a gateway: messages that the broker has not confirmed.",
                  p.role == HK_CLUSTER_NONE ? l.waiting : p.waiting);
    metrics_gauge(t, "hankel_cluster_scorers", "Scorers that share the partitions.", l.members);
    family(t, "hankel_cluster_moves", "counter", "Partitions that have come to this scorer.");
    hk_buffer_print(t->out, "hankel_cluster_moves_total %" PRIu64 "\n", l.moves);
  }
  if (l.role == HK_CLUSTER_SCORER)
    family(t, "hankel_cluster_lag_seconds", "gauge", "How long the last message of a partition had waited; 0: none waits.");
  for (uint32_t i = 0; i < n; i++)
    hk_buffer_print(t->out, "hankel_cluster_lag_seconds{partition=\"%" PRIu32 "\"} %" PRId64 "\n", part[i].partition,
                    part[i].lag / 1000000000);
  free(part);
}

void hk_metrics_text(struct hk_server *s, bool open, struct hk_buffer *out)
{
  const struct text text = { out, open }, *t = &text;
  struct hk_counters sum;
  hk_server_sum(s, &sum);
  family(t, "hankel_build_info", "gauge", "Version and backend of the daemon.");
  hk_buffer_print(out, "hankel_build_info{version=\"%s\",backend=\"%s\"} 1\n", HANKELD_VERSION, hk_shard_backend(&s->shard[0]));
  metrics_gauge(t, "hankel_uptime_seconds", "How long the daemon has been running.",
                (uint64_t)(hk_now() - s->started) / 1000000000);
  metrics_gauge(t, "hankel_sensors", "Sensors known to the daemon.", hk_registry_count(s->shards.registry));
  metrics_gauge(t, "hankel_sensors_derived", "Sensors that the daemon feeds itself.",
                hk_registry_count_derived(s->shards.registry));
  metrics_gauge(t, "hankel_points_pending", "Points that were accepted and have no result yet.", hk_counters_pending(&sum));
  metrics_gauge(t, "hankel_connections_open", "Connections of all protocols but HTTP that are open.",
                hk_peer_feeds_taken(&s->net.peer_feeds));
  metrics_gauge(t, "hankel_connections_http_open", "Connections over HTTP that are open.", hk_web_connections(s->web));
  counters(t, &sum);
  metrics_alerts(t, s);
  hk_incident_metrics(s->incidents, open ? "" : "_total", out);
  bridges(t, s);
  cluster(t, s);
  conditions(t, s);
  latencies(t, s);
  if (open)
    hk_buffer_print(out, "# EOF\n");
}
