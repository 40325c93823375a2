/* Results that are late: see late_results.h. */
#include "daemon/scoring/late_results.h"

#include "daemon/scoring/late_points.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/companions.h"

static void late_results_tell(struct hk_shard *s, uint32_t within, int64_t time)
{
  struct hk_registry *registry = s->all->registry;
  char says[HK_TIME_TEXT_MAX], is[HK_TIME_TEXT_MAX];
  hk_time_text(time / 1000000000, says);
  hk_time_text(hk_wall() / 1000000000, is);
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, hk_slot_outside(s, within));
  hk_log_peer(s->all->log, &s->quotas.late.quota, HK_LOG_WARNING, "points",
              "sensor %.*s: for %.0f s all its points have been late, not after its last one before, and are ignored: the time "
              "of this one is %s, this machine's clock says %s; look at the sender's clock",
              (int)name.length, name.data, (double)HK_LATE_PATIENCE * 1e-9, says, is);
  hk_registry_read_end(registry);
}

/* Notes a point that was late; now: ns, hk_now. Returns whether it is derived. */
static bool late_results_point(struct hk_shard *s, uint32_t within, int64_t time, int64_t now)
{
  if (hk_registry_derived(s->all->registry, hk_slot_outside(s, within)))
    return true;
  if (!s->replaying && hk_late_take(&s->quotas.late, within, now))
    late_results_tell(s, within, time);
  return false;
}

void hk_late_note(struct hk_shard *s, struct hk_delivery *p)
{
  const struct hk_batch *b = p->batch;
  const int64_t now = hk_now();
  p->derived.late = p->derived.rejected = 0;
  hk_late_count(&s->quotas.late, b->n, (uint32_t)p->late, now);
  if (p->late + p->rejected == 0 && s->quotas.late.n == 0)
    return;
  for (uint32_t run = 0, i = 0; run < p->n_runs; run++) {
    uint32_t late = 0, rejected = 0;
    for (const uint32_t end = i + p->runs[run].n; i < end && i < b->n; i++) {
      if (b->state[i] == HK_STATE_LATE) {
        const bool is_derived = late_results_point(s, b->slot[i], b->time[i], now);
        p->derived.late += is_derived;
        late += !is_derived;
      } else if (b->state[i] == HK_STATE_REJECTED) {
        const bool is_derived = hk_registry_derived(s->all->registry, hk_slot_outside(s, b->slot[i]));
        p->derived.rejected += is_derived;
        rejected += !is_derived;
      } else if (s->quotas.late.n > 0) {
        hk_late_end(&s->quotas.late, b->slot[i]);
      }
    }
    if (late + rejected > 0)
      hk_source_note(p->runs[run].source, late, rejected);
  }
}
