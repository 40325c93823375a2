#include "proto/wire/times.h"

#include <string.h>

size_t hk_time_head(uint8_t kind)
{
  return kind == HK_TIME_ONE ? 8 : kind == HK_TIME_EVEN || kind == HK_TIME_STEPS ? 16 : 0;
}

size_t hk_time_bytes(uint8_t kind)
{
  return kind == HK_TIME_EACH ? 8 : kind == HK_TIME_STEPS ? 4 : 0;
}

bool hk_times_fit(uint8_t kind, uint32_t n, int64_t base, int64_t step)
{
  int64_t reach, last;
  if (kind == HK_TIME_EVEN)
    return !__builtin_mul_overflow(step, (int64_t)(n - 1), &reach) && !__builtin_add_overflow(base, reach, &last);
  if (kind == HK_TIME_STEPS)
    return step >= 1 && step <= HK_TIME_UNIT_MOST && !__builtin_add_overflow(base, step * (int64_t)UINT32_MAX, &last);
  return true;
}

void hk_times_expand(uint8_t kind, int64_t base, int64_t step, const void *column, uint32_t first, uint32_t count, int64_t *time)
{
  switch ((enum hk_time_kind)kind) {
  case HK_TIME_EACH:
    memcpy(time, (const uint8_t *)column + 8 * (size_t)first, 8 * (size_t)count);
    break;
  case HK_TIME_ONE:
  case HK_TIME_ARRIVAL: /* base: time of arrival */
    for (uint32_t i = 0; i < count; i++)
      time[i] = base;
    break;
  case HK_TIME_EVEN: {
    /* Adds instead of multiplying, because few instruction sets have vector multiplication of 64 bits; unsigned, because the
     * last addition may overflow. */
    uint64_t next = (uint64_t)base + (uint64_t)first * (uint64_t)step;
    for (uint32_t i = 0; i < count; i++, next += (uint64_t)step)
      time[i] = (int64_t)next;
    break;
  }
  case HK_TIME_STEPS: {
    const uint8_t *steps = (const uint8_t *)column + 4 * (size_t)first;
    const uint32_t unit = (uint32_t)step; /* at most 10^9 */
    for (uint32_t i = 0; i < count; i++) {
      uint32_t n;
      memcpy(&n, steps + 4 * (size_t)i, sizeof n);
      time[i] = (int64_t)((uint64_t)base + (uint64_t)n * unit);
    }
    break;
  }
  }
}
