/* SCORES: results as columns; times and states in the shortest encoding. See message.h and PROTOCOL.md. */
#include "proto/wire/scores.h"
#include "proto/wire/columns.h"
#include "proto/wire/message.h"
#include "proto/wire/times.h"

#include <errno.h>

enum { HEAD = 8, WITH_VALUES = 1, WITH_STATES = 2, WITH_SEQUENCES = 4 };

size_t hk_scores_most(uint32_t n, unsigned wide)
{
  return HK_FRAME_HEADER + HEAD + (size_t)n * (17 + 8 * wide) + 16;
}

static bool times_fit(const struct hk_scores *s)
{
  return hk_times_fit(s->time_kind, s->n, s->base, s->step);
}

/* Whether all times are whole units after base. Callers pass a constant unit, so that the compiler avoids divisions. */
static inline __attribute__((always_inline)) bool divides(const int64_t *time, uint32_t n, int64_t base, uint64_t unit)
{
  for (uint32_t i = 0; i < n; i++)
    if (((uint64_t)time[i] - (uint64_t)base) % unit != 0)
      return false;
  return true;
}

/* Encodes times more than two seconds from the first as steps of the shortest unit that covers all of them. */
static bool choose_unit(struct hk_scores *s, const int64_t *time)
{
  int64_t least = time[0], most = time[0];
  for (uint32_t i = 1; i < s->n; i++) {
    least = time[i] < least ? time[i] : least;
    most = time[i] > most ? time[i] : most;
  }
  const uint64_t span = (uint64_t)most - (uint64_t)least;
  s->base = least;
  s->step = 1;
  while (s->step <= HK_TIME_UNIT_MOST && span / (uint64_t)s->step > UINT32_MAX)
    s->step *= 1000;
  switch (s->step) {
  case 1:
    return true;
  case 1000:
    return divides(time, s->n, least, 1000);
  case 1000000:
    return divides(time, s->n, least, 1000000);
  case 1000000000:
    return divides(time, s->n, least, 1000000000);
  default:
    return false;
  }
}

/* Chooses time_kind, base and step for the shortest encoding. One pass if all times are equal, evenly spaced, or close
 * together. */
static void choose_times(struct hk_scores *s, const int64_t *time)
{
  const uint64_t reach = (uint64_t)1 << 31, first = (uint64_t)time[0], low = first - reach;
  const uint64_t step = s->n > 1 ? (uint64_t)time[1] - first : 0;
  uint64_t differ = 0, uneven = 0, far = 0; /* nonzero bits: some time does not fit the kind */
  for (uint32_t i = 1; i < s->n; i++) {
    const uint64_t t = (uint64_t)time[i];
    differ |= t ^ first;
    uneven |= (t - (uint64_t)time[i - 1]) ^ step;
    far |= t - low;
  }
  s->time_kind = differ == 0 ? HK_TIME_ONE : uneven == 0 ? HK_TIME_EVEN : HK_TIME_STEPS;
  s->base = time[0];
  s->step = (int64_t)step;
  if (s->time_kind == HK_TIME_STEPS && far >> 32 == 0) {
    s->base = (int64_t)low;
    s->step = 1;
  } else if (s->time_kind == HK_TIME_STEPS && !choose_unit(s, time)) {
    s->time_kind = HK_TIME_EACH;
  }
  if (!times_fit(s))
    s->time_kind = HK_TIME_EACH;
}

/* Writes n times as steps after base. steps may be unaligned; callers pass a constant unit. */
static inline __attribute__((always_inline)) void put_steps(uint8_t *steps, const int64_t *time, uint32_t n, int64_t base,
                                                            uint64_t unit)
{
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t step = (uint32_t)(((uint64_t)time[i] - (uint64_t)base) / unit);
    memcpy(steps + 4 * (size_t)i, &step, sizeof step);
  }
}

static bool all_ok(const uint8_t *state, uint32_t n)
{
  uint8_t differ = 0;
  for (uint32_t i = 0; i < n; i++)
    differ |= state[i] ^ HANKEL_OK;
  return differ == 0;
}

int hk_scores_write(struct hk_writer *w, uint32_t n, const int64_t *time, const double *value, const uint64_t *sequence,
                    const uint32_t *handle, const float *score, const uint8_t *state)
{
  if (n < 1)
    return -EINVAL;
  struct hk_scores s = { .n = n };
  choose_times(&s, time);
  const bool ok = all_ok(state, n);
  const size_t place = hk_frame_begin(w, HK_SCORES, 0);
  hk_put_u32(w, n);
  hk_put_u8(w, s.time_kind);
  hk_put_u8(w, (uint8_t)((value ? WITH_VALUES : 0) | (ok ? 0 : WITH_STATES) | (sequence ? WITH_SEQUENCES : 0)));
  hk_put_u16(w, 0);
  if (hk_time_head(s.time_kind) >= 8)
    hk_put_i64(w, s.base);
  if (hk_time_head(s.time_kind) == 16)
    hk_put_i64(w, s.step);
  if (s.time_kind == HK_TIME_EACH)
    hk_put(w, time, n * sizeof *time);
  if (value)
    hk_put(w, value, n * sizeof *value);
  if (sequence)
    hk_put(w, sequence, n * sizeof *sequence);
  hk_put(w, handle, n * sizeof *handle);
  hk_put(w, score, n * sizeof *score);
  uint8_t *steps = s.time_kind == HK_TIME_STEPS ? hk_room(w, n * sizeof(uint32_t)) : NULL;
  if (steps && s.step == 1)
    put_steps(steps, time, n, s.base, 1);
  else if (steps && s.step == 1000)
    put_steps(steps, time, n, s.base, 1000);
  else if (steps)
    put_steps(steps, time, n, s.base, (uint64_t)s.step);
  if (!ok)
    hk_put(w, state, n);
  return hk_frame_end(w, place);
}

int hk_scores_read(const struct hk_frame *f, struct hk_scores *s)
{
  *s = (struct hk_scores){ 0 };
  struct hk_reader r = hk_reader(f);
  s->n = hk_get_u32(&r);
  s->time_kind = hk_get_u8(&r);
  const uint8_t with = hk_get_u8(&r);
  const uint16_t zero = hk_get_u16(&r);
  if (r.bad || s->n < 1 || s->time_kind > HK_TIME_STEPS || with & ~(WITH_VALUES | WITH_STATES | WITH_SEQUENCES) || zero != 0)
    return HANKEL_BAD_PAYLOAD;
  const size_t n = s->n;
  if (hk_time_head(s->time_kind) >= 8)
    s->base = hk_get_i64(&r);
  if (hk_time_head(s->time_kind) == 16)
    s->step = hk_get_i64(&r);
  if (s->time_kind == HK_TIME_EACH)
    s->times = hk_take(&r, n * sizeof(int64_t));
  if (with & WITH_VALUES)
    s->values = hk_take(&r, n * sizeof(double));
  if (with & WITH_SEQUENCES)
    s->sequences = hk_take(&r, n * sizeof(uint64_t));
  s->handles = hk_take(&r, n * sizeof(uint32_t));
  s->scores = hk_take(&r, n * sizeof(float));
  if (s->time_kind == HK_TIME_STEPS)
    s->steps = hk_take(&r, n * sizeof(uint32_t));
  if (with & WITH_STATES)
    s->states = hk_take(&r, n);
  return hk_reader_done(&r) && times_fit(s) ? 0 : HANKEL_BAD_PAYLOAD;
}

void hk_scores_times(const struct hk_scores *s, int64_t *time)
{
  hk_times_expand(s->time_kind, s->base, s->step, s->times ? s->times : s->steps, 0, s->n, time);
}
