/* Machines over a restart: restored from a snapshot, then from the journal's points from there on.
 *   hk_groups_restore     for each machine of the snapshot
 *   hk_groups_replay      for each point of the journal
 *   hk_groups_registered  for each sensor that the journal registers, and hk_groups_retired for each that it retires
 *   hk_groups_go_on       at the end
 * A member is identified by its handle: the slot and generation of its sensor, which the registry has restored. Membership is
 * found by name as points come, because a slot may have had an older sensor before the machine's position, as the journal
 * records. If the journal has no series yet there is no machine: it was made with the series. */
#include "daemon/scoring/group_restore.h"
#include "daemon/base/buffer.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/groups_internal.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/slots.h"

#include <errno.h>

/* --- a snapshot ------------------------------------------------------------------------------------------------------ */

static struct hk_machine *machine_of(const struct hk_groups *g, uint32_t within)
{
  const struct hk_groups_place *p = g->place ? &g->place[within] : NULL;
  const bool is = p && p->machine && p->member == HK_GROUPS_SERIES &&
                  p->handle == hk_registry_handles(g->shard->all->registry)[hk_slot_outside(g->shard, within)];
  return is ? p->machine : NULL;
}

bool hk_groups_save(struct hk_groups *g, uint32_t within, struct hk_buffer *b, struct hk_groups_saved *out)
{
  struct hk_machine *m = machine_of(g, within);
  hk_groups_settle(g);
  if (!m)
    return false;
  *out = (struct hk_groups_saved){ .members = b->size, .told = m->told };
  for (uint32_t i = 0; i < m->n_handles; i++) {
    const struct hk_machine_member member = { m->handles[i], i };
    if (m->handles[i] == HK_NO_HANDLE)
      continue;
    hk_buffer_put(b, (const char *)&member, sizeof member);
    out->n_members++;
  }
  const size_t size = hk_machine_state_size(m);
  char *rows = hk_buffer_room(b, size);
  if (!rows || b->failed)
    return false;
  out->rows = b->size;
  out->rows_size = (uint32_t)size;
  hk_machine_write(m, rows);
  b->size += size;
  m->changes.cut = m->changes.n;
  return true;
}

bool hk_groups_save_told(struct hk_groups *g, uint32_t within, struct hk_buffer *b, struct hk_groups_saved *out,
                         struct hk_machine_memory *told)
{
  const struct hk_machine *m = machine_of(g, within);
  if (!m)
    return false;
  *told = (struct hk_machine_memory){ .slot = hk_slot_outside(g->shard, within),
                                      .number = m->alert.number,
                                      .told = out->told,
                                      .stands = m->alert.stands,
                                      .standing = m->alert.standing,
                                      .n_changes = m->changes.cut,
                                      .n_members = out->n_members,
                                      .rows_size = out->rows_size };
  out->changes = b->size;
  if (m->changes.cut > 0)
    hk_buffer_put(b, (const char *)m->changes.list, m->changes.cut * sizeof *m->changes.list);
  return !b->failed;
}

/* --- a start --------------------------------------------------------------------------------------------------------- */

int hk_groups_restore(struct hk_groups *g, const struct hk_machine_memory *memory, uint64_t position)
{
  const struct hk_registry *registry = g->shard->all->registry;
  struct hk_machine_name name;
  struct hk_machine *m;
  const uint32_t number = hk_registry_detector(registry, memory->slot);
  if (!hk_sections_group_by(g->sections, number, &name) || name.number != number ||
      !name.field == (g->kind == HK_GROUPS_FIELDS) || !name.first == (g->kind == HK_GROUPS_SECOND))
    return -EINVAL;
  const struct hk_groups_place *there = &g->place[hk_slot_within(g->shard->all, memory->slot)];
  if (there->machine && there->handle == hk_registry_handles(registry)[memory->slot])
    return -EBADMSG;
  struct hk_machine_place at = hk_groups_compute(g, &name);
  const int refusal = hk_machine_new(&m, &name, &at, memory->rows, memory->rows_size);
  if (refusal != 0 && (refusal != -EINVAL || hk_machine_new(&m, &name, &at, NULL, 0) != 0))
    return refusal == -EINVAL ? -ENOMEM : refusal;
  hk_groups_say_where(g, &name, &at);
  hk_groups_add(g, memory->slot, m);
  m->from = position;
  if (refusal != 0)
    return refusal;
  m->alert.number = memory->number;
  m->told = memory->told;
  m->alert.stands = memory->stands;
  m->alert.standing = memory->standing;
  m->alert.standing.slot = m->slot;
  m->alert.standing.index = UINT32_MAX;
  m->staying = hk_machine_members(m);
  g->count.members += m->staying;
  int status = memory->n_members == m->staying ? 0 : -EBADMSG;
  for (uint32_t i = 0; i < memory->n_members && status == 0; i++) {
    const struct hk_machine_member *member = &memory->members[i];
    if (member->handle == HK_NO_HANDLE || !hk_machine_has(m, member->number) ||
        (member->number < m->n_handles && m->handles[member->number] != HK_NO_HANDLE))
      status = -EBADMSG;
    else if (!hk_machine_number(m, member->number, member->handle))
      status = -ENOMEM;
  }
  for (uint32_t i = 0; i < memory->n_changes && status == 0; i++)
    status = hk_groups_note(m, &memory->changes[i]) ? 0 : -ENOMEM;
  return status;
}

/* Finds the number of a member that the machine had at its position. False: there is none. */
static bool number_of(const struct hk_machine *m, uint32_t handle, uint32_t *number)
{
  for (*number = 0; *number < m->n_handles; ++*number)
    if (m->handles[*number] == handle)
      return true;
  return false;
}

/* Determines the place of a sensor by the present state of the replay. */
static struct hk_groups_place *place_of(struct hk_groups *g, uint32_t within)
{
  struct hk_groups_place *p = &g->place[within];
  const uint32_t handle = hk_registry_handles(g->shard->all->registry)[hk_slot_outside(g->shard, within)];
  if (!hk_groups_known(g, p, handle))
    hk_groups_find(g, within, handle, true);
  return p;
}

/* A place whose machine takes points from here on. */
static void group_restore_settle(struct hk_groups *g, struct hk_groups_place *p)
{
  if (!number_of(p->machine, p->handle, &p->member) && !hk_groups_join(p))
    hk_groups_let_go(g, p);
}

bool hk_groups_takes(struct hk_groups *g, const struct hk_groups_replayed *r, struct hk_machine **machine, uint32_t *member)
{
  struct hk_groups_place *p = place_of(g, hk_slot_within(g->shard->all, r->slot));
  if (!p->machine || p->member == HK_GROUPS_SERIES || r->position < p->machine->from ||
      r->slot % r->shards != hk_slot_outside(p->machine->owner->shard, p->machine->slot) % r->shards)
    return false;
  if (p->member == HK_GROUPS_UNSETTLED)
    group_restore_settle(g, p);
  *machine = p->machine;
  *member = p->member;
  return p->machine;
}

static uint32_t replay(struct hk_groups *g, const struct hk_groups_replayed *r, const struct hk_columns *to, uint32_t at)
{
  struct hk_machine *m;
  uint32_t member;
  if (!hk_groups_takes(g, r, &m, &member))
    return at;
  const uint32_t end = hk_groups_take(m, member, r->time, r->value, to, at);
  for (; at < end; at++)
    to->slot[at] = hk_slot_outside(m->owner->shard, to->slot[at]);
  return end;
}

uint32_t hk_groups_replay(struct hk_groups *g, const struct hk_groups_replayed *point, const struct hk_columns *to, uint32_t at)
{
  if (!hk_groups_any(g))
    return at;
  const bool locked = hk_groups_lock(g);
  at = replay(g, point, to, at);
  hk_groups_unlock(g, locked);
  return at;
}

void hk_groups_registered(struct hk_groups *g)
{
  g->registered++;
}

void hk_groups_retired(struct hk_groups *g, uint32_t within)
{
  if (!hk_groups_any(g))
    return;
  const bool locked = hk_groups_lock(g);
  struct hk_groups_place *p = place_of(g, within);
  uint32_t number;
  if (p->machine && p->member == HK_GROUPS_UNSETTLED) {
    if (number_of(p->machine, p->handle, &number))
      p->member = number;
    else
      hk_groups_let_go(g, p);
  }
  if (p->machine && p->member == HK_GROUPS_SERIES)
    p->machine->ending = true;
  else if (p->machine)
    hk_groups_leave(g, p);
  hk_groups_unlock(g, locked);
}

/* --- end of the replay ----------------------------------------------------------------------------------------------- */

/* Gives each member of a machine its place; removes members whose sensor does not exist, is on another shard, or belongs
 * elsewhere. */
static void give_places(struct hk_groups *g, struct hk_machine *m)
{
  const struct hk_shards *all = g->shard->all;
  const uint32_t slots = hk_registry_slots(all->registry);
  for (uint32_t i = 0; i < m->n_handles; i++) {
    const uint32_t handle = m->handles[i], slot = handle & 0xffffff;
    struct hk_groups_place nowhere = { .machine = m, .handle = handle, .member = i };
    if (handle == HK_NO_HANDLE)
      continue;
    struct hk_groups *of = slot < slots ? hk_groups_of(g, slot) : g;
    struct hk_groups_place *p = slot < slots ? &of->place[hk_slot_within(all, slot)] : &nowhere;
    const bool placed = p->machine == m && p->handle == handle;
    const bool here = of == g && slot < slots && hk_registry_holds(all->registry, slot) &&
                      hk_registry_handles(all->registry)[slot] == handle && hk_groups_belongs(g, &nowhere, slot);
    m->places += !placed;
    if (here) {
      *p = nowhere; /* it had no point since, or was found already */
      g->used = hk_slot_within(all, slot) < g->used ? g->used : hk_slot_within(all, slot) + 1;
    } else {
      p = placed ? p : &nowhere;
      p->member = i;
      hk_groups_leave(of, p);
    }
  }
}

void hk_groups_go_on(struct hk_groups *g)
{
  struct hk_registry *registry = g->shard->all->registry;
  if (!hk_groups_any(g))
    return;
  const bool locked = hk_groups_lock(g);
  for (uint32_t i = 0; i < g->used; i++) {
    struct hk_groups_place *p = &g->place[i];
    const uint32_t slot = hk_slot_outside(g->shard, i);
    if (!p->machine || p->member != HK_GROUPS_SERIES)
      continue;
    give_places(g, p->machine);
    if (hk_machine_members(p->machine) == 0 && hk_registry_holds(registry, slot))
      hk_registry_retire(registry, slot);
  }
  for (uint32_t i = 0; i < g->used; i++)
    if (g->place[i].machine && g->place[i].member == HK_GROUPS_UNSETTLED)
      hk_groups_let_go(g, &g->place[i]);
  g->registered = 0; /* sensors without a series may get one now */
  g->era++;
  hk_groups_unlock(g, locked);
}
