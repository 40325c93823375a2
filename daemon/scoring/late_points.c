/* See late_points.h. */
#include "daemon/scoring/late_points.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/companions.h"

static uint64_t late_bit(uint32_t slot)
{
  return 1ull << slot % 64;
}

/* The place of a sensor; NULL: it has none. */
static struct hk_late_sensor *late_find(struct hk_late_points *l, uint32_t slot)
{
  for (uint32_t i = 0; (l->slots & late_bit(slot)) && i < l->n; i++)
    if (l->sensor[i].slot == slot)
      return &l->sensor[i];
  return NULL;
}

/* A place for another sensor: a new one, or that of a sensor that has been silent. NULL: there is none. */
static struct hk_late_sensor *late_place(struct hk_late_points *l, int64_t now)
{
  if (l->n < HK_LATE_SENSORS)
    return &l->sensor[l->n++];
  for (uint32_t i = 0; i < l->n; i++)
    if (now - l->sensor[i].last >= HK_LATE_FRESH)
      return &l->sensor[i];
  return NULL;
}

bool hk_late_take(struct hk_late_points *l, uint32_t slot, int64_t now)
{
  struct hk_late_sensor *sensor = late_find(l, slot);
  if (!sensor) {
    sensor = late_place(l, now);
    if (sensor)
      *sensor = (struct hk_late_sensor){ slot, false, now, now };
    l->slots |= late_bit(slot);
    return false;
  }
  const bool names = !sensor->named && now - sensor->first >= HK_LATE_PATIENCE;
  sensor->named |= names;
  sensor->last = now;
  if (sensor->named) {
    atomic_store_explicit(&l->shown, slot + 1, memory_order_relaxed);
    atomic_store_explicit(&l->when, now, memory_order_relaxed);
  }
  return names;
}

void hk_late_end(struct hk_late_points *l, uint32_t slot)
{
  struct hk_late_sensor *sensor = late_find(l, slot);
  if (!sensor)
    return;
  *sensor = l->sensor[--l->n];
  l->slots = 0;
  for (uint32_t i = 0; i < l->n; i++)
    l->slots |= late_bit(l->sensor[i].slot);
  if (atomic_load_explicit(&l->shown, memory_order_relaxed) == slot + 1)
    atomic_store_explicit(&l->shown, 0, memory_order_relaxed);
}

void hk_late_count(struct hk_late_points *l, uint32_t n, uint32_t of_these, int64_t now)
{
  if (now - l->since >= HK_LATE_PATIENCE) {
    atomic_store_explicit(&l->mostly, 2 * l->late > l->points, memory_order_relaxed);
    l->since = now;
    l->points = l->late = 0;
  }
  l->points += n;
  l->late += of_these;
}

bool hk_late_shown(const struct hk_late_points *l, int64_t now, uint32_t *slot)
{
  const uint32_t shown = atomic_load_explicit(&l->shown, memory_order_relaxed);
  *slot = shown - 1;
  return shown > 0 && atomic_load_explicit(&l->mostly, memory_order_relaxed) &&
         now - atomic_load_explicit(&l->when, memory_order_relaxed) < HK_LATE_FRESH;
}

static void late_tell(struct hk_shard *s, uint32_t within, int64_t time)
{
  struct hk_registry *registry = s->all->registry;
  char says[HK_TIME_TEXT_MAX], is[HK_TIME_TEXT_MAX];
  hk_time_text(time / 1000000000, says);
  hk_time_text(hk_wall() / 1000000000, is);
  hk_registry_read(registry);
  const struct hk_string name = hk_registry_name(registry, hk_slot_outside(s, within));
  hk_log_peer(s->all->log, &s->quotas.late.quota, HK_LOG_WARNING, "points",
              "sensor %.*s: for %.0f s all its points have been late, not after its last one before, and are ignored: the time "
              "of this one "
              "is %s, this machine's clock says %s; look at the sender's clock",
              (int)name.length, name.data, (double)HK_LATE_PATIENCE * 1e-9, says, is);
  hk_registry_read_end(registry);
}

/* Notes a point that was late; now: ns, hk_now. Returns whether it is derived. */
static bool late_note_point(struct hk_shard *s, uint32_t within, int64_t time, int64_t now)
{
  if (hk_registry_derived(s->all->registry, hk_slot_outside(s, within)))
    return true;
  if (!s->replaying && hk_late_take(&s->quotas.late, within, now))
    late_tell(s, within, time);
  return false;
}

uint32_t hk_late_note(struct hk_shard *s, const struct hk_delivery *p)
{
  const struct hk_batch *b = p->batch;
  const int64_t now = hk_now();
  uint32_t derived = 0;
  hk_late_count(&s->quotas.late, b->n, (uint32_t)p->late, now);
  if (p->late + p->rejected == 0 && s->quotas.late.n == 0)
    return 0;
  for (uint32_t run = 0, i = 0; run < p->n_runs; run++) {
    uint32_t late = 0, rejected = 0;
    for (const uint32_t end = i + p->runs[run].n; i < end && i < b->n; i++) {
      if (b->state[i] == HK_STATE_LATE) {
        const bool is_derived = late_note_point(s, b->slot[i], b->time[i], now);
        derived += is_derived;
        late += !is_derived;
      } else if (b->state[i] == HK_STATE_REJECTED) {
        rejected += !hk_registry_derived(s->all->registry, hk_slot_outside(s, b->slot[i]));
      } else if (s->quotas.late.n > 0) {
        hk_late_end(&s->quotas.late, b->slot[i]);
      }
    }
    if (late + rejected > 0)
      hk_source_note(p->runs[run].source, late, rejected);
  }
  return derived;
}
