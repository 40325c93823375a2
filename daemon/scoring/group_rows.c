/* Rows of machines: makes points of them, and events when these come back. A change is noted when the row is closed, and
 * published with the point of its time, after all points before it. */
#include "daemon/scoring/group_rows.h"
#include "cpu/field/focus.h"
#include "cpu/rules/alert.h"
#include "daemon/base/grow.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/groups_internal.h"

#include "daemon/scoring/shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- points ---------------------------------------------------------------------------------------------------------- */

bool hk_groups_note(struct hk_machine *m, const struct hk_machine_change *change)
{
  struct hk_machine_change *changes = hk_grow(m->changes.list, m->changes.n, &m->changes.room, sizeof *changes, 8);
  if (!changes)
    return false;
  m->changes.list = changes;
  m->changes.list[m->changes.n++] = *change;
  return true;
}

static bool is_novelty(const struct hk_machine *m)
{
  return m->rule.statistic == HK_GROUP_NOVELTY;
}

/* Takes a row of a machine. True: *score is valid. */
static bool take_row(struct hk_machine *m, const struct hk_group_tick *t, double *score)
{
  if (t->change == HK_GROUP_SETTLED)
    (void)hk_groups_note(m, &(struct hk_machine_change){ .time = t->time, .spread_after = (float)t->severity });
  if (isnan(t->score))
    return false;
  if (!m->told) /* the alert that stood before a restart */
    (void)hk_groups_note(m, &(struct hk_machine_change){ .time = t->time });
  m->told = true;
  const double unit = hk_group_unit(&m->rule, t->members);
  if (t->change == HK_GROUP_CHANGED || t->change == HK_GROUP_GRAVER)
    (void)hk_groups_note(m, &(struct hk_machine_change){ .time = t->time,
                                                         .from = t->from,
                                                         .instant = t->instant,
                                                         .before = t->before,
                                                         .after = t->after,
                                                         .spread_before = t->spread_before,
                                                         .spread_after = is_novelty(m) ? (float)t->severity : t->spread_after,
                                                         .statistic = t->statistic,
                                                         .unit = t->change == HK_GROUP_GRAVER ? -unit : unit });
  *score = t->score;
  return true;
}

uint32_t hk_groups_take(struct hk_machine *m, uint32_t member, int64_t time, double value, const struct hk_columns *to,
                        uint32_t at)
{
  struct hk_group_tick tick;
  hk_group_put(m->group, member, time, value);
  while (hk_group_next(m->group, &tick)) {
    double score;
    if (!take_row(m, &tick, &score) || m->gone || m->ending)
      continue;
    to->slot[at] = m->slot;
    to->time[at] = tick.time;
    to->value[at++] = score;
  }
  return at;
}

uint32_t hk_groups_put(struct hk_groups *g, const struct hk_chunk *from, uint32_t i, const struct hk_columns *to, uint32_t at)
{
  const struct hk_groups_place *p = &g->place[from->slot[i]];
  return p->machine && p->member != HK_GROUPS_SERIES
             ? hk_groups_take(p->machine, p->member, from->time[i], from->value[i], to, at)
             : at;
}

/* --- results --------------------------------------------------------------------------------------------------------- */

/* Whether the machine's alert stands, and was not cleared elsewhere meanwhile. */
static bool is_standing(const struct hk_groups *g, const struct hk_machine *m)
{
  struct hk_alerts_memory memory;
  hk_alerts_get(g->shard->alerts, m->slot, &memory);
  return m->alert.stands && (memory.stands || memory.number < m->alert.number);
}

/* Ends the standing alert, if there is one. */
static bool end_alert(struct hk_groups *g, struct hk_machine *m, const struct hk_machine_change *c, struct hk_event *e)
{
  struct hk_alerts *alerts = g->shard->alerts;
  const bool ours = is_standing(g, m);
  if (is_novelty(m))
    m->alert.standing.severity = fmaxf(m->alert.standing.severity, c->spread_after);
  m->alert.stands = false;
  *e = m->alert.standing;
  e->kind = HK_EVENT_CLEARED;
  return ours || hk_alerts_clear(alerts, m->slot, e);
}

static float severity_of(const struct hk_machine *m, float margin)
{
  return m->field.model ? hk_focus_severity(margin) : hk_alert_severity(HK_CHANNEL_GROUP, margin);
}

/* The event of a change that raises or corrects the alert; of novelty the change brings its severity. */
static struct hk_event event_of(const struct hk_machine *m, const struct hk_machine_change *c, int kind)
{
  const double unit = fabs(c->unit);
  const float margin = hk_alert_margin(c->statistic, unit);
  return (struct hk_event){ .kind = (uint8_t)kind,
                            .slot = m->slot,
                            .number = m->alert.number,
                            .channel = HK_CHANNEL_GROUP,
                            .from = c->from,
                            .instant = c->instant,
                            .score = (float)(c->statistic / (c->statistic + unit)),
                            .margin = margin,
                            .severity = is_novelty(m) ? c->spread_after : severity_of(m, margin),
                            .before = c->before,
                            .after = c->after,
                            .spread_before = c->spread_before,
                            .spread_after = is_novelty(m) ? 0 : c->spread_after,
                            .marks = m->field.model ? HANKEL_TRAVELS : 0 };
}

static bool raise_alert(struct hk_groups *g, struct hk_machine *m, const struct hk_machine_change *c, struct hk_event *e)
{
  const uint32_t number = hk_alerts_number(g->shard->alerts, m->slot);
  m->alert.number = 1 + (m->alert.number > number ? m->alert.number : number);
  m->alert.standing = *e = event_of(m, c, HK_EVENT_RAISED);
  m->alert.stands = true;
  return true;
}

/* The alert is graver than it was published. */
static bool correct_alert(struct hk_groups *g, struct hk_machine *m, const struct hk_machine_change *c, struct hk_event *e)
{
  if (!is_standing(g, m))
    return false;
  const struct hk_event before = m->alert.standing;
  *e = event_of(m, c, HK_EVENT_CORRECTED);
  m->alert.standing = *e;
  m->alert.standing.kind = HK_EVENT_RAISED;
  if (before.score > e->score) {
    m->alert.standing.score = before.score;
    m->alert.standing.margin = before.margin;
  }
  return true;
}

/* Adds an event of point `index` to a batch, which has room for one event per point. */
static void insert(struct hk_batch *b, const struct hk_event *e)
{
  uint32_t at = b->n_events;
  while (at > 0 && b->event[at - 1].index > e->index)
    at--;
  memmove(b->event + at + 1, b->event + at, (b->n_events++ - at) * sizeof *b->event);
  b->event[at] = *e;
}

/* Publishes the next change that is due at point i: one event per point, so further due changes follow with the next point. */
static void group_rows_tell(struct hk_groups *g, struct hk_machine *m, struct hk_batch *b, uint32_t i)
{
  bool any = false;
  struct hk_event e;
  while (!any && m->changes.n > 0 && m->changes.list[0].time <= b->time[i]) {
    const struct hk_machine_change c = m->changes.list[0];
    memmove(m->changes.list, m->changes.list + 1, --m->changes.n * sizeof *m->changes.list);
    m->changes.cut -= m->changes.cut > 0;
    any = c.unit == 0 ? end_alert(g, m, &c, &e) : c.unit < 0 ? correct_alert(g, m, &c, &e) : raise_alert(g, m, &c, &e);
  }
  if (!any)
    return;
  e.index = i;
  e.time = b->time[i];
  insert(b, &e);
}

/* An alert is published with the highest score since it was raised. */
static void take_highest(struct hk_machine *m, double score)
{
  struct hk_event *standing = &m->alert.standing;
  if (!((float)score > standing->score))
    return;
  standing->score = (float)score;
  standing->margin = hk_alert_margin(score, 1 - score); /* statistic and unit, up to a factor */
  if (!is_novelty(m))
    standing->severity = severity_of(m, standing->margin);
}

static void mark(struct hk_groups *g, struct hk_batch *b)
{
  for (uint32_t i = 0; i < b->n; i++) {
    const struct hk_groups_place *p = &g->place[b->slot[i]];
    if (!p->machine || p->member != HK_GROUPS_SERIES || b->state[i] == HK_STATE_LATE || b->state[i] == HK_STATE_REJECTED)
      continue;
    b->score[i] = (float)b->value[i];
    b->state[i] = HK_STATE_OK;
    if (p->machine->alert.stands)
      take_highest(p->machine, b->value[i]);
    if (p->machine->changes.n > 0)
      group_rows_tell(g, p->machine, b, i);
  }
}

void hk_groups_mark(struct hk_groups *g, struct hk_delivery *delivery)
{
  if (!hk_groups_any(g))
    return;
  const bool locked = hk_groups_lock(g);
  mark(g, delivery->batch);
  hk_groups_unlock(g, locked);
}
