#include "daemon/bridge/mqtt_in.h"

#include "daemon/base/grow.h"
#include "daemon/bridge/feed_lines.h"
#include "daemon/bridge/mqtt_names.h"
#include "daemon/bridge/mqtt_payload.h"
#include "daemon/durable/disk_health.h"
#include "daemon/intake/sample_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 48 /* bytes of a payload in the log */

static struct hk_mqtt_in *in_of(struct hk_mqtt_link *link)
{
  return (struct hk_mqtt_in *)link;
}

static void mqtt_in_tell(struct hk_mqtt_in *in, const char *topic, const char *why)
{
  struct hk_bridge *b = in->link.bridge;
  char who[HK_CONFIG_NAME_MAX + 16];
  snprintf(who, sizeof who, "[mqtt %s]", b->rule.name);
  hk_log_peer(b->net->log, &b->quota, HK_LOG_WARNING, who, "topic %s: %s", topic, why);
}

/* --- one message ----------------------------------------------------------------------------------------------------------- */

static void mqtt_in_take(void *arg, const char *path, double value)
{
  struct hk_mqtt_in *in = arg;
  in->field.size = in->key_field;
  if (path[0] && strcmp(path, "value") != 0) {
    if (in->field.size > 0)
      hk_buffer_put(&in->field, ".", 1);
    hk_sample_lines_escape(&in->field, path, strlen(path), ",= ");
  }
  if (in->field.size == 0)
    hk_buffer_put(&in->field, "value", 5);
  uint32_t *origin = hk_grow(in->origin, in->n_lines, &in->capacity, sizeof *origin, 1024);
  in->origin = origin ? origin : in->origin;
  in->failed |= !origin || in->key.failed || in->field.failed;
  if (in->failed)
    return;
  in->origin[in->n_lines++] = in->topic;
  hk_buffer_put(&in->lines, in->key.data, in->key.size);
  hk_buffer_put(&in->lines, " ", 1);
  hk_buffer_put(&in->lines, in->field.data, in->field.size);
  hk_buffer_put(&in->lines, "=", 1);
  hk_json_number(&in->lines, value, 17);
  hk_buffer_print(&in->lines, " %" PRId64 "\n", in->time);
}

/* Times of arrival differ by at least a ns, unless the clock was set back. */
static int64_t arrival(struct hk_mqtt_in *in)
{
  const int64_t now = hk_wall();
  in->last = now > in->last || now < in->last - 1000000000 ? now : in->last + 1;
  return in->last;
}

static void tell_payload(struct hk_mqtt_in *in, const struct mosquitto_message *m, const char *why)
{
  struct hk_buffer text = { 0 };
  const size_t size = (size_t)m->payloadlen, shown = size < SHOWN ? size : SHOWN;
  in->bad++;
  if (hk_log_spent(in->link.bridge->net->log, &in->link.bridge->quota, HK_LOG_WARNING))
    return;
  hk_buffer_print(&text, "%s: ", why);
  hk_json_string(&text, m->payload, shown);
  hk_buffer_print(&text, "%s", shown < size ? " and so on" : "");
  hk_buffer_put(&text, "", 1);
  mqtt_in_tell(in, m->topic, text.failed ? why : text.data);
  hk_buffer_free(&text);
}

/* Makes the names of its values. shown: the value of {topic}. Returns NULL, or the error. */
static const char *mqtt_in_begin_message(struct hk_mqtt_in *in, const struct hk_mqtt_topic *of, const struct mosquitto_message *m,
                                         const char *shown)
{
  in->key.size = in->field.size = 0;
  in->topic = (uint32_t)in->names.size;
  hk_buffer_put(&in->names, m->topic, strlen(m->topic) + 1);
  const char *wrong = hk_mqtt_template_expand(in->link.bridge->rule.sensor, of, m->topic, shown, &in->key, &in->field);
  in->key_field = in->field.size;
  in->time = arrival(in);
  return wrong;
}

static void read_message(struct hk_mqtt_in *in, const struct hk_mqtt_topic *of, const struct mosquitto_message *m)
{
  const struct hk_mqtt_rule *rule = &in->link.bridge->rule;
  const struct hk_mqtt_wanted wanted = { rule->values, rule->time, m->retain };
  bool timed = false;
  const char *wrong = mqtt_in_begin_message(in, of, m, m->topic);
  if (!wrong)
    wrong = hk_mqtt_payload_read(&wanted, m->payload, (size_t)m->payloadlen, &timed, &in->time, mqtt_in_take, in);
  if (wrong)
    tell_payload(in, m, wrong);
  in->retained += !wrong && m->retain && !timed;
}

static void take_metric(void *arg, const char *metric, double value, int64_t time)
{
  struct hk_mqtt_in *in = arg;
  if (time > 0)
    in->time = time;
  mqtt_in_take(in, metric, value);
}

/* Asks a node for its birth. */
static void ask_for_birth(struct hk_mqtt_in *in, const struct hk_sparkplug_topic *t)
{
  struct hk_buffer topic = { 0 };
  uint8_t payload[128];
  int id;
  const size_t size = hk_sparkplug_rebirth(hk_wall(), payload);
  hk_buffer_print(&topic, HK_SPARKPLUG_SPACE "%s/NCMD/%s", t->group, t->node);
  hk_buffer_put(&topic, "", 1);
  if (size > 0 && !topic.failed)
    (void)hk_mqtt_link_publish(&in->link, topic.data, payload, size, 0, false, &id); /* it is asked again later */
  hk_buffer_free(&topic);
}

/* Its sensors are GROUP/NODE[/DEVICE] METRIC, unless `sensor` differs. */
static void read_sparkplug(struct hk_mqtt_in *in, const struct hk_mqtt_topic *of, const struct mosquitto_message *m)
{
  struct hk_sparkplug_topic t;
  struct hk_buffer shown = { 0 };
  bool rebirth = false;
  if (!hk_sparkplug_topic_read(m->topic, &t))
    return; /* STATE of a host, which is not used */
  hk_buffer_print(&shown, "%s/%s%s%s", t.group, t.node, t.device[0] ? "/" : "", t.device);
  hk_buffer_put(&shown, "", 1);
  const char *wrong = shown.failed ? "no memory" : mqtt_in_begin_message(in, of, m, shown.data);
  if (!wrong)
    wrong = hk_sparkplug_read(in->sparkplug, &t, m->payload, (size_t)m->payloadlen, hk_now(), &rebirth, take_metric, in);
  if (wrong)
    tell_payload(in, m, wrong);
  if (rebirth)
    ask_for_birth(in, &t);
  hk_buffer_free(&shown);
}

static bool mqtt_in_message(struct hk_mqtt_link *link, const struct mosquitto_message *m)
{
  struct hk_mqtt_in *in = in_of(link);
  const struct hk_mqtt_topic *of = hk_mqtt_topics_find(&in->topics, m->topic);
  in->messages++;
  in->waiting++;
  in->acknowledges |= m->qos > 0;
  if (!of) {
    if (in->unmatched++ == 0)
      mqtt_in_tell(in, m->topic, "it matches none of `topics`: the broker continues an old subscription of this client_id");
  } else if (strncmp(m->topic, HK_SPARKPLUG_SPACE, sizeof HK_SPARKPLUG_SPACE - 1) == 0) {
    read_sparkplug(in, of, m);
  } else {
    read_message(in, of, m);
  }
  return in->messages < HK_MQTT_RECEIVE && in->lines.size < HK_MQTT_BATCH;
}

/* --- a batch --------------------------------------------------------------------------------------------------------------- */

static void mqtt_in_count(struct hk_mqtt_in *in, const struct hk_lines_fed *fed, bool held)
{
  struct hk_bridge *b = in->link.bridge;
  pthread_mutex_lock(&b->lock);
  b->look.messages += in->messages;
  b->look.bad += in->bad;
  b->look.retained += in->retained;
  b->look.unmatched += in->unmatched;
  b->look.points += fed->taken;
  b->look.refused += fed->refused + fed->dropped;
  b->look.held = held;
  b->look.waiting = in->waiting;
  pthread_mutex_unlock(&b->lock);
  in->messages = in->bad = in->retained = in->unmatched = 0;
}

static void note_waiting(struct hk_mqtt_in *in)
{
  struct hk_bridge *b = in->link.bridge;
  pthread_mutex_lock(&b->lock);
  b->look.waiting = in->waiting;
  pthread_mutex_unlock(&b->lock);
}

static void mqtt_in_forget(struct hk_mqtt_in *in)
{
  in->lines.size = in->names.size = in->n_lines = 0;
  in->lines.failed = in->names.failed = in->key.failed = in->field.failed = in->failed = false;
}

/* Feeds the batch to the daemon. False: it was not taken. */
static bool mqtt_in_feed(struct hk_mqtt_in *in, struct hk_lines_fed *fed)
{
  struct hk_bridge *b = in->link.bridge;
  struct hk_token shown = { 0 };
  char peer[HK_ADDRESS_MAX];
  snprintf(shown.name, sizeof shown.name, "mqtt %.40s", b->rule.name);
  snprintf(peer, sizeof peer, "[mqtt %.30s]", b->rule.name);
  const struct hk_inner inner = { .protocol = HK_PROTOCOL_LINE,
                                  .listener = &b->peers->listener,
                                  .gate = &b->peers->gate,
                                  .peer = peer,
                                  .scopes = HK_SCOPE_FEED,
                                  .shown = &shown,
                                  .unit = 1 };
  int status = in->failed || in->lines.failed || in->names.failed ? -ENOMEM : 0;
  if (status == 0 && in->n_lines > 0)
    status = hk_feed_lines(b->net, &inner, in->lines.data, in->lines.size, fed);
  for (uint32_t i = 0; i < fed->n; i++)
    if (fed->fault[i].line > 0 && fed->fault[i].line <= in->n_lines)
      mqtt_in_tell(in, in->names.data + in->origin[fed->fault[i].line - 1], fed->fault[i].why);
  if (status != 0 && !hk_bridge_interrupted(b))
    hk_log(b->net->log, HK_LOG_WARNING, "[mqtt %s]: %u points are not taken: %s", b->rule.name, in->n_lines, strerror(-status));
  mqtt_in_forget(in);
  return status == 0;
}

static bool mqtt_in_settle(struct hk_mqtt_link *link, bool *held)
{
  struct hk_mqtt_in *in = in_of(link);
  struct hk_lines_fed fed = { 0 };
  const bool came = in->messages > 0;
  if (came) {
    note_waiting(in);
    if (!mqtt_in_feed(in, &fed))
      return false;
  }
  *held = in->acknowledges && !hk_condition_acknowledges(link->bridge->net->durable);
  in->waiting = *held ? in->waiting : 0;
  if (came || *held != link->bridge->look.held)
    mqtt_in_count(in, &fed, *held);
  in->acknowledges &= *held;
  return true;
}

/* --- the session ----------------------------------------------------------------------------------------------------------- */

static void mqtt_in_greeted(struct hk_mqtt_link *link)
{
  struct hk_mqtt_in *in = in_of(link);
  in->waiting = 0; /* the broker repeats unacknowledged messages */
  note_waiting(in);
  for (uint32_t i = 0; i < in->topics.n; i++)
    hk_mqtt_link_subscribe(link, in->topics.topic[i].filter, (int)link->bridge->rule.qos);
}

static void subscribed(struct hk_mqtt_link *link, uint32_t number, int granted)
{
  struct hk_bridge *b = link->bridge;
  const char *filter = in_of(link)->topics.topic[number].filter;
  if (granted >= 128)
    hk_log(b->net->log, HK_LOG_ERROR, "[mqtt %s]: the broker refuses the topic `%s`%s%s", b->rule.name, filter,
           granted > 128 ? ": " : "", granted > 128 ? mosquitto_reason_string(granted) : "");
  else if (granted < (int)b->rule.qos)
    hk_log(b->net->log, HK_LOG_WARNING, "[mqtt %s]: the broker grants the topic `%s` only QoS %d: messages may be lost",
           b->rule.name, filter, granted);
}

static const struct hk_mqtt_link_kind link_kind = {
  .suffix = "", .greeted = mqtt_in_greeted, .message = mqtt_in_message, .settle = mqtt_in_settle, .subscribed = subscribed
};

static void mqtt_in_run(struct hk_bridge *b)
{
  char error[256];
  struct hk_mqtt_in *in = calloc(1, sizeof *in);
  if (in)
    in->sparkplug = hk_sparkplug_new();
  if (!in || !in->sparkplug || hk_mqtt_topics_parse(b->rule.topics, &in->topics, error, sizeof error) != 0) {
    hk_log(b->net->log, HK_LOG_ERROR, "[mqtt %s]: no memory to start; free memory, then reload", b->rule.name);
    atomic_store(&b->stop, true); /* a lack of memory, since the topics were checked before */
    if (in)
      hk_sparkplug_free(in->sparkplug);
    free(in);
    return;
  }
  in->link = (struct hk_mqtt_link){ .bridge = b, .kind = &link_kind };
  hk_mqtt_link_run(&in->link, NULL);
  hk_buffer_free(&in->lines);
  hk_buffer_free(&in->names);
  hk_buffer_free(&in->key);
  hk_buffer_free(&in->field);
  free(in->origin);
  hk_sparkplug_free(in->sparkplug);
  free(in);
}

static bool mqtt_in_wanted(const struct hk_mqtt_rule *rule)
{
  return rule->topics[0] != 0;
}

const struct hk_bridge_kind hk_mqtt_in_kind = { HK_BRIDGE_IN, "mqtt", mqtt_in_wanted, mqtt_in_run };
