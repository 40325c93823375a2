#include "daemon/server/progress.h"

#include "daemon/server/server.h"

static int64_t progress_reached(const struct hk_shard *shard)
{
  return atomic_load_explicit(&shard->taking.reach.reached, memory_order_acquire);
}

/* For how long it has had no points, ns; -1: it has some. */
static int64_t progress_rests(const struct hk_shard *shard)
{
  const int64_t since = atomic_load_explicit(&shard->taking.reach.rests, memory_order_acquire);
  return since == 0 ? -1 : hk_now() - since;
}

int64_t hk_progress_ticks(void *server, uint64_t shards)
{
  const struct hk_server *s = server;
  int64_t least = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const int64_t of = progress_reached(&s->shard[i]);
    if (!(shards >> i & 1))
      continue;
    if (of == 0)
      return 0;
    least = least == 0 || of < least ? of : least;
  }
  return least;
}

int64_t hk_progress_ends(void *server, int64_t silence)
{
  const struct hk_server *s = server;
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    if (progress_rests(&s->shard[i]) >= silence)
      continue;
    const int64_t of = progress_reached(&s->shard[i]);
    if (of == 0)
      return 0;
    least = of < least ? of : least;
  }
  return least;
}
