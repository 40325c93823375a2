/* A sensor alone, with a window and a ring of its own: for tests of windows. */
#ifndef HK_TESTS_SENSOR_H
#define HK_TESTS_SENSOR_H

#include "cpu/rules/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define START (INT64_C(1700000000) * SECOND)

/* A sensor with room for any span used here. */
struct sensor {
  struct hk_detector d;
  struct hk_window w;
  hk_real ring[4096];
  int64_t next; /* time of the next regular point */
};

static inline struct sensor *sensor_new(const char *detector)
{
  struct sensor *s = calloc(1, sizeof *s);
  char error[256];
  assert_non_null(s);
  if (hk_detector_parse(detector, &s->d, error, sizeof error) != 0)
    fail_msg("%s", error);
  assert_true(hk_detector_span(&s->d) <= 4096);
  s->next = START;
  return s;
}

static inline struct hk_step take(struct sensor *s, int64_t time, double value)
{
  const struct hk_step step = hk_window_take(&s->w, s->ring, &s->d, time, value, time, false);
  if (step.state <= HK_STATE_GAP && time <= INT64_MAX - SECOND)
    s->next = time + SECOND;
  return step;
}

/* Takes n regular points of a noisy signal, a second apart. */
static inline struct hk_step feed(struct sensor *s, uint32_t n)
{
  struct hk_step step = { 0 };
  for (uint32_t i = 0; i < n; i++)
    step = take(s, s->next, sin((double)i) + 3);
  return step;
}

/* Sample `back` places before the newest, in the sensor's units. */
static inline double sample(const struct sensor *s, uint32_t back)
{
  const uint32_t span = hk_detector_span(&s->d);
  return (double)s->ring[(s->w.head + 2 * span - 1 - back) % span] + s->w.reference;
}

/* Points that make a sensor forget its beginning, or a hole. */
static inline uint32_t settled(const struct sensor *s)
{
  return HK_HOLE_MEMORY * hk_detector_span(&s->d);
}

static inline uint32_t random_below(uint64_t *seed, uint32_t n)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33) % n;
}

#endif
