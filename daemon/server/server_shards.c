#include "daemon/server/server_shards.h"

#include "daemon/net/loop.h"
#include "daemon/scoring/backend_none.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/relay.h"
#include "daemon/scoring/shard_thread.h"
#include "daemon/sensors/slots.h"
#include "daemon/server/resource_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hk_server_prepare_shards(struct hk_server *s, const struct hk_backend_kind *kinds, void (*ended)(void *arg))
{
  const struct hk_cluster_rule *rule = &s->config->cluster;
  const bool relays = rule->role == HK_CLUSTER_GATEWAY;
  s->shards = (struct hk_shards){ .config = s->config,
                                  .kinds = relays ? hk_backend_kinds_none : kinds,
                                  .relays = relays,
                                  .log = &s->log,
                                  .durable = &s->durable,
                                  .n = hk_rlimit_shards(s->config, kinds),
                                  .n_loops = hk_rlimit_loops(s->config),
                                  .ended = ended,
                                  .arg = s };
  if (rule->role != HK_CLUSTER_ALL)
    return;
  s->entry = s->shards;
  s->entry.kinds = hk_backend_kinds_none;
  s->entry.relays = true;
  s->entry.shard = &s->entry_shard;
  s->entry.n = 1;
}

int hk_server_open_lanes(struct hk_server *s)
{
  const uint32_t shards = s->shards.n + s->entry.n, n = s->net.n_loops * shards,
                 chunks = hk_chunk_pool_chunks(s->net.capacity.loop_points, s->shards.n);
  int status = 0;
  s->net.lanes = aligned_alloc(_Alignof(struct hk_lane), n * sizeof *s->net.lanes);
  if (!s->net.lanes)
    return -ENOMEM;
  memset(s->net.lanes, 0, n * sizeof *s->net.lanes);
  for (uint32_t i = 0; i < n && status == 0; i++) {
    struct hk_lane *lane = &s->net.lanes[i];
    struct hk_loop *loop = &s->net.loops[i % s->net.n_loops];
    lane->loop = &loop->wake;
    lane->subscriptions = &loop->shared.subscriptions;
    lane->shard = &hk_server_shard(s, i / s->net.n_loops)->life.wake;
    status = hk_lane_open(lane, chunks);
  }
  return status;
}

int hk_server_open_shards(struct hk_server *s, char *error, size_t size)
{
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const int status = hk_shard_open(&s->shard[i], &s->shards, i, &s->net.lanes[i * s->net.n_loops], error, size);
    if (status != 0)
      return status;
    hk_registry_move(s->shards.registry, i, &s->shard[i].device->binding, NULL, NULL);
    s->durable.wake[i] = &s->shard[i].life.wake;
    s->shard[i].replaying = true;
  }
  if (s->entry.n > 0) {
    const int status = hk_shard_open(&s->entry_shard, &s->entry, 0, &s->net.lanes[s->shards.n * s->net.n_loops], error, size);
    if (status != 0)
      return status;
    hk_registry_move(s->entry.registry, 0, &s->entry_shard.device->binding, NULL, NULL);
  }
  for (uint32_t i = 0; i < s->net.n_loops; i++) {
    const uint32_t number = i % s->shards.n;
    hk_loop_picture_device(&s->net.loops[i], s->shard[number].device->kind->pictures, number);
  }
  if (s->net.entry->relays) {
    snprintf(error, size, "no memory for a gateway");
    return hk_relay_new(&s->net.entry->relay, s->config, s->net.entry->registry, &s->net.entry->shard[0].life.wake);
  }
  if (hk_shard_excuse(&s->shard[0])[0])
    hk_log(&s->log, HK_LOG_INFO, "backend = auto: scoring on the CPU, not on the GPU: %s", hk_shard_excuse(&s->shard[0]));
  return 0;
}
