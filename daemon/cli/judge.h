/* What alerts are worth on labelled recordings, beside what as many alerts at random instants would be. Pure functions.
 *
 * An alert is judged by its first estimate of the change instant. It hits a label when that lies in the label, widened by one
 * detector window on both sides; a label is hit once, however many alerts fall on it; an alert that hits none is false.
 *
 * Chance: the labels that as many alerts, each at any point from the first score on with the same chance, hit on average:
 * the sum over labels of 1 - (1 - share of these points that hit it)^alerts.
 *
 * Delay: points from the label's start to the point on which the first alert that hits it was raised.
 *
 * Covering, of recordings whose labels are instants: labels cut a recording into segments, and so do alerts. Each labelled
 * segment weighs by its length and counts the largest overlap (intersection over union) with a segment between alerts
 * (G. van den Burg and C. Williams, An evaluation of change point detection algorithms, 2020). */
#ifndef HK_JUDGE_H
#define HK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices of points. */
struct hk_found {
  uint32_t instant, raised;
  float severity; /* the highest since; not an index */
};

struct hk_marked {
  uint32_t first, last;
};

/* Sums that can be added up. All zero is nothing. */
struct hk_verdict {
  uint64_t recordings, unscored; /* unscored: those of them without any score */
  uint64_t points, labels, alerts, hits, misplaced;
  double chance;
  double covering; /* sum over `covered` recordings */
  uint64_t covered;
};

/* Judges one recording of `points` points, the first score being of point `scored` (points: there is none). found: in the order
 * in which they were raised; marked: in order. delay: room for n_marked, receives one for each hit. */
struct hk_verdict hk_judge(uint32_t points, uint32_t scored, uint32_t window, const struct hk_found *found, uint32_t n_found,
                           const struct hk_marked *marked, uint32_t n_marked, double *delay);

/* Covering of the segments that `marked` cuts 0..points-1 into by those that `found` does. */
double hk_judge_covering(uint32_t points, const struct hk_found *found, uint32_t n_found, const struct hk_marked *marked,
                         uint32_t n_marked);

void hk_verdict_add(struct hk_verdict *sum, const struct hk_verdict *one);

#endif
