/* See late_points.h. */
#include "daemon/scoring/late_points.h"

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
