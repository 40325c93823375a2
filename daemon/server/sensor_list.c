/* See sensor_list.h. Sensors are chosen first; their names are read again when the shards have answered, and a sensor that has
 * gone meanwhile is omitted. */
#include "daemon/server/sensor_list.h"

#include "daemon/scoring/groups.h"
#include "daemon/scoring/survey.h"
#include "daemon/sensors/companions.h"
#include "daemon/server/line_list.h"
#include "daemon/server/sensor_choice.h"
#include "daemon/server/server.h"
#include "daemon/server/web_sensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES (900u << 10) /* of an answer: a frame takes a MiB, and one sensor a few KiB */
#define ROUNDS 16u              /* of requests to shards for one answer, if few of the sensors may be in the wanted state */

struct hk_sensor_list {
  struct hk_server *server;
  struct hk_survey *survey[HK_SHARDS_MAX]; /* NULL: no sensors of this shard */
  struct hk_sensor_wanted wanted;          /* its strings are these: */
  char glob[HK_GLOB_MAX + 1], state[16], alert[8];
  void (*ready)(void *arg);
  void *ready_arg;
  bool begun;             /* the answer is begun */
  uint32_t rounds, shown; /* so far */
  uint32_t n;             /* number of sensors in this round */
  struct hk_sensor_chosen chosen[HK_SENSORS_MAX];
  struct hk_sensor_place next; /* where the next part begins; */
  bool more;                   /* whether there is one */
};

static uint32_t sensor_list_slot_of(const struct hk_sensor_list *l, uint32_t i)
{
  return l->chosen[i].handle & 0xffffff;
}

/* Requests the states from the shards. False: no memory. */
static bool sensor_list_ask(struct hk_sensor_list *l)
{
  const struct hk_shards *shards = &l->server->shards;
  uint32_t n[HK_SHARDS_MAX] = { 0 };
  for (uint32_t i = 0; i < l->n; i++)
    n[sensor_list_slot_of(l, i) % shards->n]++;
  for (uint32_t k = 0; k < shards->n; k++) {
    uint32_t at = 0;
    hk_survey_release(l->survey[k]);
    l->survey[k] = NULL;
    if (n[k] == 0)
      continue;
    if (!(l->survey[k] = hk_survey_new(n[k])))
      return false;
    l->survey[k]->line = l->wanted.lines ? l->wanted.line : UINT32_MAX;
    l->survey[k]->ready = l->ready;
    l->survey[k]->arg = l->ready_arg;
    for (uint32_t i = 0; i < l->n; i++)
      if (sensor_list_slot_of(l, i) % shards->n == k)
        l->survey[k]->sensor[at++].handle = l->chosen[i].handle;
  }
  for (uint32_t k = 0; k < shards->n; k++)
    if (l->survey[k])
      hk_survey_post(&l->server->shard[k], l->survey[k]);
  return true;
}

/* Chooses the sensors of a round: as many as a list may show, or as a survey takes if some may not be in the wanted state.
 * False: no memory. */
static bool sensor_list_look(struct hk_sensor_list *l)
{
  l->rounds++;
  l->more = false;
  return hk_sensors_choose(l->server, &l->wanted, l->state[0] ? HK_SENSORS_MAX : l->wanted.limit, l->chosen, &l->n, &l->next,
                           &l->more) == 0 &&
         sensor_list_ask(l);
}

static struct hk_sensor_list *sensor_list_begin(struct hk_server *server, const struct hk_sensor_wanted *w,
                                                void (*ready)(void *arg), void *ready_arg)
{
  struct hk_sensor_list *l = calloc(1, sizeof *l);
  if (!l)
    return NULL;
  l->server = server;
  l->ready = ready;
  l->ready_arg = ready_arg;
  l->wanted = *w;
  snprintf(l->glob, sizeof l->glob, "%.*s", (int)w->glob.length, w->glob.data ? w->glob.data : "");
  snprintf(l->state, sizeof l->state, "%s", w->state);
  snprintf(l->alert, sizeof l->alert, "%s", w->alert);
  l->wanted.glob.data = l->glob;
  l->wanted.state = l->state;
  l->wanted.alert = l->alert;
  if (sensor_list_look(l))
    return l;
  hk_sensor_list_abandon(l);
  return NULL;
}

struct hk_sensor_list *hk_sensor_list_begin(struct hk_connection *c, const struct hk_sensors_asked *m)
{
  const struct hk_sensor_wanted wanted = { .glob = m->glob,
                                           .limit = m->limit,
                                           .alert = "",
                                           .state = "",
                                           .from = { .slot = m->after < UINT32_MAX ? (uint32_t)m->after : UINT32_MAX } };
  return sensor_list_begin(c->net->server, &wanted, NULL, NULL);
}

const char *hk_sensor_list_ask(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                               struct hk_sensor_list **out)
{
  struct hk_sensor_wanted wanted;
  const char *wrong = hk_sensors_want(asked, &wanted);
  *out = wrong ? NULL : sensor_list_begin(arg, &wanted, ready, ready_arg);
  return wrong;
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static void sensor_list_number(struct hk_buffer *out, const char *name, double value, int digits)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_number(out, value, digits);
}

/* Whether an alert stands, and when one was last raised. */
static void sensor_list_alert(struct hk_buffer *out, const struct hk_server *server, uint32_t slot)
{
  struct hk_alerts *alerts = server->shard[slot % server->shards.n].alerts;
  struct hk_standing standing;
  const uint32_t within = slot / server->shards.n;
  const int64_t changed = hk_alerts_changed(alerts, within);
  hk_buffer_print(out, ",\"alert\":%s", hk_alerts_copy(alerts, within, &standing) ? "true" : "false");
  if (changed != 0)
    hk_buffer_print(out, ",\"changed\":%" PRId64, changed);
}

/* Begins an object with the name of a slot's sensor; returns its section. NULL: the slot has no sensor any more. */
static const struct hk_config_detector *begin_named(struct hk_buffer *out, const struct hk_registry *registry, uint32_t slot)
{
  const struct hk_string name = hk_registry_name(registry, slot);
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, name.data, name.length);
  return hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
}

static void sensor_list_sensor(struct hk_buffer *out, const struct hk_server *server, const struct hk_surveyed *one)
{
  const struct hk_registry *registry = server->shards.registry;
  const uint32_t slot = one->handle & 0xffffff;
  const struct hk_config_detector *d = begin_named(out, registry, slot);
  if (d) {
    hk_buffer_print(out, ",\"detector\":");
    hk_json_string(out, d->name, strlen(d->name));
    hk_buffer_print(out, ",\"algorithm\":\"%s\"", hk_algorithm_name(d->detector.algorithm));
  }
  hk_buffer_print(out, ",\"derived\":%s,\"state\":\"%s\"", hk_registry_derived(registry, slot) ? "true" : "false",
                  hk_sensor_state(one));
  if (one->held && one->window.started) {
    hk_buffer_print(out, ",\"time\":%" PRId64, one->window.last_time);
    sensor_list_number(out, "value", one->value, 9);
  }
  sensor_list_number(out, "score", (double)one->score, 9);
  if (!isnan(one->explained))
    sensor_list_number(out, "explained", one->explained, 4);
  if (one->held) {
    hk_sensor_window(out, &one->detector, &one->window);
    hk_sensor_threshold(out, &one->detector, &one->alert);
  }
  sensor_list_alert(out, server, slot);
}

/* The names of a machine's sensors, except those that have gone meanwhile. */
static void members(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_surveyed *one)
{
  const uint32_t n = one->members < HK_SURVEY_MEMBERS ? one->members : HK_SURVEY_MEMBERS;
  const char *comma = "";
  hk_buffer_print(out, ",\"count\":%" PRIu32 ",\"sensors\":[", one->members);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t slot = one->member[i] & 0xffffff;
    if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != one->member[i])
      continue;
    const struct hk_string name = hk_registry_name(registry, slot);
    hk_buffer_print(out, "%s", comma);
    hk_json_string(out, name.data, name.length);
    comma = ",";
  }
  hk_buffer_put(out, "]", 1);
}

static void sensor_list_group(struct hk_buffer *out, const struct hk_server *server, const struct hk_surveyed *one)
{
  const struct hk_registry *registry = server->shards.registry;
  const uint32_t slot = one->handle & 0xffffff;
  const struct hk_config_detector *d = begin_named(out, registry, slot);
  if (d) {
    hk_buffer_print(out, ",\"section\":");
    hk_json_string(out, d->name + 1, strlen(d->name + 1)); /* after the # */
    hk_buffer_print(out, ",\"kind\":\"%s\"", d->field ? "field" : "group");
  }
  members(out, registry, one);
  sensor_list_number(out, "score", (double)one->score, 9);
  sensor_list_alert(out, server, slot);
}

static void line(struct hk_buffer *out, const struct hk_server *server, const struct hk_surveyed *one)
{
  const struct hk_registry *registry = server->shards.registry;
  const struct hk_config_detector *d = begin_named(out, registry, one->handle & 0xffffff);
  hk_buffer_print(out, ",\"section\":");
  hk_json_string(out, d ? d->name + 1 : "", d ? strlen(d->name + 1) : 0);
  hk_line_json(out, one->profile);
}

/* The number of machines. */
static uint32_t machines(const struct hk_server *server)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < server->shards.n; i++)
    n += atomic_load_explicit(&hk_groups_count(server->shard[i].machines.groups)->machines, memory_order_relaxed) +
         atomic_load_explicit(&hk_groups_count(server->shard[i].machines.seconds)->machines, memory_order_relaxed) +
         atomic_load_explicit(&hk_groups_count(server->shard[i].machines.fields)->machines, memory_order_relaxed);
  return n;
}

/* Whether all shards have answered. */
static bool sensor_list_answered(const struct hk_sensor_list *l)
{
  for (uint32_t k = 0; k < l->server->shards.n; k++)
    if (l->survey[k] && atomic_load_explicit(&l->survey[k]->outcome, memory_order_acquire) == HK_SURVEY_WAITS)
      return false;
  return true;
}

/* Appends the sensors to be shown. False: there is no room for the rest. */
static bool sensor_list_show(struct hk_sensor_list *l, struct hk_buffer *json)
{
  const struct hk_shards *shards = &l->server->shards;
  uint32_t at[HK_SHARDS_MAX] = { 0 };
  for (uint32_t i = 0; i < l->n; i++) {
    const uint32_t slot = sensor_list_slot_of(l, i), shard = slot % shards->n;
    const struct hk_surveyed *one = &l->survey[shard]->sensor[at[shard]++];
    if (json->size > PART_BYTES || l->shown == l->wanted.limit) {
      l->next = (struct hk_sensor_place){ l->chosen[i].key, slot };
      l->more = true;
      return false;
    }
    if (!hk_registry_holds(shards->registry, slot) || hk_registry_handle(shards->registry, slot) != one->handle ||
        (l->state[0] && strcmp(l->state, hk_sensor_state(one)) != 0) || (l->wanted.lines && !one->profile))
      continue;
    if (l->wanted.rows)
      hk_buffer_print(json, "%" PRIu64 " %" PRIu32 " ", l->chosen[i].key, slot);
    else if (l->shown > 0)
      hk_buffer_put(json, ",", 1);
    l->shown++;
    (l->wanted.lines ? line : l->wanted.groups ? sensor_list_group : sensor_list_sensor)(json, l->server, one);
    hk_buffer_print(json, "}%s", l->wanted.rows ? "\n" : "");
  }
  return true;
}

/* Begins another round if it is useful: the answer has room, and the number of rounds is below its limit. */
static bool sensor_list_go_on(struct hk_sensor_list *l)
{
  const struct hk_sensor_place from = l->next;
  if (!l->more || !l->state[0] || l->shown == l->wanted.limit || l->rounds == ROUNDS)
    return false;
  l->wanted.from = from;
  if (sensor_list_look(l))
    return true;
  l->next = from; /* no memory: the next part begins here */
  l->more = true;
  return false;
}

/* Appends the end of the answer: the number of all, and where the next part begins. */
static void sensor_list_finish(const struct hk_sensor_list *l, struct hk_buffer *json, uint32_t count)
{
  if (l->wanted.rows) {
    hk_buffer_print(json, ". %" PRIu32, count);
    if (l->more)
      hk_buffer_print(json, " %" PRIu64 " %" PRIu32, l->next.key, l->next.slot);
    hk_buffer_put(json, "\n", 1);
    return;
  }
  hk_buffer_print(json, "],\"count\":%" PRIu32, count);
  if (l->more && l->wanted.sort != HK_SENSORS_UNSORTED)
    hk_buffer_print(json, ",\"next\":\"%" PRIu64 "-%" PRIu32 "\"", l->next.key, l->next.slot);
  else if (l->more)
    hk_buffer_print(json, ",\"next\":%" PRIu32, l->next.slot);
  hk_buffer_print(json, "}");
}

bool hk_sensor_list_result(struct hk_sensor_list *l, struct hk_buffer *json)
{
  struct hk_registry *registry = l->server->shards.registry;
  bool room;
  do {
    if (!sensor_list_answered(l))
      return false;
    if (!l->begun && !l->wanted.rows)
      hk_buffer_print(json, "{\"%s\":[", l->wanted.lines ? "models" : l->wanted.groups ? "groups" : "sensors");
    l->begun = true;
    hk_registry_read(registry);
    room = sensor_list_show(l, json);
    hk_registry_read_end(registry);
  } while (room && sensor_list_go_on(l));
  sensor_list_finish(l, json, l->wanted.groups ? machines(l->server) : hk_registry_count(registry));
  hk_sensor_list_abandon(l);
  return true;
}

void hk_sensor_list_abandon(struct hk_sensor_list *l)
{
  for (uint32_t k = 0; l && k < HK_SHARDS_MAX; k++)
    hk_survey_release(l->survey[k]);
  free(l);
}
