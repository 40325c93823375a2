/* A change is completed when it is decided, and waits until it is logged, or found in the log. */
#include "daemon/server/incident_maker.h"

#include "daemon/base/grow.h"

#include "daemon/incidents/feedback.h"
#include "daemon/incidents/incident_text.h"
#include "daemon/incidents/incidents_image.h"
#include "daemon/incidents/ticks.h"
#include "daemon/sensors/companions.h"
#include "daemon/server/incident_fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define PIECE 256 /* records, or names, processed at a time */

/* A change that is not logged yet; its bytes are a payload. */
struct pending {
  struct pending *next;
  uint64_t number;
  struct hk_logged_incident change; /* strings are views of: */
  char text[];
};

struct pairs {
  struct hk_settled_event *of;
  uint32_t n, room;
};
struct merges {
  struct hk_incident_merge *of;
  uint32_t n, room;
};

struct hk_incident_maker {
  struct hk_maker_parts parts;
  double a_day;
  struct hk_glob *match; /* of the fleet's sensors; NULL: all */
  struct hk_incidents *incidents;
  struct hk_ticks *ticks;
  struct hk_incident_day day;
  struct hk_feedback feedback;
  struct hk_eventlog_cursor cursor;
  uint64_t ends;   /* of the log at the start: up to here former decisions are repeated */
  bool again;      /* it is repeating them */
  uint64_t number; /* of the last change */
  uint64_t before; /* the last incident that began before the current settling */
  struct pending *first, **last;
  struct pairs pairs;   /* of the current settling */
  struct merges merges; /* likewise */
  uint64_t added;       /* sensors added to the registry when their names were last learned */
  uint64_t shards;      /* shards with sensors, a bit each */
  uint32_t sensors;     /* of the registry, */
  uint32_t distant;     /* and of other machines of a cluster, */
  bool counted;         /* which have those of the registry, too */
  int64_t newest;       /* ns, time of data */
  bool fresh;
};

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

static uint8_t maker_kind_of(enum hk_incident_decision decision, const struct hk_incident *i)
{
  switch (decision) {
  case HK_INCIDENT_TOLD:
    return HANKEL_INCIDENT_TOLD;
  case HK_INCIDENT_UPDATE:
    return HANKEL_INCIDENT_UPDATE;
  case HK_INCIDENT_CLOSED:
    return i->told ? HANKEL_INCIDENT_CLOSED : HANKEL_INCIDENT_WITHHELD;
  default:
    return HANKEL_INCIDENT_MERGED;
  }
}

static void log_later(struct hk_incident_maker *m, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  struct hk_buffer text = { 0 };
  hk_incident_sentence(&text, news);
  const size_t about = text.size;
  hk_incident_json(&text, news);
  text.size -= text.size > 0; /* the line feed */
  const size_t sensors = text.size;
  hk_incident_sensors(&text, news->into ? news->into : i);
  struct pending *p = text.failed ? NULL : malloc(sizeof *p + text.size);
  m->number++;
  if (p) {
    memcpy(p->text, text.data, text.size);
    p->next = NULL;
    p->number = m->number;
    p->change = (struct hk_logged_incident){ .number = m->number,
                                             .id = i->id,
                                             .into = news->into ? news->into->id : 0,
                                             .time = news->time,
                                             .since = i->open,
                                             .rank = i->R,
                                             .severity = i->S,
                                             .count = i->n,
                                             .kind = maker_kind_of(news->decision, i),
                                             .told = i->told,
                                             .text = { p->text, about },
                                             .about = { p->text + about, sensors - about },
                                             .sensors = { p->text + sensors, text.size - sensors } };
    *m->last = p;
    m->last = &p->next;
  } else {
    hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory to report one");
  }
  hk_buffer_free(&text);
}

static void maker_decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                          const struct hk_incident *into, double threshold)
{
  struct hk_incident_maker *m = arg;
  const struct hk_incident_news news = { m->incidents, incident, into, &m->day, time, threshold, decision };
  hk_incident_day_count(&m->day, time, decision, incident);
  if (decision == HK_INCIDENT_CLOSED)
    hk_board_over(m->parts.board, &news);
  if (into) {
    struct hk_incident_merge *of = hk_grow(m->merges.of, m->merges.n, &m->merges.room, sizeof *of, 64);
    if (!of)
      return;
    m->merges.of = of;
    m->merges.of[m->merges.n++] = (struct hk_incident_merge){ incident->id, into->id };
  }
  if (decision != HK_INCIDENT_ABSORBED || incident->id <= m->before) /* else it was not published yet */
    log_later(m, &news);
}

static void joined(void *arg, uint64_t position, uint64_t incident)
{
  struct hk_incident_maker *m = arg;
  struct hk_settled_event *of = hk_grow(m->pairs.of, m->pairs.n, &m->pairs.room, sizeof *of, 64);
  if (!of)
    return;
  m->pairs.of = of;
  m->pairs.of[m->pairs.n++] = (struct hk_settled_event){ position, incident };
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

int hk_maker_new(struct hk_incident_maker **out, const struct hk_incidents_rule *rule, const struct hk_maker_parts *parts)
{
  const struct hk_incidents_rules rules = { .a_day = rule->a_day, .interval = rule->interval, .most_members = rule->members };
  struct hk_incident_maker *m = calloc(1, sizeof *m);
  if (!m)
    return -ENOMEM;
  m->parts = *parts;
  m->a_day = rule->a_day;
  m->last = &m->first;
  m->added = UINT64_MAX;
  m->newest = INT64_MIN;
  m->cursor.next = hk_eventlog_first(parts->events);
  m->ends = hk_eventlog_shared(parts->events) ? UINT64_MAX : hk_eventlog_last(parts->events);
  m->again = true;
  int status = rule->match[0] ? hk_glob_new(&m->match, rule->match, strlen(rule->match)) : 0;
  if (status == 0)
    status = hk_incidents_new(&m->incidents, &rules, maker_decided, m);
  if (status == 0)
    status = hk_ticks_new(&m->ticks, m->incidents, joined, m);
  if (status != 0)
    hk_maker_free(m);
  else
    *out = m;
  return status;
}

/* Changes up to a number are in the log. */
static void drop_pending(struct hk_incident_maker *m, uint64_t number)
{
  while (m->first && m->first->number <= number) {
    struct pending *p = m->first;
    m->first = p->next;
    free(p);
  }
  if (!m->first)
    m->last = &m->first;
}

void hk_maker_free(struct hk_incident_maker *m)
{
  if (!m)
    return;
  drop_pending(m, UINT64_MAX);
  hk_ticks_free(m->ticks);
  hk_incidents_free(m->incidents);
  hk_glob_free(m->match);
  hk_feedback_free(&m->feedback);
  free(m->pairs.of);
  free(m->merges.of);
  free(m);
}

void hk_maker_budget(struct hk_incident_maker *m, double a_day)
{
  m->a_day = a_day;
  if (!m->again)
    hk_incidents_budget(m->incidents, a_day);
}

/* Number of sensors that are scored. */
static uint32_t maker_sensors(const struct hk_incident_maker *m)
{
  const uint32_t most = m->sensors > m->distant ? m->sensors : m->distant;
  return m->counted ? most : m->sensors + m->distant;
}

bool hk_maker_learn_distant(struct hk_incident_maker *m, struct hk_string name)
{
  if (name.length == 0 || name.length > HK_NAME_MAX)
    return false;
  hk_registry_read(m->parts.registry);
  const bool belongs = hk_fleet_know(m->incidents, m->parts.registry, m->match, name);
  hk_registry_read_end(m->parts.registry);
  return belongs;
}

void hk_maker_count_distant(struct hk_incident_maker *m, uint32_t sensors, bool here)
{
  m->distant = sensors;
  m->counted = !here;
  if (!m->again)
    hk_incidents_sensors(m->incidents, maker_sensors(m));
}

uint64_t hk_maker_learn(struct hk_incident_maker *m, uint32_t shards)
{
  struct hk_registry *registry = m->parts.registry;
  const uint64_t added = hk_registry_added(registry);
  const uint32_t slots = hk_registry_slots(registry);
  if (added == m->added)
    return m->shards;
  m->sensors = 0;
  for (uint32_t slot = 0; slot < slots;) {
    hk_registry_read(registry);
    for (const uint32_t end = slot + PIECE; slot < end && slot < slots; slot++) {
      if (!hk_registry_holds(registry, slot))
        continue;
      m->shards |= UINT64_C(1) << slot % shards;
      if (hk_registry_derived(registry, slot)) /* only sensors that are no companions count as scored */
        continue;
      m->sensors += hk_fleet_know(m->incidents, registry, m->match, hk_registry_name(registry, slot));
    }
    hk_registry_read_end(registry);
  }
  if (!m->again)
    hk_incidents_sensors(m->incidents, maker_sensors(m));
  m->added = added;
  return m->shards;
}

/* --- settling ----------------------------------------------------------------------------------------------------------- */

static int by_position(const void *x, const void *y)
{
  const struct hk_settled_event *a = x, *b = y;
  return (a->position > b->position) - (a->position < b->position);
}

static void maker_decide(struct hk_incident_maker *m, int64_t time, uint64_t seen)
{
  m->pairs.n = m->merges.n = 0;
  m->before = hk_incidents_last(m->incidents);
  hk_feedback_apply(&m->feedback, m->incidents, seen);
  (void)hk_ticks_reach(m->ticks, time, seen);
  hk_incidents_expire(m->incidents, time);
  hk_merges_sort(m->merges.of, m->merges.n);
  hk_ticks_merged(m->ticks, m->merges.of, m->merges.n);
}

/* Logs a settling in as many records as needed: only the last of them has the basis of the decisions. */
static void log_settled(struct hk_incident_maker *m, int64_t time, uint64_t seen, uint64_t number)
{
  const uint64_t waits = hk_ticks_first(m->ticks), upto = waits > seen ? seen : waits - 1;
  struct hk_settled_event *of = m->pairs.of;
  uint32_t left = m->pairs.n;
  for (uint32_t i = 0; i < left; i++)
    of[i].incident = hk_merges_resolve(m->merges.of, m->merges.n, of[i].incident);
  if (left > 1)
    qsort(of, left, sizeof *of, by_position);
  for (; left > HK_SETTLED_MOST; of += HK_SETTLED_MOST, left -= HK_SETTLED_MOST) {
    const struct hk_logged_settled some = {
      seen, 0, INT64_MIN, number, m->before, m->a_day, maker_sensors(m), HK_SETTLED_MOST, (const uint8_t *)of
    };
    (void)hk_eventlog_append_settled(m->parts.events, &some);
  }
  const struct hk_logged_settled s = {
    seen, upto, time, number, m->before, m->a_day, maker_sensors(m), left, (const uint8_t *)of
  };
  if (hk_eventlog_append_settled(m->parts.events, &s) == 0)
    hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory to log what was settled");
}

/* Logs the waiting changes. */
static void log_pending(struct hk_incident_maker *m)
{
  for (const struct pending *p = m->first; p; p = p->next)
    if (hk_eventlog_append_incident(m->parts.events, &p->change) == 0)
      hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory to log one");
  drop_pending(m, UINT64_MAX);
}

void hk_maker_settle(struct hk_incident_maker *m, int64_t time)
{
  const uint64_t seen = m->cursor.next - 1, number = m->number;
  if (m->again)
    return;
  maker_decide(m, time, seen);
  if (m->pairs.n > 0 || m->first || m->fresh) {
    log_settled(m, time, seen, number);
    log_pending(m);
  }
  m->fresh = false;
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

/* To call between hk_registry_read and hk_registry_read_end. */
static void maker_take_event(void *arg, const struct hk_logged *l)
{
  struct hk_incident_maker *m = arg;
  struct hk_fleet_event e;
  m->fresh = true;
  if (!hk_fleet_event(m->parts.registry, m->match, l, &e))
    return;
  (void)hk_fleet_know(m->incidents, m->parts.registry, NULL, e.event.name);
  m->newest = e.event.time > m->newest ? e.event.time : m->newest;
  if (hk_ticks_event(m->ticks, &e.event) != 0)
    hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory for an alert; it joins no incident");
}

/* Repeats the decisions of a record. */
static void take_settled(void *arg, const struct hk_logged_settled *s, uint64_t position)
{
  struct hk_incident_maker *m = arg;
  if (position > m->ends || s->time == INT64_MIN)
    return;
  drop_pending(m, UINT64_MAX);
  m->number = s->number;
  hk_incidents_go_on(m->incidents, s->id);
  hk_incidents_budget(m->incidents, s->a_day);
  hk_incidents_sensors(m->incidents, s->sensors);
  maker_decide(m, s->time, s->seen);
  m->fresh = false;
}

/* Reads a mark of an incident. */
static void take_word(struct hk_incident_maker *m, const struct hk_logged_incident *i)
{
  const struct hk_feedback_said said = { .position = i->position,
                                         .incident = i->id,
                                         .rank = i->rank,
                                         .kind = i->kind - HANKEL_INCIDENT_EXPECTED + HK_FEEDBACK_EXPECTED,
                                         .sensors = i->sensors,
                                         .text = i->text };
  m->fresh = true;
  if (i->sensors.length == 0 || hk_feedback_put(&m->feedback, &said) != 0)
    hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory for feedback on one");
  else if (i->position > m->ends)
    hk_log(m->parts.log, HK_LOG_NOTICE, "incident: %.*s", (int)i->text.length, i->text.data);
}

static void take_change(void *arg, const struct hk_logged_incident *i)
{
  struct hk_incident_maker *m = arg;
  if (i->kind >= HANKEL_INCIDENT_EXPECTED) {
    take_word(m, i);
    return;
  }
  if (i->position <= m->ends) {
    drop_pending(m, i->number);
    m->number = i->number > m->number ? i->number : m->number;
    hk_incidents_go_on(m->incidents, i->id);
  } else if (i->told && i->kind != HANKEL_INCIDENT_CLOSED) {
    hk_log(m->parts.log, HK_LOG_NOTICE, "incident: %.*s", (int)i->text.length, i->text.data);
  }
}

/* The log from before the start is read: appends what it lacks. */
static void maker_go_on(struct hk_incident_maker *m)
{
  m->again = false;
  hk_incidents_budget(m->incidents, m->a_day);
  hk_incidents_sensors(m->incidents, maker_sensors(m));
  log_pending(m);
}

void hk_maker_lead(struct hk_incident_maker *m)
{
  m->ends = hk_eventlog_last(m->parts.events);
}

bool hk_maker_read(struct hk_incident_maker *m)
{
  static const struct hk_eventlog_visit visit = { .event = maker_take_event, .incident = take_change, .settled = take_settled };
  struct hk_eventlog *log = m->parts.events;
  const uint64_t shown = hk_eventlog_shown(log), before = m->cursor.next;
  if (m->cursor.next > hk_eventlog_last(log) + 1) /* of another log, or of one whose end is lost */
    m->cursor.next = hk_eventlog_last(log) + 1;
  for (uint32_t n = 1; n > 0;) {
    hk_registry_read(m->parts.registry);
    n = hk_eventlog_visit(log, &m->cursor, shown, PIECE, &visit, m);
    hk_registry_read_end(m->parts.registry);
  }
  if (m->again && m->cursor.next > m->ends)
    maker_go_on(m);
  return m->cursor.next != before;
}

/* --- feedback ----------------------------------------------------------------------------------------------------------- */

int hk_maker_feedback(struct hk_incident_maker *m, const struct hk_incident_word *word, uint64_t *position)
{
  return m->again && !hk_eventlog_shared(m->parts.events)
             ? -EAGAIN
             : hk_word_log(m->parts.events, m->incidents, &m->feedback, word, position);
}

void hk_maker_show_feedback(const struct hk_incident_maker *m, struct hk_buffer *out)
{
  hk_feedback_show(&m->feedback, out);
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

struct hk_maker_look hk_maker_look(const struct hk_incident_maker *m)
{
  return (struct hk_maker_look){
    hk_incidents_count(m->incidents), m->day, m->cursor.next - 1, m->newest, hk_ticks_waiting(m->ticks), m->fresh, m->again
  };
}

bool hk_maker_due(const struct hk_incident_maker *m, int64_t time)
{
  return m->fresh || hk_ticks_waiting(m->ticks) > 0 || hk_incidents_expired(m->incidents, time);
}

void hk_maker_show(const struct hk_incident_maker *m)
{
  hk_board_stand(m->parts.board, m->incidents, &m->day, &m->feedback);
}

/* --- state -------------------------------------------------------------------------------------------------------------- */

struct header {
  char magic[8];
  uint64_t size, checksum;                    /* of the data after it */
  uint64_t position, number, feedback, ticks; /* the latter two: bytes */
  struct hk_incident_day day;
};
static const char magic[8] = "HKINC 3\n";

void hk_maker_write(const struct hk_incident_maker *m, struct hk_buffer *out)
{
  const size_t begin = out->size;
  struct header header = { .position = m->cursor.next, .number = m->number, .day = m->day };
  memcpy(header.magic, magic, sizeof magic);
  hk_buffer_put(out, (const char *)&header, sizeof header);
  hk_feedback_write(&m->feedback, out);
  header.feedback = out->size - begin - sizeof header;
  hk_ticks_write(m->ticks, out);
  header.ticks = out->size - begin - sizeof header - header.feedback;
  hk_incidents_write(m->incidents, out);
  if (out->failed)
    return;
  header.size = out->size - begin - sizeof header;
  header.checksum = XXH3_64bits(out->data + begin + sizeof header, header.size);
  memcpy(out->data + begin, &header, sizeof header);
}

int hk_maker_take(struct hk_incident_maker *m, const char *image, size_t size)
{
  struct header header;
  if (size < sizeof header)
    return -EBADMSG;
  memcpy(&header, image, sizeof header);
  image += sizeof header;
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.size != size - sizeof header || header.feedback > header.size ||
      header.ticks > header.size - header.feedback || XXH3_64bits(image, header.size) != header.checksum)
    return -EBADMSG;
  const char *ticks = image + header.feedback, *all = ticks + header.ticks;
  int status = hk_feedback_read(&m->feedback, image, header.feedback) == header.feedback ? 0 : -EBADMSG;
  if (status == 0)
    status = hk_incidents_read(m->incidents, all, header.size - header.feedback - header.ticks);
  if (status == 0)
    status = hk_ticks_read(m->ticks, ticks, header.ticks);
  m->cursor = (struct hk_eventlog_cursor){ .next = header.position };
  m->number = header.number;
  m->day = header.day;
  m->newest = hk_ticks_newest(m->ticks);
  return status;
}
