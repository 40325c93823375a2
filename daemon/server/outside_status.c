#include "daemon/server/outside_status.h"

#include "daemon/bridge/cluster_mail.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void receiver(struct hk_buffer *out, const struct hk_receiver_look *l)
{
  char when[HK_TIME_TEXT_MAX];
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, l->name, strlen(l->name));
  hk_buffer_print(out, ",\"type\":\"%s\",\"state\":\"%s\"", hk_notify_type_words[l->type],
                  l->rests     ? "resting"
                  : l->failing ? "failing"
                               : "ok");
  hk_buffer_print(out, ",\"position\":%" PRIu64 ",\"waiting\":%" PRIu64, l->position, l->waiting);
  hk_buffer_print(out, ",\"messages\":%" PRIu64 ",\"events\":%" PRIu64, l->messages, l->events);
  hk_buffer_print(out, ",\"tries_failed\":%" PRIu64 ",\"given_up\":%" PRIu64, l->tries_failed, l->given_up);
  hk_buffer_print(out, ",\"lost\":%" PRIu64 ",\"aside\":%" PRIu64 ",\"forgotten\":%" PRIu64, l->lost, l->aside, l->forgotten);
  hk_buffer_print(out, ",\"quiet\":%s", l->quiet ? "true" : "false");
  if (l->answered != 0) {
    hk_time_text(l->answered / 1000000000, when);
    hk_buffer_print(out, ",\"answered\":\"%s\",\"answer\":", when);
    hk_json_string(out, l->answer, strlen(l->answer));
  }
  hk_buffer_put(out, "}", 1);
}

static void receivers_status(struct hk_buffer *out, struct hk_receivers *receivers)
{
  struct hk_receiver_look *look = calloc(HK_CONFIG_NOTIFY_MAX, sizeof *look);
  const uint32_t n = look ? hk_receivers_look(receivers, look) : 0;
  hk_buffer_print(out, ",\"notify\":[");
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0)
      hk_buffer_put(out, ",", 1);
    receiver(out, &look[i]);
  }
  hk_buffer_put(out, "]", 1);
  free(look);
}

/* Appends the counters of its section. */
static void outside_status_counted(struct hk_buffer *out, const char *section, const struct hk_bridge_look *l)
{
  for (const struct hk_counter_row *row = hk_bridge_counter_table; row->section; row++)
    if (strcmp(row->section, section) == 0)
      hk_buffer_print(out, ",\"%s\":%" PRIu64, row->name, hk_bridge_counter_of(l, row));
}

static void bridge(struct hk_buffer *out, const struct hk_bridge_look *l)
{
  static const char *const states[] = { "connecting", "connected", "failing" };
  char since[HK_TIME_TEXT_MAX];
  hk_time_text(l->since / 1000000000, since);
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, l->name, strlen(l->name));
  hk_buffer_print(out, ",\"way\":\"%s\",\"state\":\"%s\",\"since\":\"%s\",\"why\":", l->way == HK_BRIDGE_IN ? "in" : "out",
                  l->held ? "held" : states[l->state], since);
  hk_json_string(out, l->why, strlen(l->why));
  hk_buffer_print(out, ",\"waiting\":%" PRIu64, l->waiting);
  if (l->way == HK_BRIDGE_IN) {
    outside_status_counted(out, "mqtt_in", l);
  } else {
    outside_status_counted(out, "mqtt_out", l);
    hk_buffer_print(out, ",\"position\":%" PRIu64, l->position);
  }
  hk_buffer_put(out, "}", 1);
}

static void bridges_status(struct hk_buffer *out, struct hk_bridges *bridges)
{
  struct hk_bridge_look *look = calloc(HK_BRIDGES_MAX, sizeof *look);
  const uint32_t n = look ? hk_bridges_look(bridges, look) : 0;
  hk_buffer_print(out, ",\"mqtt\":[");
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0)
      hk_buffer_put(out, ",", 1);
    bridge(out, &look[i]);
  }
  hk_buffer_put(out, "]", 1);
  free(look);
}

/* Appends the partitions that it scores. */
static void partitions(struct hk_buffer *out, struct hk_cluster *cluster)
{
  struct hk_cluster_part *part = calloc(HK_PARTITIONS_MAX, sizeof *part);
  const uint32_t n = part ? hk_cluster_parts(cluster, part) : 0;
  hk_buffer_print(out, ",\"held\":[");
  for (uint32_t i = 0; i < n; i++) {
    char since[HK_TIME_TEXT_MAX];
    hk_time_text(part[i].since / 1000000000, since);
    hk_buffer_print(
        out, "%s{\"partition\":%" PRIu32 ",\"epoch\":%" PRIu64 ",\"since\":\"%s\",\"next\":%" PRIu64 ",\"lag_seconds\":%" PRId64,
        i ? "," : "", part[i].partition, part[i].epoch, since, part[i].next, part[i].lag / 1000000000);
    if (part[i].needs > 0)
      hk_buffer_print(out, ",\"needs_version\":%u", part[i].needs);
    hk_buffer_put(out, "}", 1);
  }
  hk_buffer_put(out, "]", 1);
  free(part);
}

static const char *const cluster_states[] = { "connecting", "connected", "failing" };

static const char *cluster_state(const struct hk_cluster_look *l)
{
  return l->blocked ? "blocked" : cluster_states[l->state];
}

/* With role = all: what the thread does that publishes. */
static void cluster_publishes(struct hk_buffer *out, const struct hk_cluster_look *l)
{
  hk_buffer_print(out, ",\"publishing\":{\"state\":\"%s\",\"why\":", cluster_state(l));
  hk_json_string(out, l->why, strlen(l->why));
  hk_buffer_print(out, ",\"messages\":%" PRIu64 ",\"points\":%" PRIu64 ",\"waiting\":%" PRIu32 "}", l->messages, l->points,
                  l->waiting);
}

/* Who scores which partition, by the shared log. */
static void cluster_where(struct hk_buffer *out, struct hk_cluster *cluster, uint32_t of)
{
  struct hk_holder holder;
  bool any = false;
  hk_buffer_print(out, ",\"where\":[");
  for (uint32_t i = 0; i < of; i++)
    if (hk_cluster_machine(cluster, i, &holder)) {
      hk_buffer_print(out, "%s{\"partition\":%" PRIu32 ",\"epoch\":%" PRIu64 ",\"machine\":\"%s\"}", any ? "," : "", i,
                      holder.epoch, holder.machine);
      any = true;
    }
  hk_buffer_put(out, "]", 1);
}

/* What operators wanted to move here, and what became of that. */
static void cluster_wanted(struct hk_buffer *out, struct hk_cluster *cluster, uint32_t of)
{
  struct hk_cluster_move move;
  const char *comma = "";
  hk_buffer_print(out, ",\"wanted\":[");
  for (uint32_t i = 0; i < of; i++) {
    if (!hk_cluster_move(cluster, i, &move))
      continue;
    hk_buffer_print(out, "%s{\"partition\":%" PRIu32 ",\"state\":\"%s\",\"seconds\":%.1f,\"why\":", comma, i, move.state,
                    (double)move.ago * 1e-9);
    hk_json_string(out, move.why, strlen(move.why));
    hk_buffer_put(out, "}", 1);
    comma = ",";
  }
  hk_buffer_put(out, "]", 1);
}

/* The other machines, by their notices. */
static void cluster_others(struct hk_buffer *out, struct hk_cluster *mail)
{
  struct hk_mail_machine *m = calloc(HK_MAIL_MACHINES, sizeof *m);
  const uint32_t n = m ? hk_mail_machines(mail, true, m) : 0;
  const char *comma = "";
  hk_buffer_print(out, ",\"others\":[");
  for (uint32_t i = 0; i < n; i++) {
    if (strcmp(m[i].name, hk_cluster_name(mail)) != 0) {
      hk_buffer_print(out, "%s{\"machine\":\"%s\",\"away\":%s,\"silent\":%.1f,\"says\":%s}", comma, m[i].name,
                      m[i].away ? "true" : "false", (double)m[i].silent * 1e-9, m[i].report ? m[i].report : "{}");
      comma = ",";
    }
    free(m[i].report);
  }
  hk_buffer_put(out, "]", 1);
  free(m);
}

/* Of the log of scores: what is shared, and shown of others. */
static void cluster_shares(struct hk_buffer *out, struct hk_cluster *scores)
{
  struct hk_cluster_look l;
  hk_cluster_look(scores, &l);
  if (l.role != HK_CLUSTER_NONE)
    hk_buffer_print(out,
                    ",\"scores\":{\"state\":\"%s\",\"listeners\":%" PRIu32 ",\"shared\":%" PRIu64 ",\"lost\":%" PRIu64
                    ",\"waiting\":%" PRIu32 ",\"shown\":%" PRIu64 ",\"repeated\":%" PRIu64 ",\"refused\":%" PRIu64
                    ",\"missed\":%" PRIu64 ",\"bad\":%" PRIu64 "}",
                    cluster_state(&l), l.members, l.points, l.lost, l.waiting, l.shown, l.repeated, l.refused, l.missed, l.bad);
}

/* where: with who scores which partition. */
static void cluster_status(struct hk_buffer *out, const struct hk_outside *from, bool where)
{
  struct hk_cluster *cluster = from->cluster;
  struct hk_cluster_look l, e, p;
  char since[HK_TIME_TEXT_MAX];
  hk_cluster_look(cluster, &l);
  hk_cluster_look(from->publishing, &p);
  hk_time_text(l.since / 1000000000, since);
  hk_buffer_print(out, "{\"role\":\"%s\",\"state\":\"%s\",\"since\":\"%s\",\"connected\":%" PRIu64 ",\"broker\":",
                  p.role != HK_CLUSTER_NONE      ? "all"
                  : l.role == HK_CLUSTER_GATEWAY ? "gateway"
                                                 : "scorer",
                  cluster_state(&l), since, l.connected);
  hk_json_string(out, l.broker, strlen(l.broker));
  hk_buffer_print(out, ",\"why\":");
  hk_json_string(out, l.why, strlen(l.why));
  hk_buffer_print(out, ",\"name\":");
  hk_json_string(out, l.name, strlen(l.name));
  hk_buffer_print(out, ",\"of\":%" PRIu32, l.of);
  hk_buffer_print(out, ",\"partitions\":%" PRIu32 ",\"messages\":%" PRIu64 ",\"points\":%" PRIu64, l.partitions, l.messages,
                  l.points);
  if (l.role == HK_CLUSTER_GATEWAY)
    hk_buffer_print(out, ",\"waiting\":%" PRIu32, l.waiting);
  else
    hk_buffer_print(out,
                    ",\"bad\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"scorers\":%" PRIu32 ",\"moves\":%" PRIu64
                    ",\"draining\":%s",
                    l.bad, l.refused, l.lost, l.members, l.moves, l.draining ? "true" : "false");
  if (p.role != HK_CLUSTER_NONE)
    cluster_publishes(out, &p);
  hk_cluster_look(from->events, &e);
  if (e.role != HK_CLUSTER_NONE)
    hk_buffer_print(out, ",\"events\":\"%s\",\"events_waiting\":%" PRIu32 ",\"leads\":%s", cluster_states[e.state], e.waiting,
                    e.leads ? "true" : "false");
  cluster_shares(out, from->scores);
  if (from->mail) {
    hk_cluster_look(from->mail, &e);
    hk_buffer_print(out, ",\"mail\":\"%s\"", cluster_state(&e));
  }
  hk_buffer_print(out, ",\"machine\":");
  hk_json_string(out, l.machine, strlen(l.machine));
  if (where && l.role == HK_CLUSTER_SCORER)
    cluster_wanted(out, cluster, l.of);
  if (where)
    cluster_where(out, cluster, l.of);
  if (where && from->mail)
    cluster_others(out, from->mail);
  if (l.role == HK_CLUSTER_SCORER)
    partitions(out, cluster);
  hk_buffer_put(out, "}", 1);
}

void hk_outside_notice(struct hk_buffer *out, const struct hk_outside *from)
{
  cluster_status(out, from, false);
}

void hk_outside_status(struct hk_buffer *out, const struct hk_outside *from)
{
  if (from->cluster) {
    hk_buffer_print(out, ",\"cluster\":");
    cluster_status(out, from, true);
  }
  receivers_status(out, from->receivers);
  bridges_status(out, from->bridges);
}
