/* Numbers are in the machine's byte order, little-endian. */
#include "daemon/durable/event_records.h"

#include "proto/wire/name.h"

#include <math.h>
#include <string.h>

/* --- events ------------------------------------------------------------------------------------------------------------- */

/* The name, `by`, the note, and how far the data were follow. */
struct payload {
  uint64_t sequence;
  uint32_t handle, number;
  int64_t time, from, instant;
  double before, after;
  float score, margin;
  float spread_before, spread_after;
  uint32_t held;
  uint16_t name; /* bytes */
  uint8_t by;    /* bytes */
  uint8_t kind, channel, marks;
  uint8_t note; /* bytes: the whole novelty note, or none */
  uint8_t late; /* bytes: how far the data were if that is later than its time, else none; so in logs from before it existed */
  float likeness;
  int64_t similar_from;
  uint32_t similar;
  float severity; /* 0 in logs from before it existed */
};
_Static_assert(sizeof(struct payload) == 104, "no padding");
_Static_assert(sizeof(struct hk_novelty_note) == 40, "no padding");
_Static_assert(sizeof(struct payload) == HK_LOGGED_LEAST, "as the header says");

void hk_logged_view(const uint8_t *data, struct hk_logged *out)
{
  struct payload p;
  memcpy(&p, data, sizeof p);
  *out = (struct hk_logged){ .sequence = p.sequence,
                             .handle = p.handle,
                             .name = { (const char *)data + sizeof p, p.name },
                             .by = { (const char *)data + sizeof p + p.name, p.by },
                             .event = { .index = UINT32_MAX,
                                        .number = p.number,
                                        .kind = p.kind,
                                        .channel = p.channel,
                                        .marks = p.marks,
                                        .time = p.time,
                                        .from = p.from,
                                        .instant = p.instant,
                                        .score = p.score,
                                        .margin = p.margin,
                                        .before = p.before,
                                        .after = p.after,
                                        .spread_before = p.spread_before,
                                        .spread_after = p.spread_after,
                                        .held = p.held,
                                        .similar = p.similar,
                                        .similar_from = p.similar_from,
                                        .likeness = p.likeness,
                                        .severity = p.severity } };
  if (p.note == sizeof out->event.novelty)
    memcpy(&out->event.novelty, data + sizeof p + p.name + p.by, p.note);
  if (p.late == sizeof out->reached)
    memcpy(&out->reached, data + sizeof p + p.name + p.by + p.note, p.late);
}

bool hk_eventlog_takes(uint8_t kind)
{
  return (kind >= HK_EVENT_RAISED && kind <= HK_EVENT_CLEARED) || kind == HK_EVENT_FLAPPING || kind == HK_EVENT_ACKNOWLEDGED;
}

bool hk_logged_read(const uint8_t *data, size_t size, struct hk_logged *out)
{
  struct payload p;
  if (size < sizeof p)
    return false;
  memcpy(&p, data, sizeof p);
  if (size != sizeof p + p.name + p.by + p.note + p.late || (p.note != 0 && p.note != sizeof(struct hk_novelty_note)) ||
      (p.late != 0 && p.late != sizeof out->reached))
    return false;
  hk_logged_view(data, out);
  return hk_name_valid(out->name.data, out->name.length) && out->by.length <= HK_WHO_MAX &&
         (out->by.length == 0 || hk_name_valid(out->by.data, out->by.length)) && hk_eventlog_takes(out->event.kind);
}

static size_t note_size(const struct hk_event *e)
{
  return e->novelty.channel != 0 ? sizeof e->novelty : 0;
}

static size_t late_size(const struct hk_logged *l)
{
  return l->reached > l->event.time ? sizeof l->reached : 0;
}

size_t hk_logged_size(const struct hk_logged *l)
{
  return sizeof(struct payload) + l->name.length + l->by.length + note_size(&l->event) + late_size(l);
}

void hk_logged_write(const struct hk_logged *l, uint8_t *data)
{
  const struct hk_event *e = &l->event;
  const struct payload p = { .sequence = l->sequence,
                             .handle = l->handle,
                             .number = e->number,
                             .time = e->time,
                             .from = e->from,
                             .instant = e->instant,
                             .before = e->before,
                             .after = e->after,
                             .score = e->score,
                             .margin = e->margin,
                             .spread_before = e->spread_before,
                             .spread_after = e->spread_after,
                             .held = e->held,
                             .name = (uint16_t)l->name.length,
                             .by = (uint8_t)l->by.length,
                             .kind = e->kind,
                             .channel = e->channel,
                             .marks = e->marks,
                             .note = (uint8_t)note_size(e),
                             .late = (uint8_t)late_size(l),
                             .similar = e->similar,
                             .similar_from = e->similar_from,
                             .likeness = e->likeness,
                             .severity = e->severity };
  memcpy(data, &p, sizeof p);
  memcpy(data + sizeof p, l->name.data, l->name.length);
  memcpy(data + sizeof p + l->name.length, l->by.data, l->by.length);
  uint8_t *note = data + sizeof p + l->name.length + l->by.length;
  memcpy(note, &e->novelty, p.note);
  memcpy(note + p.note, &l->reached, p.late);
}

/* Returns the place after it. */
static uint8_t *event_records_put(uint8_t *at, struct hk_string s)
{
  if (s.length > 0)
    memcpy(at, s.data, s.length);
  return at + s.length;
}

/* --- incidents ---------------------------------------------------------------------------------------------------------- */

/* The text, the object of JSON, the sensors, and the section's name follow. */
struct change {
  uint64_t number, id, into;
  int64_t time, since;
  double rank, severity;
  uint32_t count, text, about, sensors; /* bytes, except count */
  uint8_t kind, told, section, zero[5];
};
_Static_assert(sizeof(struct change) == 80, "no padding");

size_t hk_logged_incident_size(const struct hk_logged_incident *i)
{
  return sizeof(struct change) + i->text.length + i->about.length + i->sensors.length + i->section.length;
}

void hk_logged_incident_write(const struct hk_logged_incident *i, uint8_t *data)
{
  const struct change c = { .number = i->number,
                            .id = i->id,
                            .into = i->into,
                            .time = i->time,
                            .since = i->since,
                            .rank = i->rank,
                            .severity = i->severity,
                            .count = i->count,
                            .text = (uint32_t)i->text.length,
                            .about = (uint32_t)i->about.length,
                            .sensors = (uint32_t)i->sensors.length,
                            .kind = i->kind,
                            .told = i->told,
                            .section = (uint8_t)i->section.length };
  memcpy(data, &c, sizeof c);
  uint8_t *at = event_records_put(event_records_put(data + sizeof c, i->text), i->about);
  (void)event_records_put(event_records_put(at, i->sensors), i->section);
}

static bool event_records_section_valid(struct hk_string s)
{
  return s.length == 0 || hk_name_valid(s.data, s.length);
}

/* Names, each followed by a 0. */
static bool event_records_names_valid(struct hk_string s)
{
  for (size_t at = 0; at < s.length;) {
    const char *end = memchr(s.data + at, 0, s.length - at);
    if (!end || !hk_name_valid(s.data + at, (size_t)(end - s.data) - at))
      return false;
    at = (size_t)(end - s.data) + 1;
  }
  return true;
}

void hk_logged_incident_view(const uint8_t *data, struct hk_logged_incident *out)
{
  struct change c;
  memcpy(&c, data, sizeof c);
  const char *text = (const char *)data + sizeof c;
  *out = (struct hk_logged_incident){ .number = c.number,
                                      .id = c.id,
                                      .into = c.into,
                                      .time = c.time,
                                      .since = c.since,
                                      .rank = c.rank,
                                      .severity = c.severity,
                                      .count = c.count,
                                      .kind = c.kind,
                                      .told = c.told,
                                      .text = { text, c.text },
                                      .about = { text + c.text, c.about },
                                      .sensors = { text + c.text + c.about, c.sensors },
                                      .section = { text + c.text + c.about + c.sensors, c.section } };
}

bool hk_logged_incident_read(const uint8_t *data, size_t size, struct hk_logged_incident *out)
{
  struct change c;
  if (size < sizeof c || size > HK_LOGGED_INCIDENT_MOST)
    return false;
  memcpy(&c, data, sizeof c);
  if (size != sizeof c + (uint64_t)c.text + c.about + c.sensors + c.section || c.section > HK_SECTION_MOST ||
      c.kind < HANKEL_INCIDENT_TOLD || c.kind > HANKEL_INCIDENT_UNDONE || c.told > 1 || c.id == 0 || !isfinite(c.rank) ||
      !isfinite(c.severity))
    return false;
  hk_logged_incident_view(data, out);
  return hk_name_piece_valid(out->text.data, c.text, NULL) && hk_name_piece_valid(out->about.data, c.about, NULL) &&
         event_records_names_valid(out->sensors) && event_records_section_valid(out->section);
}

/* --- what was settled --------------------------------------------------------------------------------------------------- */

/* The events, and the section's name, follow, the latter with zeros up to a multiple of 8: a reader knows no other end. */
struct settled {
  uint64_t seen, upto;
  int64_t time;
  uint64_t number, id;
  double a_day;
  uint32_t sensors, n;
};
_Static_assert(sizeof(struct settled) == HK_SETTLED_LEAST && sizeof(struct hk_settled_event) == 16, "no padding");

size_t hk_logged_settled_size(const struct hk_logged_settled *s)
{
  return sizeof(struct settled) + (size_t)s->n * sizeof(struct hk_settled_event) + (s->section.length + 7) / 8 * 8;
}

void hk_logged_settled_write(const struct hk_logged_settled *s, uint8_t *data)
{
  const struct settled head = { s->seen, s->upto, s->time, s->number, s->id, s->a_day, s->sensors, s->n };
  memcpy(data, &head, sizeof head);
  const struct hk_string events = { (const char *)s->events, (size_t)s->n * sizeof(struct hk_settled_event) };
  uint8_t *section = event_records_put(data + sizeof head, events);
  memset(section, 0, (s->section.length + 7) / 8 * 8);
  (void)event_records_put(section, s->section);
}

bool hk_logged_settled_read(const uint8_t *data, size_t size, struct hk_logged_settled *out)
{
  struct settled s;
  if (size < sizeof s)
    return false;
  memcpy(&s, data, sizeof s);
  const uint64_t before = sizeof s + (uint64_t)s.n * sizeof(struct hk_settled_event); /* the section */
  if (size < before || size - before > HK_SECTION_MOST + 1 || (size - before) % 8 != 0 || !isfinite(s.a_day) || s.a_day < 0 ||
      s.upto > s.seen)
    return false;
  const char *name = (const char *)data + before;
  const struct hk_string section = { name, strnlen(name, size - before) };
  bool good = (section.length + 7) / 8 * 8 == size - before && event_records_section_valid(section);
  for (size_t i = section.length; i < size - before; i++)
    good &= name[i] == 0;
  *out = (struct hk_logged_settled){ s.seen, s.upto, s.time, s.number, s.id, s.a_day, s.sensors, s.n, data + sizeof s, section };
  uint64_t last = 0;
  for (uint32_t i = 0; i < s.n; i++) {
    const struct hk_settled_event e = hk_settled_at(out, i);
    if (e.position <= last || e.position > s.seen)
      return false;
    last = e.position;
  }
  return good;
}

/* --- operations --------------------------------------------------------------------------------------------------------- */

/* The subject, `by`, and the text follow. */
struct operation {
  int64_t time, until;
  uint32_t kind, subject, by, text; /* bytes, except kind */
  uint64_t zero[3];                 /* since no record of the log is shorter than HK_SETTLED_LEAST */
};
_Static_assert(sizeof(struct operation) == HK_SETTLED_LEAST, "no padding");

size_t hk_logged_operation_size(const struct hk_logged_operation *o)
{
  return sizeof(struct operation) + o->subject.length + o->by.length + o->text.length;
}

void hk_logged_operation_write(const struct hk_logged_operation *o, uint8_t *data)
{
  const struct operation head = {
    o->time, o->until, o->kind, (uint32_t)o->subject.length, (uint32_t)o->by.length, (uint32_t)o->text.length, { 0 }
  };
  memcpy(data, &head, sizeof head);
  (void)event_records_put(event_records_put(event_records_put(data + sizeof head, o->subject), o->by), o->text);
}

void hk_logged_operation_view(const uint8_t *data, struct hk_logged_operation *out)
{
  struct operation o;
  memcpy(&o, data, sizeof o);
  const char *subject = (const char *)data + sizeof o;
  *out = (struct hk_logged_operation){ .time = o.time,
                                       .until = o.until,
                                       .kind = o.kind,
                                       .subject = { subject, o.subject },
                                       .by = { subject + o.subject, o.by },
                                       .text = { subject + o.subject + o.by, o.text } };
}

bool hk_logged_operation_read(const uint8_t *data, size_t size, struct hk_logged_operation *out)
{
  struct operation o;
  if (size < sizeof o)
    return false;
  memcpy(&o, data, sizeof o);
  if (size != sizeof o + (uint64_t)o.subject + o.by + o.text || o.kind < HK_LOGGED_MAINTENANCE ||
      o.kind > HK_LOGGED_RELOAD_REFUSED)
    return false;
  hk_logged_operation_view(data, out);
  return hk_name_piece_valid(out->subject.data, o.subject, NULL) && hk_name_piece_valid(out->by.data, o.by, NULL) &&
         hk_name_piece_valid(out->text.data, o.text, NULL);
}

bool hk_log_record_valid(uint32_t type, const uint8_t *payload, size_t size)
{
  struct hk_logged event;
  struct hk_logged_incident incident;
  struct hk_logged_settled settled;
  struct hk_logged_operation operation;
  switch (type) {
  case HK_RECORD_EVENT:
    return hk_logged_read(payload, size, &event);
  case HK_RECORD_INCIDENT:
    return hk_logged_incident_read(payload, size, &incident);
  case HK_RECORD_SETTLED:
    return hk_logged_settled_read(payload, size, &settled);
  case HK_RECORD_OPERATION:
    return hk_logged_operation_read(payload, size, &operation);
  default:
    return false;
  }
}
