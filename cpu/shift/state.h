/* The part of a sensor's state (cpu/rules/state.h) in place of the feedback vector for algorithm = shift. Written once, in
 * hk_real. The reference backend's numbers are rounded to float32.
 *
 * Little-endian, no padding:
 *
 *   differences, values u32, last f32
 *   the differences, then the values, f32, the oldest first
 *
 * Spans are rebuilt from the samples. */
#ifndef HK_SHIFT_STATE_H
#define HK_SHIFT_STATE_H

#include "cpu/rules/state.h"
#include "cpu/shift/alert.h"

#include <errno.h>

#define HK_SHIFT_STATE_HEAD 12

HK_INLINE size_t hk_shift_state_size(uint32_t raws, uint32_t values)
{
  return HK_SHIFT_STATE_HEAD + 4 * ((size_t)raws + values);
}

/* Writes n numbers of a ring of `room`, the oldest first; next: the place of the next one. */
HK_INLINE uint8_t *hk_shift_put(uint8_t *at, const hk_real *ring, uint32_t room, uint32_t next, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const float number = (float)ring[(next + room - n + i) % room];
    at = hk_state_put(at, &number, sizeof number);
  }
  return at;
}

/* As export_ in struct hk_backend_ops. ring: the sensor's samples in float32, in the order of the window's ring. */
HK_INLINE int64_t hk_shift_export(const struct hk_window *window, const struct hk_alert *alert, const struct hk_shift_view *v,
                                  const float *ring, void *state, size_t size)
{
  const struct hk_shift *s = v->shift;
  const size_t own = hk_shift_state_size(s->raws, s->values), bytes = hk_state_head_size(window->count) + own + HK_STATE_CHECKSUM;
  if (bytes > size)
    return (int64_t)bytes;
  uint8_t *at = hk_state_begin(state, v->detector, window, alert, ring);
  at = hk_state_put(hk_state_put(at, &s->raws, sizeof s->raws), &s->values, sizeof s->values);
  at = hk_state_put(at, &s->last, sizeof s->last);
  at = hk_shift_put(at, v->raw, hk_shift_smooth(v->detector), s->raw, s->raws);
  hk_state_seal(state, hk_shift_put(at, v->value, HK_SHIFT_HISTORY, s->value, s->values));
  return (int64_t)bytes;
}

/* As import_. ring: room for hk_detector_span(d) float32, receives the samples, oldest first; call hk_shift_spans once the sensor
 * has them. After an error the sensor is unchanged, and the contents of `ring` are undefined. */
HK_INLINE int hk_shift_import(struct hk_window *window, struct hk_alert *alert, const struct hk_shift_view *v, float *ring,
                              const void *state, size_t size)
{
  const uint32_t smooth = hk_shift_smooth(v->detector);
  struct hk_window w;
  struct hk_alert a;
  const uint8_t *at, *numbers;
  size_t rest;
  const int status = hk_state_open(state, size, v->detector, &w, &a, ring, &at, &rest);
  if (status < 0)
    return status;
  struct hk_shift s = { 0 };
  if (rest < HK_SHIFT_STATE_HEAD)
    return -EINVAL;
  at = hk_state_take(hk_state_take(at, &s.raws, sizeof s.raws), &s.values, sizeof s.values);
  numbers = hk_state_take(at, &s.last, sizeof s.last);
  if (s.raws > smooth || s.values > HK_SHIFT_HISTORY || rest != hk_shift_state_size(s.raws, s.values) || !isfinite(s.last))
    return -EINVAL;
  at = numbers;
  for (uint32_t i = 0; i < s.raws + s.values; i++) {
    float number;
    at = hk_state_take(at, &number, sizeof number);
    if (!isfinite(number) || number < 0)
      return -EINVAL;
  }
  at = numbers;
  for (uint32_t i = 0; i < s.raws + s.values; i++) {
    float number;
    at = hk_state_take(at, &number, sizeof number);
    if (i < s.raws) {
      v->raw[i] = (hk_real)number;
    } else {
      v->value[i - s.raws] = (hk_real)number;
      hk_sorted_put(v->sorted, i - s.raws, (hk_real)number, NULL);
    }
  }
  s.raw = s.raws % smooth;
  s.value = s.values % HK_SHIFT_HISTORY;
  *v->shift = s;
  *window = w;
  *alert = a;
  return 0;
}

#endif
