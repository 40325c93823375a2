/* The daemon's report on itself: one JSON object. PROTOCOL.md and hankel-status(1) show it; keys are only ever added. */
#include "daemon/server.h"

#include "cpu/score.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static void field(struct hk_buffer *out, const char *name, uint64_t value)
{
  const char last = out->size > 0 ? out->data[out->size - 1] : '{';
  hk_buffer_print(out, "%s\"%s\":%" PRIu64, last == '{' ? "" : ",", name, value);
}

static void begin(struct hk_buffer *out, const char *name)
{
  hk_buffer_print(out, ",\"%s\":{", name);
}

static void end(struct hk_buffer *out)
{
  hk_buffer_put(out, "}", 1);
}

static void points(struct hk_buffer *out, const struct hk_counters *c)
{
  begin(out, "points");
  field(out, "in", c->in);
  field(out, "scored", c->scored);
  field(out, "unscored", c->unscored);
  field(out, "late", c->late);
  field(out, "rejected", c->rejected);
  field(out, "dropped", hk_counters_dropped(c));
  field(out, "pending", hk_counters_pending(c));
  end(out);
  begin(out, "dropped");
  field(out, "unknown_handle", c->unknown_handle);
  field(out, "full", c->full);
  field(out, "no_detector", c->no_detector);
  field(out, "backend_failed", c->failed);
  field(out, "device_lost", c->device_lost);
  end(out);
}

static void text(struct hk_buffer *out, const char *name, const char *value)
{
  hk_buffer_print(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", name);
  hk_json_string(out, value, strlen(value));
}

/* What computes, and how the device is: "ok", "lost", or "none" (the CPU computes, and nothing was lost). */
static void device(struct hk_buffer *out, const struct hk_server *s, const struct hk_counters *c)
{
  const struct hk_loss *loss = &s->shard.loss;
  const bool lost = loss->time != 0, own = s->shard.device && s->shard.device->kind->device;
  begin(out, "device");
  text(out, "state", lost ? "lost" : own ? "ok" : "none");
  text(out, "on_failure", s->config->on_device_failure == HK_DEVICE_FAILURE_CPU ? "cpu" : "stop");
  if (lost) {
    char since[32];
    const time_t seconds = loss->time / 1000000000;
    struct tm utc;
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    text(out, "name", loss->device);
    text(out, "since", since);
  }
  if (lost || s->shard.excuse[0])
    text(out, "why", lost ? loss->why : s->shard.excuse);
  field(out, "batches_lost", loss->batches);
  field(out, "points_lost", c->device_lost);
  end(out);
}

static uint64_t need(const struct hk_server *s, uint32_t detector, uint64_t count)
{
  const struct hk_backend *b = s->shard.device ? s->shard.device->backend : NULL;
  return b ? b->ops->need(b, detector, count) : 0;
}

static void sensors(struct hk_buffer *out, const struct hk_server *s, const struct hk_counters *c)
{
  uint64_t memory = 0;
  for (uint32_t i = 0; i < s->config->n_detectors; i++)
    memory += need(s, i, hk_registry_count_of(s->registry, i));
  begin(out, "sensors");
  field(out, "count", hk_registry_count(s->registry));
  field(out, "max", s->config->max_sensors);
  field(out, "evicted", c->evicted);
  field(out, "refused", c->names_refused);
  field(out, "memory_bytes", memory);
  field(out, "memory_limit_bytes", s->config->memory);
  text(out, "refused_because", hk_registry_full(s->registry));
  end(out);
  hk_buffer_print(out, ",\"detectors\":[");
  for (uint32_t i = 0; i < s->config->n_detectors; i++) {
    const struct hk_config_detector *d = &s->config->detectors[i];
    hk_buffer_print(out, "%s{\"name\":", i ? "," : "");
    hk_json_string(out, d->name, strlen(d->name));
    hk_buffer_print(out, ",\"match\":");
    hk_json_string(out, d->match, strlen(d->match));
    field(out, "window", d->detector.window);
    field(out, "sensors", hk_registry_count_of(s->registry, i));
    field(out, "bytes_a_sensor", need(s, i, s->config->max_sensors) / s->config->max_sensors);
    end(out);
  }
  hk_buffer_put(out, "]", 1);
}

static void input(struct hk_buffer *out, const struct hk_server *s, const struct hk_counters *c)
{
  uint64_t lost = c->lost, lost_points = c->lost_points, repeated = c->repeated, reordered = c->reordered, too_late = c->too_late,
           bad = c->bad_datagrams;
  for (const struct hk_connection *each = s->loop.connections; each; each = each->next) {
    lost += hk_feed_lost(&each->feed);
    lost_points += hk_feed_lost_points(&each->feed);
    repeated += each->feed.repeated;
    reordered += each->feed.reordered;
    too_late += each->feed.too_late;
    bad += each->feed.malformed;
  }
  begin(out, "input");
  field(out, "frames", c->frames);
  field(out, "bad_frames", c->bad_frames);
  field(out, "ahead_of_clock", c->ahead);
  end(out);
  begin(out, "lines");
  field(out, "taken", c->lines);
  field(out, "bad", c->bad_lines);
  field(out, "strings_skipped", c->strings);
  end(out);
  begin(out, "udp");
  field(out, "datagrams", c->datagrams);
  field(out, "bad_datagrams", bad);
  field(out, "strangers", c->strangers);
  field(out, "lost", lost);
  field(out, "lost_points", lost_points);
  field(out, "repeated", repeated);
  field(out, "reordered", reordered);
  field(out, "too_late", too_late);
  field(out, "kernel_lost", c->kernel_lost);
  end(out);
}

static void output(struct hk_buffer *out, const struct hk_server *s, const struct hk_counters *c)
{
  uint64_t subscribers = 0, queued = 0, parked = 0;
  for (const struct hk_connection *each = s->loop.connections; each; each = each->next) {
    subscribers += each->subscriber.view != NULL;
    parked += each->parked;
    if (each->state != HK_CLOSED)
      queued += uv_stream_get_write_queue_size((const uv_stream_t *)&each->tcp);
  }
  begin(out, "events");
  field(out, "raised", c->raised);
  field(out, "corrected", c->corrected);
  field(out, "cleared", c->cleared);
  field(out, "stale", c->stale);
  field(out, "back", c->back);
  end(out);
  begin(out, "connections");
  field(out, "open", s->n_connections);
  field(out, "max", s->max_connections);
  field(out, "accepted", c->accepted);
  field(out, "refused", c->refused);
  field(out, "timed_out", c->timed_out);
  field(out, "cut_off", c->cut_off);
  field(out, "held_back", parked);
  end(out);
  begin(out, "subscribers");
  field(out, "count", subscribers);
  field(out, "subscriptions", hk_publisher_views(s->loop.publisher));
  field(out, "queued_bytes", queued);
  field(out, "gap_results", c->gap_results);
  field(out, "gap_events", c->gap_events);
  end(out);
  begin(out, "batches");
  field(out, "done", c->batches);
  field(out, "in_flight", s->shard.in_flight);
  field(out, "points_at_most", s->shard.most);
  field(out, "points_waiting", hk_stage_waiting(s->stage));
  field(out, "backlog", s->config->backlog);
  field(out, "p50_us", hk_shard_latency(&s->shard, 0.5));
  field(out, "p99_us", hk_shard_latency(&s->shard, 0.99));
  end(out);
}

void hk_status_json(struct hk_server *s, struct hk_buffer *out)
{
  struct hk_counters sum;
  hk_server_sum(s, &sum);
  hk_buffer_print(out, "{\"version\":\"%s\",\"backend\":\"%s\"", HANKELD_VERSION, hk_shard_backend(&s->shard));
  hk_buffer_print(out, ",\"kernels\":\"%s\"", hk_kernels_name());
  field(out, "threads", s->config->threads ? s->config->threads : uv_available_parallelism());
  field(out, "uptime_s", (uint64_t)(hk_now() - s->started) / 1000000000);
  device(out, s, &sum);
  points(out, &sum);
  sensors(out, s, &sum);
  input(out, s, &sum);
  output(out, s, &sum);
  end(out);
}
