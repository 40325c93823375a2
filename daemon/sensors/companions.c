/* A sensor and its companions: sensors whose further algorithms get the same points. They form a ring by next pointers. A
 * companion belongs to the sensor whose name begins its own name. */
#include "daemon/sensors/companions.h"
#include "daemon/sensors/registry_internal.h"

#include <string.h>

bool hk_registry_companion(const struct hk_registry *r, const struct hk_registry_key *of, uint32_t number, char text[HK_NAME_MAX],
                           struct hk_registry_key *out)
{
  const char *suffix = strchr(hk_registry_detector_of(r, number)->name, HK_DERIVED_MARK); /* it has one */
  const size_t length = of->entry.length + strlen(suffix);
  if (length > HK_NAME_MAX)
    return false;
  memcpy(text, of->name, of->entry.length);
  memcpy(text + of->entry.length, suffix, length - of->entry.length);
  *out = (struct hk_registry_key){ { HK_REGISTRY_KEY, (uint16_t)length, (uint16_t)number }, text };
  return true;
}

size_t hk_registry_of(const struct hk_registry_sensor *s)
{
  return (size_t)(strrchr(s->text, HK_DERIVED_MARK) - s->text);
}

/* The slot after this one in its ring; itself if it is alone. */
static uint32_t next_of(const struct hk_registry *r, uint32_t slot)
{
  const uint32_t next = atomic_load_explicit(&r->slot.companion[slot], memory_order_acquire);
  return next == 0 ? slot : next - 1;
}

static const struct hk_registry_sensor *companions_find(struct hk_registry *r, const struct hk_registry_key *key)
{
  return hk_registry_look(r, key, CK_HS_HASH(&r->table, hk_registry_hash, key));
}

/* companion: not in a ring. */
static void link_to(struct hk_registry *r, uint32_t slot, uint32_t companion)
{
  atomic_store_explicit(&r->slot.companion[companion], 1 + next_of(r, slot), memory_order_release);
  atomic_store_explicit(&r->slot.companion[slot], 1 + companion, memory_order_release);
}

void hk_registry_join(struct hk_registry *r, const struct hk_registry_sensor *s)
{
  const uint32_t slot = s->entry.slot;
  if (hk_registry_is_series(r, s))
    return;
  if (hk_registry_is_derived(r, s)) {
    const struct hk_registry_key key = { { HK_REGISTRY_KEY, (uint16_t)hk_registry_of(s), 0 }, s->text };
    const struct hk_registry_sensor *of = companions_find(r, &key);
    if (of && !hk_registry_is_derived(r, of))
      link_to(r, of->entry.slot, slot);
    return;
  }
  /* During a restore its companions may exist before it. */
  const struct hk_section *section = r->restoring && r->n_derived > 0 ? hk_sections_of(r->sections, s->entry.detector) : NULL;
  for (uint32_t i = 0; section && i < section->n_companions; i++) {
    char text[HK_NAME_MAX];
    struct hk_registry_key key;
    const struct hk_registry_key of = { s->entry, s->text };
    const struct hk_registry_sensor *found =
        hk_registry_companion(r, &of, section->companion[i], text, &key) ? companions_find(r, &key) : NULL;
    if (found && hk_registry_is_derived(r, found) && next_of(r, found->entry.slot) == found->entry.slot)
      link_to(r, slot, found->entry.slot);
  }
}

void hk_registry_leave(struct hk_registry *r, uint32_t slot)
{
  const uint32_t next = next_of(r, slot);
  uint32_t before = slot;
  while (next_of(r, before) != slot)
    before = next_of(r, before);
  atomic_store_explicit(&r->slot.companion[before], next == before ? 0 : 1 + next, memory_order_release);
  atomic_store_explicit(&r->slot.companion[slot], 0, memory_order_release);
}

uint32_t hk_registry_next_companion(const struct hk_registry *r, uint32_t slot)
{
  return next_of(r, slot);
}

bool hk_registry_derived(const struct hk_registry *r, uint32_t slot)
{
  return hk_registry_is_derived(r, hk_registry_at(r, slot));
}

uint32_t hk_registry_primary(const struct hk_registry *r, uint32_t slot)
{
  uint32_t of = next_of(r, slot);
  while (of != slot && hk_registry_derived(r, of))
    of = next_of(r, of);
  return of;
}

struct hk_string hk_registry_shared_name(const struct hk_registry *r, uint32_t slot, char room[HK_NAME_MAX])
{
  const uint32_t primary = hk_registry_primary(r, slot);
  const struct hk_string name = hk_registry_name(r, primary);
  const struct hk_config_detector *d = hk_registry_detector_of(r, hk_registry_detector(r, primary));
  const size_t group = d && d->second ? strlen(d->name + 1) : 0, suffix = strlen(HK_SECOND_SUFFIX);
  if (group < suffix || name.length < group)
    return name;
  memcpy(room, name.data, group - suffix);
  memcpy(room + group - suffix, name.data + group, name.length - group);
  return (struct hk_string){ room, name.length - suffix };
}

struct hk_string hk_registry_shared_name_of(struct hk_registry *r, struct hk_string name, char room[HK_NAME_MAX])
{
  struct hk_machine_name machine;
  uint32_t slot;
  if (hk_registry_find(r, name.data, name.length, &slot) == 0)
    return hk_registry_shared_name(r, slot, room);
  if (hk_sections_machine(r->sections, name.data, name.length, &machine)) {
    machine.group = machine.first ? machine.first : machine.group;
    const size_t length = hk_sections_series(&machine, room);
    return length > 0 ? (struct hk_string){ room, length } : name;
  }
  if (hk_sections_derived(r->sections, name.data, name.length))
    name.length = (size_t)((const char *)memrchr(name.data, HK_DERIVED_MARK, name.length) - name.data);
  return name;
}

size_t hk_registry_machine_of(const struct hk_registry *r, struct hk_string name, char out[HK_NAME_MAX])
{
  struct hk_machine_name machine;
  if ((!hk_sections_machine(r->sections, name.data, name.length, &machine) || machine.field) &&
      !hk_sections_group(r->sections, name.data, name.length, &machine))
    return 0;
  machine.group = machine.first ? machine.first : machine.group;
  return hk_sections_series(&machine, out);
}

bool hk_registry_accompanies(const struct hk_registry *r, const struct hk_sections *sections, uint32_t slot)
{
  const uint32_t of = hk_registry_primary(r, slot);
  const struct hk_section *section = of == slot ? NULL : hk_sections_of(sections, hk_registry_detector(r, of));
  for (uint32_t i = 0; section && i < section->n_companions; i++)
    if (section->companion[i] == hk_registry_detector(r, slot))
      return of % r->n_shards == slot % r->n_shards;
  return false;
}
