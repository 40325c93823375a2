#include "daemon/server/server.h"

void hk_server_sum(struct hk_server *s, struct hk_counters *sum)
{
  const struct hk_counters *of[HK_LOOPS_MAX + HK_SHARDS_MAX + 1];
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->shards.n; i++)
    of[n++] = &s->shard[i].counters;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    of[n++] = &s->net.loops[i].counters;
  of[n++] = hk_web_counters(s->web);
  *sum = (struct hk_counters){ 0 };
  hk_counters_sum(sum, of, n);
  hk_seats_sum(&s->net.seats, sum);
}
