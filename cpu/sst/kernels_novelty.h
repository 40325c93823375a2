/* What the passes of novelty have in common. Private to the kernels, which include lanes.h. */
#ifndef HK_KERNELS_NOVELTY_H
#define HK_KERNELS_NOVELTY_H

#include "cpu/novelty/distances.h"
#include "cpu/sst/lanes.h"

#include <string.h>

/* Points of a run that are near each other are tested together: what is not nearer to any of them than what was found for each
 * need not be compared with any. A *crowd* is so many of them. */
#define HK_NOVELTY_CROWD 8
#define HK_NOVELTY_CROWDS (HK_BATCH_PER_SENSOR / HK_NOVELTY_CROWD)
#define HK_NOVELTY_CROWDED (2 * HK_NOVELTY_CROWD) /* fewer points of a run are all compared */

/* As hk_novelty_nearer. */
ALWAYS_INLINE vec nearer(vec a, vec b)
{
  return smaller(b, a);
}

/* A range of a ring, in places relative to that of the run's first point; empty if from > to. */
struct ring_range {
  int32_t from, to;
};

/* Takes the first part of a range, up to the ring's end: its place and its length. */
static inline uint32_t range_piece(struct ring_range *range, uint32_t origin, uint32_t room, uint32_t *at)
{
  if (range->from > range->to)
    return 0;
  *at = (uint32_t)(((int64_t)origin + range->from) % room + room) % room;
  const uint32_t left = (uint32_t)(range->to - range->from + 1), n = left < room - *at ? left : room - *at;
  range->from += (int32_t)n;
  return n;
}

/* Least number of a vector. */
static inline float least(const vec *best)
{
  float each[HK_LANES], found = INFINITY;
  memcpy(each, best, sizeof each);
  for (uint32_t l = 0; l < HK_LANES; l++)
    found = hk_novelty_nearer(found, each[l]);
  return found;
}

/* Fill in `nearest` and `has` of n successive points, of the value and of the context: kernels_novelty_values.c and _rows.c. */
void novelty_values(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n);
void novelty_rows(const struct hk_novelty_view *v, struct hk_novelty_point *p, uint32_t n);

#endif
