/* Restores the sensors of a partition that comes: windows, alerts, sequences, rates of counters, machines. As at a start from
 * snapshots (server/load_snapshots.c); but other sensors exist already and continue, so each gets a free slot, and the order's
 * map translates slots of the machine that wrote the file. */
#include "daemon/scoring/partition_import.h"

#include "daemon/scoring/evict.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/provisional_results.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- sensors --------------------------------------------------------------------------------------------------------------- */

/* The shard of a derived sensor without a primary: that of its sensor, or of its machine. */
static uint32_t home_of(const struct hk_shard *s, const struct hk_config_detector *d, struct hk_string name)
{
  uint32_t slot;
  if (d->residual) {
    while (name.length > 0 && name.data[--name.length] != HK_DERIVED_MARK)
      ;
    hk_registry_read(s->all->registry);
    const bool there = hk_registry_find(s->all->registry, name.data, name.length, &slot) == 0;
    hk_registry_read_end(s->all->registry);
    return there ? slot % s->all->n : 0;
  }
  char room[HK_NAME_MAX];
  struct hk_sections *sections = NULL;
  if (s->all->n > 1 && hk_sections_new(&sections, s->config) == 0)
    name = hk_sections_home(sections, d->number, name, room);
  const uint32_t home = (uint32_t)(hk_seed(name.data, name.length) % s->all->n);
  hk_sections_release(sections);
  return home;
}

/* Finds the slot of a name. Peers' sensors exist by now, with their companions; series of machines and of members of fields
 * are made here. False: none, or on another shard; *gone: on no shard. */
static bool find_slot(struct hk_shard *s, struct hk_string name, const char *detector, uint32_t *slot, bool *gone)
{
  struct hk_registry *registry = s->all->registry;
  hk_registry_read(registry);
  const bool there = hk_registry_find(registry, name.data, name.length, slot) == 0;
  hk_registry_read_end(registry);
  *gone = false;
  if (there)
    return *slot % s->all->n == s->number;
  for (uint32_t i = 0; i < s->config->n_detectors; i++) {
    const struct hk_config_detector *d = &s->config->detectors[i];
    if (!d->group || strcmp(d->name, detector) != 0)
      continue;
    if (home_of(s, d, name) != s->number)
      return false;
    *gone = hk_registry_series(registry, s->number, name.data, name.length, d->number, slot) != 0;
    return !*gone;
  }
  *gone = s->number == 0;
  return false;
}

static bool import(struct hk_shard *s, uint32_t within, const struct hk_snapshot_sensor *sensor)
{
  struct hk_device *device = s->device;
  if (sensor->state_size == 0)
    return false;
  pthread_mutex_lock(&device->calls);
  const int status = device->backend->ops->import_(device->backend, within, sensor->state, sensor->state_size);
  pthread_mutex_unlock(&device->calls);
  return status == 0;
}

/* Restores its alerts, and the numbers that a sensor continues if it starts over. */
static int remember(struct hk_shard *s, uint32_t slot, const struct hk_snapshot_sensor *sensor, bool anew)
{
  const uint32_t within = hk_slot_within(s->all, slot);
  int status = 0;
  if (anew && sensor->alerts.number > 0) {
    const struct hk_config_detector *d = hk_registry_detector_of(s->all->registry, hk_registry_detector(s->all->registry, slot));
    pthread_mutex_lock(&s->device->calls);
    status = hk_device_carry_number(s->device->backend, &d->detector, within, sensor->alerts.number);
    pthread_mutex_unlock(&s->device->calls);
  }
  if (status == 0)
    status = hk_alerts_set(s->alerts, within, &sensor->alerts);
  if (status == 0 && anew)
    (void)hk_shard_clear(s, &slot, 1);
  return status;
}

static int take_sensor(struct hk_shard *s, struct hk_partition_order *o, const struct hk_snapshot_sensor *sensor)
{
  uint32_t slot;
  bool gone;
  if (sensor->detector >= o->n_detectors || sensor->slot >= o->slots)
    return -EBADMSG;
  const char *detector = o->detectors[sensor->detector];
  if (!find_slot(s, sensor->name, detector, &slot, &gone)) {
    o->gone += gone;
    return 0;
  }
  const bool same =
      strcmp(hk_registry_detector_of(s->all->registry, hk_registry_detector(s->all->registry, slot))->name, detector) == 0;
  const bool anew = !same || !import(s, hk_slot_within(s->all, slot), sensor);
  o->map[sensor->slot] = slot;
  o->sensors++;
  o->anew += anew;
  return remember(s, slot, sensor, anew);
}

/* --- machines and counters ------------------------------------------------------------------------------------------------- */

/* Finds the slot of the shard for one of the file. False: it is not of this shard, or does not exist. */
static bool translate(const struct hk_shard *s, const struct hk_partition_order *o, uint32_t slot, uint32_t *out)
{
  *out = slot < o->slots ? o->map[slot] : UINT32_MAX;
  return *out != UINT32_MAX && *out % s->all->n == s->number && hk_registry_holds(s->all->registry, *out);
}

static int take_machine(struct hk_shard *s, struct hk_partition_order *o, const struct hk_machine_memory *from)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_machine_memory memory = *from;
  uint32_t slot;
  if (!translate(s, o, from->slot, &memory.slot))
    return 0;
  struct hk_machine_member *members = malloc((from->n_members + 1) * sizeof *members);
  if (!members)
    return -ENOMEM;
  bool all = true;
  for (uint32_t i = 0; i < from->n_members && all; i++) {
    all = translate(s, o, from->members[i].handle & 0xffffff, &slot);
    if (all)
      members[i] = (struct hk_machine_member){ hk_registry_handle(registry, slot), from->members[i].number };
  }
  memory.members = members;
  struct hk_groups *groups = hk_groups_with(s, hk_registry_detector_of(registry, hk_registry_detector(registry, memory.slot)));
  int status = all ? hk_groups_restore(groups, &memory, hk_commit_gate_position(&s->gate)) : -EINVAL;
  free(members);
  o->anew += status == -EINVAL;
  return status == -EINVAL ? 0 : status;
}

static int take_counter(struct hk_shard *s, const struct hk_partition_order *o, const struct hk_snapshot_counter *c)
{
  uint32_t slot;
  return translate(s, o, c->slot, &slot) ? hk_rates_restore(s, hk_slot_within(s->all, slot), &c->rate) : 0;
}

static int partition_import_take_provisional(struct hk_shard *s, const struct hk_partition_order *o,
                                             const struct hk_snapshot_provisional *p)
{
  uint32_t slot;
  return translate(s, o, p->slot, &slot) ? hk_provisional_go_on(s, hk_slot_within(s->all, slot), p->saved, p->size) : 0;
}

void hk_partition_import(struct hk_shard *s, struct hk_partition_order *o)
{
  struct hk_snapshot_sensor sensor;
  struct hk_machine_memory machine;
  struct hk_snapshot_counter counter;
  struct hk_snapshot_provisional provisional;
  uint8_t generation;
  size_t at = 0;
  int more = 1;
  o->status = 0;
  while (o->status == 0 && more > 0) {
    more = o->what == HK_PARTITION_SENSORS    ? hk_snapshot_sensor_next(o->part, &at, &sensor)
           : o->what == HK_PARTITION_MACHINES ? hk_snapshot_machine_next(o->part, &at, &machine, &generation)
           : o->what == HK_PARTITION_COUNTERS ? hk_snapshot_counter_next(o->part, &at, &counter)
                                              : hk_snapshot_provisional_next(o->part, &at, &provisional);
    o->status = more <= 0                          ? more
                : o->what == HK_PARTITION_SENSORS  ? take_sensor(s, o, &sensor)
                : o->what == HK_PARTITION_MACHINES ? take_machine(s, o, &machine)
                : o->what == HK_PARTITION_COUNTERS ? take_counter(s, o, &counter)
                                                   : partition_import_take_provisional(s, o, &provisional);
  }
  if (o->status == 0 && o->what == HK_PARTITION_MACHINES) {
    hk_groups_go_on(s->machines.groups);
    hk_groups_go_on(s->machines.seconds);
    hk_groups_go_on(s->machines.fields);
  }
}
