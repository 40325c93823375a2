#include "daemon/server/incident_word.h"

#include "daemon/incidents/incident_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 256 /* records processed at a time */

struct hk_incident_word *hk_word_new(uint32_t kind, uint64_t incident, struct hk_string sensor, const char *by)
{
  struct hk_incident_word *w = calloc(1, sizeof *w);
  if (!w)
    return NULL;
  w->kind = kind;
  w->incident = incident;
  memcpy(w->sensor, sensor.data, sensor.length);
  strcpy(w->by, by);
  atomic_store_explicit(&w->holders, 2, memory_order_relaxed);
  atomic_store_explicit(&w->outcome, HK_WORD_WAITS, memory_order_relaxed);
  return w;
}

void hk_word_release(struct hk_incident_word *w)
{
  if (w && atomic_fetch_sub_explicit(&w->holders, 1, memory_order_acq_rel) == 1)
    free(w);
}

/* The log's knowledge of the incident of a mark; the latest change wins. */
struct meant {
  struct hk_string sensor;
  uint64_t id;
  uint64_t found, into;
  double rank;
  uint32_t count;
  int64_t since;
  struct hk_buffer sensors;
  uint32_t section_length;
  char section[HK_SECTION_MOST]; /* of the incident */
};

static void word_set_section(struct meant *w, struct hk_string section)
{
  w->section_length = (uint32_t)section.length;
  memcpy(w->section, section.data, section.length);
}

/* Whether one of the sections has the incident. */
static bool word_has_section(const struct meant *w, const struct hk_incident_fleet *fleets, uint32_t n)
{
  uint32_t i = 0;
  while (i < n &&
         (fleets[i].section.length != w->section_length || memcmp(fleets[i].section.data, w->section, w->section_length) != 0))
    i++;
  return i < n;
}

static void incident_word_look_for(void *arg, const struct hk_logged_incident *i)
{
  struct meant *w = arg;
  const char *name = i->sensors.data, *end = name + i->sensors.length;
  bool its = w->sensor.length == 0 && i->id == w->id;
  for (; name < end && w->sensor.length > 0 && !its; name += strlen(name) + 1)
    its = strlen(name) == w->sensor.length && memcmp(name, w->sensor.data, w->sensor.length) == 0;
  if (!its || i->kind >= HANKEL_INCIDENT_EXPECTED)
    return;
  w->found = i->id;
  w->into = i->into;
  w->rank = i->rank;
  w->count = i->count;
  w->since = i->since;
  word_set_section(w, i->section);
  w->sensors.size = 0;
  hk_buffer_put(&w->sensors, i->sensors.data, i->sensors.length);
}

static void look_in_log(struct hk_eventlog *log, struct meant *w)
{
  static const struct hk_eventlog_visit visit = { .incident = incident_word_look_for };
  for (;;) {
    struct hk_eventlog_cursor c = { .next = hk_eventlog_first(log) };
    w->into = 0;
    while (hk_eventlog_visit(log, &c, UINT64_MAX, PIECE, &visit, w) > 0)
      continue;
    if (w->into == 0)
      return;
    w->id = w->into; /* an older one */
    w->sensor.length = 0;
  }
}

static void look_among_open(const struct hk_incident_fleet *fleet, struct meant *w)
{
  const struct hk_incident *i = hk_incidents_open(fleet->all, w->sensor, w->id);
  if (!i)
    return;
  w->found = i->id;
  w->rank = i->R;
  w->count = i->n;
  w->since = i->open;
  word_set_section(w, fleet->section);
  hk_incident_sensors(&w->sensors, i);
}

static int put_in_log(struct hk_eventlog *log, int64_t now, const struct meant *w, const struct hk_incident_word *word,
                      uint64_t *position)
{
  struct hk_buffer text = { 0 };
  const int64_t time = now != INT64_MIN ? now : 0;
  const uint32_t kind = word->kind;
  const char *said = hk_feedback_word(kind);
  const char *by = word->by;
  hk_buffer_print(&text, "%s: #%" PRIu64 "  R %.2f, %" PRIu32 " sensor%s, by %s", said, w->found, w->rank, w->count,
                  w->count == 1 ? "" : "s", by);
  const size_t about = text.size;
  const struct hk_string section = { w->section, w->section_length };
  hk_buffer_print(
      &text, "{\"incident\":\"%s\",\"id\":%" PRIu64 ",\"time\":%" PRId64 ",\"rank\":%.3f,\"count\":%" PRIu32 ",\"by\":", said,
      w->found, time, w->rank, w->count);
  hk_json_string(&text, by, strlen(by));
  if (section.length > 0) {
    hk_buffer_print(&text, ",\"section\":");
    hk_json_string(&text, section.data, section.length);
  }
  hk_buffer_put(&text, "}", 1);
  const struct hk_logged_incident i = { .id = w->found,
                                        .time = time,
                                        .since = w->since,
                                        .rank = w->rank,
                                        .count = w->count,
                                        .kind = (uint8_t)(kind - HK_FEEDBACK_EXPECTED + HANKEL_INCIDENT_EXPECTED),
                                        .section = section,
                                        .text = { text.data, about },
                                        .about = { text.data + about, text.size - about },
                                        .sensors = { w->sensors.data, w->sensors.size } };
  *position = text.failed || w->sensors.failed ? 0 : hk_eventlog_append_incident(log, &i);
  hk_buffer_free(&text);
  return *position > 0 ? 0 : -ENOMEM;
}

int hk_word_log(struct hk_eventlog *events, const struct hk_incident_fleet *fleets, uint32_t n,
                const struct hk_incident_word *word, uint64_t *position)
{
  struct meant w = { .sensor = hk_string(word->incident > 0 ? "" : word->sensor), .id = word->incident };
  int64_t now = INT64_MIN; /* of the data */
  bool marked = false;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t time = hk_incidents_time(fleets[i].all);
    now = time > now ? time : now;
    if (w.found == 0)
      look_among_open(&fleets[i], &w);
  }
  if (w.found == 0)
    look_in_log(events, &w);
  for (uint32_t i = 0; i < n; i++)
    marked |= hk_feedback_of(fleets[i].feedback, w.found) != NULL;
  int status = w.found == 0 || w.sensors.size == 0 ? -ENOENT : 0;
  if (status == 0 && word->kind == HK_FEEDBACK_UNDONE && !marked)
    status = -EALREADY;
  if (status == 0 && !word_has_section(&w, fleets, n))
    status = -ESTALE;
  if (status == 0)
    status = put_in_log(events, now, &w, word, position);
  hk_buffer_free(&w.sensors);
  return status;
}
