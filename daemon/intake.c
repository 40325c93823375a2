/* Points on their way into the stage. A time too far in the future would make the sensor deaf until then (all that follows
 * is late), so such a point goes on with a value that every backend rejects: its result comes back in its place. */
#include "daemon/intake.h"

#include <math.h>

bool hk_intake_open(const struct hk_intake *in, uint32_t source, uint32_t n)
{
  return hk_stage_pending(in->stage, source) < in->max_pending && hk_stage_room(in->stage) >= n;
}

static void take(struct hk_intake *in, uint32_t source, uint32_t slot, int64_t time, double value)
{
  if (in->max_ahead > 0 && time > in->wall && time - in->wall > in->max_ahead) {
    const struct hk_string name = hk_registry_name(in->registry, slot);
    hk_count(&in->counters->ahead, 1);
    value = NAN;
    hk_log_peer(in->log, &in->ahead, HK_LOG_WARNING, "points",
                "sensor %.*s: a time %.0f s ahead of this machine's clock was rejected; "
                "look at the sender's clock and unit of time",
                (int)name.length, name.data, (double)(time - in->wall) * 1e-9);
  }
  hk_stage_push(in->stage, source, slot, time, value);
}

uint32_t hk_intake_columns(struct hk_intake *in, uint32_t source, uint32_t n, const uint32_t *handle, const int64_t *time,
                           const double *value)
{
  uint32_t unknown = 0;
  hk_count(&in->counters->in, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t slot;
    if (hk_registry_resolve(in->registry, handle[i], &slot) == 0)
      take(in, source, slot, time[i], value[i]);
    else
      unknown++;
  }
  hk_count(&in->counters->unknown_handle, unknown);
  return unknown;
}

void hk_intake_refused(struct hk_intake *in, int refusal, const char *name, size_t length)
{
  hk_count(&in->counters->names_refused, 1);
  if (refusal == HANKEL_FULL)
    hk_log_peer(in->log, &in->full, HK_LOG_WARNING, "sensors", "no room for %.*s beside %u sensors: %s", (int)length, name,
                hk_registry_count(in->registry), hk_registry_full(in->registry));
  else if (refusal == HANKEL_NO_DETECTOR)
    hk_log_peer(in->log, &in->no_detector, HK_LOG_WARNING, "sensors", "no detector matches %.*s; its points are dropped",
                (int)length, name);
}

void hk_intake_named(struct hk_intake *in, uint32_t source, const char *name, size_t length, int64_t time, double value)
{
  uint32_t slot;
  const int refusal = hk_registry_take_valid(in->registry, name, length, &slot);
  hk_count(&in->counters->in, 1); /* before it is counted as anything else */
  if (refusal == 0) {
    take(in, source, slot, time, value);
    return;
  }
  if (refusal == HANKEL_NO_DETECTOR)
    hk_count(&in->counters->no_detector, 1);
  else
    hk_count(&in->counters->full, 1);
  hk_intake_refused(in, refusal, name, length);
}
