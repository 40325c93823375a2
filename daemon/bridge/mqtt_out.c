#include "daemon/bridge/mqtt_out.h"

#include "daemon/base/grow.h"
#include "daemon/bridge/mqtt_messages.h"
#include "daemon/net/inner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#define SECOND 1000000000ll
#define READ 65536u          /* bytes read at a time */
#define LINE_MOST (1u << 20) /* bytes of a line: more than the longest one has */
#define EVENT 4u             /* maximum messages of an event, with some reserve */

static struct hk_mqtt_out *out_of(struct hk_mqtt_link *link)
{
  return (struct hk_mqtt_out *)link;
}

/* --- the place in the event log ----------------------------------------------------------------------------------------- */

static void write_place(struct hk_mqtt_out *o)
{
  struct hk_bridge *b = o->link.bridge;
  const struct hk_durable *d = b->net->durable;
  if (!o->logged || o->place.position == o->written)
    return;
  o->place.until = o->place.position;
  o->wrote = hk_now();
  const int status = hk_place_write(&d->disk, d->folder, "mqtt", b->rule.name, &o->place);
  if (status == 0)
    o->written = o->place.position;
  else
    hk_log_peer(b->net->log, &b->quota, HK_LOG_WARNING, b->rule.name,
                "[mqtt]: its position in the event log cannot be written: %s; events may be published twice", strerror(-status));
}

static void read_place(struct hk_mqtt_out *o)
{
  struct hk_bridge *b = o->link.bridge;
  const struct hk_durable *d = b->net->durable;
  o->logged = d->events && d->folder >= 0;
  if (!o->logged)
    return;
  const uint64_t last = hk_eventlog_shown(d->events);
  const int status = hk_place_read(&d->disk, d->folder, "mqtt", b->rule.name, &o->place);
  if (status != 0 || o->place.position > last) {
    if (status != -ENOENT)
      hk_log(b->net->log, HK_LOG_WARNING,
             "[mqtt %s]: its position in the event log is unknown (%s): publishing begins with new events", b->rule.name,
             status == 0 ? "it is beyond the end of the event log, which was replaced" : strerror(-status));
    o->place = (struct hk_place){ .position = last };
    o->written = UINT64_MAX; /* so that the begin is known if it ends before the broker has taken anything */
    write_place(o);
  }
  o->quiet = o->place.position;
}

/* The broker has taken the first waiting message. */
static void move_on(struct hk_mqtt_out *o)
{
  for (; o->n > 0 && o->waiting[o->first].taken; o->n--) {
    if (o->waiting[o->first].position > o->place.position)
      o->place.position = o->waiting[o->first].position;
    o->first = (o->first + 1) % HK_MQTT_WAITING;
  }
}

static void taken(struct hk_mqtt_link *link, int id)
{
  struct hk_mqtt_out *o = out_of(link);
  for (uint32_t i = 0; i < o->n; i++) {
    const uint32_t at = (o->first + i) % HK_MQTT_WAITING;
    if (o->waiting[at].id != id || o->waiting[at].taken)
      continue;
    o->waiting[at].taken = true;
    o->taken++;
    break;
  }
  move_on(o);
}

/* --- messages ----------------------------------------------------------------------------------------------------------- */

/* Publishes with QoS 1; there is room. */
static void mqtt_out_publish(struct hk_mqtt_out *o, bool retain)
{
  int id;
  if (o->topic.failed || o->payload.failed ||
      hk_mqtt_link_publish(&o->link, o->topic.data, o->payload.data, o->payload.size, 1, retain, &id) != 0) {
    o->lost++;
    return;
  }
  const uint32_t at = (o->first + o->n++) % HK_MQTT_WAITING;
  o->waiting[at].id = id;
  o->waiting[at].taken = false;
  o->waiting[at].position = 0;
}

/* Whether a sensor's discovery was published; records that it is. */
static bool is_known(struct hk_mqtt_out *o, const char *sensor)
{
  const uint64_t hash = XXH3_64bits(sensor, strlen(sensor));
  uint32_t low = 0, high = o->n_known;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (o->known[middle] < hash)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < o->n_known && o->known[low] == hash)
    return true;
  uint64_t *known = hk_grow(o->known, o->n_known, &o->known_room, sizeof *known, 256);
  if (known) {
    o->known = known;
    memmove(known + low + 1, known + low, (o->n_known++ - low) * sizeof *known);
    known[low] = hash;
  }
  return false;
}

static void publish_discovery(struct hk_mqtt_out *o, const char *sensor)
{
  const struct hk_mqtt_rule *rule = &o->link.bridge->rule;
  if (!rule->discovery[0] || is_known(o, sensor))
    return;
  o->topic.size = o->payload.size = 0;
  hk_mqtt_discovery_of(&o->topic, &o->payload, rule->discovery, rule->name, rule->prefix, sensor);
  mqtt_out_publish(o, true);
}

/* Advances the place once all published messages are taken. */
static void mqtt_out_reach(struct hk_mqtt_out *o, uint64_t position)
{
  if (o->n > 0)
    o->waiting[(o->first + o->n - 1) % HK_MQTT_WAITING].position = position;
  else if (position > o->place.position)
    o->place.position = position;
}

/* event: the line as an object; text: as received. */
static void publish_event(struct hk_mqtt_out *o, const cJSON *event, const char *sensor, const char *text)
{
  const struct hk_mqtt_rule *rule = &o->link.bridge->rule;
  const double at = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(event, "position"));
  const uint64_t position = at > 0 ? (uint64_t)at : 0;
  publish_discovery(o, sensor);
  if (position == 0 || position > o->quiet) {
    o->topic.size = o->payload.size = 0;
    hk_mqtt_topic_of(&o->topic, rule->prefix, "event", sensor);
    hk_buffer_put(&o->payload, text, strlen(text));
    mqtt_out_publish(o, false);
  }
  o->topic.size = o->payload.size = 0;
  hk_mqtt_topic_of(&o->topic, rule->prefix, "state", sensor);
  if (hk_mqtt_state_of(&o->payload, event))
    mqtt_out_publish(o, true);
  if (position > 0)
    mqtt_out_reach(o, position);
  o->read = position > o->read ? position : o->read;
}

static void publish_score(struct hk_mqtt_out *o, const char *sensor, const char *text)
{
  int id;
  o->topic.size = 0;
  hk_mqtt_topic_of(&o->topic, o->link.bridge->rule.prefix, "score", sensor);
  if (o->topic.failed || hk_mqtt_link_publish(&o->link, o->topic.data, text, strlen(text), 0, false, &id) != 0)
    o->lost++;
  else
    o->taken++;
}

/* A line of the text protocol, without its LF. */
static void mqtt_out_take_line(struct hk_mqtt_out *o, const char *text)
{
  struct hk_bridge *b = o->link.bridge;
  cJSON *json = cJSON_Parse(text);
  const char *sensor = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "sensor"));
  const cJSON *gap = cJSON_GetObjectItemCaseSensitive(json, "gap");
  const char *fault = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "error"));
  if (sensor && cJSON_HasObjectItem(json, "event"))
    publish_event(o, json, sensor, text);
  else if (sensor && cJSON_HasObjectItem(json, "score"))
    publish_score(o, sensor, text);
  else if (gap)
    o->lost += (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(gap, "results")) +
               (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(gap, "events"));
  else if (fault)
    hk_log(b->net->log, HK_LOG_WARNING, "[mqtt %s]: results: %s", b->rule.name, fault);
  cJSON_Delete(json);
}

/* --- the inner connection ----------------------------------------------------------------------------------------------- */

static void shut(struct hk_mqtt_out *o)
{
  if (o->fd >= 0)
    close(o->fd);
  o->fd = -1;
  o->lines.size = 0;
}

/* Subscribes, to events from the read position on. */
static int subscribe(struct hk_mqtt_out *o)
{
  struct hk_bridge *b = o->link.bridge;
  const struct hk_mqtt_rule *rule = &b->rule;
  char peer[HK_ADDRESS_MAX], line[sizeof rule->match + 96], scores[48] = "", since[48] = "";
  snprintf(peer, sizeof peer, "[mqtt %.30s]", rule->name);
  const struct hk_inner inner = { .protocol = HK_PROTOCOL_TEXT,
                                  .listener = &b->peers->listener,
                                  .gate = &b->peers->gate,
                                  .peer = peer,
                                  .scopes = HK_SCOPE_SUBSCRIBE,
                                  .unit = 1 };
  if (rule->publish & HK_MQTT_SCORES)
    snprintf(scores, sizeof scores, "scores>=%g", rule->min_score);
  if (rule->publish & HK_MQTT_EVENTS && o->logged)
    snprintf(since, sizeof since, ",since=%" PRIu64, o->read);
  const int n = snprintf(line, sizeof line, "%s%s%s%s %s\n", rule->publish & HK_MQTT_EVENTS ? "events" : "",
                         rule->publish == (HK_MQTT_EVENTS | HK_MQTT_SCORES) ? "," : "", scores, since, rule->match);
  o->fd = hk_inner_open(b->net, &inner);
  if (o->fd < 0)
    return o->fd;
  return send(o->fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n ? 0 : -EAGAIN;
}

static bool has_room(const struct hk_mqtt_out *o)
{
  return o->n + EVENT <= HK_MQTT_WAITING && !mosquitto_want_write(o->link.mosq);
}

/* Processes whole lines while there is room for their messages. */
static void mqtt_out_take_lines(struct hk_mqtt_out *o)
{
  size_t at = 0;
  char *feed;
  while (o->n + EVENT <= HK_MQTT_WAITING && at < o->lines.size && (feed = memchr(o->lines.data + at, '\n', o->lines.size - at))) {
    *feed = 0;
    mqtt_out_take_line(o, o->lines.data + at);
    at = (size_t)(feed + 1 - o->lines.data);
  }
  o->lines.size -= at;
  if (o->lines.size > 0)
    memmove(o->lines.data, o->lines.data + at, o->lines.size);
}

static void mqtt_out_read_some(struct hk_mqtt_out *o)
{
  char *room = o->lines.size < LINE_MOST ? hk_buffer_room(&o->lines, READ) : NULL;
  const ssize_t n = room ? recv(o->fd, room, READ, MSG_DONTWAIT) : 0;
  if (n > 0) {
    o->lines.size += (size_t)n;
    mqtt_out_take_lines(o);
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) { /* the daemon ends, or there is no memory */
    shut(o);
    o->lines.failed = false;
    o->retry = hk_now() + SECOND;
  }
}

/* --- the session -------------------------------------------------------------------------------------------------------- */

static void say_status(struct hk_mqtt_out *o, const char *what)
{
  int id;
  if (hk_mqtt_link_publish(&o->link, o->status, what, strlen(what), 1, true, &id) != 0)
    o->lost++;
}

static void mqtt_out_greeted(struct hk_mqtt_link *link)
{
  struct hk_mqtt_out *o = out_of(link);
  say_status(o, "online");
  shut(o);
  o->retry = 0;
  o->read = o->place.position;
  if (link->kept)
    return;
  o->n_known = 0;
  if (o->logged) { /* states from the beginning of the log, events from the place */
    o->quiet = o->place.position;
    o->read = 0;
  }
}

static bool mqtt_out_message(struct hk_mqtt_link *link, const struct mosquitto_message *m)
{
  (void)link, (void)m;
  return true;
}

static bool mqtt_out_settle(struct hk_mqtt_link *link, bool *held)
{
  struct hk_mqtt_out *o = out_of(link);
  struct hk_bridge *b = link->bridge;
  *held = false;
  if (o->wrote + SECOND < hk_now())
    write_place(o);
  pthread_mutex_lock(&b->lock);
  b->look.messages += o->taken;
  b->look.lost += o->lost;
  b->look.waiting = o->n;
  b->look.position = o->place.position;
  pthread_mutex_unlock(&b->lock);
  o->taken = o->lost = 0;
  return true;
}

static void waits(struct hk_mqtt_link *link, int *fd, short *events, int *timeout)
{
  struct hk_mqtt_out *o = out_of(link);
  if (!link->greeted) {
    shut(o);
    return;
  }
  if (o->fd < 0 && hk_now() >= o->retry && subscribe(o) != 0) {
    shut(o);
    o->retry = hk_now() + SECOND;
  }
  *events = POLLIN;
  *fd = has_room(o) ? o->fd : -1;
  if (o->lines.size > 0 && has_room(o) && memchr(o->lines.data, '\n', o->lines.size))
    *timeout = 0;
}

static void woken(struct hk_mqtt_link *link)
{
  struct hk_mqtt_out *o = out_of(link);
  if (!link->greeted || o->fd < 0 || !has_room(o))
    return;
  mqtt_out_take_lines(o);
  if (has_room(o))
    mqtt_out_read_some(o);
}

static void parting(struct hk_mqtt_link *link)
{
  say_status(out_of(link), "offline");
}

static void refused(struct hk_mqtt_link *link, int reason)
{
  struct hk_bridge *b = link->bridge;
  char who[HK_CONFIG_NAME_MAX + 16];
  snprintf(who, sizeof who, "[mqtt %s]", b->rule.name);
  hk_log_peer(b->net->log, &b->quota, HK_LOG_WARNING, who, "the broker refuses messages that are published under %s: %s",
              b->rule.prefix, mosquitto_reason_string(reason));
}

static const struct hk_mqtt_link_kind link_kind = { .suffix = "-out",
                                                    .greeted = mqtt_out_greeted,
                                                    .message = mqtt_out_message,
                                                    .settle = mqtt_out_settle,
                                                    .taken = taken,
                                                    .refused = refused,
                                                    .waits = waits,
                                                    .woken = woken,
                                                    .parting = parting };

static void mqtt_out_run(struct hk_bridge *b)
{
  struct hk_mqtt_out *o = calloc(1, sizeof *o);
  if (!o) {
    hk_log(b->net->log, HK_LOG_ERROR, "[mqtt %s]: no memory to start; free memory, then reload", b->rule.name);
    atomic_store(&b->stop, true);
    return;
  }
  o->link = (struct hk_mqtt_link){ .bridge = b, .kind = &link_kind };
  o->fd = -1;
  snprintf(o->status, sizeof o->status, "%s/status", b->rule.prefix);
  read_place(o);
  hk_mqtt_link_run(&o->link, o->status);
  write_place(o);
  shut(o);
  hk_buffer_free(&o->lines);
  hk_buffer_free(&o->topic);
  hk_buffer_free(&o->payload);
  free(o->known);
  free(o);
}

static bool mqtt_out_wanted(const struct hk_mqtt_rule *rule)
{
  return rule->publish != 0;
}

const struct hk_bridge_kind hk_mqtt_out_kind = { HK_BRIDGE_OUT, "mqttout", mqtt_out_wanted, mqtt_out_run };
