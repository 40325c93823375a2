#include "daemon/incidents/incident_text.h"
#include "daemon/incidents/fleet_tail.h"
#include "daemon/incidents/incident_members.h"
#include "proto/hankel.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIES 3 /* that are named */

void hk_incident_day_count(struct hk_incident_day *d, int64_t time, enum hk_incident_decision decision,
                           const struct hk_incident *i)
{
  const int64_t day = time / HK_DAY - (time % HK_DAY < 0);
  if (day > d->day)
    *d = (struct hk_incident_day){ .day = day };
  d->told += decision == HK_INCIDENT_TOLD;
  if (decision == HK_INCIDENT_CLOSED && !i->told) {
    d->withheld++;
    d->gravest = fmax(d->gravest, i->R);
  }
}

const char *hk_incident_word(enum hk_incident_decision decision, const struct hk_incident *i)
{
  switch (decision) {
  case HK_INCIDENT_TOLD:
    return "told";
  case HK_INCIDENT_UPDATE:
    return "update";
  case HK_INCIDENT_MERGED:
  case HK_INCIDENT_ABSORBED:
    return "merged";
  default:
    return i->told ? "closed" : "withheld";
  }
}

/* How many of its sensors are below the node. */
static uint32_t below(const struct hk_incident *i)
{
  uint32_t n = 0;
  for (struct hk_fleet_sensor *m = i->members; m; m = m->next) {
    uint32_t group = 0;
    for (struct hk_fleet_child *c = hk_fleet_up(m, NULL, &group); c; c = hk_fleet_up(m, c, &group))
      if (c->above == i->node) {
        n++;
        break;
      }
  }
  return n;
}

static void incident_text_put_name(struct hk_buffer *out, const struct hk_fleet_sensor *s)
{
  hk_json_string(out, s->leaf->name.data, s->leaf->name.length);
}

/* Names of channels. before: of each; between: two. */
static void put_channels(struct hk_buffer *out, uint32_t channels, const char *quote, const char *between)
{
  bool first = true;
  for (uint32_t c = 0; c < HK_INCIDENT_CHANNELS; c++) {
    if (!(channels >> c & 1))
      continue;
    hk_buffer_print(out, "%s%s%s%s", first ? "" : between, quote, hankel_channel_name((int)c), quote);
    first = false;
  }
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static void put_member(struct hk_buffer *out, const struct hk_fleet_sensor *m)
{
  hk_buffer_print(out, "{\"sensor\":");
  incident_text_put_name(out, m);
  hk_buffer_print(out, ",\"raised\":%" PRId64 ",\"instant\":%" PRId64 ",\"severity\":%.3f,\"channels\":[", m->raised, m->instant,
                  m->S);
  put_channels(out, m->channels, "\"", ",");
  hk_buffer_print(out, "]}");
}

static void put_members(struct hk_buffer *out, const struct hk_incident *i)
{
  const struct hk_fleet_sensor **list = hk_incident_in_order(i);
  if (!list) {
    out->failed = true;
    return;
  }
  hk_buffer_print(out, ",\"sensors\":[");
  for (uint32_t k = 0; k < i->n && k < HK_INCIDENT_LISTED; k++) {
    hk_buffer_print(out, "%s", k > 0 ? "," : "");
    put_member(out, list[k]);
  }
  hk_buffer_print(out, "]");
  free(list);
}

static void put_first(struct hk_buffer *out, const struct hk_incident_news *news)
{
  const struct hk_fleet_sensor *ties[TIES];
  uint32_t n;
  const struct hk_fleet_sensor *first = hk_incident_first(news->all, news->incident, ties, TIES, &n);
  if (!first) {
    out->failed = true;
    return;
  }
  hk_buffer_print(out, ",\"first\":");
  incident_text_put_name(out, first);
  hk_buffer_print(out, ",\"or\":[");
  for (uint32_t k = 0; k < n && k < TIES; k++) {
    hk_buffer_print(out, "%s", k > 0 ? "," : "");
    incident_text_put_name(out, ties[k]);
  }
  hk_buffer_print(out, "],\"ties\":%" PRIu32 ",\"strongest\":", n);
  const struct hk_fleet_sensor *strongest = hk_incident_strongest(news->incident);
  incident_text_put_name(out, strongest);
  if (strongest->what) {
    hk_buffer_print(out, ",\"what\":");
    hk_json_string(out, strongest->what, strlen(strongest->what));
  }
}

void hk_incident_json(struct hk_buffer *out, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  hk_buffer_print(out, "{\"incident\":\"%s\",\"id\":%" PRIu64 ",\"time\":%" PRId64 ",\"rank\":%.3f,\"severity\":%.3f",
                  hk_incident_word(news->decision, i), i->id, news->time, i->R, i->S);
  if (news->section.length > 0) {
    hk_buffer_print(out, ",\"section\":");
    hk_json_string(out, news->section.data, news->section.length);
  }
  if (news->decision == HK_INCIDENT_TOLD)
    hk_buffer_print(out, ",\"threshold\":%.3f", news->threshold);
  if (news->into) { /* its sensors are with the other already */
    hk_buffer_print(out, ",\"into\":%" PRIu64 "}\n", news->into->id);
    return;
  }
  hk_buffer_print(out, ",\"since\":%" PRId64 ",\"last\":%" PRId64 ",\"count\":%" PRIu32, i->open, i->last, i->n);
  if (i->node) {
    hk_buffer_print(out, ",\"node\":");
    hk_json_string(out, i->node->name.data, i->node->name.length);
    hk_buffer_print(out, ",\"below\":%" PRIu32 ",\"of\":%" PRIu32 ",\"company\":%.2f", below(i), i->node->sensors, i->company);
  }
  put_first(out, news);
  put_members(out, i);
  hk_buffer_print(out, ",\"told_today\":%" PRIu32 ",\"withheld_today\":%" PRIu32 ",\"gravest_withheld\":%.3f}\n", news->day->told,
                  news->day->withheld, news->day->gravest);
}

void hk_incident_sensors(struct hk_buffer *out, const struct hk_incident *i)
{
  const struct hk_fleet_sensor **list = hk_incident_in_order(i);
  out->failed |= !list;
  for (uint32_t k = 0; list && k < i->n && k < HK_INCIDENT_LISTED; k++)
    hk_buffer_put(out, list[k]->leaf->name.data, list[k]->leaf->name.length + 1);
  free(list);
}

/* --- sentences ---------------------------------------------------------------------------------------------------------- */

static void incident_text_put_time(struct hk_buffer *out, int64_t time)
{
  const time_t seconds = (time_t)(time / 1000000000 - (time % 1000000000 < 0));
  char text[32] = "";
  struct tm utc;
  if (gmtime_r(&seconds, &utc))
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
  hk_buffer_print(out, "%s", text);
}

static void incident_text_put_text(struct hk_buffer *out, struct hk_string text)
{
  hk_buffer_put(out, text.data, text.length);
}

/* What a sensor is called where its node was named: what stands behind that. */
static struct hk_string short_name(const struct hk_fleet_sensor *s, const struct hk_fleet_node *node)
{
  struct hk_string name = s->leaf->name;
  const size_t above = node && !node->group ? node->name.length : 0;
  if (above == 0 || name.length <= above + 1 || memcmp(name.data, node->name.data, above) != 0)
    return name;
  return (struct hk_string){ name.data + above + 1, name.length - above - 1 };
}

static void say_who(struct hk_buffer *out, const struct hk_incident *i)
{
  if (!i->node) {
    hk_buffer_print(out, "%" PRIu32 " sensors", i->n);
    return;
  }
  const uint32_t n = below(i);
  hk_buffer_print(out, "%" PRIu32 " of the %" PRIu32 " sensors", n, i->node->sensors);
  if (i->node->name.length > 0) {
    hk_buffer_print(out, " of ");
    incident_text_put_text(out, i->node->name);
  }
  if (i->n > n)
    hk_buffer_print(out, " and %" PRIu32 " more", i->n - n);
}

static void say_first(struct hk_buffer *out, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  const struct hk_fleet_sensor *ties[TIES];
  uint32_t n;
  const struct hk_fleet_sensor *first = hk_incident_first(news->all, i, ties, TIES, &n);
  if (!first) {
    out->failed = true;
    return;
  }
  hk_buffer_print(out, "; first ");
  incident_text_put_text(out, short_name(first, i->node));
  hk_buffer_print(out, " at ");
  incident_text_put_time(out, first->raised);
  for (uint32_t k = 0; k < n && k < TIES; k++) {
    hk_buffer_print(out, k == 0 ? " (or " : ", ");
    incident_text_put_text(out, short_name(ties[k], i->node));
  }
  if (n > TIES)
    hk_buffer_print(out, " or %" PRIu32 " more", n - TIES);
  hk_buffer_print(out, n > 0 ? ")" : "");
}

/* What its gravest alert said. */
static void say_what(struct hk_buffer *out, const struct hk_fleet_sensor *s)
{
  if (s->what)
    hk_buffer_print(out, ": %s", s->what);
}

void hk_incident_what(struct hk_buffer *out, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  const struct hk_fleet_sensor *strongest = hk_incident_strongest(i);
  if (i->n == 1) {
    incident_text_put_text(out, strongest->leaf->name);
    hk_buffer_print(out, ": ");
    put_channels(out, strongest->channels, "", "+");
    hk_buffer_print(out, ", severity %.1f, changed about ", strongest->S);
    incident_text_put_time(out, strongest->instant);
    say_what(out, strongest);
    return;
  }
  say_who(out, i);
  say_first(out, news);
  hk_buffer_print(out, "; strongest ");
  incident_text_put_text(out, short_name(strongest, i->node));
  hk_buffer_print(out, " (%s, %.1f)", hankel_channel_name(strongest->strongest), strongest->S);
  say_what(out, strongest);
  if (i->company > 0)
    hk_buffer_print(out, "; together by chance 1e-%.0f", i->company);
}

void hk_incident_sentence(struct hk_buffer *out, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  incident_text_put_time(out, news->time);
  hk_buffer_print(out, "  %-8s #%" PRIu64, hk_incident_word(news->decision, i), i->id);
  if (news->section.length > 0)
    hk_buffer_print(out, " (%.*s)", (int)news->section.length, news->section.data);
  hk_buffer_print(out, "  R %.2f", i->R);
  if (news->into) {
    hk_buffer_print(out, "  is part of #%" PRIu64, news->into->id);
    return;
  }
  if (news->decision == HK_INCIDENT_TOLD)
    hk_buffer_print(out, " over %.2f", news->threshold);
  hk_buffer_print(out, "  ");
  hk_incident_what(out, news);
  if (news->decision != HK_INCIDENT_TOLD)
    return;
  hk_buffer_print(out, "; %" PRIu32 " told today, %" PRIu32 " withheld", news->day->told, news->day->withheld);
  if (news->day->withheld > 0)
    hk_buffer_print(out, " (gravest R %.1f)", news->day->gravest);
}
