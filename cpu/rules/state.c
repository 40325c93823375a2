/* States as bytes: see state.h. The checksum detects damage; the checks after it ensure that a forged state affects only its
 * sensor's scores. */
#include "cpu/rules/state.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <xxhash.h>

#define VERSION 3
#define OLDEST 2 /* the version with fewer fields of a window */
#define HEADER 16

struct field {
  size_t offset, size; /* in the struct; 1, 4 or 8 bytes */
};

#define FIELD(type, name)                                                                                                        \
  {                                                                                                                              \
    offsetof(struct type, name), sizeof(((struct type *)0)->name)                                                                \
  }
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct field window_fields[] = {
  FIELD(hk_window, reference), FIELD(hk_window, mean),   FIELD(hk_window, variance), FIELD(hk_window, last_time),
  FIELD(hk_window, interval),  FIELD(hk_window, seen),   FIELD(hk_window, seed),     FIELD(hk_window, count),
  FIELD(hk_window, head),      FIELD(hk_window, filled), FIELD(hk_window, spacings), FIELD(hk_window, age),
  FIELD(hk_window, due),       FIELD(hk_window, rebase), FIELD(hk_window, held),     FIELD(hk_window, started),
  FIELD(hk_window, stale),     FIELD(hk_window, holes),  FIELD(hk_window, anew),     FIELD(hk_window, holed),
};
#define SINCE_3 3 /* of them, the last ones */

static const struct field alert_fields[] = {
  FIELD(hk_alert, from),    FIELD(hk_alert, instant),  FIELD(hk_alert, before),        FIELD(hk_alert, after),
  FIELD(hk_alert, mean),    FIELD(hk_alert, variance), FIELD(hk_alert, learned),       FIELD(hk_alert, top),
  FIELD(hk_alert, peak),    FIELD(hk_alert, number),   FIELD(hk_alert, over),          FIELD(hk_alert, quiet),
  FIELD(hk_alert, since),   FIELD(hk_alert, scores),   FIELD(hk_alert, blocks),        FIELD(hk_alert, raised),
  FIELD(hk_alert, settled), FIELD(hk_alert, margin),   FIELD(hk_alert, spread_before), FIELD(hk_alert, spread_after),
};

/* Copies a number of 1, 2, 4 or 8 bytes between this machine's order and little-endian: the same both ways. */
static void copy_number(void *to, const void *from, size_t size)
{
  if (size == 8) {
    uint64_t number;
    memcpy(&number, from, 8);
    number = htole64(number);
    memcpy(to, &number, 8);
  } else if (size == 4) {
    uint32_t number;
    memcpy(&number, from, 4);
    number = htole32(number);
    memcpy(to, &number, 4);
  } else if (size == 2) {
    uint16_t number;
    memcpy(&number, from, 2);
    number = htole16(number);
    memcpy(to, &number, 2);
  } else {
    memcpy(to, from, size);
  }
}

uint8_t *hk_state_put(uint8_t *out, const void *number, size_t size)
{
  copy_number(out, number, size);
  return out + size;
}

const uint8_t *hk_state_take(const uint8_t *in, void *number, size_t size)
{
  copy_number(number, in, size);
  return in + size;
}

/* One copy if this machine is little-endian. */
uint8_t *hk_state_put_floats(uint8_t *out, const float *numbers, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(out, numbers, n * sizeof *numbers);
#else
  for (size_t i = 0; i < n; i++)
    copy_number(out + i * sizeof *numbers, &numbers[i], sizeof *numbers);
#endif
  return out + n * sizeof *numbers;
}

const uint8_t *hk_state_take_floats(const uint8_t *in, float *numbers, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(numbers, in, n * sizeof *numbers);
#else
  for (size_t i = 0; i < n; i++)
    copy_number(&numbers[i], in + i * sizeof *numbers, sizeof *numbers);
#endif
  return in + n * sizeof *numbers;
}

static uint8_t *put_fields(uint8_t *out, const void *from, const struct field *field, size_t n)
{
  for (size_t i = 0; i < n; i++)
    out = hk_state_put(out, (const uint8_t *)from + field[i].offset, field[i].size);
  return out;
}

static const uint8_t *take_fields(const uint8_t *in, void *to, const struct field *field, size_t n)
{
  for (size_t i = 0; i < n; i++)
    in = hk_state_take(in, (uint8_t *)to + field[i].offset, field[i].size);
  return in;
}

/* Number of fields of a window in a state of a version. */
static size_t window_has(uint16_t version)
{
  return version < 3 ? COUNT(window_fields) - SINCE_3 : COUNT(window_fields);
}

static size_t fields_size(uint16_t version)
{
  size_t size = 0;
  for (size_t i = 0; i < window_has(version); i++)
    size += window_fields[i].size;
  for (size_t i = 0; i < COUNT(alert_fields); i++)
    size += alert_fields[i].size;
  return size;
}

static void header_write(uint8_t *out, const struct hk_detector *d)
{
  const bool graph = d->algorithm == HK_ALGORITHM_GRAPH, shift = d->algorithm == HK_ALGORITHM_SHIFT;
  const bool novelty = d->algorithm == HK_ALGORITHM_NOVELTY, limit = d->algorithm == HK_ALGORITHM_LIMIT;
  const uint16_t version = VERSION, kind = graph ? 1 : shift ? 2 : novelty ? 3 : limit ? 4 : 0;
  const int64_t block = d->limit.window / HK_LIMIT_BLOCKS;
  memcpy(out, "HKSS", 4);
  hk_state_put(hk_state_put(out + 4, &version, 2), &kind, 2);
  if (limit) {
    hk_state_put(out + 8, &block, sizeof block);
    return;
  }
  hk_state_put(hk_state_put(out + 8, &d->window, 4), graph || novelty ? &d->resident : shift ? &d->stride : &d->gap, 4);
}

static size_t head_size(uint16_t version, uint32_t count)
{
  return HEADER + fields_size(version) + count * sizeof(float);
}

size_t hk_state_head_size(uint32_t count)
{
  return head_size(VERSION, count);
}

/* The version of a state, by its first bytes; 0: not supported. */
static uint16_t version_of(const uint8_t *state, size_t size)
{
  uint16_t version = 0;
  if (size < HEADER || memcmp(state, "HKSS", 4) != 0)
    return 0;
  (void)hk_state_take(state + 4, &version, sizeof version);
  return version >= OLDEST && version <= VERSION && size >= head_size(version, 0) + HK_STATE_CHECKSUM ? version : 0;
}

size_t hk_state_size(const struct hk_detector *d, uint32_t count)
{
  return hk_state_head_size(count) + d->window * sizeof(float) + HK_STATE_CHECKSUM;
}

uint8_t *hk_state_begin(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                        const float *ring)
{
  const uint32_t span = hk_detector_span(d);
  struct hk_window w = *window;
  uint8_t *at = out;
  w.head = w.count == span ? 0 : w.count; /* the oldest sample is first */
  header_write(at, d);
  at = put_fields(at + HEADER, &w, window_fields, COUNT(window_fields));
  at = put_fields(at, alert, alert_fields, COUNT(alert_fields));
  const uint32_t first = window->count == span ? window->head : 0; /* the oldest */
  at = hk_state_put_floats(at, ring + first, window->count - first);
  return hk_state_put_floats(at, ring, first);
}

void hk_state_seal(void *out, uint8_t *at)
{
  const uint64_t checksum = XXH64(out, (size_t)(at - (uint8_t *)out), 0);
  hk_state_put(at, &checksum, sizeof checksum);
}

void hk_state_write(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                    const float *ring, const float *feedback)
{
  uint8_t *at = hk_state_begin(out, d, window, alert, ring);
  hk_state_seal(out, hk_state_put_floats(at, feedback, d->window));
}

/* Whether hk_window_take can produce the numbers of a window. */
static bool window_sound(const struct hk_window *w)
{
  return fabs(w->reference) <= 2 * HK_VALUE_MAX && fabs(w->mean) <= 2 * HK_VALUE_MAX && w->variance >= 0 &&
         isfinite(w->variance) && w->last_time >= 0 && w->interval >= 0 && w->seen >= 0 && w->filled <= w->count &&
         w->started <= 1 && w->stale <= 1 && w->holes <= HK_HOLES_MANY && w->anew <= 1 && (w->started || w->count == 0);
}

static bool all_finite(const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(x[i]))
      return false;
  }
  return true;
}

/* Whether hk_alert_decide can produce the numbers of an alert. */
static bool alert_sound(const struct hk_alert *a, const struct hk_window *w)
{
  return a->raised <= 1 && a->settled <= 1 && a->blocks <= HK_ALERT_BLOCKS && a->from >= 0 && a->from <= w->last_time &&
         a->instant >= 0 && isfinite(a->before) && isfinite(a->after) && isfinite(a->mean) && isfinite(a->learned) &&
         isfinite(a->top) && isfinite(a->variance) && a->variance >= 0 && isfinite(a->peak) && isfinite(a->margin) &&
         a->spread_before >= 0 && isfinite(a->spread_before) && a->spread_after >= 0 && isfinite(a->spread_after);
}

/* Reads the samples of a window, whose span and baseline may have been longer or shorter: the newest ones that fit. False: no
 * samples. */
static bool take_samples(const uint8_t *at, const struct hk_detector *d, struct hk_window *w, float *ring)
{
  const uint32_t span = hk_detector_span(d), count = w->count < span ? w->count : span, left_out = w->count - count;
  uint32_t filled = 0;
  float sample;
  for (uint32_t i = 0; i < left_out; i++) {
    at = hk_state_take(at, &sample, sizeof sample);
    filled += hk_sample_filled(sample);
    if (!isfinite(sample))
      return false;
  }
  const uint32_t gone = filled;
  (void)hk_state_take_floats(at, ring, count);
  for (uint32_t i = 0; i < count; i++)
    filled += hk_sample_filled(ring[i]);
  if (!all_finite(ring, count) || filled != w->filled)
    return false;
  w->filled -= gone;
  w->count = count;
  w->head = count == span ? 0 : count;
  w->age = w->age < d->baseline * span ? w->age : d->baseline * span;
  w->holed = w->holed < HK_HOLE_MEMORY * span ? w->holed : HK_HOLE_MEMORY * span;
  return true;
}

int hk_state_open(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, const uint8_t **rest, size_t *rest_size)
{
  const uint8_t *at = state;
  const uint16_t version = version_of(state, size);
  uint8_t header[HEADER];
  header_write(header, d);
  if (version == 0 || memcmp(at + 6, header + 6, HEADER - 6) != 0)
    return -EINVAL;
  *window = (struct hk_window){ 0 };
  *alert = (struct hk_alert){ 0 };
  at = take_fields(at + HEADER, window, window_fields, window_has(version));
  at = take_fields(at, alert, alert_fields, COUNT(alert_fields));
  if (size < head_size(version, window->count) + HK_STATE_CHECKSUM)
    return -EINVAL;
  uint64_t checksum;
  hk_state_take((const uint8_t *)state + size - HK_STATE_CHECKSUM, &checksum, sizeof checksum);
  if (checksum != XXH64(state, size - HK_STATE_CHECKSUM, 0) || !window_sound(window) || !alert_sound(alert, window))
    return -EINVAL;
  const size_t samples = head_size(version, window->count);
  if (!take_samples(at, d, window, ring))
    return -EINVAL;
  at = (const uint8_t *)state + samples;
  *rest = at;
  *rest_size = size - samples - HK_STATE_CHECKSUM;
  return 0;
}

int hk_state_look(const void *state, size_t size, struct hk_state_about *out)
{
  const uint8_t *at = state;
  const uint16_t version = version_of(state, size);
  uint16_t kind;
  uint64_t checksum;
  struct hk_window window = { 0 };
  struct hk_alert alert = { 0 };
  if (version == 0)
    return -EINVAL;
  (void)hk_state_take(at + 6, &kind, sizeof kind);
  (void)hk_state_take(at + size - HK_STATE_CHECKSUM, &checksum, sizeof checksum);
  if (kind > 4 || checksum != XXH64(state, size - HK_STATE_CHECKSUM, 0))
    return -EINVAL;
  *out = (struct hk_state_about){ .kind = kind };
  (void)hk_state_take(at + 8, &out->window, sizeof out->window);
  (void)hk_state_take(at + 12, &out->gap, sizeof out->gap);
  at = take_fields(at + HEADER, &window, window_fields, window_has(version));
  (void)take_fields(at, &alert, alert_fields, COUNT(alert_fields));
  if (size < head_size(version, window.count) + HK_STATE_CHECKSUM)
    return -EINVAL;
  out->count = window.count;
  out->last_time = window.last_time;
  out->raised = alert.raised;
  return 0;
}

int hk_state_renumber(void *state, size_t size, uint32_t number)
{
  struct hk_state_about about;
  uint8_t *at = (uint8_t *)state + HEADER;
  if (hk_state_look(state, size, &about) != 0)
    return -EINVAL;
  for (size_t i = 0; i < window_has(version_of(state, size)); i++)
    at += window_fields[i].size;
  for (size_t i = 0; alert_fields[i].offset != offsetof(struct hk_alert, number); i++)
    at += alert_fields[i].size;
  hk_state_put(at, &number, sizeof number);
  hk_state_seal(state, (uint8_t *)state + size - HK_STATE_CHECKSUM);
  return 0;
}

int hk_state_read(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, float *feedback)
{
  struct hk_window w;
  struct hk_alert a;
  float samples[HK_SPAN_MAX], numbers[HK_WINDOW_MAX];
  const uint8_t *at;
  size_t rest;
  if (hk_state_open(state, size, d, &w, &a, samples, &at, &rest) < 0 || rest != d->window * sizeof *numbers)
    return -EINVAL;
  double norm = 0;
  (void)hk_state_take_floats(at, numbers, d->window);
  for (uint32_t i = 0; i < d->window; i++)
    norm += (double)numbers[i] * (double)numbers[i];
  if (!all_finite(numbers, d->window) || fabs(norm - 1) > 1e-3)
    return -EINVAL;
  memcpy(ring, samples, w.count * sizeof *ring);
  memcpy(feedback, numbers, d->window * sizeof *feedback);
  *window = w;
  *alert = a;
  return 0;
}
