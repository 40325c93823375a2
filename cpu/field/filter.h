/* Filters of single sensors: despike (Hampel) and running median, over a sensor's last few samples.
 *
 * With x_0 the newest of the last n samples, m their median and d = 1.4826 median |x_k - m|, the spread of normal values:
 *
 *   c is the slow median of d: a 32nd of itself up where d is above it, and down where below; initially the first d over 0
 *   x_0 is a spike if |x_0 - m| > spike * max(d, c / 2)
 *   despike gives m for a spike, else x_0, without delay; a step passes after (n + 1) / 2 samples
 *   median  gives m, with a delay of (n - 1) / 2 samples
 *
 * F. R. Hampel, The Influence Curve and its Role in Robust Estimation, 1974. c keeps a quiet moment, in which the n samples
 * happen to be alike, from making a spike of the next usual value.
 *
 * There is no output before n samples, and none of those older than n rows counts: after a hole the filter begins again, with the
 * same c. Costs O(n^2) a sample. Thread: the owner's. */
#ifndef HK_FILTER_H
#define HK_FILTER_H

#include "cpu/field/last_samples.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_FILTER_SAMPLES_MAX 15u
#define HK_FILTER_SPIKE_LEAST 1.0
#define HK_FILTER_SPIKE_MOST 1000.0

struct hk_filter_rule {
  uint32_t samples; /* n: odd, 3..HK_FILTER_SAMPLES_MAX */
  bool despike;     /* else the median */
  double spike;     /* HK_FILTER_SPIKE_LEAST..MOST */
};

/* One sensor's; all zero: no sample yet. */
struct hk_filter {
  double past[HK_FILTER_SAMPLES_MAX]; /* a ring of rule.samples; 0 where there is none */
  double usual;                       /* c; 0: not known yet */
  struct hk_last_samples last;
};

/* Takes the sample of a row, which is after all earlier rows. value: |value| <= 1e30. Returns the output, NaN: none; and whether
 * the sample is a spike. */
double hk_filter_put(struct hk_filter *filter, const struct hk_filter_rule *rule, int64_t row, double value, bool *spike);
/* Whether bytes that were read are a filter that hk_filter_put could have left after samples up to `newest`. */
bool hk_filter_valid(const struct hk_filter *filter, const struct hk_filter_rule *rule, int64_t newest);

#endif
