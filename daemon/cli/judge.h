/* Compares alerts with the labels of recordings, and with as many alerts at random instants. Pure functions.
 *
 * An alert is judged by its first estimate of the change instant. It hits a label when that lies in the label, widened by one
 * detector window on both sides; a label is hit once, however many alerts fall on it; an alert that hits none is false.
 *
 * Chance: the expected number of labels hit by as many alerts, uniformly distributed over the points from the first score:
 * the sum over labels of 1 - (1 - share of these points that hit it)^alerts.
 *
 * Delay: points from the label's start to the point on which the first alert that hits it was raised.
 *
 * Covering, of recordings whose labels are instants: labels cut a recording into segments, and so do alerts. Each labelled
 * segment, weighted by its length, counts its largest overlap (intersection over union) with a segment between alerts (G. van den
 * Burg and C. Williams, An evaluation of change point detection algorithms, 2020). */
#ifndef HK_JUDGE_H
#define HK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices of points. */
struct hk_found {
  uint32_t instant, raised;
  float severity; /* the highest so far; not an index */
};

struct hk_marked {
  uint32_t first, last;
};

/* Sums over recordings. Zero-initialise. */
struct hk_verdict {
  uint64_t recordings, unscored; /* unscored: recordings without any score */
  uint64_t longest;              /* points that could be taken of the longest of these */
  uint64_t points, labels, alerts, hits, misplaced;
  double chance;
  double covering; /* sum over `covered` recordings */
  uint64_t covered;
};

/* Judges a recording of `points` points. scored: index of the first point with a score, or `points` if there is none. found: in
 * the order of `raised`; marked: ascending. delay: room for n_marked; receives one delay for each hit. */
struct hk_verdict hk_judge(uint32_t points, uint32_t scored, uint32_t window, const struct hk_found *found, uint32_t n_found,
                           const struct hk_marked *marked, uint32_t n_marked, double *delay);

/* Covering of the labelled segments of 0..points-1 by the segments between alerts. */
double hk_judge_covering(uint32_t points, const struct hk_found *found, uint32_t n_found, const struct hk_marked *marked,
                         uint32_t n_marked);

/* What alerts are worth in one number: the covering; or, where labels are no instants, the labels hit over chance, beside labels
 * and alerts. */
double hk_verdict_worth(const struct hk_verdict *v);

/* The median of the delays of its hits, of which there is one at least; puts them in order. */
double hk_verdict_delay(const struct hk_verdict *v, double *delay);

void hk_verdict_add(struct hk_verdict *sum, const struct hk_verdict *one);

#endif
