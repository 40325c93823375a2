/* POINTS: points as columns. See message.h and PROTOCOL.md. */
#include "proto/message.h"

#include <errno.h>

enum { POINTS_HEAD = 32 };

static size_t time_head(uint8_t kind)
{
  return kind == HK_TIME_ONE ? 8 : kind == HK_TIME_EVEN || kind == HK_TIME_STEPS ? 16 : 0;
}

static size_t point_bytes(uint8_t time_kind, uint8_t value_kind)
{
  const size_t time = time_kind == HK_TIME_EACH ? 8 : time_kind == HK_TIME_STEPS ? 4 : 0;
  return time + 4 + (value_kind == HK_VALUE_F64 ? 8 : 4);
}

size_t hk_points_size(uint8_t time_kind, uint8_t value_kind, uint32_t n)
{
  return HK_FRAME_HEADER + POINTS_HEAD + time_head(time_kind) + n * point_bytes(time_kind, value_kind);
}

/* Whether every time that the points can have fits into an int64_t. */
static bool times_fit(const struct hk_points *p)
{
  const int64_t unit_most = 1000000000;
  int64_t reach, last;
  if (p->time_kind == HK_TIME_EVEN)
    return !__builtin_mul_overflow(p->step, (int64_t)(p->n - 1), &reach) && !__builtin_add_overflow(p->base, reach, &last);
  if (p->time_kind == HK_TIME_STEPS)
    return p->step >= 1 && p->step <= unit_most && !__builtin_add_overflow(p->base, p->step * (int64_t)UINT32_MAX, &last);
  return true;
}

int hk_points_write(struct hk_writer *w, uint32_t tag, const struct hk_points *p)
{
  if (p->n < 1 || p->time_kind > HK_TIME_ARRIVAL || p->value_kind > HK_VALUE_F32 || !times_fit(p))
    return -EINVAL;
  const size_t n = p->n, place = hk_frame_begin(w, HK_POINTS, tag);
  hk_put_u64(w, p->feed);
  hk_put_u64(w, p->sequence);
  hk_put_u64(w, p->before);
  hk_put_u32(w, p->n);
  hk_put_u8(w, p->time_kind);
  hk_put_u8(w, p->value_kind);
  hk_put_u16(w, 0);
  if (time_head(p->time_kind) >= 8)
    hk_put_i64(w, p->base);
  if (time_head(p->time_kind) == 16)
    hk_put_i64(w, p->step);
  if (p->time_kind == HK_TIME_EACH)
    hk_put(w, p->times, n * sizeof(int64_t));
  if (p->value_kind == HK_VALUE_F64)
    hk_put(w, p->values, n * sizeof(double));
  hk_put(w, p->handles, n * sizeof(uint32_t));
  if (p->time_kind == HK_TIME_STEPS)
    hk_put(w, p->steps, n * sizeof(uint32_t));
  if (p->value_kind == HK_VALUE_F32)
    hk_put(w, p->values, n * sizeof(float));
  return hk_frame_end(w, place);
}

int hk_points_read(const struct hk_frame *f, struct hk_points *p)
{
  *p = (struct hk_points){ 0 };
  struct hk_reader r = hk_reader(f);
  p->feed = hk_get_u64(&r);
  p->sequence = hk_get_u64(&r);
  p->before = hk_get_u64(&r);
  p->n = hk_get_u32(&r);
  p->time_kind = hk_get_u8(&r);
  p->value_kind = hk_get_u8(&r);
  const uint16_t zero = hk_get_u16(&r);
  if (r.bad || p->n < 1 || p->time_kind > HK_TIME_ARRIVAL || p->value_kind > HK_VALUE_F32 || zero != 0 ||
      r.size != time_head(p->time_kind) + p->n * point_bytes(p->time_kind, p->value_kind))
    return HANKEL_BAD_PAYLOAD;
  const size_t n = p->n;
  if (time_head(p->time_kind) >= 8)
    p->base = hk_get_i64(&r);
  if (time_head(p->time_kind) == 16)
    p->step = hk_get_i64(&r);
  if (p->time_kind == HK_TIME_EACH)
    p->times = hk_take(&r, n * sizeof(int64_t));
  if (p->value_kind == HK_VALUE_F64)
    p->values = hk_take(&r, n * sizeof(double));
  p->handles = hk_take(&r, n * sizeof(uint32_t));
  if (p->time_kind == HK_TIME_STEPS)
    p->steps = hk_take(&r, n * sizeof(uint32_t));
  if (p->value_kind == HK_VALUE_F32)
    p->values = hk_take(&r, n * sizeof(float));
  return hk_reader_done(&r) && times_fit(p) ? 0 : HANKEL_BAD_PAYLOAD;
}

void hk_points_handles(const struct hk_points *p, uint32_t first, uint32_t count, uint32_t *handle)
{
  memcpy(handle, (const uint8_t *)p->handles + 4 * (size_t)first, 4 * (size_t)count);
}

void hk_points_values(const struct hk_points *p, uint32_t first, uint32_t count, double *value)
{
  const uint8_t *values = p->values;
  if (p->value_kind == HK_VALUE_F64) {
    memcpy(value, values + 8 * (size_t)first, 8 * (size_t)count);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    float x;
    memcpy(&x, values + 4 * ((size_t)first + i), sizeof x);
    value[i] = (double)x;
  }
}

void hk_points_times(const struct hk_points *p, uint32_t first, uint32_t count, int64_t arrival, int64_t *time)
{
  switch ((enum hk_time_kind)p->time_kind) {
  case HK_TIME_EACH:
    memcpy(time, (const uint8_t *)p->times + 8 * (size_t)first, 8 * (size_t)count);
    break;
  case HK_TIME_ONE:
  case HK_TIME_ARRIVAL: {
    const int64_t one = p->time_kind == HK_TIME_ONE ? p->base : arrival;
    for (uint32_t i = 0; i < count; i++)
      time[i] = one;
    break;
  }
  case HK_TIME_EVEN: {
    /* Counted up rather than multiplied, which few instruction sets can in 64 bits; unsigned, for it counts once too often. */
    uint64_t next = (uint64_t)p->base + (uint64_t)first * (uint64_t)p->step;
    for (uint32_t i = 0; i < count; i++, next += (uint64_t)p->step)
      time[i] = (int64_t)next;
    break;
  }
  case HK_TIME_STEPS: {
    const uint8_t *steps = (const uint8_t *)p->steps + 4 * (size_t)first;
    const uint32_t unit = (uint32_t)p->step; /* at most 10^9 */
    for (uint32_t i = 0; i < count; i++) {
      uint32_t step;
      memcpy(&step, steps + 4 * (size_t)i, sizeof step);
      time[i] = (int64_t)((uint64_t)p->base + (uint64_t)step * unit);
    }
    break;
  }
  }
}
