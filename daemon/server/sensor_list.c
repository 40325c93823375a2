/* See sensor_list.h. Which sensors are meant is looked up first; what each is called is read again when the shards have answered,
 * and one that has gone meanwhile is left out. */
#include "daemon/server/sensor_list.h"

#include "daemon/base/glob.h"
#include "daemon/scoring/survey.h"
#include "daemon/server/server.h"
#include "daemon/server/web_sensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 4096u          /* slots that are looked at under one lock */
#define LOOKED_MOST (1u << 18)  /* slots that are looked at for one answer */
#define PART_BYTES (900u << 10) /* of an answer: a frame takes a MiB, and one sensor a few KiB */

struct hk_sensor_list {
  struct hk_server *server;
  struct hk_survey *survey[HK_SHARDS_MAX]; /* NULL: none of its sensors are meant */
  uint32_t n;
  uint32_t next; /* slot of the part behind this one; 0: there is none */
  uint32_t handle[HK_SENSORS_MAX];
};

/* Fills in the handles. 0, or -ENOMEM. */
static int choose(struct hk_sensor_list *l, const struct hk_sensors_asked *m)
{
  struct hk_registry *registry = l->server->shards.registry;
  const uint32_t end = hk_registry_slots(registry);
  uint32_t slot = m->after < end ? (uint32_t)m->after : end;
  const uint32_t begin = slot;
  struct hk_glob *glob;
  const int status = hk_glob_new(&glob, m->glob.data, m->glob.length);
  if (status != 0)
    return status;
  while (slot < end && l->n < m->limit && slot - begin < LOOKED_MOST) {
    const uint32_t stop = end - slot < TOGETHER ? end : slot + TOGETHER;
    hk_registry_read(registry);
    for (; slot < stop && l->n < m->limit; slot++) {
      if (!hk_registry_holds(registry, slot))
        continue;
      const struct hk_string name = hk_registry_name(registry, slot);
      if (hk_glob_match(glob, name.data, name.length))
        l->handle[l->n++] = hk_registry_handle(registry, slot);
    }
    hk_registry_read_end(registry);
  }
  l->next = slot < end ? slot : 0;
  hk_glob_free(glob);
  return 0;
}

static uint32_t slot_of(const struct hk_sensor_list *l, uint32_t i)
{
  return l->handle[i] & 0xffffff;
}

/* Asks each shard for its sensors. False: no memory. */
static bool ask(struct hk_sensor_list *l)
{
  const struct hk_shards *shards = &l->server->shards;
  uint32_t n[HK_SHARDS_MAX] = { 0 };
  for (uint32_t i = 0; i < l->n; i++)
    n[slot_of(l, i) % shards->n]++;
  for (uint32_t k = 0; k < shards->n; k++) {
    uint32_t at = 0;
    if (n[k] == 0)
      continue;
    if (!(l->survey[k] = hk_survey_new(n[k])))
      return false;
    for (uint32_t i = 0; i < l->n; i++)
      if (slot_of(l, i) % shards->n == k)
        l->survey[k]->sensor[at++].handle = l->handle[i];
    hk_survey_post(&l->server->shard[k], l->survey[k]);
  }
  return true;
}

struct hk_sensor_list *hk_sensor_list_begin(struct hk_connection *c, const struct hk_sensors_asked *m)
{
  struct hk_sensor_list *l = calloc(1, sizeof *l);
  if (!l)
    return NULL;
  l->server = c->net->server;
  if (choose(l, m) == 0 && ask(l))
    return l;
  hk_sensor_list_abandon(l);
  return NULL;
}

/* --- what it says ------------------------------------------------------------------------------------------------------ */

static const char *state_of(const struct hk_surveyed *one)
{
  const uint32_t span = hk_detector_span(&one->detector);
  if (!one->there)
    return "unknown";
  if (!one->held)
    return isnan(one->score) ? "warming" : "ok";
  return one->window.stale                ? "stale"
         : !one->window.started           ? "waiting"
         : one->window.count < span       ? "warming"
         : one->window.filled * 10 > span ? "gap"
                                          : "ok";
}

static void number(struct hk_buffer *out, const char *name, double value, int digits)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_number(out, value, digits);
}

static void sensor(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_surveyed *one)
{
  const uint32_t slot = one->handle & 0xffffff;
  const struct hk_string name = hk_registry_name(registry, slot);
  const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, name.data, name.length);
  if (d) {
    hk_buffer_print(out, ",\"detector\":");
    hk_json_string(out, d->name, strlen(d->name));
    hk_buffer_print(out, ",\"algorithm\":\"%s\"", hk_algorithm_name(d->detector.algorithm));
  }
  hk_buffer_print(out, ",\"derived\":%s,\"state\":\"%s\"", hk_registry_derived(registry, slot) ? "true" : "false", state_of(one));
  if (one->held && one->window.started) {
    hk_buffer_print(out, ",\"time\":%" PRId64, one->window.last_time);
    number(out, "value", one->value, 9);
  }
  number(out, "score", (double)one->score, 9);
  if (one->held) {
    hk_buffer_print(out, ",\"samples\":%" PRIu32 ",\"span\":%" PRIu32, one->window.count, hk_detector_span(&one->detector));
    hk_sensor_threshold(out, &one->detector, &one->alert);
    hk_buffer_print(out, ",\"alert\":%s", one->alert.raised ? "true" : "false");
  }
  hk_buffer_put(out, "}", 1);
}

/* Whether all shards have answered. */
static bool answered(const struct hk_sensor_list *l)
{
  for (uint32_t k = 0; k < l->server->shards.n; k++)
    if (l->survey[k] && atomic_load_explicit(&l->survey[k]->outcome, memory_order_acquire) == HK_SURVEY_WAITS)
      return false;
  return true;
}

bool hk_sensor_list_result(struct hk_sensor_list *l, struct hk_buffer *json)
{
  const struct hk_shards *shards = &l->server->shards;
  struct hk_registry *registry = shards->registry;
  uint32_t at[HK_SHARDS_MAX] = { 0 }, shown = 0;
  if (!answered(l))
    return false;
  hk_buffer_print(json, "{\"sensors\":[");
  hk_registry_read(registry);
  for (uint32_t i = 0; i < l->n; i++) {
    const uint32_t slot = slot_of(l, i), shard = slot % shards->n;
    const struct hk_surveyed *one = &l->survey[shard]->sensor[at[shard]++];
    if (json->size > PART_BYTES) {
      l->next = slot;
      break;
    }
    if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != one->handle)
      continue;
    hk_buffer_print(json, "%s", shown++ > 0 ? "," : "");
    sensor(json, registry, one);
  }
  hk_registry_read_end(registry);
  hk_buffer_print(json, "],\"count\":%" PRIu32, hk_registry_count(registry));
  if (l->next > 0)
    hk_buffer_print(json, ",\"next\":%" PRIu32, l->next);
  hk_buffer_print(json, "}");
  hk_sensor_list_abandon(l);
  return true;
}

void hk_sensor_list_abandon(struct hk_sensor_list *l)
{
  for (uint32_t k = 0; l && k < HK_SHARDS_MAX; k++)
    hk_survey_release(l->survey[k]);
  free(l);
}
