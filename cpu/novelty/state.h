/* The part of a sensor's state (cpu/rules/state.h) in place of the feedback vector for algorithm = novelty. Written once, in
 * hk_real. The reference backend's numbers are rounded to float32.
 *
 * Little-endian, no padding:
 *
 *   features, their means, their variances: 3 x HK_NOVELTY_FEATURES f64
 *   points, age, phase u32; seen of each channel u32
 *   tails, value, context, shape, two each: n, blocks, length u32, most f32, then n f32, the largest first
 *   rows u32; rows, the oldest first: each mean after the other, f32; then the pending rows, HK_NOVELTY_PENDING
 *   lags u32: the number of lags with points, from the shortest on; V of each f32, then M of each
 *   last value - reference f64, quantum f64: missing in states from before there was a severity; then the quantum begins anew
 *   form u32, 2. In older states 1: then the variance of each lag, HK_NOVELTY_LAG_SHARE V, stands in place of V;
 *     or missing: then its mean square does */
#ifndef HK_NOVELTY_STATE_H
#define HK_NOVELTY_STATE_H

#include "cpu/novelty/alert.h"
#include "cpu/rules/state.h"

#include <errno.h>

#define HK_NOVELTY_STATE_STEPS 16 /* bytes of last value and quantum, */
#define HK_NOVELTY_STATE_FORM 4   /* and of the form */
enum hk_novelty_form { HK_NOVELTY_FORM_SQUARES, HK_NOVELTY_FORM_VARIANCES, HK_NOVELTY_FORM_NOW };
#define HK_NOVELTY_STATE_FAR (2.05 * HK_NOVELTY_FAR)
#define HK_NOVELTY_STATE_FIXED (24 * HK_NOVELTY_FEATURES + 12 + 4 * HK_NOVELTY_CHANNELS + 8)

/* Number of lags with points. */
HK_INLINE uint32_t hk_novelty_lags_begun(const struct hk_detector *d, uint32_t count)
{
  const uint32_t longest = count > 0 ? count - 1 : 0, most = longest < hk_novelty_lag_max(d) ? longest : hk_novelty_lag_max(d);
  return most >= HK_NOVELTY_LAG_MIN ? most - HK_NOVELTY_LAG_MIN + 1 : 0;
}

HK_INLINE size_t hk_novelty_state_size(uint32_t tops, uint32_t rows, uint32_t lags)
{
  return HK_NOVELTY_STATE_FIXED + 2 * HK_NOVELTY_CHANNELS * 16 + 4 * (size_t)tops +
         4 * HK_NOVELTY_MEANS * ((size_t)rows + HK_NOVELTY_PENDING) + 8 * (size_t)lags + HK_NOVELTY_STATE_STEPS +
         HK_NOVELTY_STATE_FORM;
}

HK_INLINE size_t hk_novelty_state_most(const struct hk_detector *d)
{
  return hk_novelty_state_size(2 * HK_NOVELTY_CHANNELS * HK_NOVELTY_TOP, hk_novelty_rows_most(d), hk_novelty_lags(d));
}

HK_INLINE uint8_t *hk_novelty_put(uint8_t *at, hk_real x)
{
  const float number = (float)x;
  return hk_state_put(at, &number, sizeof number);
}

HK_INLINE const uint8_t *hk_novelty_get(const uint8_t *at, hk_real *x)
{
  float number;
  at = hk_state_take(at, &number, sizeof number);
  *x = (hk_real)number;
  return at;
}

/* A pending row in a state; 0 if there is none yet. ago: from 0, the oldest. */
HK_INLINE hk_real hk_novelty_row_waiting(const struct hk_novelty_view *v, uint32_t mean, uint32_t ago)
{
  const struct hk_novelty *s = v->novelty;
  const uint32_t kept = s->points / HK_NOVELTY_ROW_EVERY + (s->points % HK_NOVELTY_ROW_EVERY > 0);
  return ago + kept < HK_NOVELTY_PENDING || hk_novelty_value_alone(v->detector)
             ? 0
             : v->pending[mean][(s->pending + ago) % HK_NOVELTY_PENDING];
}

/* As export_ in struct hk_backend_ops. ring: the sensor's samples in float32, in the order of the window's ring. */
HK_INLINE int64_t hk_novelty_export(const struct hk_window *window, const struct hk_alert *alert, const struct hk_novelty_view *v,
                                    const float *ring, void *state, size_t size)
{
  const struct hk_novelty *s = v->novelty;
  const struct hk_detector *d = v->detector;
  const uint32_t lags = hk_novelty_lags_begun(d, window->count), all = hk_novelty_lags(d), room = hk_novelty_rows_room(d);
  uint32_t tops = 0;
  for (int c = 0; c < HK_NOVELTY_CHANNELS; c++)
    tops += s->tail[c][0].n + s->tail[c][1].n;
  const size_t bytes = hk_state_head_size(window->count) + hk_novelty_state_size(tops, s->rows, lags) + HK_STATE_CHECKSUM;
  if (bytes > size)
    return (int64_t)bytes;
  uint8_t *at = hk_state_begin(state, d, window, alert, ring);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_put(at, &s->feature[k], 8);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_put(at, &s->mean[k], 8);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_put(at, &s->variance[k], 8);
  at = hk_state_put(hk_state_put(hk_state_put(at, &s->points, 4), &s->age, 4), &s->phase, 4);
  for (int c = 0; c < HK_NOVELTY_CHANNELS; c++)
    at = hk_state_put(at, &s->seen[c], 4);
  for (int c = 0; c < 2 * HK_NOVELTY_CHANNELS; c++) {
    const struct hk_novelty_tail *t = &s->tail[c / 2][c % 2];
    at = hk_state_put(hk_state_put(hk_state_put(hk_state_put(at, &t->n, 4), &t->blocks, 4), &t->length, 4), &t->most, 4);
    at = hk_state_put_floats(at, t->top, t->n);
  }
  at = hk_state_put(at, &s->rows, 4);
  for (int k = 0; k < HK_NOVELTY_MEANS; k++)
    for (uint32_t i = s->rows; i-- > 0;)
      at = hk_novelty_put(at, v->row[k][(s->row + room - 1 - i) % room]);
  for (int k = 0; k < HK_NOVELTY_MEANS; k++)
    for (uint32_t i = 0; i < HK_NOVELTY_PENDING; i++)
      at = hk_novelty_put(at, hk_novelty_row_waiting(v, (uint32_t)k, i));
  at = hk_state_put(at, &lags, 4);
  for (uint32_t i = 0; i < lags; i++)
    at = hk_novelty_put(at, v->variance[all - 1 - i]);
  for (uint32_t i = 0; i < lags; i++)
    at = hk_novelty_put(at, v->mean[all - 1 - i]);
  const uint32_t form = HK_NOVELTY_FORM_NOW;
  at = hk_state_put(hk_state_put(hk_state_put(at, &s->last, 8), &s->quantum, 8), &form, 4);
  hk_state_seal(state, at);
  return (int64_t)bytes;
}

/* Whether points can leave such a number, or (square) a variance or mean square: values are within HK_NOVELTY_FAR of the
 * reference, so no difference and no mean is further than twice that. From further away V may become infinite, and of those none
 * is the least. False: also of NaN. */
HK_INLINE bool hk_novelty_near(double x, bool square)
{
  return fabs(x) <= (square ? HK_NOVELTY_STATE_FAR * HK_NOVELTY_STATE_FAR : HK_NOVELTY_STATE_FAR);
}

/* Reads a tail and returns the address after it; NULL: not valid. `end`: end of the numbers. */
HK_INLINE const uint8_t *hk_novelty_get_tail(const uint8_t *at, const uint8_t *end, struct hk_novelty_tail *t)
{
  if (end - at < 16)
    return NULL;
  at = hk_state_take(hk_state_take(hk_state_take(hk_state_take(at, &t->n, 4), &t->blocks, 4), &t->length, 4), &t->most, 4);
  if (t->n > HK_NOVELTY_TOP || t->n > t->blocks || t->length >= HK_NOVELTY_BLOCK || !isfinite(t->most) ||
      end - at < 4 * (ptrdiff_t)t->n)
    return NULL;
  at = hk_state_take_floats(at, t->top, t->n);
  if (t->blocks >= HK_NOVELTY_BLOCKS_MOST) { /* written before lists forgot: begins anew */
    memset(t->top, 0, sizeof t->top);
    t->n = t->blocks = 0;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!(t->top[i] >= (float)HK_NOVELTY_FLOOR && t->top[i] <= 2e4f) || (i > 0 && t->top[i] > t->top[i - 1]))
      return NULL;
  return at;
}

/* Reads the numbers before the columns into *s. NULL: not a valid state. */
HK_INLINE const uint8_t *hk_novelty_get_numbers(const uint8_t *at, const uint8_t *end, struct hk_novelty *s)
{
  if (end - at < HK_NOVELTY_STATE_FIXED)
    return NULL;
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_take(at, &s->feature[k], 8);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_take(at, &s->mean[k], 8);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    at = hk_state_take(at, &s->variance[k], 8);
  at = hk_state_take(hk_state_take(hk_state_take(at, &s->points, 4), &s->age, 4), &s->phase, 4);
  for (int c = 0; c < HK_NOVELTY_CHANNELS; c++)
    at = hk_state_take(at, &s->seen[c], 4);
  for (int k = 0; k < HK_NOVELTY_FEATURES; k++)
    if (!hk_novelty_near(s->feature[k], false) || !hk_novelty_near(s->mean[k], false) || !(s->variance[k] >= 0) ||
        !hk_novelty_near(s->variance[k], true))
      return NULL;
  for (int c = 0; at && c < 2 * HK_NOVELTY_CHANNELS; c++)
    at = hk_novelty_get_tail(at, end, &s->tail[c / 2][c % 2]);
  if (!at || s->age > s->points || s->phase >= HK_NOVELTY_ROW_EVERY || end - at < 4)
    return NULL;
  return hk_state_take(at, &s->rows, 4);
}

/* Reads the numbers after the lags; if there are none, as in older states, the steps are learned from the next point on. */
HK_INLINE bool hk_novelty_get_steps(const uint8_t *at, const uint8_t *end, struct hk_novelty *s, uint32_t *form)
{
  s->last = s->feature[0];
  s->quantum = 0;
  *form = HK_NOVELTY_FORM_SQUARES;
  if (at == end)
    return true;
  if (end - at != HK_NOVELTY_STATE_STEPS && end - at != HK_NOVELTY_STATE_STEPS + HK_NOVELTY_STATE_FORM)
    return false;
  at = hk_state_take(hk_state_take(at, &s->last, 8), &s->quantum, 8);
  if (at < end)
    (void)hk_state_take(at, form, 4);
  return hk_novelty_near(s->last, false) && s->quantum >= 0 && hk_novelty_near(s->quantum, false) &&
         (at == end || *form == HK_NOVELTY_FORM_VARIANCES || *form == HK_NOVELTY_FORM_NOW);
}

/* Makes V of lags of which the variance or the mean square was stored. */
HK_INLINE void hk_novelty_lags_convert(const struct hk_novelty_view *v, uint32_t form)
{
  for (uint32_t i = 0; i < hk_novelty_lags(v->detector) && form != HK_NOVELTY_FORM_NOW; i++) {
    const hk_real variance = v->variance[i] - (form == HK_NOVELTY_FORM_SQUARES ? v->mean[i] * v->mean[i] : 0);
    v->variance[i] = variance > 0 ? (hk_real)((double)variance / HK_NOVELTY_LAG_SHARE) : 0;
  }
}

/* Whether points can leave the numbers of a state's columns. row: the first one; number: after the number of lags. */
HK_INLINE bool hk_novelty_columns_sound(const uint8_t *row, const uint8_t *number, uint32_t lags, uint32_t form)
{
  const uint8_t *const mean = number + 4 * (size_t)lags, *const end = mean + 4 * (size_t)lags;
  for (const uint8_t *at = row; at < end; at += 4) {
    const bool square = at >= number && at < mean;
    const double share = square && form == HK_NOVELTY_FORM_NOW ? HK_NOVELTY_LAG_SHARE : 1;
    float x;
    (void)hk_state_take(at, &x, sizeof x);
    if (at + 4 != number && (!hk_novelty_near(share * (double)x, square) || (square && form != HK_NOVELTY_FORM_SQUARES && x < 0)))
      return false;
  }
  return true;
}

/* As import_. ring: room for hk_detector_span(d) float32, receives the samples, oldest first. After an error the sensor is
 * unchanged, and the contents of `ring` are undefined. */
HK_INLINE int hk_novelty_import(struct hk_window *window, struct hk_alert *alert, const struct hk_novelty_view *v, float *ring,
                                const void *state, size_t size)
{
  const struct hk_detector *d = v->detector;
  struct hk_window w;
  struct hk_alert a;
  struct hk_novelty s;
  const uint8_t *at;
  size_t rest;
  const int status = hk_state_open(state, size, d, &w, &a, ring, &at, &rest);
  if (status < 0)
    return status;
  memset(&s, 0, sizeof s);
  const uint8_t *const end = at + rest;
  at = hk_novelty_get_numbers(at, end, &s);
  const uint32_t most = hk_novelty_rows_most(d), all = hk_novelty_lags(d);
  if (!at || s.rows > most || w.count > s.points ||
      end - at < 4 * HK_NOVELTY_MEANS * ((ptrdiff_t)s.rows + HK_NOVELTY_PENDING) + 4)
    return -EINVAL;
  const uint8_t *const rows = at;
  at += 4 * HK_NOVELTY_MEANS * ((size_t)s.rows + HK_NOVELTY_PENDING);
  uint32_t lags, form;
  const uint8_t *const numbers = hk_state_take(at, &lags, 4);
  if (lags != hk_novelty_lags_begun(d, w.count) || end - numbers < 8 * (ptrdiff_t)lags ||
      !hk_novelty_get_steps(numbers + 8 * (size_t)lags, end, &s, &form))
    return -EINVAL;
  if (!hk_novelty_columns_sound(rows, numbers, lags, form))
    return -EINVAL;
  for (uint32_t i = 0; i < w.count; i++)
    if (!hk_novelty_near((double)ring[i], false))
      return -EINVAL;
  s.row = s.rows > 0 ? s.rows % hk_novelty_rows_room(d) : 0;
  at = rows;
  for (int k = 0; k < HK_NOVELTY_MEANS; k++)
    for (uint32_t i = 0; i < s.rows; i++)
      at = hk_novelty_get(at, &v->row[k][i]);
  for (int k = 0; k < HK_NOVELTY_MEANS; k++)
    for (uint32_t i = 0; i < HK_NOVELTY_PENDING; i++)
      at = hk_novelty_get(at, &v->pending[k][i]);
  at = numbers;
  hk_novelty_lags_reset(v);
  for (uint32_t i = 0; i < lags; i++)
    at = hk_novelty_get(at, &v->variance[all - 1 - i]);
  for (uint32_t i = 0; i < lags; i++)
    at = hk_novelty_get(at, &v->mean[all - 1 - i]);
  hk_novelty_lags_convert(v, form);
  *v->novelty = s;
  *window = w;
  *alert = a;
  return 0;
}

#endif
