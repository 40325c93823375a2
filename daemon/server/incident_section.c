/* A change is completed when it is decided, and waits until it is logged, or found in the log. */
#include "daemon/server/incident_section.h"

#include "daemon/base/grow.h"
#include "daemon/incidents/incident_text.h"
#include "daemon/incidents/incidents_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HK_INCIDENTS_LATE == HK_INCIDENT_WINDOW, "events say how far the data were where incidents look at it");

/* A change that is not logged yet; its bytes are a payload. */
struct hk_pending_change {
  struct hk_pending_change *next;
  uint64_t number;
  struct hk_logged_incident change; /* strings are views of: */
  char text[];
};

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

static uint8_t section_kind_of(enum hk_incident_decision decision, const struct hk_incident *i)
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

static void log_later(struct hk_incident_section *s, const struct hk_incident_news *news)
{
  const struct hk_incident *i = news->incident;
  struct hk_buffer text = { 0 };
  hk_incident_sentence(&text, news);
  const size_t about = text.size;
  hk_incident_json(&text, news);
  text.size -= text.size > 0; /* the line feed */
  const size_t sensors = text.size;
  hk_incident_sensors(&text, news->into ? news->into : i);
  struct hk_pending_change *p = text.failed ? NULL : malloc(sizeof *p + text.size);
  s->number++;
  if (p) {
    memcpy(p->text, text.data, text.size);
    p->next = NULL;
    p->number = s->number;
    p->change = (struct hk_logged_incident){ .number = s->number,
                                             .id = i->id,
                                             .into = news->into ? news->into->id : 0,
                                             .time = news->time,
                                             .since = i->open,
                                             .rank = i->R,
                                             .severity = i->S,
                                             .count = i->n,
                                             .kind = section_kind_of(news->decision, i),
                                             .told = i->told,
                                             .section = hk_section_name(s),
                                             .text = { p->text, about },
                                             .about = { p->text + about, sensors - about },
                                             .sensors = { p->text + sensors, text.size - sensors } };
    *s->last = p;
    s->last = &p->next;
  } else {
    hk_log(s->parts.log, HK_LOG_WARNING, "incidents: no memory to report one");
  }
  hk_buffer_free(&text);
}

static void section_decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                            const struct hk_incident *into, double threshold)
{
  struct hk_incident_section *s = arg;
  const struct hk_incident_news news = { s->incidents, incident, into, &s->day, time, threshold, decision, hk_section_name(s) };
  hk_incident_day_count(&s->day, time, decision, incident);
  if (decision == HK_INCIDENT_CLOSED)
    hk_board_over(s->parts.board, &news);
  if (into) {
    struct hk_incident_merge *of = hk_grow(s->merges.of, s->merges.n, &s->merges.room, sizeof *of, 64);
    if (!of)
      return;
    s->merges.of = of;
    s->merges.of[s->merges.n++] = (struct hk_incident_merge){ incident->id, into->id };
  }
  if (decision != HK_INCIDENT_ABSORBED || incident->id <= s->before) /* else it was not published yet */
    log_later(s, &news);
}

static void section_joined(void *arg, uint64_t position, uint64_t incident)
{
  struct hk_incident_section *s = arg;
  struct hk_settled_event *of = hk_grow(s->pairs.of, s->pairs.n, &s->pairs.room, sizeof *of, 64);
  if (!of)
    return;
  s->pairs.of = of;
  s->pairs.of[s->pairs.n++] = (struct hk_settled_event){ position, incident };
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

int hk_section_new(struct hk_incident_section **out, const struct hk_incidents_rule *rule, const struct hk_maker_parts *parts)
{
  const struct hk_incidents_rules rules = { .a_day = rule->a_day, .interval = rule->interval, .most_members = rule->members };
  struct hk_incident_section *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->parts = *parts;
  s->rule = *rule;
  s->last = &s->first;
  int status = rule->match[0] ? hk_glob_new(&s->match, rule->match, strlen(rule->match)) : 0;
  if (status == 0)
    status = hk_incidents_new(&s->incidents, &rules, section_decided, s);
  if (status == 0)
    status = hk_ticks_new(&s->ticks, s->incidents, section_joined, s);
  if (status != 0)
    hk_section_free(s);
  else
    *out = s;
  return status;
}

/* Changes up to a number are in the log. */
static void drop_pending(struct hk_incident_section *s, uint64_t number)
{
  while (s->first && s->first->number <= number) {
    struct hk_pending_change *p = s->first;
    s->first = p->next;
    free(p);
  }
  if (!s->first)
    s->last = &s->first;
}

void hk_section_free(struct hk_incident_section *s)
{
  if (!s)
    return;
  drop_pending(s, UINT64_MAX);
  hk_ticks_free(s->ticks);
  hk_incidents_free(s->incidents);
  hk_glob_free(s->match);
  hk_feedback_free(&s->feedback);
  free(s->pairs.of);
  free(s->merges.of);
  free(s);
}

struct hk_string hk_section_name(const struct hk_incident_section *s)
{
  return hk_string(s->rule.name);
}

struct hk_incident_fleet hk_section_fleet(const struct hk_incident_section *s)
{
  return (struct hk_incident_fleet){ hk_section_name(s), s->incidents, &s->day, &s->feedback };
}

bool hk_section_takes(const struct hk_incident_section *s, struct hk_string name)
{
  return !s->gone && (!s->match || hk_glob_match(s->match, name.data, name.length));
}

uint32_t hk_section_scored(const struct hk_incident_section *s)
{
  const uint32_t most = s->sensors > s->distant ? s->sensors : s->distant;
  return s->counted ? most : s->sensors + s->distant;
}

void hk_section_go_on(struct hk_incident_section *s)
{
  hk_incidents_budget(s->incidents, s->rule.a_day);
  hk_incidents_sensors(s->incidents, hk_section_scored(s));
}

void hk_section_take(struct hk_incident_section *s, const struct hk_tick_event *event)
{
  s->fresh = true;
  if (hk_ticks_event(s->ticks, event) != 0)
    hk_log(s->parts.log, HK_LOG_WARNING, "incidents: no memory for an alert; it joins no incident");
}

void hk_section_mark(struct hk_incident_section *s, const struct hk_logged_incident *i)
{
  const struct hk_feedback_said said = { .position = i->position,
                                         .incident = i->id,
                                         .rank = i->rank,
                                         .kind = i->kind - HANKEL_INCIDENT_EXPECTED + HK_FEEDBACK_EXPECTED,
                                         .sensors = i->sensors,
                                         .text = i->text };
  s->fresh = true;
  if (i->sensors.length == 0 || hk_feedback_put(&s->feedback, &said) != 0)
    hk_log(s->parts.log, HK_LOG_WARNING, "incidents: no memory for feedback on one");
}

/* --- settling ----------------------------------------------------------------------------------------------------------- */

static int by_position(const void *x, const void *y)
{
  const struct hk_settled_event *a = x, *b = y;
  return (a->position > b->position) - (a->position < b->position);
}

void hk_section_decide(struct hk_incident_section *s, int64_t time, uint64_t seen, uint64_t *id)
{
  s->pairs.n = s->merges.n = 0;
  s->base = s->number;
  hk_incidents_go_on(s->incidents, *id);
  s->before = hk_incidents_last(s->incidents);
  hk_feedback_apply(&s->feedback, s->incidents, seen);
  (void)hk_ticks_reach(s->ticks, time, seen);
  hk_merges_sort(s->merges.of, s->merges.n);
  hk_ticks_merged(s->ticks, s->merges.of, s->merges.n);
  *id = hk_incidents_last(s->incidents);
}

static int64_t before_waiting(const struct hk_incident_section *s, int64_t time)
{
  const int64_t earliest = hk_ticks_earliest(s->ticks);
  return earliest < time ? earliest : time;
}

void hk_section_end(struct hk_incident_section *s, int64_t time)
{
  hk_incidents_expire(s->incidents, before_waiting(s, time));
}

bool hk_section_ends(const struct hk_incident_section *s, int64_t time)
{
  return hk_incidents_expired(s->incidents, before_waiting(s, time));
}

bool hk_section_says(const struct hk_incident_section *s)
{
  return s->pairs.n > 0 || s->first || s->fresh;
}

/* In as many records as needed: only the last of them has the basis of the decisions. */
void hk_section_settled(struct hk_incident_section *s, int64_t time, uint64_t seen, uint64_t upto)
{
  struct hk_settled_event *of = s->pairs.of;
  uint32_t left = s->pairs.n;
  for (uint32_t i = 0; i < left; i++)
    of[i].incident = hk_merges_resolve(s->merges.of, s->merges.n, of[i].incident);
  if (left > 1)
    qsort(of, left, sizeof *of, by_position);
  struct hk_logged_settled r = { .seen = seen,
                                 .time = INT64_MIN,
                                 .number = s->base,
                                 .id = s->before,
                                 .a_day = s->rule.a_day,
                                 .sensors = hk_section_scored(s),
                                 .section = hk_section_name(s) };
  bool logged = true;
  for (; left > HK_SETTLED_MOST; of += HK_SETTLED_MOST, left -= HK_SETTLED_MOST) {
    r.n = HK_SETTLED_MOST;
    r.events = (const uint8_t *)of;
    logged &= hk_eventlog_append_settled(s->parts.events, &r) != 0;
  }
  r.upto = upto;
  r.time = time;
  r.n = left;
  r.events = (const uint8_t *)of;
  logged &= hk_eventlog_append_settled(s->parts.events, &r) != 0;
  if (!logged)
    hk_log(s->parts.log, HK_LOG_WARNING, "incidents: no memory to log what was settled");
  s->fresh = false;
}

void hk_section_log(struct hk_incident_section *s)
{
  for (const struct hk_pending_change *p = s->first; p; p = p->next)
    if (hk_eventlog_append_incident(s->parts.events, &p->change) == 0)
      hk_log(s->parts.log, HK_LOG_WARNING, "incidents: no memory to log one");
  drop_pending(s, UINT64_MAX);
}

void hk_section_repeat(struct hk_incident_section *s, const struct hk_logged_settled *settled, uint64_t *id)
{
  drop_pending(s, UINT64_MAX);
  s->number = settled->number;
  *id = settled->id;
  hk_incidents_budget(s->incidents, settled->a_day);
  hk_incidents_sensors(s->incidents, settled->sensors);
  hk_section_decide(s, settled->time, settled->seen, id);
  s->fresh = false;
}

/* Its end may not have been decided again: that depends on how far the data were, which only the log says, by the end. */
void hk_section_repeated(struct hk_incident_section *s, const struct hk_logged_incident *i)
{
  const uint64_t number = i->number > s->number ? i->number : s->number;
  if ((i->kind == HANKEL_INCIDENT_CLOSED || i->kind == HANKEL_INCIDENT_WITHHELD) &&
      hk_incidents_open(s->incidents, (struct hk_string){ 0 }, i->id)) {
    s->number = i->number - 1;
    hk_incidents_close(s->incidents, i->id);
  }
  drop_pending(s, i->number);
  s->number = number;
}

/* --- state: this, then the marks, the waiting events, and the incidents --------------------------------------------------- */

struct section_head {
  char name[HK_INCIDENTS_NAME];
  uint64_t number, length[3];
  struct hk_incident_day day;
};

void hk_section_write(const struct hk_incident_section *s, struct hk_buffer *out)
{
  struct section_head head = { .number = s->number, .day = s->day };
  const size_t begin = out->size;
  size_t part = begin + sizeof head;
  memcpy(head.name, s->rule.name, sizeof head.name);
  hk_buffer_put(out, (const char *)&head, sizeof head);
  for (uint32_t i = 0; i < 3; i++) {
    if (i == 0)
      hk_feedback_write(&s->feedback, out);
    else if (i == 1)
      hk_ticks_write(s->ticks, out);
    else
      hk_incidents_write(s->incidents, out);
    head.length[i] = out->size - part;
    part = out->size;
  }
  if (!out->failed)
    memcpy(out->data + begin, &head, sizeof head);
}

/* The former one had another interval: it begins with no incidents, but its numbers go on. */
static int begin_again(struct hk_incident_section **out, const struct hk_incidents_rule *rule, struct hk_incident_section *former)
{
  hk_log(former->parts.log, HK_LOG_WARNING, "[incidents%s%s] has another interval: its incidents begin again",
         rule->name[0] ? " " : "", rule->name);
  const int status = hk_section_new(out, rule, &former->parts);
  if (status == 0)
    hk_incidents_go_on((*out)->incidents, hk_incidents_last(former->incidents));
  hk_section_free(former);
  return status;
}

int hk_section_restore(struct hk_incident_section **out, const struct hk_incidents_sections *rules,
                       const struct hk_maker_parts *parts, const char *name, const char *image, const uint64_t lengths[3])
{
  const char *ticks = image + lengths[0], *all = ticks + lengths[1];
  const struct hk_incidents_rule *rule = hk_incidents_section(rules, name);
  struct hk_incidents_rule gone = { .interval = hk_incidents_image_interval(all, lengths[2]) };
  struct hk_incident_section *s;
  memcpy(gone.name, name, strlen(name) + 1);
  const bool again = rule && gone.interval != rule->interval;
  int status = gone.interval <= 0 ? -EBADMSG : hk_section_new(&s, rule && !again ? rule : &gone, parts);
  if (status != 0)
    return status;
  s->gone = !rule;
  status = hk_feedback_read(&s->feedback, image, lengths[0]) == lengths[0] ? 0 : -EBADMSG;
  if (status == 0)
    status = hk_incidents_read(s->incidents, all, lengths[2]);
  if (status == 0)
    status = hk_ticks_read(s->ticks, ticks, lengths[1]);
  if (status == 0 && again)
    return begin_again(out, rule, s);
  if (status != 0)
    hk_section_free(s);
  else
    *out = s;
  return status;
}

size_t hk_section_read(struct hk_incident_section **out, const struct hk_incidents_sections *rules,
                       const struct hk_maker_parts *parts, const char *image, size_t size, int *status)
{
  struct section_head head;
  *status = -EBADMSG;
  if (size < sizeof head)
    return 0;
  memcpy(&head, image, sizeof head);
  size -= sizeof head;
  if (!memchr(head.name, 0, sizeof head.name) || head.length[0] > size || head.length[1] > size - head.length[0] ||
      head.length[2] > size - head.length[0] - head.length[1])
    return 0;
  *status = hk_section_restore(out, rules, parts, head.name, image + sizeof head, head.length);
  if (*status != 0)
    return 0;
  (*out)->number = head.number;
  (*out)->day = head.day;
  return sizeof head + head.length[0] + head.length[1] + head.length[2];
}
