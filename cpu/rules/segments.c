/* Segments of one sensor: see segments.h. */
#include "cpu/rules/segments.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NEAR 0.4 /* part of the distance to the ended segment */
#define NEAREST 0.25
#define LEVELS 0.1 /* weight of levels and spreads */

static double segments_square(double x)
{
  return x * x;
}

/* The distance of two segments; floor: minimum spread. */
static double distance(const struct hk_segment *a, const struct hk_segment *b, double floor)
{
  const double of_a = fmax((double)a->spread, floor), of_b = fmax((double)b->spread, floor);
  double sum = LEVELS * (segments_square(a->level - b->level) / (of_a * of_b) + segments_square(log(of_a / of_b)));
  for (uint32_t q = 0; q < HK_SKETCH_NUMBERS; q++)
    sum += segments_square((a->sketch.of[q] - b->sketch.of[q]) / 100.0) / (q < HK_SKETCH_LAGS ? HK_SKETCH_LAGS : 1);
  return sqrt(sum);
}

static bool segments_known(const struct hk_sketch *sketch)
{
  static const struct hk_sketch nothing;
  return memcmp(sketch, &nothing, sizeof nothing) != 0;
}

bool hk_segments_concerns(const struct hk_event *e)
{
  return (e->kind == HK_EVENT_RAISED || e->kind == HK_EVENT_CORRECTED) && e->channel == HK_CHANNEL_CHANGE && e->number > 0 &&
         segments_known(&e->sketch_before) && segments_known(&e->sketch_after);
}

/* Remembers the segment that ended with an alert. */
static void segments_keep(struct hk_segments *s, const struct hk_event *e)
{
  struct hk_segment ended = {
    .from = e->from, .level = e->before, .spread = e->spread_before, .number = e->number - 1, .sketch = e->sketch_before
  };
  if (s->n > 0 && s->number == e->number) { /* its end was estimated more accurately */
    ended.from = s->kept[s->n - 1].from;
    s->kept[s->n - 1] = ended;
  } else {
    if (s->number > 0 && s->number == e->number - 1)
      ended.from = s->from;
    if (s->n == HK_SEGMENTS)
      memmove(s->kept, s->kept + 1, --s->n * sizeof *s->kept);
    s->kept[s->n++] = ended;
  }
  s->number = e->number;
  s->from = e->instant;
}

void hk_segments_take(struct hk_segments *s, struct hk_event *e)
{
  segments_keep(s, e);
  const struct hk_segment *ended = &s->kept[s->n - 1], *nearest = NULL;
  const struct hk_segment now = { .level = e->after, .spread = e->spread_after, .sketch = e->sketch_after };
  const double floor = fmax(0.01 * (double)fmaxf(now.spread, ended->spread), 1e-30), far = distance(&now, ended, floor);
  double least = INFINITY;
  for (uint32_t i = 0; i + 1 < s->n; i++) {
    const double d = distance(&now, &s->kept[i], floor);
    if (d <= least) { /* of equals, the latest */
      least = d;
      nearest = &s->kept[i];
    }
  }
  e->similar = 0;
  e->similar_from = 0;
  e->likeness = 0;
  if (!nearest || !(least <= NEAR * far) || least > NEAREST || !(far > 0))
    return;
  e->similar = nearest->number;
  e->similar_from = nearest->from;
  e->likeness = (float)(1 - least / far);
}
