#include "daemon/scoring/held_partitions.h"

#include "cpu/monotonic.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/partition_import.h"
#include "daemon/scoring/partition_of.h"
#include "daemon/sensors/companions.h"
#include "proto/wire/partition.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 100000000 /* ns between two checks whether to go on waiting */

/* The partition of a slot. */
struct place {
  uint32_t handle; /* of the sensor whose partition this is */
  uint32_t partition;
};

struct hk_partitions {
  uint32_t n;
  const struct hk_config *config; /* the configuration of these sections */
  struct hk_sections *sections;
  struct place *place; /* by slot within the shard */

  pthread_mutex_t lock; /* protects the following */
  pthread_cond_t done;
  struct hk_partition_order *_Atomic order; /* NULL: none */
  struct hk_held_partition *held;           /* n_held of `room` */
  uint32_t n_held, room;
};

int hk_partitions_new(struct hk_partitions **out, const struct hk_config *config, uint32_t slots)
{
  struct hk_partitions *p = calloc(1, sizeof *p);
  if (!p)
    return -ENOMEM;
  *out = p;
  p->n = config->cluster.partitions;
  p->config = config;
  pthread_mutex_init(&p->lock, NULL);
  hk_monotonic_condition(&p->done);
  p->place = malloc(slots * sizeof *p->place);
  for (uint32_t i = 0; p->place && i < slots; i++)
    p->place[i].handle = HK_NO_HANDLE;
  p->held = calloc(p->n, sizeof *p->held);
  p->room = p->n;
  return p->place && p->held ? hk_sections_new(&p->sections, config) : -ENOMEM;
}

void hk_partitions_free(struct hk_partitions *p)
{
  if (!p)
    return;
  for (uint32_t i = 0; i < p->n_held; i++)
    close(p->held[i].folder);
  hk_sections_release(p->sections);
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
  free(p->held);
  free(p->place);
  free(p);
}

int hk_partitions_ask(struct hk_shard *s, struct hk_partition_order *order, bool (*stops)(void *arg), void *arg)
{
  struct hk_partitions *p = s->requests.partitions;
  int status = 0;
  pthread_mutex_lock(&p->lock);
  atomic_store(&p->order, order);
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
  while (atomic_load(&p->order) && status == 0) {
    const struct timespec until = hk_monotonic_limit(PATIENCE);
    (void)pthread_cond_timedwait(&p->done, &p->lock, &until);
    if (atomic_load(&p->order) && stops(arg))
      status = -ECANCELED;
  }
  atomic_store(&p->order, NULL);
  pthread_mutex_unlock(&p->lock);
  return status != 0 ? status : order->status;
}

/* --- the shard's side ------------------------------------------------------------------------------------------------------ */

/* A derived sensor has the partition of the sensors that it is derived from. */
static uint32_t find_partition(const struct hk_shard *s, const struct hk_partitions *p, uint32_t slot)
{
  const struct hk_registry *registry = s->all->registry;
  const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
  struct hk_string name = hk_registry_name(registry, hk_registry_primary(registry, slot));
  char room[HK_NAME_MAX];
  if (d && d->group && !d->residual) {
    name = hk_sections_home(p->sections, hk_registry_detector(registry, slot), name, room);
    return hk_partition(name.data, name.length, p->n);
  }
  while (d && d->residual && name.length > 0 && name.data[--name.length] != HK_DERIVED_MARK)
    ;
  return hk_partition_of(p->sections, name, p->n);
}

uint32_t hk_shard_partition(struct hk_shard *s, uint32_t slot)
{
  struct hk_partitions *p = s->requests.partitions;
  struct place *place = &p->place[hk_slot_within(s->all, slot)];
  const uint32_t handle = hk_registry_handle(s->all->registry, slot);
  struct hk_sections *sections;
  if (p->config != s->config && hk_sections_new(&sections, s->config) == 0) {
    hk_sections_release(p->sections);
    p->sections = sections;
    p->config = s->config;
    for (uint32_t i = 0; hk_slot_outside(s, i) < hk_registry_slots(s->all->registry); i++)
      p->place[i].handle = HK_NO_HANDLE;
  }
  if (place->handle != handle)
    *place = (struct place){ handle, find_partition(s, p, slot) };
  return place->partition;
}

/* To call under the lock. */
static struct hk_held_partition *held_partitions_find(struct hk_partitions *p, uint32_t partition)
{
  for (uint32_t i = 0; i < p->n_held; i++)
    if (p->held[i].partition == partition)
      return &p->held[i];
  return NULL;
}

/* Takes over its folder. */
static void held_partitions_hold(struct hk_partitions *p, const struct hk_held_partition *held)
{
  struct hk_held_partition *there = held_partitions_find(p, held->partition);
  if (there)
    close(there->folder);
  else
    there = &p->held[p->n_held++];
  *there = *held;
}

static void held_partitions_leave(struct hk_shard *s, struct hk_partition_order *o)
{
  struct hk_partitions *p = s->requests.partitions;
  struct hk_held_partition *held = held_partitions_find(p, o->held.partition);
  const uint32_t slots = hk_registry_slots(s->all->registry);
  uint32_t *list = malloc((hk_registry_count(s->all->registry) + 1) * HK_LEAVING_MOST * sizeof *list), n = 0;
  if (held) {
    close(held->folder);
    *held = p->held[--p->n_held];
  }
  if (!list) {
    o->status = -ENOMEM;
    return;
  }
  for (uint32_t i = 0; hk_slot_outside(s, i) < slots; i++) {
    const uint32_t slot = hk_slot_outside(s, i);
    if (hk_registry_holds(s->all->registry, slot) && !hk_registry_derived(s->all->registry, slot) &&
        hk_shard_partition(s, slot) == o->held.partition)
      n = hk_shard_with_companions(s, slot, list, n);
  }
  o->sensors += n;
  if (n > 0)
    hk_shard_retire(s, list, n, HK_RETIRE_MOVED);
  else
    free(list);
}

bool hk_shard_partitions_wait(const struct hk_shard *s)
{
  return s->requests.partitions && atomic_load_explicit(&s->requests.partitions->order, memory_order_relaxed);
}

bool hk_shard_take_partitions(struct hk_shard *s)
{
  struct hk_partitions *p = s->requests.partitions;
  if (!hk_shard_partitions_wait(s) || (s->device && hk_queue_in_flight(&s->queue) > 0))
    return false;
  pthread_mutex_lock(&p->lock);
  struct hk_partition_order *o = atomic_load(&p->order);
  if (o && !s->device)
    o->status = -EAGAIN;
  else if (o && o->what == HK_PARTITION_HOLD)
    held_partitions_hold(p, &o->held);
  else if (o && o->what == HK_PARTITION_LATEST)
    hk_reach_learn(&s->taking.reach, o->part->arrival);
  else if (o && o->what == HK_PARTITION_LEAVE)
    held_partitions_leave(s, o);
  else if (o)
    hk_partition_import(s, o);
  atomic_store(&p->order, NULL);
  pthread_cond_signal(&p->done);
  pthread_mutex_unlock(&p->lock);
  return true;
}

/* --- the saver's ----------------------------------------------------------------------------------------------------------- */

int32_t hk_partitions_copy(struct hk_partitions *p, struct hk_held_partition **out)
{
  int32_t n = 0;
  pthread_mutex_lock(&p->lock);
  *out = malloc((p->n_held + 1) * sizeof **out);
  for (uint32_t i = 0; *out && n >= 0 && i < p->n_held; i++) {
    (*out)[i] = p->held[i];
    (*out)[i].folder = fcntl(p->held[i].folder, F_DUPFD_CLOEXEC, 0);
    if ((*out)[i].folder < 0) {
      while (i-- > 0)
        close((*out)[i].folder);
      n = -EMFILE;
      break;
    }
    n++;
  }
  pthread_mutex_unlock(&p->lock);
  if (n < 0) {
    free(*out);
    *out = NULL;
  }
  return *out ? n : n < 0 ? n : -ENOMEM;
}

bool hk_partitions_hold(struct hk_partitions *p, const struct hk_held_partition *held)
{
  pthread_mutex_lock(&p->lock);
  const struct hk_held_partition *there = held_partitions_find(p, held->partition);
  const bool is = there && there->epoch == held->epoch;
  pthread_mutex_unlock(&p->lock);
  return is;
}
