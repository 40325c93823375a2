/* Provisional scores of a shard. Batches are not examined if no detector in force wants any. */
#include "daemon/scoring/provisional_results.h"

#include "daemon/scoring/shard.h"

#include <errno.h>

_Static_assert((int)HK_PROVISIONAL_MARK == (int)HANKEL_PROVISIONAL, "the mark that clients know");

/* The small windows; NULL: none are wanted, or there is no memory. */
static struct hk_provisional *provisional_of_shard(struct hk_shard *s)
{
  struct hk_provisional **p = &s->provisional;
  bool wanted = *p != NULL;
  for (uint32_t i = 0; i < s->config->n_detectors && !wanted; i++)
    wanted = s->config->detectors[i].detector.provisional;
  if (wanted && !*p && hk_provisional_new(p) != 0)
    hk_log_peer(s->all->log, &s->quotas.forgetful, HK_LOG_WARNING, "provisional", "no memory for provisional scores");
  return *p;
}

static const struct hk_detector *provisional_detector_of(void *arg, uint32_t within)
{
  struct hk_shard *s = arg;
  const struct hk_registry *registry = s->all->registry;
  const struct hk_config_detector *d =
      hk_registry_detector_of(registry, hk_registry_detector(registry, hk_slot_outside(s, within)));
  return d ? &d->detector : NULL;
}

static uint32_t provisional_number_of(void *arg, uint32_t within)
{
  const struct hk_shard *s = arg;
  return hk_alerts_number(s->alerts, within);
}

void hk_provisional_apply(struct hk_shard *s, struct hk_batch *b)
{
  struct hk_provisional *p = provisional_of_shard(s);
  const struct hk_provisional_sensors sensors = { s, provisional_detector_of, provisional_number_of };
  if (p && hk_provisional_complete(p, &sensors, b) != 0)
    hk_log_peer(s->all->log, &s->quotas.forgetful, HK_LOG_WARNING, "provisional", "no memory for provisional scores");
}

int hk_provisional_go_on(struct hk_shard *s, uint32_t within, const void *saved, size_t size)
{
  const struct hk_detector *d = provisional_detector_of(s, within);
  struct hk_provisional *p = provisional_of_shard(s);
  const int status = d && d->provisional && p ? hk_provisional_restore(p, within, d, saved, size) : 0;
  return status == -EINVAL ? -EBADMSG : status;
}

void hk_provisional_drop(struct hk_shard *s, uint32_t within)
{
  if (s->provisional)
    hk_provisional_forget(s->provisional, within);
}
