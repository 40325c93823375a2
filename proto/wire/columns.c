/* POINTS: points as columns. See message.h and PROTOCOL.md. */
#include "proto/wire/columns.h"
#include "proto/wire/message.h"
#include "proto/wire/times.h"

#include <errno.h>

enum { POINTS_HEAD = 32 };

static size_t point_bytes(uint8_t time_kind, uint8_t value_kind)
{
  return hk_time_bytes(time_kind) + 4 + (value_kind == HK_VALUE_F64 ? 8 : 4);
}

size_t hk_points_size(uint8_t time_kind, uint8_t value_kind, uint32_t n)
{
  return HK_FRAME_HEADER + POINTS_HEAD + hk_time_head(time_kind) + n * point_bytes(time_kind, value_kind);
}

static bool columns_times_fit(const struct hk_points *p)
{
  return hk_times_fit(p->time_kind, p->n, p->base, p->step);
}

int hk_points_write(struct hk_writer *w, uint32_t tag, const struct hk_points *p)
{
  if (p->n < 1 || p->time_kind > HK_TIME_ARRIVAL || p->value_kind > HK_VALUE_F32 || !columns_times_fit(p))
    return -EINVAL;
  const size_t n = p->n, place = hk_frame_begin(w, HK_POINTS, tag);
  hk_put_u64(w, p->feed);
  hk_put_u64(w, p->sequence);
  hk_put_u64(w, p->before);
  hk_put_u32(w, p->n);
  hk_put_u8(w, p->time_kind);
  hk_put_u8(w, p->value_kind);
  hk_put_u16(w, 0);
  if (hk_time_head(p->time_kind) >= 8)
    hk_put_i64(w, p->base);
  if (hk_time_head(p->time_kind) == 16)
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
      r.size != hk_time_head(p->time_kind) + p->n * point_bytes(p->time_kind, p->value_kind))
    return HANKEL_BAD_PAYLOAD;
  const size_t n = p->n;
  if (hk_time_head(p->time_kind) >= 8)
    p->base = hk_get_i64(&r);
  if (hk_time_head(p->time_kind) == 16)
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
  return hk_reader_done(&r) && columns_times_fit(p) ? 0 : HANKEL_BAD_PAYLOAD;
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
  const int64_t base = p->time_kind == HK_TIME_ARRIVAL ? arrival : p->base;
  hk_times_expand(p->time_kind, base, p->step, p->times ? p->times : p->steps, first, count, time);
}
