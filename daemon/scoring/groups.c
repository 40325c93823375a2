/* Membership of machines. Machines are found by the name of their series, in the registry; a slot's place is stored by slot,
 * and valid as long as the slot keeps its handle. */
#include "daemon/base/grow.h"
#include "daemon/scoring/groups_internal.h"

#include "daemon/scoring/shard.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------------------------------ */

static int make_places(struct hk_groups *g)
{
  if (g->place || !hk_groups_in(g->sections, g->kind))
    return 0;
  g->place = calloc(g->slots, sizeof *g->place);
  return g->place ? 0 : -ENOMEM;
}

int hk_groups_new(struct hk_groups **out, struct hk_shard *s, uint32_t slots, enum hk_groups_kind kind)
{
  struct hk_groups *g = calloc(1, sizeof *g);
  if (!g)
    return -ENOMEM;
  g->shard = s;
  g->slots = slots;
  g->kind = kind;
  g->era = g->registered = 1;
  int status = hk_sections_new(&g->sections, s->all->config);
  if (status == 0)
    status = make_places(g);
  if (status != 0) {
    hk_groups_free(g);
    return status;
  }
  *out = g;
  return 0;
}

void hk_groups_free(struct hk_groups *g)
{
  if (!g)
    return;
  for (uint32_t i = 0; i < g->used; i++)
    hk_groups_forget(g, i);
  hk_sections_release(g->sections);
  hk_sections_release(g->next);
  free(g->place);
  free(g->leaving);
  free(g);
}

struct hk_groups *hk_groups_with(const struct hk_shard *s, const struct hk_config_detector *d)
{
  return d->field ? s->machines.fields : d->second ? s->machines.seconds : s->machines.groups;
}

const struct hk_groups_count *hk_groups_count(const struct hk_groups *g)
{
  return &g->count;
}

uint32_t hk_groups_members(const struct hk_groups *g, uint32_t within, uint32_t *handles, uint32_t most)
{
  const struct hk_groups_place *p = g->place && within < g->used ? &g->place[within] : NULL;
  const struct hk_machine *m = p && p->member == HK_GROUPS_SERIES ? p->machine : NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; m && i < m->n_handles; i++) {
    if (m->handles[i] == HK_NO_HANDLE)
      continue;
    if (n < most)
      handles[n] = m->handles[i];
    n++;
  }
  return n;
}

bool hk_groups_any(const struct hk_groups *g)
{
  return g->place && (hk_groups_in(g->sections, g->kind) || g->count.machines > 0);
}

/* --- machines and members -------------------------------------------------------------------------------------------- */

size_t hk_groups_name(const struct hk_groups *g, const struct hk_sections *sections, uint32_t slot, char series[HK_NAME_MAX],
                      struct hk_machine_name *found)
{
  struct hk_registry *registry = g->shard->all->registry;
  size_t length = 0;
  *found = (struct hk_machine_name){ 0 };
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, slot);
  if (g->kind == HK_GROUPS_FIELDS   ? hk_sections_field(sections, name.data, name.length, found)
      : g->kind == HK_GROUPS_SECOND ? hk_sections_second(sections, name.data, name.length, found)
                                    : hk_sections_group(sections, name.data, name.length, found))
    length = hk_sections_series(found, series);
  hk_registry_read_end(registry);
  return length;
}

static void tell_offload(void *shard, const char *why)
{
  const struct hk_shard *s = shard;
  if (why)
    hk_log(s->all->log, HK_LOG_WARNING, "a large field is computed on the CPU from now on: %s", why);
  else
    hk_log(s->all->log, HK_LOG_INFO, "a large field is computed on the %s device", s->device->backend->ops->name);
}

/* Large fields are computed on the device of their sensors. */
static void place_field(const struct hk_groups *g, struct hk_machine *m)
{
  const struct hk_device *device = g->shard->device;
  if (!m->field.model || !device)
    return;
  const struct hk_field_place place = { &device->kind->fields, g->shard->number, HK_OFFLOAD_LEAST, tell_offload, g->shard };
  hk_field_compute_at(m->field.model, &place);
}

void hk_groups_add(struct hk_groups *g, uint32_t slot, struct hk_machine *m)
{
  m->owner = g;
  m->slot = hk_slot_within(g->shard->all, slot);
  g->place[m->slot] = (struct hk_groups_place){ .machine = m,
                                                .handle = hk_registry_handles(g->shard->all->registry)[slot],
                                                .member = HK_GROUPS_SERIES };
  g->used = m->slot < g->used ? g->used : m->slot + 1;
  g->count.machines++;
  place_field(g, m);
}

struct hk_machine_place hk_groups_compute(const struct hk_groups *g, const struct hk_machine_name *name)
{
  const struct hk_shard *s = g->shard;
  return (struct hk_machine_place){ .place =
                                        hk_backend_pipelines(s->device ? s->device->kind : NULL, s->number,
                                                             s->all->config->threads, name->file ? name->file->plan : NULL) };
}

void hk_groups_say_where(const struct hk_groups *g, const struct hk_machine_name *name, const struct hk_machine_place *at)
{
  if (at->why[0])
    hk_log(g->shard->all->log, HK_LOG_WARNING, "the model of %u lines cannot be computed on the GPU: %s; the processor does it",
           name->file->plan->lines, at->why);
}

void hk_groups_count_models(struct hk_groups *g, struct hk_machine *m, struct hk_machine_models now)
{
  const struct hk_machine_models was = m->field.counted;
  g->count.lines += now.lines - was.lines;
  g->count.running += now.running - was.running;
  g->count.checks += now.checks - was.checks;
  g->count.poor += now.poor - was.poor;
  g->count.explained += now.explained - was.explained;
  m->field.counted = now;
}

/* Makes a machine; NULL: no memory. */
static struct hk_machine *groups_make(struct hk_groups *g, uint32_t slot, const struct hk_machine_name *name)
{
  struct hk_machine *m;
  struct hk_machine_place at = hk_groups_compute(g, name);
  if (hk_machine_new(&m, name, &at, NULL, 0) != 0)
    return NULL;
  hk_groups_say_where(g, name, &at);
  hk_groups_add(g, slot, m);
  return m;
}

bool hk_groups_join(struct hk_groups_place *p)
{
  struct hk_machine *m = p->machine;
  struct hk_registry *registry = m->owner->shard->all->registry;
  hk_registry_read(registry);
  const bool joined = hk_machine_join(m, p->handle, hk_registry_name(registry, p->handle & 0xffffff), &p->member);
  hk_registry_read_end(registry);
  if (!joined)
    return false;
  m->staying++;
  m->owner->count.members += !m->gone;
  return true;
}

void hk_groups_let_go(struct hk_groups *g, struct hk_groups_place *p)
{
  struct hk_machine *m = p->machine;
  p->machine = NULL;
  p->era = g->era;
  p->leaving = p->missing = false;
  if (--m->places == 0 && m->gone)
    hk_machine_free(m);
}

void hk_groups_leave(struct hk_groups *g, struct hk_groups_place *p)
{
  struct hk_machine *m = p->machine;
  hk_machine_leave(m, p->member);
  m->staying -= !p->leaving;
  if (!m->gone)
    m->owner->count.members--;
  hk_groups_let_go(g, p);
}

/* Clears a place for another sensor, or for none. */
static void empty(struct hk_groups *g, struct hk_groups_place *p)
{
  struct hk_machine *m = p->machine;
  if (m && p->member == HK_GROUPS_SERIES) {
    m->gone = true;
    hk_groups_count_models(g, m, (struct hk_machine_models){ 0 });
    g->count.machines--;
    g->count.members -= hk_machine_members(m);
    if (m->places == 0)
      hk_machine_free(m);
  } else if (m && p->member == HK_GROUPS_UNSETTLED) {
    hk_groups_let_go(g, p);
  } else if (m) {
    hk_groups_leave(g, p);
  }
  *p = (struct hk_groups_place){ 0 };
}

/* The machine of a series, which is made with its series if missing. NULL: it cannot be made, for the reason in *why. */
static struct hk_machine *find_or_make(struct hk_groups *g, const struct hk_machine_name *name, const char *series, size_t length,
                                       const char **why)
{
  const struct hk_shard *s = g->shard;
  uint32_t slot;
  const int refusal = hk_registry_series(s->all->registry, s->number, series, length, name->number, &slot);
  if (refusal != 0) {
    *why = refusal == HANKEL_RESERVED ? "is another sensor's, or on another device" : "has no room for its series";
    return NULL;
  }
  const struct hk_groups_place *p = &g->place[hk_slot_within(s->all, slot)];
  if (p->machine && p->handle == hk_registry_handles(s->all->registry)[slot])
    return p->machine;
  *why = "has no memory";
  return groups_make(g, slot, name);
}

/* As above during replay, when the machine is not made: its series exists, on any shard, since the number of shards may have
 * changed. */
static struct hk_machine *groups_find(struct hk_groups *g, const struct hk_machine_name *name, const char *series, size_t length)
{
  const struct hk_shard *s = g->shard;
  struct hk_registry *registry = s->all->registry;
  uint32_t slot;
  hk_registry_read(registry);
  const bool there = hk_registry_find(registry, series, length, &slot) == 0;
  hk_registry_read_end(registry);
  if (!there || hk_registry_detector(registry, slot) != name->number)
    return NULL;
  struct hk_groups *owner = hk_groups_of(g, slot);
  const struct hk_groups_place *p = &owner->place[hk_slot_within(s->all, slot)];
  if (p->machine && p->handle == hk_registry_handles(registry)[slot])
    return p->machine;
  return groups_make(owner, slot, name);
}

void hk_groups_find(struct hk_groups *g, uint32_t within, uint32_t handle, bool replaying)
{
  const struct hk_shard *s = g->shard;
  struct hk_groups_place *p = &g->place[within];
  const uint32_t slot = hk_slot_outside(s, within);
  struct hk_machine_name name = { 0 };
  char series[HK_NAME_MAX];
  const char *why = "has `members` sensors already, or there is no memory";
  empty(g, p);
  *p = (struct hk_groups_place){ .handle = handle, .era = g->era };
  g->used = within < g->used ? g->used : within + 1;
  const size_t length = hk_registry_holds(s->all->registry, slot) ? hk_groups_name(g, g->sections, slot, series, &name) : 0;
  if (name.group && length == 0 && !replaying)
    hk_log_peer(s->all->log, &g->refused, HK_LOG_WARNING, "groups", "a sensor joins no machine: the machine's name is too long");
  if (length == 0)
    return;
  struct hk_machine_name stays;
  if (g->next && !hk_sections_group_by(g->next, name.number, &stays)) {
    p->era = 0; /* once the reload is over */
    return;
  }
  p->machine = replaying ? groups_find(g, &name, series, length) : find_or_make(g, &name, series, length, &why);
  if (replaying) {
    p->missing = !p->machine;
    p->era = g->registered;
    p->member = HK_GROUPS_UNSETTLED;
  } else if (p->machine && !hk_groups_join(p)) {
    p->machine = NULL;
  }
  if (p->machine) {
    p->machine->places++;
    return;
  }
  if (!replaying)
    hk_log_peer(s->all->log, &g->refused, HK_LOG_WARNING, "groups", "a sensor joins no machine: %.*s %s", (int)length, series,
                why);
}

/* --- a chunk --------------------------------------------------------------------------------------------------------- */

void hk_groups_settle(struct hk_groups *g)
{
  for (uint32_t i = 0; i < g->n_leaving; i++) {
    struct hk_groups_place *p = &g->place[g->leaving[i]];
    if (p->machine && p->leaving && p->member == HK_GROUPS_SERIES)
      p->machine->ending = true;
    else if (p->machine && p->leaving)
      hk_groups_leave(g, p);
  }
  g->n_leaving = 0;
}

void hk_groups_look(struct hk_groups *g, const struct hk_chunk *c)
{
  const uint32_t *handles = hk_registry_handles(g->shard->all->registry);
  hk_groups_settle(g);
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t within = c->slot[i], handle = handles[hk_slot_outside(g->shard, within)];
    if (!hk_groups_known(g, &g->place[within], handle))
      hk_groups_find(g, within, handle, false);
  }
}

/* --- evictions ------------------------------------------------------------------------------------------------------- */

/* The place of a member's slot; NULL: the slot has no member, or no longer. */
static struct hk_groups_place *groups_member_of(struct hk_groups *g, uint32_t slot)
{
  struct hk_groups_place *p = g->place ? &g->place[hk_slot_within(g->shard->all, slot)] : NULL;
  const bool is = p && p->machine && p->member < HK_GROUPS_UNSETTLED && !p->leaving &&
                  p->handle == hk_registry_handles(g->shard->all->registry)[slot];
  return is ? p : NULL;
}

/* A member leaves. True and *series: it was the last one of an existing machine. */
static bool is_last(const struct hk_groups *g, const struct hk_groups_place *p, uint32_t *series)
{
  *series = hk_slot_outside(g->shard, p->machine->slot);
  return p->machine->staying == 1 && !p->machine->gone && hk_registry_holds(g->shard->all->registry, *series);
}

/* Notes that a place is to be settled before the next chunk. False: no memory. */
static bool note_leaving(struct hk_groups *g, struct hk_groups_place *p)
{
  uint32_t *leaving = hk_grow(g->leaving, g->n_leaving, &g->room_leaving, sizeof *leaving, 64);
  if (!leaving)
    return false;
  g->leaving = leaving;
  g->leaving[g->n_leaving++] = (uint32_t)(p - g->place);
  p->leaving = true;
  return true;
}

bool hk_groups_leaving(struct hk_groups *g, uint32_t slot, uint32_t *series)
{
  struct hk_groups_place *p = groups_member_of(g, slot);
  if (!p)
    return false;
  const bool last = is_last(g, p, series);
  if (!note_leaving(g, p))
    return false; /* it leaves when it is forgotten */
  p->machine->staying--;
  return last;
}

void hk_groups_ending(struct hk_groups *g, uint32_t within)
{
  struct hk_groups_place *p = g->place ? &g->place[within] : NULL;
  if (p && p->machine && p->member == HK_GROUPS_SERIES && !note_leaving(g, p))
    p->machine->ending = true; /* at once, since its slot will soon be another sensor's */
}

void hk_groups_forget(struct hk_groups *g, uint32_t within)
{
  if (!g->place)
    return;
  const bool locked = hk_groups_lock(g);
  empty(g, &g->place[within]);
  hk_groups_unlock(g, locked);
}

/* --- a reload -------------------------------------------------------------------------------------------------------- */

void hk_groups_prepare(struct hk_groups *g, struct hk_sections *sections)
{
  hk_sections_release(g->next);
  g->next = hk_sections_hold(sections);
}

int hk_groups_adopt(struct hk_groups *g)
{
  hk_groups_settle(g);
  if (g->next) {
    hk_sections_release(g->sections);
    g->sections = g->next;
    g->next = NULL;
    g->era++; /* sensors without a machine may have one now */
  }
  return make_places(g);
}

bool hk_groups_belongs(const struct hk_groups *g, const struct hk_groups_place *p, uint32_t slot)
{
  const struct hk_registry *registry = g->shard->all->registry;
  const uint32_t series_slot = hk_slot_outside(p->machine->owner->shard, p->machine->slot);
  struct hk_machine_name name;
  char series[HK_NAME_MAX];
  if (p->machine->gone || !hk_registry_holds(registry, series_slot))
    return false;
  const size_t length = hk_groups_name(g, g->sections, slot, series, &name);
  const struct hk_string is = hk_registry_name(registry, series_slot);
  return length == is.length && memcmp(series, is.data, length) == 0 &&
         name.number == hk_registry_detector(registry, series_slot);
}

bool hk_groups_review(struct hk_groups *g, uint32_t slot, uint32_t *series)
{
  struct hk_groups_place *p = groups_member_of(g, slot);
  if (!p || hk_groups_belongs(g, p, slot))
    return false;
  const bool last = is_last(g, p, series);
  hk_groups_leave(g, p);
  p->era = 0; /* it may belong to another machine now */
  return last;
}
