/* Rows of fields: see field_rows.h. */
#include "daemon/scoring/field_rows.h"
#include "cpu/field/focus.h"
#include "cpu/field/residual.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/group_rows.h"
#include "daemon/scoring/groups_internal.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/slots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- derived sensors of members --------------------------------------------------------------------------------------- */

/* Writes the name of a member's derived sensor. Returns its length, or 0: it is too long, or the member no longer exists. */
static size_t series_name(const struct hk_groups *g, const struct hk_machine *m, uint32_t member, uint32_t k,
                          char out[HK_NAME_MAX])
{
  struct hk_registry *registry = g->shard->all->registry;
  const uint32_t handle = m->handles[member], slot = handle & 0xffffff;
  size_t length = 0;
  hk_registry_read(registry);
  if (slot < hk_registry_slots(registry) && hk_registry_holds(registry, slot) && hk_registry_handles(registry)[slot] == handle) {
    const struct hk_string name = hk_registry_name(registry, slot);
    const size_t suffix = strlen(m->field.kinds.suffix[k]);
    length = name.length + suffix <= HK_NAME_MAX && hk_field_binding_has(&m->field.binding, name.data, name.length)
                 ? name.length + suffix
                 : 0;
    if (length > 0) {
      memcpy(out, name.data, name.length);
      memcpy(out + name.length, m->field.kinds.suffix[k], suffix);
    }
  }
  hk_registry_read_end(registry);
  return length;
}

static bool is_there(const struct hk_registry *registry, uint32_t handle)
{
  const uint32_t slot = handle & 0xffffff;
  return handle != HK_NO_HANDLE && hk_registry_holds(registry, slot) && hk_registry_handles(registry)[slot] == handle;
}

static uint32_t *series_of(const struct hk_machine *m, uint32_t member)
{
  return m->field.series + (size_t)member * m->field.kinds.n;
}

static bool has_all(const struct hk_groups *g, const struct hk_machine *m, uint32_t member)
{
  const uint32_t *series = series_of(m, member);
  bool all = true;
  for (uint32_t k = 0; k < m->field.kinds.n; k++)
    all &= is_there(g->shard->all->registry, series[k]);
  return all;
}

/* Finds a member's derived sensor. False: it does not exist. */
static bool find(struct hk_registry *registry, const char *name, size_t length, uint32_t number, uint32_t *slot)
{
  hk_registry_read(registry);
  const bool found = hk_registry_find(registry, name, length, slot) == 0 && hk_registry_detector(registry, *slot) == number;
  hk_registry_read_end(registry);
  return found;
}

/* Finds a member's derived sensors, or makes the missing ones, but not during replay of a journal. A failure is retried when
 * another configuration is in force, or (replay) another series was registered. */
static void complete(struct hk_groups *g, struct hk_machine *m, uint32_t member, bool replaying)
{
  struct hk_registry *registry = g->shard->all->registry;
  uint32_t *series = series_of(m, member);
  struct hk_machine_name stays;
  m->field.tried[member] = 0;
  for (uint32_t k = 0; k < m->field.kinds.n; k++) {
    char name[HK_NAME_MAX];
    uint32_t slot;
    if (is_there(registry, series[k]) || (g->next && !hk_sections_group_by(g->next, m->field.kinds.number[k], &stays)))
      continue;
    const size_t length = series_name(g, m, member, k, name);
    const bool there = length > 0 && (replaying ? find(registry, name, length, m->field.kinds.number[k], &slot)
                                                : hk_registry_series(registry, m->owner->shard->number, name, length,
                                                                     m->field.kinds.number[k], &slot) == 0);
    series[k] = there ? hk_registry_handles(registry)[slot] : HK_NO_HANDLE;
    if (!there)
      m->field.tried[member] = replaying ? g->registered : g->era;
    if (!there && length > 0 && !replaying)
      hk_log_peer(g->shard->all->log, &g->refused, HK_LOG_WARNING, "fields",
                  "%.*s cannot be added: there is no room, or another sensor has the name", (int)length, name);
  }
}

void hk_fields_look(struct hk_groups *g, const struct hk_chunk *c)
{
  hk_groups_look(g, c);
  for (uint32_t i = 0; i < c->n; i++) {
    const struct hk_groups_place *p = &g->place[c->slot[i]];
    if (p->machine && p->member < HK_GROUPS_UNSETTLED && p->machine->field.tried[p->member] != g->era &&
        !has_all(g, p->machine, p->member))
      complete(g, p->machine, p->member, false);
  }
}

/* --- points ------------------------------------------------------------------------------------------------------------ */

static void take(struct hk_groups *g, struct hk_machine *m, uint32_t member, int64_t time, double value)
{
  hk_field_put(m->field.model, member, time, value);
  m->field.row.n = m->field.at = 0;
  g->emitting = m;
}

void hk_fields_put(struct hk_groups *g, const struct hk_chunk *from, uint32_t i)
{
  const struct hk_groups_place *p = &g->place[from->slot[i]];
  if (p->machine && p->member != HK_GROUPS_SERIES)
    take(g, p->machine, p->member, from->time[i], from->value[i]);
}

void hk_fields_replay(struct hk_groups *g, const struct hk_groups_replayed *point)
{
  struct hk_machine *m;
  uint32_t member;
  if (!hk_groups_any(g))
    return;
  const bool locked = hk_groups_lock(g);
  if (hk_groups_takes(g, point, &m, &member))
    take(g, m, member, point->time, point->value);
  hk_groups_unlock(g, locked);
}

/* The slot as the columns name it. */
static uint32_t slot_of(const struct hk_groups *g, uint32_t outside)
{
  return g->shard->replaying ? outside : hk_slot_within(g->shard->all, outside);
}

/* Writes the points of one member of the row. Returns the place after them. */
static uint32_t make_member(struct hk_groups *g, struct hk_machine *m, uint32_t member, const struct hk_columns *to, uint32_t at)
{
  const struct hk_registry *registry = g->shard->all->registry;
  if (g->shard->replaying && m->field.tried[member] != g->registered && !has_all(g, m, member))
    complete(g, m, member, true);
  for (uint32_t k = 0; k < m->field.kinds.n; k++) {
    const uint32_t handle = series_of(m, member)[k];
    if (!is_there(registry, handle))
      continue;
    to->slot[at] = slot_of(g, handle & 0xffffff);
    to->time[at] = m->field.row.time[member];
    to->value[at++] = m->field.row.value[member];
  }
  return at;
}

/* Writes the point of the field's own series: the share of its sensors that behave unusually, or the place of a change. */
static uint32_t make_own(const struct hk_groups *g, const struct hk_machine *m, const struct hk_columns *to, uint32_t at)
{
  if (isnan(m->field.row.own) || m->gone || m->ending)
    return at;
  to->slot[at] = slot_of(g, hk_slot_outside(m->owner->shard, m->slot));
  to->time[at] = m->field.row.latest;
  to->value[at] = m->field.row.own;
  return at + 1;
}

/* Writes the rest of a row. False: there is no room for it. */
static bool make_row(struct hk_groups *g, struct hk_machine *m, const struct hk_columns *to, uint32_t *at, uint32_t room)
{
  struct hk_field_row *row = &m->field.row;
  for (; m->field.at < row->n; m->field.at++) {
    if (isnan(row->value[m->field.at]))
      continue;
    if (room - *at < HK_ALGORITHMS)
      return false;
    *at = make_member(g, m, m->field.at, to, *at);
  }
  if (row->n > 0 && room == *at)
    return false;
  if (row->n > 0)
    *at = make_own(g, m, to, *at);
  row->n = m->field.at = 0;
  return true;
}

/* Logs the state of n lines of a model, of which this is the first. */
static void tell_lines(const struct hk_groups *g, const struct hk_machine *m, enum hk_model_turn turn, uint32_t line, uint32_t n)
{
  const struct hk_model *model = hk_field_model_of(m->field.model);
  struct hk_registry *registry = g->shard->all->registry;
  struct hk_log *log = g->shard->all->log;
  const struct hk_model_plan *plan = hk_model_plan_of(model);
  const struct hk_model_line *l = &plan->line[line];
  const struct hk_model_word sensor = plan->sensor[hk_model_missing(model, line)].name;
  const struct hk_model_pipe *pipe = hk_model_fault(model, line);
  char which[HK_NAME_MAX + 64] = "";
  if (n > 1)
    snprintf(which, sizeof which, " (%.*s and %u other lines)", (int)fmin(l->name.length, HK_NAME_MAX), l->name.text, n - 1);
  else if (l->name.length > 0)
    snprintf(which, sizeof which, " (%.*s)", (int)fmin(l->name.length, HK_NAME_MAX), l->name.text);
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, hk_slot_outside(m->owner->shard, m->slot));
  if (turn == HK_MODEL_BEGINS)
    hk_log(log, HK_LOG_INFO,
           "%.*s%s: the model begins steady; its checks have no values for %.0f s, until %s; computed by the %s",
           (int)name.length, name.data, which, hk_model_silence(model, line),
           plan->matrix ? "it has forgotten its start" : "the first contents of the line have left it",
           hk_model_place(model).kind->on_device ? "GPU" : "processor");
  else if (turn == HK_MODEL_MISSED)
    hk_log(log, HK_LOG_WARNING,
           "%.*s%s: model lost: its boundary %.*s has had no value for more than hold rows; it begins again when all have",
           (int)name.length, name.data, which, (int)sensor.length, sensor.text);
  else if (turn == HK_MODEL_UNSOLVED && !pipe)
    hk_log(log, HK_LOG_WARNING, "%.*s: model lost: its equations have no solution, at or before unknown %u; it begins again",
           (int)name.length, name.data, hk_model_singular(model, line) + 1);
  else if (turn == HK_MODEL_UNSOLVED)
    hk_log(log, HK_LOG_WARNING,
           "%.*s%s: model lost: its equations have no solution, at or before pipe %.*s %.*s; it begins again", (int)name.length,
           name.data, which, (int)pipe->from.length, pipe->from.text, (int)pipe->to.length, pipe->to.text);
  else
    hk_log(log, HK_LOG_WARNING, "%.*s%s: model lost: the GPU that computed it failed; it begins again on the processor",
           (int)name.length, name.data, which);
  hk_registry_read_end(registry);
}

/* Counts what a model does after the row that was closed. */
static void count_model(struct hk_groups *g, struct hk_machine *m, const struct hk_model *model)
{
  const struct hk_model_plan *plan = hk_model_plan_of(model);
  struct hk_machine_models now = { .lines = plan->lines };
  for (uint32_t i = 0; i < plan->lines; i++)
    now.running += hk_model_runs(model, i);
  for (uint32_t i = 0; i < plan->sensors; i++) {
    const double share = plan->sensor[i].boundary ? NAN : hk_model_explains(model, i);
    now.checks += !isnan(share);
    now.poor += share < 0.5;
    now.explained += share > 0 ? (uint64_t)(share * 1e6) : 0;
  }
  hk_groups_count_models(g, m, now);
}

/* Logs the state of a model after the row that was closed; not during replay of a journal, since it was logged before. */
static void tell_model(struct hk_groups *g, struct hk_machine *m)
{
  static const enum hk_model_turn told[] = { HK_MODEL_BEGINS, HK_MODEL_MISSED, HK_MODEL_UNSOLVED, HK_MODEL_BROKEN };
  const struct hk_model *model = hk_field_model_of(m->field.model);
  if (model && !m->gone)
    count_model(m->owner, m, model);
  if (g->shard->replaying || !model || m->gone)
    return;
  for (size_t k = 0; k < sizeof told / sizeof *told; k++) {
    uint32_t n = 0, first = 0;
    for (uint32_t i = hk_model_plan_of(model)->lines; i-- > 0;)
      if (hk_model_turn_of(model, i) == told[k]) {
        first = i;
        n++;
      }
    if (n > 0)
      tell_lines(g, m, told[k], first, n);
  }
}

/* Notes the change that a focus has found, or that it has settled since the last one; as with a group, the first value ends an
 * alert that stood before a restart. */
static void note_change(struct hk_machine *m)
{
  const struct hk_focus_line *line = hk_field_line_of(m->field.model);
  const struct hk_field_row *row = &m->field.row;
  if (!line || isnan(row->own))
    return;
  if (!m->told || line->found.settled)
    (void)hk_groups_note(m, &(struct hk_machine_change){ .time = row->latest });
  m->told = true;
  if (line->found.changed)
    (void)hk_groups_note(m, &(struct hk_machine_change){ .time = row->latest,
                                                         .from = row->latest,
                                                         .instant = row->latest,
                                                         .after = line->found.position,
                                                         .spread_after = (float)line->found.speed,
                                                         .statistic = (double)line->found.strongest,
                                                         .unit = line->rule.keys.threshold });
}

bool hk_fields_make(struct hk_groups *g, const struct hk_columns *to, uint32_t *at, uint32_t room)
{
  const bool locked = hk_groups_lock(g);
  struct hk_machine *m = g->emitting;
  bool whole = true;
  while (m && (whole = make_row(g, m, to, at, room)) && hk_field_next(m->field.model, &m->field.row)) {
    m->field.at = 0;
    tell_model(g, m);
    note_change(m);
    if (!g->shard->replaying)
      hk_count(&g->shard->counters.spikes, m->field.row.spikes);
  }
  if (whole)
    g->emitting = NULL;
  hk_groups_unlock(g, locked);
  return whole;
}

/* --- evictions --------------------------------------------------------------------------------------------------------- */

/* Lists the existing derived sensors of a member. */
static uint32_t list_series(const struct hk_groups *g, uint32_t slot, uint32_t *list)
{
  const struct hk_groups_place *p = g->place ? &g->place[hk_slot_within(g->shard->all, slot)] : NULL;
  uint32_t n = 0;
  if (!p || !p->machine || p->member >= HK_GROUPS_UNSETTLED || p->handle != hk_registry_handles(g->shard->all->registry)[slot])
    return 0;
  for (uint32_t k = 0; k < p->machine->field.kinds.n; k++)
    if (is_there(g->shard->all->registry, series_of(p->machine, p->member)[k]))
      list[n++] = series_of(p->machine, p->member)[k] & 0xffffff;
  return n;
}

uint32_t hk_fields_leaving(struct hk_groups *g, uint32_t slot, uint32_t *list)
{
  uint32_t n = list_series(g, slot, list);
  return n + hk_groups_leaving(g, slot, &list[n]);
}

uint32_t hk_fields_review(struct hk_groups *g, uint32_t slot, uint32_t *list)
{
  const uint32_t before = hk_groups_count(g)->members, n = list_series(g, slot, list);
  const bool last = hk_groups_review(g, slot, &list[n]);
  return hk_groups_count(g)->members == before ? 0 : n + last;
}

/* --- alerts ------------------------------------------------------------------------------------------------------------- */

void hk_fields_mark(struct hk_groups *g, struct hk_delivery *delivery)
{
  const struct hk_registry *registry = g->shard->all->registry;
  struct hk_batch *b = delivery->batch;
  hk_groups_mark(g, delivery); /* the fields' own series */
  if (!hk_groups_any(g))
    return;
  for (uint32_t i = 0; i < b->n_events; i++) {
    struct hk_event *e = &b->event[i];
    const uint32_t number = hk_registry_detector(registry, hk_slot_outside(g->shard, e->slot));
    if (e->kind == HK_EVENT_RAISED && e->index < b->n && hk_registry_detector_of(registry, number)->residual &&
        hk_residual_blamed(b->value[e->index]) != 0)
      e->marks |= HANKEL_SECONDARY;
  }
}

/* The member that has this derived sensor. NULL: none of this machine. */
static bool member_of(const struct hk_machine *m, uint32_t handle, uint32_t *member)
{
  for (*member = 0; *member < m->n_handles; ++*member)
    for (uint32_t k = 0; k < m->field.kinds.n; k++)
      if (series_of(m, *member)[k] == handle)
        return true;
  return false;
}

struct hk_string hk_fields_blamed(const struct hk_groups *g, uint32_t within, double value, char name[HK_NAME_MAX])
{
  const struct hk_registry *registry = g->shard->all->registry;
  const uint32_t blamed = hk_residual_blamed(value), handle = hk_registry_handles(registry)[hk_slot_outside(g->shard, within)];
  uint32_t member;
  if (blamed == 0)
    return (struct hk_string){ "", 0 };
  for (uint32_t i = 0; i < g->used; i++) {
    const struct hk_groups_place *p = &g->place[i];
    if (!p->machine || p->member != HK_GROUPS_SERIES || !member_of(p->machine, handle, &member))
      continue;
    const uint32_t neighbour = hk_field_neighbour(p->machine->field.model, member, blamed - 1);
    const uint32_t of = neighbour < p->machine->n_handles ? series_of(p->machine, neighbour)[0] : HK_NO_HANDLE;
    if (!is_there(registry, of))
      break;
    const struct hk_string is = hk_registry_name(registry, of & 0xffffff);
    memcpy(name, is.data, is.length);
    return (struct hk_string){ name, is.length };
  }
  return (struct hk_string){ "?", 1 };
}

struct hk_profile *hk_fields_profile(const struct hk_groups *g, uint32_t within, uint32_t line)
{
  const struct hk_groups_place *p = g->place && within < g->used ? &g->place[within] : NULL;
  const struct hk_machine *m = p && p->member == HK_GROUPS_SERIES ? p->machine : NULL;
  const struct hk_model *model = m ? hk_field_model_of(m->field.model) : NULL;
  return model && line < hk_model_plan_of(model)->lines ? hk_profile_new(model, line) : NULL;
}

struct hk_string hk_fields_nearest(const struct hk_groups *g, uint32_t within, double position, char name[HK_NAME_MAX])
{
  const struct hk_groups_place *p = g->place && within < g->used ? &g->place[within] : NULL;
  const struct hk_machine *m = p && p->member == HK_GROUPS_SERIES ? p->machine : NULL;
  const struct hk_focus_line *line = m && m->field.model ? hk_field_line_of(m->field.model) : NULL;
  const uint32_t sensor = line ? hk_focus_nearest(line, position) : 0;
  const uint32_t member = line ? hk_field_member_at(m->field.model, sensor) : HK_RESIDUAL_NONE;
  const uint32_t of = member < (m ? m->n_handles : 0) ? m->handles[member] : HK_NO_HANDLE;
  if (!line || !is_there(g->shard->all->registry, of))
    return (struct hk_string){ line ? "?" : "", line ? 1 : 0 };
  const struct hk_string is = hk_registry_name(g->shard->all->registry, of & 0xffffff);
  memcpy(name, is.data, is.length);
  return (struct hk_string){ name, is.length };
}

double hk_fields_explains(const struct hk_groups *g, uint32_t within)
{
  const struct hk_groups_place *p = g->place && within < g->used ? &g->place[within] : NULL;
  const bool member = p && p->member < HK_GROUPS_UNSETTLED &&
                      p->handle == hk_registry_handles(g->shard->all->registry)[hk_slot_outside(g->shard, within)];
  const struct hk_machine *m = member ? p->machine : NULL;
  const struct hk_model *model = m ? hk_field_model_of(m->field.model) : NULL;
  const uint32_t sensor = model ? hk_field_node(m->field.model, p->member) : HK_RESIDUAL_NONE;
  return sensor < (model ? hk_model_plan_of(model)->sensors : 0) ? hk_model_explains(model, sensor) : NAN;
}
