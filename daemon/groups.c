/* Machines are found by the name of their series, in the registry; what a slot is to the groups is known by slot, and good as
 * long as the slot has the handle that it had then. */
#include "daemon/groups.h"

#include "cpu/group.h"
#include "daemon/shard.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A change that is yet to be told: with the point of its time. */
struct change {
  int64_t time, from, instant;
  double before, after, statistic, unit;
  bool ends; /* what stands ends */
};

struct machine {
  struct hk_group *group;
  const struct hk_config_group *config;
  uint32_t slot; /* within the shard, of its series */
  uint32_t members, staying;
  bool gone;              /* the series is */
  bool told;              /* a score was made */
  struct change *changes; /* n of them, in order */
  uint32_t n, room;
  uint32_t number; /* of the last alert */
  bool stands;     /* an alert does: */
  struct hk_event standing;
};

/* What a slot is. */
struct place {
  struct machine *machine; /* NULL: nothing to any */
  uint32_t handle;         /* when this was found out */
  uint32_t member;         /* its number there; SERIES: it is the machine's series */
  bool known, leaving;
};
#define SERIES UINT32_MAX

struct hk_groups {
  struct hk_shard *shard;
  struct hk_sections *sections; /* of the start: groups stay as they were then */
  struct place *place;          /* by slot within the shard */
  uint32_t used;                /* places that were looked at are below */
  struct hk_groups_count count;
  struct hk_log_quota refused;
};

int hk_groups_new(struct hk_groups **out, struct hk_shard *s, uint32_t slots)
{
  *out = NULL;
  if (s->all->config->n_groups == 0)
    return 0;
  struct hk_groups *g = calloc(1, sizeof *g);
  if (!g)
    return -ENOMEM;
  g->shard = s;
  g->place = calloc(slots, sizeof *g->place);
  const int status = g->place ? hk_sections_new(&g->sections, s->all->config) : -ENOMEM;
  if (status != 0) {
    free(g->place);
    free(g);
    return status;
  }
  *out = g;
  return 0;
}

static void free_machine(struct machine *m)
{
  hk_group_free(m->group);
  free(m->changes);
  free(m);
}

void hk_groups_free(struct hk_groups *g)
{
  if (!g)
    return;
  for (uint32_t i = 0; i < g->used; i++)
    hk_groups_forget(g, i);
  hk_sections_release(g->sections);
  free(g->place);
  free(g);
}

const struct hk_groups_count *hk_groups_count(const struct hk_groups *g)
{
  return &g->count;
}

/* --- members --------------------------------------------------------------------------------------------------------- */

static uint32_t detector_of(const struct hk_config *c, uint32_t group)
{
  return c->detectors[c->n_detectors - c->n_groups + group].number;
}

/* The machine whose series has that name; it is made if it is not there. NULL: it cannot be, and *why says so. */
static struct machine *find_machine(struct hk_groups *g, uint32_t group, const char *name, size_t length, const char **why)
{
  const struct hk_shard *s = g->shard;
  struct hk_registry *registry = s->all->registry;
  const struct hk_config_group *config = &s->all->config->groups[group];
  uint32_t slot;
  const int refusal = hk_registry_series(registry, s->number, name, length, detector_of(s->all->config, group), &slot);
  if (refusal != 0) {
    *why = refusal == HANKEL_RESERVED ? "that name is another sensor's" : "there is no room for the series";
    return NULL;
  }
  struct place *p = &g->place[hk_slot_within(s->all, slot)];
  const uint32_t handle = hk_registry_handles(registry)[slot];
  if (p->known && p->handle == handle)
    return p->machine;
  struct machine *m = calloc(1, sizeof *m);
  if (!m || hk_group_new(&m->group, &config->rule) != 0) {
    *why = "there is no memory";
    free(m);
    return NULL;
  }
  m->config = config;
  m->slot = hk_slot_within(s->all, slot);
  *p = (struct place){ .machine = m, .handle = handle, .member = SERIES, .known = true };
  g->used = m->slot < g->used ? g->used : m->slot + 1;
  g->count.machines++;
  return m;
}

/* Finds out what a slot is. */
static void look_at(struct hk_groups *g, uint32_t within, uint32_t handle)
{
  const struct hk_shard *s = g->shard;
  struct hk_registry *registry = s->all->registry;
  struct place *p = &g->place[within];
  struct hk_machine_name found;
  char sensor[HK_NAME_MAX], series[HK_NAME_MAX];
  const char *why = "its name is too long";
  if (p->known && p->machine)
    hk_groups_forget(g, within);
  *p = (struct place){ .handle = handle, .known = true };
  g->used = within < g->used ? g->used : within + 1;
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, hk_slot_outside(s, within));
  memcpy(sensor, name.data, name.length);
  const size_t length = name.length;
  hk_registry_read_end(registry);
  if (!hk_sections_group(g->sections, sensor, length, &found))
    return;
  const size_t n = hk_sections_series(g->sections, &found, series);
  struct machine *m = n > 0 ? find_machine(g, found.group, series, n, &why) : NULL;
  if (m && hk_group_join(m->group, &p->member) == 0) {
    p->machine = m;
    m->members++;
    m->staying++;
    g->count.members++;
    return;
  }
  hk_log_peer(s->all->log, &g->refused, HK_LOG_WARNING, "groups", "%.*s is in none: its machine %.*s: %s", (int)length, sensor,
              (int)n, series, m ? "it has `members` already, or there is no memory" : why);
}

/* --- points ---------------------------------------------------------------------------------------------------------- */

/* Notes a change, to be told with the point of a time. Without memory it is not told. */
static void note(struct machine *m, const struct change *change)
{
  if (m->n == m->room) {
    const uint32_t room = m->room ? 2 * m->room : 8;
    struct change *changes = realloc(m->changes, room * sizeof *changes);
    if (!changes)
      return;
    m->changes = changes;
    m->room = room;
  }
  m->changes[m->n++] = *change;
}

/* Takes a row of a machine. True: *score is one. */
static bool take_row(struct machine *m, const struct hk_group_tick *t, double *score)
{
  if (t->change == HK_GROUP_SETTLED)
    note(m, &(struct change){ .time = t->time, .ends = true });
  if (isnan(t->score))
    return false;
  if (!m->told) /* what stood before a restart */
    note(m, &(struct change){ .time = t->time, .ends = true });
  m->told = true;
  if (t->change == HK_GROUP_CHANGED)
    note(m, &(struct change){ .time = t->time,
                              .from = t->from,
                              .instant = t->instant,
                              .before = t->before,
                              .after = t->after,
                              .statistic = t->statistic,
                              .unit = hk_group_unit(&m->config->rule, t->members) });
  *score = t->score;
  return true;
}

uint32_t hk_groups_put(struct hk_groups *g, const struct hk_chunk *from, uint32_t i, struct hk_chunk *to, uint32_t at)
{
  const uint32_t within = from->slot[i], slot = hk_slot_outside(g->shard, within);
  const uint32_t handle = hk_registry_handles(g->shard->all->registry)[slot];
  const struct place *p = &g->place[within];
  if (!p->known || p->handle != handle)
    look_at(g, within, handle);
  struct machine *m = p->machine;
  if (!m || p->leaving || p->member == SERIES)
    return at;
  struct hk_group_tick tick;
  hk_group_put(m->group, p->member, from->time[i], from->value[i]);
  while (hk_group_next(m->group, &tick)) {
    double score;
    if (!take_row(m, &tick, &score) || m->gone)
      continue;
    to->slot[at] = m->slot;
    to->time[at] = tick.time;
    to->value[at++] = score;
  }
  return at;
}

/* --- results --------------------------------------------------------------------------------------------------------- */

/* The end of the alert that stands, if one does. */
static bool end_alert(struct hk_groups *g, struct machine *m, struct hk_event *e)
{
  struct hk_alerts *alerts = g->shard->alerts;
  struct hk_alerts_memory memory;
  hk_alerts_get(alerts, m->slot, &memory);
  const bool ours = m->stands && (memory.stands || memory.number < m->number); /* not cleared by others meanwhile */
  m->stands = false;
  *e = m->standing;
  e->kind = HK_EVENT_CLEARED;
  return ours || hk_alerts_clear(alerts, m->slot, e);
}

static void raise_alert(struct hk_groups *g, struct machine *m, const struct change *c, float score, struct hk_event *e)
{
  const uint32_t number = hk_alerts_number(g->shard->alerts, m->slot);
  m->number = 1 + (m->number > number ? m->number : number);
  *e = (struct hk_event){ .kind = HK_EVENT_RAISED,
                          .slot = m->slot,
                          .number = m->number,
                          .channel = HK_CHANNEL_GROUP,
                          .from = c->from,
                          .instant = c->instant,
                          .score = score,
                          .margin = hk_alert_margin(c->statistic, c->unit),
                          .before = c->before,
                          .after = c->after };
  m->standing = *e;
  m->stands = true;
}

/* Puts an event of point `index` into a batch, which has room for one a point. */
static void insert(struct hk_batch *b, const struct hk_event *e)
{
  uint32_t at = b->n_events;
  while (at > 0 && b->event[at - 1].index > e->index)
    at--;
  memmove(b->event + at + 1, b->event + at, (b->n_events++ - at) * sizeof *b->event);
  b->event[at] = *e;
}

/* Tells the next change that is due at point i: one event a point, so what else is due is told with the next one. */
static void tell(struct hk_groups *g, struct machine *m, struct hk_batch *b, uint32_t i)
{
  bool any = false;
  struct hk_event e;
  while (!any && m->n > 0 && m->changes[0].time <= b->time[i]) {
    const struct change c = m->changes[0];
    memmove(m->changes, m->changes + 1, --m->n * sizeof *m->changes);
    any = !c.ends || end_alert(g, m, &e);
    if (!c.ends)
      raise_alert(g, m, &c, b->score[i], &e);
  }
  if (!any)
    return;
  e.index = i;
  e.time = b->time[i];
  insert(b, &e);
}

void hk_groups_mark(struct hk_groups *g, struct hk_parcel *parcel)
{
  struct hk_batch *b = parcel->batch;
  for (uint32_t i = 0; i < b->n; i++) {
    const struct place *p = &g->place[b->slot[i]];
    if (!p->machine || p->member != SERIES || b->state[i] == HK_STATE_LATE || b->state[i] == HK_STATE_REJECTED)
      continue;
    b->score[i] = (float)b->value[i];
    b->state[i] = HK_STATE_OK;
    if (p->machine->stands && b->score[i] > p->machine->standing.score)
      p->machine->standing.score = b->score[i];
    if (p->machine->n > 0)
      tell(g, p->machine, b, i);
  }
}

/* --- who goes -------------------------------------------------------------------------------------------------------- */

bool hk_groups_leaving(struct hk_groups *g, uint32_t slot, uint32_t *series)
{
  const struct hk_shard *s = g->shard;
  struct place *p = &g->place[hk_slot_within(s->all, slot)];
  if (!p->known || !p->machine || p->leaving || p->member == SERIES || p->handle != hk_registry_handles(s->all->registry)[slot])
    return false;
  p->leaving = true;
  *series = hk_slot_outside(s, p->machine->slot);
  return --p->machine->staying == 0 && hk_registry_holds(s->all->registry, *series);
}

void hk_groups_forget(struct hk_groups *g, uint32_t within)
{
  struct place *p = &g->place[within];
  struct machine *m = p->machine;
  if (m && p->member == SERIES) {
    m->gone = true;
    g->count.machines--;
  } else if (m) {
    hk_group_leave(m->group, p->member);
    m->members--;
    m->staying -= !p->leaving;
    g->count.members--;
  }
  if (m && m->gone && m->members == 0)
    free_machine(m);
  *p = (struct place){ 0 };
}
