#include "daemon/server/server.h"

void hk_server_sum(struct hk_server *s, struct hk_counters *sum)
{
  const struct hk_counters *of[HK_LOOPS_MAX + HK_SHARDS_MAX + 2];
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->shards.n + s->entry.n; i++)
    of[n++] = &hk_server_shard(s, i)->counters;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    of[n++] = &s->net.loops[i].counters;
  of[n++] = hk_web_counters(s->web);
  *sum = (struct hk_counters){ 0 };
  hk_counters_sum(sum, of, n);
  hk_peer_feeds_sum(&s->net.peer_feeds, sum);
}

uint32_t hk_server_alerts(struct hk_server *s, struct hk_standing *out, uint32_t most, struct hk_alerts_sum *sum)
{
  uint32_t n = 0;
  *sum = (struct hk_alerts_sum){ 0 };
  for (uint32_t i = 0; i < s->shards.n; i++) {
    struct hk_alerts_sum of;
    const uint32_t end = n + hk_alerts_show(s->shard[i].alerts, out ? out + n : NULL, most, &of);
    for (; n < end; n++)
      out[n].event.slot = hk_slot_outside(&s->shard[i], out[n].event.slot);
    sum->standing += of.standing;
    sum->acknowledged += of.acknowledged;
    for (int c = 0; c < HK_CHANNELS; c++)
      sum->of_channel[c] += of.of_channel[c];
  }
  return n;
}
