/* The part of a sensor's state (cpu/rules/state.h) in place of the feedback vector for algorithm = limit. Written once, in
 * hk_real. The reference backend's numbers are rounded to float32.
 *
 * Little-endian, no padding:
 *
 *   block, first, told i64; slope f64; present, came, kept, every, under u32
 *   medians, HK_LIMIT_BLOCKS f32, 0 for missing blocks; the kept samples, f32 */
#ifndef HK_LIMIT_STATE_H
#define HK_LIMIT_STATE_H

#include "cpu/limit/alert.h"
#include "cpu/rules/state.h"

#include <errno.h>

#define HK_LIMIT_STATE_HEAD 52

HK_INLINE size_t hk_limit_state_size(uint32_t kept)
{
  return HK_LIMIT_STATE_HEAD + 4 * ((size_t)HK_LIMIT_BLOCKS + kept);
}

/* As export_ in struct hk_backend_ops. ring: the sensor's samples in float32, in the order of the window's ring. */
HK_INLINE int64_t hk_limit_export(const struct hk_window *window, const struct hk_alert *alert, const struct hk_limit_view *v,
                                  const float *ring, void *state, size_t size)
{
  const struct hk_limit *s = v->limit;
  const size_t bytes = hk_state_head_size(window->count) + hk_limit_state_size(s->kept) + HK_STATE_CHECKSUM;
  if (bytes > size)
    return (int64_t)bytes;
  uint8_t *at = hk_state_begin(state, v->detector, window, alert, ring);
  at = hk_state_put(hk_state_put(at, &s->block, sizeof s->block), &s->first, sizeof s->first);
  at = hk_state_put(hk_state_put(at, &s->told, sizeof s->told), &s->slope, sizeof s->slope);
  at = hk_state_put(hk_state_put(at, &s->present, sizeof s->present), &s->came, sizeof s->came);
  at = hk_state_put(hk_state_put(at, &s->kept, sizeof s->kept), &s->every, sizeof s->every);
  at = hk_state_put(at, &s->under, sizeof s->under);
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS + s->kept; i++) {
    const bool there = i >= HK_LIMIT_BLOCKS || s->present >> i & 1;
    const float number = there ? (float)(i < HK_LIMIT_BLOCKS ? v->median[i] : v->sample[i - HK_LIMIT_BLOCKS]) : 0;
    at = hk_state_put(at, &number, sizeof number);
  }
  hk_state_seal(state, at);
  return (int64_t)bytes;
}

/* Whether hk_limit_take can produce these numbers. */
HK_INLINE bool hk_limit_sound(const struct hk_limit *s, const struct hk_window *w, const struct hk_detector *d)
{
  if (s->kept > HK_LIMIT_KEPT || s->present >> HK_LIMIT_BLOCKS != 0 || !isfinite(s->slope) || s->told < 0)
    return false;
  if (!w->started)
    return s->block == 0 && s->first == 0 && s->present == 0 && s->came == 0 && s->kept == 0 && s->every == 0;
  return s->block == w->last_time / hk_limit_length(d) && s->first <= s->block && s->first >= -HK_LIMIT_BLOCKS && s->every > 0 &&
         (s->every & (s->every - 1)) == 0 && s->kept > 0 && s->kept <= s->came;
}

/* As import_. ring: room for hk_detector_span(d) float32, receives the samples, oldest first. After an error the sensor is
 * unchanged, and the contents of `ring` are undefined. */
HK_INLINE int hk_limit_import(struct hk_window *window, struct hk_alert *alert, const struct hk_limit_view *v, float *ring,
                              const void *state, size_t size)
{
  struct hk_window w;
  struct hk_alert a;
  const uint8_t *at;
  size_t rest;
  const int status = hk_state_open(state, size, v->detector, &w, &a, ring, &at, &rest);
  if (status < 0)
    return status;
  struct hk_limit s = { 0 };
  float number[HK_LIMIT_BLOCKS + HK_LIMIT_KEPT];
  if (rest < HK_LIMIT_STATE_HEAD)
    return -EINVAL;
  at = hk_state_take(hk_state_take(at, &s.block, sizeof s.block), &s.first, sizeof s.first);
  at = hk_state_take(hk_state_take(at, &s.told, sizeof s.told), &s.slope, sizeof s.slope);
  at = hk_state_take(hk_state_take(at, &s.present, sizeof s.present), &s.came, sizeof s.came);
  at = hk_state_take(hk_state_take(at, &s.kept, sizeof s.kept), &s.every, sizeof s.every);
  at = hk_state_take(at, &s.under, sizeof s.under);
  if (!hk_limit_sound(&s, &w, v->detector) || rest != hk_limit_state_size(s.kept))
    return -EINVAL;
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS + s.kept; i++) {
    at = hk_state_take(at, &number[i], sizeof number[i]);
    if (!isfinite(number[i]))
      return -EINVAL;
  }
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS + s.kept; i++)
    *(i < HK_LIMIT_BLOCKS ? &v->median[i] : &v->sample[i - HK_LIMIT_BLOCKS]) = (hk_real)number[i];
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS; i++)
    s.there += s.present >> i & 1;
  *v->limit = s;
  *window = w;
  *alert = a;
  return 0;
}

#endif
