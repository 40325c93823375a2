/* The start of durability: what there was is restored before anybody is served. Shards run, loops do not. */
#include "daemon/server.h"

#include "daemon/durable/recover.h"

#include <errno.h>
#include <stdlib.h>

int hk_server_restore(struct hk_server *s, char *error, size_t size)
{
  struct hk_durable *d = &s->durable;
  const struct hk_restored restored = { 0 };
  struct hk_recovery *recovery = calloc(1, sizeof *recovery);
  int status = 0;
  if (!recovery) {
    snprintf(error, size, "no memory to restore the state");
    return -ENOMEM;
  }
  *recovery = (struct hk_recovery){ .durable = d,
                                    .registry = s->shards.registry,
                                    .shard = s->shard,
                                    .outlet = &s->loops[0].outlet,
                                    .counters = &s->loops[0].counters,
                                    .max_sensors = s->config->max_sensors,
                                    .restored = &restored };
  if (d->mode != HK_DURABILITY_NONE)
    status = hk_recover(recovery, error, size);
  if (status == 0)
    status = hk_durable_begin(d, recovery->position, s->shards.registry, error, size);
  for (uint32_t i = 0; status == 0 && i < s->shards.n; i++) {
    s->shard[i].position = recovery->position[i];
    s->shard[i].replaying = false;
    atomic_store_explicit(&s->shard[i].journal, d->journal[i], memory_order_release);
  }
  s->replayed = recovery->points;
  free(recovery);
  return status;
}
