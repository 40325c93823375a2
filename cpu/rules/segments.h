/* Segments: remembers the earlier segments of a sensor, to report with an alert which of them is similar to the new one.
 *
 * A segment is between two alerts of the channel `change`. Of each of the last HK_SEGMENTS the level, spread and sketch
 * (sketch.h) are kept, from the alert that ends it. The distance of two segments with sketches u, v, levels m and spreads s is
 *
 *   d^2 = sum of ((u_q - v_q) / 100)^2, those of the autocorrelations over 8,
 *      + 0.1 (m_u - m_v)^2 / (s_u s_v) + 0.1 ln(s_u / s_v)^2
 *
 * where spreads are at least a hundredth of the largest of the new segment's and the ended one's. The scale of distances differs
 * between sensors, but the distance of the new segment from the ended one is known, and these two are not similar. So the nearest
 * other segment is reported if its distance is at most 0.4 times that one, and at most 0.25. Its likeness is 1 less the ratio of
 * the two distances. tests/bench/results/similar.txt has the results.
 *
 * Host only. Plain data; all zero: none. Thread: the owner's. Cannot fail. */
#ifndef HK_SEGMENTS_H
#define HK_SEGMENTS_H

#include "cpu/rules/event.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_SEGMENTS 8

struct hk_segment {
  int64_t from; /* ns: its beginning */
  double level;
  float spread;
  uint32_t number; /* number of the alert with which it began; 0: the first known segment */
  struct hk_sketch sketch;
};

struct hk_segments {
  struct hk_segment kept[HK_SEGMENTS]; /* the oldest first */
  uint32_t n;
  uint32_t number; /* number of the last alert; 0: none */
  int64_t from;    /* ns: instant of the last alert, where the current segment began */
};

/* Whether an event concerns segments: raised and corrected ones of the channel `change`. */
bool hk_segments_concerns(const struct hk_event *e);
/* Processes such an event: remembers the ended segment, and writes to the event which earlier one is similar to the new one. */
void hk_segments_take(struct hk_segments *s, struct hk_event *e);

#ifdef __cplusplus
}
#endif
#endif
