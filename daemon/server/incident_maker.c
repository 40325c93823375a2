#include "daemon/server/incident_maker.h"

#include "daemon/incidents/incidents_image.h"
#include "daemon/sensors/companions.h"
#include "daemon/server/incident_fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define PIECE 256 /* records, or names, processed at a time */

struct hk_incident_maker {
  const struct hk_incidents_sections *rules;
  struct hk_maker_parts parts;
  struct hk_incident_section *section[HK_SECTIONS_MOST]; /* in the order of the configuration; then those that are gone */
  uint32_t n;
  uint64_t id; /* of the last incident of any section */
  struct hk_eventlog_cursor cursor;
  uint64_t ends;   /* of the log at the start: up to here former decisions are repeated */
  bool again;      /* it is repeating them */
  uint64_t added;  /* sensors added to the registry when their names were last learned */
  uint32_t held;   /* number of all that it had then: fewer are left when a partition goes to another machine */
  uint64_t shards; /* shards with sensors, a bit each */
  int64_t newest;  /* ns, time of data */
  bool fresh;
};

/* --- life --------------------------------------------------------------------------------------------------------------- */

int hk_maker_new(struct hk_incident_maker **out, const struct hk_incidents_sections *rules, const struct hk_maker_parts *parts)
{
  struct hk_incident_maker *m = calloc(1, sizeof *m);
  if (!m)
    return -ENOMEM;
  m->rules = rules;
  m->parts = *parts;
  m->added = UINT64_MAX;
  m->newest = INT64_MIN;
  m->cursor.next = hk_eventlog_first(parts->events);
  m->ends = hk_eventlog_shared(parts->events) ? UINT64_MAX : hk_eventlog_last(parts->events);
  m->again = true;
  int status = 0;
  for (; status == 0 && m->n < rules->n; m->n += status == 0)
    status = hk_section_new(&m->section[m->n], &rules->of[m->n], parts);
  if (status != 0)
    hk_maker_free(m);
  else
    *out = m;
  return status;
}

void hk_maker_free(struct hk_incident_maker *m)
{
  if (!m)
    return;
  for (uint32_t i = 0; i < HK_SECTIONS_MOST; i++)
    hk_section_free(m->section[i]);
  free(m);
}

void hk_maker_budget(struct hk_incident_maker *m, uint32_t section, double a_day)
{
  m->section[section]->rule.a_day = a_day;
  if (!m->again)
    hk_section_go_on(m->section[section]);
}

const struct hk_incident_section *hk_maker_section(const struct hk_incident_maker *m, uint32_t section)
{
  return section < m->n ? m->section[section] : NULL;
}

/* The number of the section that has a sensor; -1: none has it. */
static int maker_section_of(const struct hk_incident_maker *m, struct hk_string name)
{
  for (uint32_t i = 0; i < m->n; i++)
    if (hk_section_takes(m->section[i], name))
      return (int)i;
  return -1;
}

/* The section of a record. NULL: the configuration no longer has it. */
static struct hk_incident_section *maker_named(const struct hk_incident_maker *m, struct hk_string name)
{
  for (uint32_t i = 0; i < m->n; i++) {
    const struct hk_string its = hk_section_name(m->section[i]);
    if (its.length == name.length && memcmp(its.data, name.data, name.length) == 0)
      return m->section[i];
  }
  return NULL;
}

/* --- names -------------------------------------------------------------------------------------------------------------- */

int hk_maker_learn_distant(struct hk_incident_maker *m, struct hk_string name)
{
  const int of = name.length == 0 || name.length > HK_NAME_MAX ? -1 : maker_section_of(m, name);
  if (of < 0)
    return -1;
  hk_registry_read(m->parts.registry);
  hk_fleet_know(m->section[of]->incidents, m->parts.registry, name);
  hk_registry_read_end(m->parts.registry);
  return of;
}

void hk_maker_count_distant(struct hk_incident_maker *m, uint32_t section, uint32_t sensors, bool here)
{
  m->section[section]->distant = sensors;
  m->section[section]->counted = !here;
  if (!m->again)
    hk_section_go_on(m->section[section]);
}

/* Between hk_registry_read and hk_registry_read_end. */
static void learn_slot(struct hk_incident_maker *m, uint32_t slot, uint32_t shards)
{
  struct hk_registry *registry = m->parts.registry;
  if (!hk_registry_holds(registry, slot))
    return;
  m->shards |= UINT64_C(1) << slot % shards;
  if (hk_registry_derived(registry, slot)) /* only sensors that are no companions count as scored */
    return;
  const struct hk_string name = hk_registry_name(registry, slot);
  const int of = maker_section_of(m, name);
  if (of < 0)
    return;
  hk_fleet_know(m->section[of]->incidents, registry, name);
  m->section[of]->sensors++;
}

uint64_t hk_maker_learn(struct hk_incident_maker *m, uint32_t shards)
{
  struct hk_registry *registry = m->parts.registry;
  const uint64_t added = hk_registry_added(registry);
  const uint32_t slots = hk_registry_slots(registry), held = hk_registry_count(registry);
  if (added == m->added && held == m->held)
    return m->shards;
  for (uint32_t i = 0; i < m->n; i++)
    m->section[i]->sensors = 0;
  for (uint32_t slot = 0; slot < slots;) {
    hk_registry_read(registry);
    for (const uint32_t end = slot + PIECE; slot < end && slot < slots; slot++)
      learn_slot(m, slot, shards);
    hk_registry_read_end(registry);
  }
  for (uint32_t i = 0; !m->again && i < m->n; i++)
    hk_section_go_on(m->section[i]);
  m->added = added;
  m->held = held;
  return m->shards;
}

/* --- settling ----------------------------------------------------------------------------------------------------------- */

void hk_maker_settle(struct hk_incident_maker *m, int64_t time, int64_t ends)
{
  const uint64_t seen = m->cursor.next - 1;
  uint64_t upto = seen;
  struct hk_incident_section *last = m->fresh ? m->section[0] : NULL; /* of those that log something */
  if (m->again)
    return;
  for (uint32_t i = 0; i < m->n; i++) {
    hk_section_decide(m->section[i], time, seen, &m->id);
    if (ends != 0)
      hk_section_end(m->section[i], ends);
    const uint64_t waits = hk_ticks_first(m->section[i]->ticks);
    upto = waits > upto ? upto : waits - 1;
    last = hk_section_says(m->section[i]) ? m->section[i] : last;
  }
  for (uint32_t i = 0; i < m->n; i++)
    if (m->section[i] == last || hk_section_says(m->section[i]))
      hk_section_settled(m->section[i], time, seen, m->section[i] == last ? upto : 0);
  for (uint32_t i = 0; i < m->n; i++)
    hk_section_log(m->section[i]);
  m->fresh = false;
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

/* To call between hk_registry_read and hk_registry_read_end. */
static void maker_take_event(void *arg, const struct hk_logged *l)
{
  struct hk_incident_maker *m = arg;
  struct hk_fleet_event e;
  m->fresh = true;
  const int of = hk_fleet_event(m->parts.registry, l, &e) ? maker_section_of(m, e.event.name) : -1;
  if (of < 0)
    return;
  hk_fleet_know(m->section[of]->incidents, m->parts.registry, e.event.name);
  m->newest = e.event.time > m->newest ? e.event.time : m->newest;
  hk_section_take(m->section[of], &e.event);
}

static int before_pair(const void *position, const void *pair)
{
  struct hk_settled_event e;
  memcpy(&e, pair, sizeof e);
  return (*(const uint64_t *)position > e.position) - (*(const uint64_t *)position < e.position);
}

/* Whether a record has an incident of an event. */
static bool settled_has(void *arg, uint64_t position)
{
  const struct hk_logged_settled *s = arg;
  return s->n > 0 && bsearch(&position, s->events, s->n, sizeof(struct hk_settled_event), before_pair) != NULL;
}

/* The events of a record are those of its section, whichever has their sensors now. */
static void pass_events(struct hk_incident_maker *m, struct hk_incident_section *of, const struct hk_logged_settled *s)
{
  struct hk_logged_settled record = *s;
  for (uint32_t i = 0; i < m->n; i++)
    if (m->section[i] != of && !hk_ticks_pass(m->section[i]->ticks, of->ticks, settled_has, &record))
      hk_log(m->parts.log, HK_LOG_WARNING, "incidents: no memory for an alert; it joins no incident");
}

static uint64_t settled_last(const struct hk_logged_settled *s)
{
  uint64_t last = s->id;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint64_t incident = hk_settled_at(s, i).incident;
    last = incident > last ? incident : last;
  }
  return last;
}

/* Repeats the decisions of a record. What a section that is gone has judged, or one that had other sensors, is judged. No number
 * of an incident is given again, also where fewer incidents begin than in the record. */
static void take_settled(void *arg, const struct hk_logged_settled *s, uint64_t position)
{
  struct hk_incident_maker *m = arg;
  struct hk_incident_section *of = maker_named(m, s->section);
  if (position > m->ends)
    return;
  const uint64_t its = settled_last(s), most = its > m->id ? its : m->id;
  if (of)
    pass_events(m, of, s);
  if (of && s->time != INT64_MIN)
    hk_section_repeat(of, s, &m->id);
  m->id = most > m->id ? most : m->id;
  for (uint32_t i = 0; s->upto > 0 && i < m->n; i++)
    hk_ticks_drop(m->section[i]->ticks, s->upto);
  if (s->upto > 0) /* the last record of a settling: until it is there, the others are not judged */
    m->fresh = false;
}

static void take_change(void *arg, const struct hk_logged_incident *i)
{
  struct hk_incident_maker *m = arg;
  struct hk_incident_section *of = maker_named(m, i->section);
  const bool marks = i->kind >= HANKEL_INCIDENT_EXPECTED, former = i->position <= m->ends;
  if (marks) {
    m->fresh = true;
    if (of)
      hk_section_mark(of, i);
  } else if (former) {
    m->id = i->id > m->id ? i->id : m->id;
    if (of)
      hk_section_repeated(of, i);
  }
  if (!former && (marks || (i->told && i->kind != HANKEL_INCIDENT_CLOSED)))
    hk_log(m->parts.log, HK_LOG_NOTICE, "incident: %.*s", (int)i->text.length, i->text.data);
}

/* The log from before the start is read: appends what it lacks. */
static void maker_go_on(struct hk_incident_maker *m)
{
  m->again = false;
  for (uint32_t i = 0; i < m->n; i++) {
    const uint64_t last = hk_incidents_last(m->section[i]->incidents);
    m->id = last > m->id ? last : m->id;
    hk_section_go_on(m->section[i]);
    hk_section_log(m->section[i]);
  }
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

/* gone: also those that the configuration no longer has; they are the last. */
static uint32_t maker_fleets(const struct hk_incident_maker *m, struct hk_incident_fleet fleets[HK_SECTIONS_MOST], bool gone)
{
  uint32_t n = 0;
  for (; n < m->n && (gone || !m->section[n]->gone); n++)
    fleets[n] = hk_section_fleet(m->section[n]);
  return n;
}

int hk_maker_feedback(struct hk_incident_maker *m, const struct hk_incident_word *word, uint64_t *position)
{
  struct hk_incident_fleet fleets[HK_SECTIONS_MOST];
  return m->again && !hk_eventlog_shared(m->parts.events)
             ? -EAGAIN
             : hk_word_log(m->parts.events, fleets, maker_fleets(m, fleets, false), word, position);
}

void hk_maker_show_feedback(const struct hk_incident_maker *m, struct hk_buffer *out)
{
  const size_t begin = out->size;
  for (uint32_t i = 0; i < m->n && !m->section[i]->gone; i++) {
    const size_t before = out->size;
    hk_buffer_put(out, ",", before > begin);
    const size_t mark = out->size;
    hk_feedback_show(&m->section[i]->feedback, out);
    out->size = out->size == mark ? before : out->size;
  }
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

struct hk_maker_look hk_maker_look(const struct hk_incident_maker *m)
{
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < m->n; i++)
    waiting += hk_ticks_waiting(m->section[i]->ticks);
  return (struct hk_maker_look){ m->cursor.next - 1, m->newest, waiting, m->fresh, m->again };
}

bool hk_maker_due(const struct hk_incident_maker *m, bool ticks, int64_t ends)
{
  bool due = ticks && m->fresh;
  for (uint32_t i = 0; !due && i < m->n; i++)
    due = (ticks && hk_ticks_waiting(m->section[i]->ticks) > 0) || (ends != 0 && hk_section_ends(m->section[i], ends));
  return due;
}

void hk_maker_show(const struct hk_incident_maker *m)
{
  struct hk_incident_fleet fleets[HK_SECTIONS_MOST];
  hk_board_stand(m->parts.board, fleets, maker_fleets(m, fleets, true));
}

/* --- state -------------------------------------------------------------------------------------------------------------- */

struct header {
  char magic[8];
  uint64_t size, checksum; /* of the data after it */
  uint64_t position, id;   /* of the next record; of the last incident */
};
static const char magic[8] = "HKINC 4\n";

void hk_maker_write(const struct hk_incident_maker *m, struct hk_buffer *out)
{
  const size_t begin = out->size;
  struct header header = { .position = m->cursor.next, .id = m->id };
  memcpy(header.magic, magic, sizeof magic);
  hk_buffer_put(out, (const char *)&header, sizeof header);
  for (uint32_t i = 0; i < m->n; i++)
    if (!m->section[i]->gone || hk_incidents_count(m->section[i]->incidents).open > 0)
      hk_section_write(m->section[i], out);
  if (out->failed)
    return;
  header.size = out->size - begin - sizeof header;
  header.checksum = XXH3_64bits(out->data + begin + sizeof header, header.size);
  memcpy(out->data + begin, &header, sizeof header);
}

/* Puts a restored section into its place, which it returns. */
static uint32_t maker_put(struct hk_incident_maker *m, struct hk_incident_section *s)
{
  uint32_t i = 0;
  while (i < m->rules->n && (s->gone || strcmp(m->rules->of[i].name, s->rule.name) != 0))
    i++;
  if (i == m->rules->n)
    i = m->n < HK_SECTIONS_MOST ? m->n++ : m->n - 1; /* the last that is gone makes room */
  hk_section_free(m->section[i]);
  m->section[i] = s;
  const int64_t newest = hk_ticks_newest(s->ticks);
  m->newest = newest > m->newest ? newest : m->newest;
  return i;
}

/* Logs which sections come and go, since the one loses, and the other has not learned yet, how often its sensors raise alerts.
 * known: a bit for each place that was restored. */
static void tell_sections(const struct hk_incident_maker *m, uint64_t known)
{
  for (uint32_t i = 0; i < m->n; i++) {
    const struct hk_incident_section *s = m->section[i];
    const char *name = s->rule.name, *space = name[0] ? " " : "";
    if (s->gone)
      hk_log(m->parts.log, HK_LOG_NOTICE,
             "[incidents%s%s] is gone: its open incidents (%u) end, and what was said of its incidents no longer holds", space,
             name, hk_incidents_count(s->incidents).open);
    else if (!(known >> i & 1))
      hk_log(m->parts.log, HK_LOG_NOTICE, "[incidents%s%s] is new: it begins to learn how often its sensors raise alerts", space,
             name);
  }
}

/* A file of before there were several sections. */
struct old_header {
  char magic[8];
  uint64_t size, checksum, position, number, length[2]; /* the last two: bytes of marks and waiting events */
  struct hk_incident_day day;
};
static const char old_magic[8] = "HKINC 3\n";

static int take_old(struct hk_incident_maker *m, const char *image, size_t size)
{
  struct old_header h;
  struct hk_incident_section *s;
  if (size < sizeof h)
    return -EBADMSG;
  memcpy(&h, image, sizeof h);
  image += sizeof h;
  if (memcmp(h.magic, old_magic, sizeof old_magic) != 0 || h.size != size - sizeof h || h.length[0] > h.size ||
      h.length[1] > h.size - h.length[0] || XXH3_64bits(image, h.size) != h.checksum)
    return -EBADMSG;
  const uint64_t lengths[3] = { h.length[0], h.length[1], h.size - h.length[0] - h.length[1] };
  const int status = hk_section_restore(&s, m->rules, &m->parts, "", image, lengths);
  if (status != 0)
    return status;
  s->number = h.number;
  s->day = h.day;
  tell_sections(m, UINT64_C(1) << maker_put(m, s));
  m->id = hk_incidents_last(s->incidents);
  m->cursor = (struct hk_eventlog_cursor){ .next = h.position };
  return 0;
}

int hk_maker_take(struct hk_incident_maker *m, const char *image, size_t size)
{
  struct header h;
  uint64_t known = 0;
  int status = 0;
  if (size < sizeof h)
    return -EBADMSG;
  memcpy(&h, image, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0)
    return take_old(m, image, size);
  image += sizeof h;
  if (h.size != size - sizeof h || XXH3_64bits(image, h.size) != h.checksum)
    return -EBADMSG;
  for (size_t n, left = h.size; left > 0; image += n, left -= n) {
    struct hk_incident_section *s;
    n = hk_section_read(&s, m->rules, &m->parts, image, left, &status);
    if (n == 0)
      return status;
    known |= UINT64_C(1) << maker_put(m, s);
  }
  tell_sections(m, known);
  m->id = h.id;
  m->cursor = (struct hk_eventlog_cursor){ .next = h.position };
  return 0;
}
