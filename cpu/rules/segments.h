/* Segments: what is remembered of a sensor's earlier segments, to tell with an alert which of them the new one is like.
 *
 * A segment lies between two alerts of the channel `change`. Kept of each of the last HK_SEGMENTS are level, spread and sketch
 * (sketch.h), as the alert tells that ends it. How far two are apart, with sketches u, v, levels m and spreads s:
 *
 *   d^2 = sum of ((u_q - v_q) / 100)^2, those of the autocorrelations over 8, + 0.1 (m_u - m_v)^2 / (s_u s_v) + 0.1 ln(s_u /
 * s_v)^2
 *
 * spreads being at least a hundredth of the largest of the new segment's and the ended one's. What is far in one sensor is near
 * in another; but how far the new segment is from the one that has just ended is known, and those two are not alike. So the
 * nearest of the others is told if it is at most 0.4 times as far away as that one, and at most 0.25. Its likeness is 1 less what
 * it is of that distance. tests/bench/results/similar.txt has what it is worth.
 *
 * Host only. Plain data; all zero: none is known. Thread: the owner's. Cannot fail. */
#ifndef HK_SEGMENTS_H
#define HK_SEGMENTS_H

#include "cpu/rules/alert.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_SEGMENTS 8

struct hk_segment {
  int64_t from; /* ns: its beginning */
  double level;
  float spread;
  uint32_t number; /* of the alert that it began with; 0: it is the first that is known */
  struct hk_sketch sketch;
};

struct hk_segments {
  struct hk_segment kept[HK_SEGMENTS]; /* the oldest first */
  uint32_t n;
  uint32_t number; /* of the last alert; 0: there was none */
  int64_t from;    /* ns: its instant, where the segment that has not ended yet began */
};

/* Whether an event says something of segments: raised and corrected ones of the channel `change`. */
bool hk_segments_concerns(const struct hk_event *e);
/* Takes such an event: remembers the segment that has ended, and says in the event which earlier one the new one is like. */
void hk_segments_take(struct hk_segments *s, struct hk_event *e);

#ifdef __cplusplus
}
#endif
#endif
