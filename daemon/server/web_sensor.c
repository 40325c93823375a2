/* See web_sensor.h. Samples have no times of their own: they are counted back from the last point in intervals. */
#include "daemon/server/web_sensor.h"

#include "cpu/backend/warmup.h"
#include "cpu/rules/state.h"
#include "daemon/bridge/cluster_mail.h"
#include "daemon/scoring/look.h"
#include "daemon/scoring/score_log.h"
#include "daemon/server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool hk_sensor_where(struct hk_server *s, uint32_t partition, struct hk_holder *out)
{
  struct hk_holder logged;
  const bool in_log = hk_cluster_machine(s->cluster, partition, &logged);
  const bool told = hk_mail_holder(s->shared.mail, partition, out);
  if (in_log && (!told || out->epoch < logged.epoch))
    *out = logged;
  return in_log || told;
}

int hk_sensor_look(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg, struct hk_look **out)
{
  struct hk_server *s = arg;
  struct hk_registry *registry = s->shards.registry;
  uint32_t slot, handle = 0;
  hk_registry_read(registry);
  const bool there = hk_registry_find(registry, name, strlen(name), &slot) == 0;
  if (there)
    handle = hk_registry_handle(registry, slot);
  hk_registry_read_end(registry);
  if (!there || s->shards.relays) /* a gateway knows names only */
    return -ENOENT;
  *out = hk_look_new(handle, ready, ready_arg);
  if (!*out)
    return -ENOMEM;
  (*out)->scores = scores;
  hk_look_post(&s->shard[slot % s->shards.n], *out);
  return 0;
}

void hk_sensor_unlook(struct hk_look *look)
{
  hk_look_release(look);
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

/* A part's state, parsed. */
struct seen {
  struct hk_window window;
  struct hk_alert alert;
  float *ring; /* the caller frees it */
};

/* False: it has no state, or there is no memory. */
static bool read_part(const struct hk_look_part *part, struct seen *out)
{
  const uint8_t *rest;
  size_t rest_size;
  out->ring = part->state ? malloc(hk_detector_span(&part->detector) * sizeof *out->ring) : NULL;
  if (out->ring &&
      hk_state_open(part->state, part->size, &part->detector, &out->window, &out->alert, out->ring, &rest, &rest_size) == 0)
    return true;
  free(out->ring);
  out->ring = NULL;
  return false;
}

static void web_sensor_number(struct hk_buffer *out, const char *name, double value, int digits)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_number(out, value, digits);
}

static void keys(struct hk_buffer *out, const struct hk_detector *d)
{
  const char *name, *comma = "";
  char value[40];
  uint32_t next = 0;
  hk_buffer_print(out, ",\"keys\":{");
  while ((name = hk_detector_key_text(d, &next, value, sizeof value)) != NULL) {
    hk_buffer_print(out, "%s\"%s\":\"%s\"", comma, name, value);
    comma = ",";
  }
  hk_buffer_put(out, "}", 1);
}

void hk_sensor_window(struct hk_buffer *out, const struct hk_detector *d, const struct hk_window *w)
{
  const struct hk_warmup warmup = hk_warmup(d);
  hk_buffer_print(out, ",\"samples\":%" PRIu32 ",\"span\":%" PRIu32, w->count, hk_detector_span(d));
  if (warmup.time == 0)
    hk_buffer_print(out, ",\"first\":%" PRIu32, warmup.most);
}

void hk_sensor_threshold(struct hk_buffer *out, const struct hk_detector *d, const struct hk_alert *a)
{
  const bool adaptive = d->alert == HK_ALERT_ADAPTIVE, known = !adaptive || a->blocks >= HK_ALERT_LEARN;
  hk_buffer_print(out, ",\"threshold\":{\"mode\":\"%s\",\"of\":\"%s\"",
                  d->alert == HK_ALERT_OFF ? "off"
                  : adaptive               ? "adaptive"
                                           : "fixed",
                  adaptive ? "evidence" : "score");
  if (d->alert != HK_ALERT_OFF && known)
    web_sensor_number(out, "value", adaptive ? a->learned : (double)d->threshold, 6);
  if (adaptive)
    hk_buffer_print(out, ",\"blocks\":%u", a->blocks);
  hk_buffer_put(out, "}", 1);
}

static void web_sensor_alert(struct hk_buffer *out, const struct hk_alert *a)
{
  hk_buffer_print(out, ",\"alert\":{\"raised\":%s,\"number\":%" PRIu32 ",\"instant\":%" PRId64, a->raised ? "true" : "false",
                  a->number, a->instant);
  web_sensor_number(out, "before", a->before, 9);
  web_sensor_number(out, "after", a->after, 9);
  web_sensor_number(out, "spread_before", (double)a->spread_before, 6);
  web_sensor_number(out, "spread_after", (double)a->spread_after, 6);
  hk_buffer_put(out, "}", 1);
}

/* The last scores, as far as they are kept; room: for the wanted number. */
static void scores(struct hk_buffer *out, const struct hk_server *s, const struct hk_look_part *part, struct hk_scored *room,
                   uint32_t most)
{
  struct hk_score_log *log = s->shard[part->slot % s->shards.n].requests.surveys.log;
  const uint32_t n = log ? hk_score_log_read(log, part->slot / s->shards.n, room, most) : 0;
  hk_buffer_print(out, ",\"scores\":[");
  for (uint32_t i = 0; i < n; i++) {
    hk_buffer_print(out, "%s[%" PRId64 ",", i > 0 ? "," : "", room[i].time);
    hk_json_number(out, (double)room[i].score, 9);
    hk_buffer_put(out, "]", 1);
  }
  hk_buffer_put(out, "]", 1);
}

static void series(struct hk_buffer *out, struct hk_registry *registry, const struct hk_look_part *part, const struct seen *seen)
{
  hk_buffer_print(out, "{\"sensor\":");
  hk_registry_read(registry);
  const bool there = hk_registry_holds(registry, part->slot);
  const struct hk_string name = there ? hk_registry_name(registry, part->slot) : hk_string("");
  hk_json_string(out, name.data, name.length);
  hk_registry_read_end(registry);
  hk_buffer_print(out, ",\"algorithm\":\"%s\",\"section\":", hk_algorithm_name(part->detector.algorithm));
  hk_json_string(out, part->section, strlen(part->section));
  keys(out, &part->detector);
  if (seen->ring) {
    const struct hk_window *w = &seen->window;
    hk_sensor_window(out, &part->detector, w);
    web_sensor_number(out, "baseline", w->reference + w->mean, 9);
    hk_sensor_threshold(out, &part->detector, &seen->alert);
    if (seen->alert.number > 0)
      web_sensor_alert(out, &seen->alert);
  }
}

static void web_sensor_points(struct hk_buffer *out, const struct hk_look_part *part, const struct seen *seen)
{
  const struct hk_window *w = &seen->window;
  const uint32_t span = hk_detector_span(&part->detector);
  const int64_t interval = hk_window_interval(w, &part->detector);
  const uint32_t shown = interval > 0 || w->count == 0 ? w->count : 1; /* the times of others are unknown */
  hk_buffer_print(out, ",\"interval\":%" PRId64 ",\"points\":[", interval);
  for (uint32_t i = w->count - shown; i < w->count; i++) {
    const float sample = seen->ring[(w->head + span - w->count + i) % span];
    hk_buffer_print(out, "%s[%" PRId64 ",", i > w->count - shown ? "," : "",
                    hk_alert_back(w->last_time, w->count - 1 - i, interval));
    hk_json_number(out, w->reference + (double)sample, 9);
    hk_buffer_print(out, "%s]", hk_sample_filled(sample) ? ",true" : "");
  }
  hk_buffer_put(out, "]", 1);
}

/* In a cluster: where the sensor is. */
static void web_sensor_place(struct hk_buffer *out, struct hk_server *s, const struct hk_look *look)
{
  char name[HK_NAME_MAX + 1] = "";
  hk_registry_read(s->shards.registry);
  if (look->n > 0 && hk_registry_holds(s->shards.registry, look->part[0].slot)) {
    const struct hk_string is = hk_registry_name(s->shards.registry, look->part[0].slot);
    snprintf(name, sizeof name, "%.*s", (int)is.length, is.data);
  }
  hk_registry_read_end(s->shards.registry);
  hk_buffer_print(out, ",\"machine\":\"%s\",\"partition\":%" PRIu32, hk_cluster_name(s->cluster),
                  hk_cluster_partition(s->cluster, name));
}

int hk_sensor_seen(void *arg, const struct hk_look *look, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  struct seen seen[HK_ALGORITHMS] = { 0 };
  uint32_t longest = 0;
  const int outcome = atomic_load_explicit(&look->outcome, memory_order_acquire);
  if (outcome != 0)
    return outcome;
  struct hk_scored *room = malloc((look->scores + 1) * sizeof *room);
  if (!room)
    return -ENOMEM;
  for (uint32_t i = 0; i < look->n; i++)
    if (read_part(&look->part[i], &seen[i]) && (!seen[longest].ring || seen[i].window.count > seen[longest].window.count))
      longest = i;
  hk_buffer_print(out, "{\"time\":%" PRId64, look->taken);
  if (s->cluster)
    web_sensor_place(out, s, look);
  hk_buffer_print(out, ",\"series\":[");
  for (uint32_t i = 0; i < look->n; i++) {
    hk_buffer_print(out, "%s", i > 0 ? "," : "");
    series(out, s->shards.registry, &look->part[i], &seen[i]);
    scores(out, s, &look->part[i], room, look->scores);
    hk_buffer_put(out, "}", 1);
  }
  hk_buffer_put(out, "]", 1);
  if (look->n > 0 && seen[longest].ring)
    web_sensor_points(out, &look->part[longest], &seen[longest]);
  else
    hk_buffer_print(out, ",\"interval\":0,\"points\":[]");
  hk_buffer_print(out, "}\n");
  for (uint32_t i = 0; i < look->n; i++)
    free(seen[i].ring);
  free(room);
  return 0;
}
