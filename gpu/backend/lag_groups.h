/* Lags that are brought along late: the CUDA backend's memory of novelty beside that of every backend.
 *
 * V of a lag falls by a factor of HK_NOVELTY_FORGET a point at most (hk_novelty_lag_step), and only the least of all counts.
 * So lags of which none can be the least are left as they are, in groups of neighbours, and take the points later, in sequence:
 * that gives the same numbers. The samples that they need are in the ring.
 *
 * Thread: as novelty.h. */
#ifndef HK_LAG_GROUPS_H
#define HK_LAG_GROUPS_H

#include "cpu/novelty/distances.h"

#define HK_LAG_GROUP 128u /* lags of a group */
#define HK_LAG_LATE 64u   /* maximum number of points that a group is behind */

/* A group of lags, from place HK_LAG_GROUP * its number on. All zero in a new sensor. */
struct hk_lag_group {
  float least;    /* least of its variances, as far as they were brought along */
  uint32_t place; /* place in the ring of the next point to bring them along by */
};

HK_INLINE uint32_t hk_lag_groups(const struct hk_detector *d)
{
  return (hk_novelty_lags(d) + HK_LAG_GROUP - 1) / HK_LAG_GROUP;
}

/* Number of points before the one at place `at` of the ring that a group lacks. */
HK_INLINE uint32_t hk_lag_group_late(const struct hk_lag_group *group, uint32_t at, uint32_t span)
{
  return at >= group->place ? at - group->place : at + span - group->place;
}

/* Brings all groups along to the point before place `at`, by `bring`. The lags all count. */
HK_INLINE void hk_lag_groups_bring(const struct hk_novelty_view *v, struct hk_lag_group *group, const hk_real *ring, uint32_t at,
                                   hk_novelty_bring *bring)
{
  const struct hk_detector *d = v->detector;
  const uint32_t span = hk_detector_span(d), lags = hk_novelty_lags(d), longest = hk_novelty_lag_max(d);
  for (uint32_t g = 0; g < hk_lag_groups(d); g++) {
    const uint32_t begin = g * HK_LAG_GROUP, end = begin + HK_LAG_GROUP < lags ? begin + HK_LAG_GROUP : lags;
    for (uint32_t late = hk_lag_group_late(&group[g], at, span); late > 0; late--) {
      const hk_real sample = ring[(at + span - late) % span];
      uint32_t from = (at + 2 * span - late - longest + begin) % span;
      for (uint32_t place = begin, piece; place < end; place += piece, from = 0) { /* up to the ring's end, and from its begin */
        piece = end - place < span - from ? end - place : span - from;
        bring(v->variance + place, v->mean + place, ring + from, piece, sample);
      }
    }
    group[g].place = at;
    group[g].least = 0;
  }
}

#endif
