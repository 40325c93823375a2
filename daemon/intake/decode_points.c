/* Decodes points piece by piece. A piece is so small that the loop over each column finds the data of the previous one in the
 * L1 cache. The loops have no branches: errors of a piece are added up and checked once, and handled in a second pass over
 * that piece. */
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"

#include <math.h>

#define PIECE 1024u

/* Replaces handles by slots. True: all of them are valid. */
static bool resolve(const struct hk_handles *handles, uint32_t n, uint32_t *slot)
{
  const atomic_uint *of_slot = handles->of_slot;
  const uint32_t max_sensors = handles->max_sensors;
  uint32_t different = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t handle = slot[i];
    slot[i] = hk_handle_slot(handle, max_sensors);
    different |= atomic_load_explicit(&of_slot[slot[i]], memory_order_acquire) ^ handle;
  }
  return different == 0;
}

static bool any_later(uint32_t n, const int64_t *time, int64_t latest)
{
  bool later = false;
  for (uint32_t i = 0; i < n; i++)
    later |= time[i] > latest;
  return later;
}

/* Checks times as far as the payload's header allows, before they are computed. */
static bool may_be_later(const struct hk_points *p, uint32_t first, uint32_t n, int64_t latest)
{
  switch ((enum hk_time_kind)p->time_kind) {
  case HK_TIME_ONE:
    return p->base > latest;
  case HK_TIME_EVEN:
    return p->base + (int64_t)first * p->step > latest || p->base + (int64_t)(first + n - 1) * p->step > latest;
  case HK_TIME_ARRIVAL:
    return false;
  case HK_TIME_EACH:
  case HK_TIME_STEPS:
    break;
  }
  return latest < INT64_MAX;
}

/* Removes the points with invalid handles and closes the gaps. */
static uint32_t leave_out(const struct hk_handles *handles, const struct hk_points *p, uint32_t first, uint32_t n,
                          struct hk_columns to)
{
  uint32_t handle[PIECE], kept = 0;
  hk_points_handles(p, first, n, handle);
  for (uint32_t i = 0; i < n; i++) {
    if (!hk_handle_good(handles, handle[i]))
      continue;
    to.slot[kept] = hk_handle_slot(handle[i], handles->max_sensors);
    to.time[kept] = to.time[i];
    to.value[kept] = to.value[i];
    kept++;
  }
  return kept;
}

/* Replaces the values of points that are later than `latest` by NaN. */
static void decode_spoil_later(int64_t latest, uint32_t n, struct hk_columns to, struct hk_decoded *out)
{
  for (uint32_t i = 0; i < n; i++) {
    if (to.time[i] <= latest)
      continue;
    if (out->ahead++ == 0) {
      out->slot = to.slot[i];
      out->time = to.time[i];
    }
    to.value[i] = NAN;
  }
}

struct hk_decoded hk_decode(const struct hk_decoder *d, const struct hk_points *p, uint32_t first, uint32_t n,
                            struct hk_columns to)
{
  struct hk_decoded out = { 0 };
  for (uint32_t end = first + n; first < end;) {
    const uint32_t piece = end - first < PIECE ? end - first : PIECE;
    uint32_t kept = piece;
    hk_points_handles(p, first, piece, to.slot);
    const bool good = resolve(&d->handles, piece, to.slot);
    hk_points_times(p, first, piece, d->arrival, to.time);
    hk_points_values(p, first, piece, to.value);
    if (!good)
      kept = leave_out(&d->handles, p, first, piece, to);
    if (may_be_later(p, first, piece, d->latest) && any_later(kept, to.time, d->latest))
      decode_spoil_later(d->latest, kept, to, &out);
    to = (struct hk_columns){ to.slot + kept, to.time + kept, to.value + kept };
    out.n += kept;
    first += piece;
  }
  return out;
}
