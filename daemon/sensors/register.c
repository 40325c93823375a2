#include "daemon/sensors/register.h"

#include "daemon/sensors/registry_internal.h"
#include "proto/wire/name.h"

/* Names to find: the result for each, or PENDING. At most TOGETHER of them, so that readers wait for a fraction of a
 * millisecond at most. */
#define TOGETHER 256u
#define PENDING UINT32_MAX

/* Finds detectors for pending names; refuses names without one, and those of series that the daemon makes. */
static void find_detectors(const struct hk_sections *sections, uint32_t first, uint32_t n, struct hk_registry_wanted *wanted,
                           uint32_t *refusals)
{
  for (uint32_t i = first; i < n; i++) {
    if (refusals[i] != PENDING)
      continue;
    const struct hk_section *section = hk_sections_find(sections, wanted[i].key.name, wanted[i].key.entry.length);
    wanted[i].section = section;
    if (hk_sections_derived(sections, wanted[i].key.name, wanted[i].key.entry.length))
      refusals[i] = HANKEL_RESERVED;
    else if (section)
      wanted[i].key.entry.detector = (uint16_t)section->number;
    else
      refusals[i] = HANKEL_NO_DETECTOR;
  }
}

/* An existing sensor: returns 0 and its slot, or a refusal if it is not for peers. */
static uint32_t found_at(const struct hk_registry *r, const struct hk_registry_sensor *found, uint32_t *slot)
{
  *slot = found->entry.slot;
  return hk_registry_is_derived(r, found) ? HANKEL_RESERVED : 0;
}

/* Makes sensors of pending names, up to the end or to a failure of a device, whose index is returned. sections: those by which
 * their detectors were found. */
static uint32_t add_pending(struct hk_registry *r, const struct hk_sections *sections, uint32_t first, uint32_t n,
                            struct hk_registry_wanted *wanted, uint32_t *slots, uint32_t *refusals,
                            struct hk_registry_failure *failure)
{
  uint32_t i = first;
  failure->any = false;
  pthread_rwlock_wrlock(&r->lock);
  if (r->sections != sections) /* a reload came meanwhile */
    find_detectors(r->sections, first, n, wanted, refusals);
  for (; i < n; i++) {
    if (refusals[i] != PENDING)
      continue;
    const struct hk_registry_sensor *found =
        hk_registry_look(r, &wanted[i].key, wanted[i].hashed); /* another thread may have added it meanwhile */
    refusals[i] = found ? found_at(r, found, &slots[i]) : (uint32_t)hk_registry_add(r, &wanted[i], &slots[i], failure);
    if (failure->any)
      break;
  }
  pthread_rwlock_unlock(&r->lock);
  return i;
}

/* Takes n <= TOGETHER names; refusals: 0 for a valid one, else the reason. */
static void take_some(struct hk_registry *r, uint64_t owner, uint32_t n, const struct hk_string *names, uint32_t *slots,
                      uint32_t *refusals)
{
  struct hk_registry_wanted wanted[TOGETHER];
  bool pending = false;
  for (uint32_t i = 0; i < n; i++) {
    if (refusals[i] != 0)
      continue;
    wanted[i].key = (struct hk_registry_key){ { HK_REGISTRY_KEY, (uint16_t)names[i].length, 0 }, names[i].data };
    wanted[i].hashed = CK_HS_HASH(&r->table, hk_registry_hash, &wanted[i].key);
    wanted[i].owner = owner;
  }
  pthread_rwlock_rdlock(&r->lock);
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_registry_sensor *found = refusals[i] == 0 ? hk_registry_look(r, &wanted[i].key, wanted[i].hashed) : NULL;
    if (found)
      refusals[i] = found_at(r, found, &slots[i]);
    else if (refusals[i] == 0)
      refusals[i] = PENDING;
    pending |= refusals[i] == PENDING;
  }
  struct hk_sections *sections = pending ? hk_sections_hold(r->sections) : NULL;
  /* so that a flood of names blocks no reader */
  const uint32_t crowded = r->crowded && r->taken == r->max_sensors ? HANKEL_FULL
                           : pending && hk_registry_spent(r, owner) ? HANKEL_QUOTA
                                                                    : 0;
  pthread_rwlock_unlock(&r->lock);
  if (!pending)
    return;
  find_detectors(sections, 0, n, wanted, refusals);
  for (uint32_t i = 0; i < n && crowded; i++)
    if (refusals[i] == PENDING)
      refusals[i] = crowded;
  for (uint32_t i = 0, tried = n; i < n && !crowded;) { /* tried: the name at which a device last failed; it is retried once */
    struct hk_registry_failure failure;
    i = add_pending(r, sections, i, n, wanted, slots, refusals, &failure);
    if (i == n)
      break;
    if (i != tried && r->hooks.failed) {
      r->hooks.failed(r->hooks.failed_arg, failure.shard, failure.device, failure.why);
      refusals[i] = PENDING;
      tried = i;
    } else {
      i++;
    }
  }
  hk_sections_release(sections);
}

void hk_registry_take_all(struct hk_registry *r, uint64_t owner, uint32_t n, const struct hk_string *names, uint32_t *slots,
                          uint32_t *refusals)
{
  for (uint32_t at = 0; at < n; at += TOGETHER) {
    const uint32_t some = n - at < TOGETHER ? n - at : TOGETHER;
    for (uint32_t i = at; i < at + some; i++)
      refusals[i] = hk_name_valid(names[i].data, names[i].length) ? 0 : HANKEL_BAD_NAME;
    take_some(r, owner, some, names + at, slots + at, refusals + at);
  }
}

int hk_registry_take_valid(struct hk_registry *r, uint64_t owner, const char *name, size_t length, uint32_t *slot)
{
  const struct hk_string names = { name, length };
  uint32_t refusal = 0;
  take_some(r, owner, 1, &names, slot, &refusal);
  return (int)refusal;
}

int hk_registry_take(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  return hk_name_valid(name, length) ? hk_registry_take_valid(r, 0, name, length, slot) : HANKEL_BAD_NAME;
}
