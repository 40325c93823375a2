/* The Hoelder exponent of a sensor at a sample: how rough the series is around it. It is 1 where the sensor is a straight line,
 * 0 at a step; on average 0.66 for a random walk and 0.29 for independent noise. With o_r the greatest less the least of the
 * samples that are at most r away from it,
 *
 *   h = the slope of ln o_r over ln r, by least squares, for those of r = 1, 2, 4, .., 32 whose o_r is over 0
 *
 * which needs 32 samples before and behind, so it is known 32 samples late. There is none with fewer than 3 such r, where the
 * sensor stands still.
 *
 * M. Shereshevsky et al., Software Aging and Multifractality of Memory Resources, 2003, who take it, of several resources at
 * once, for a sign of ageing. It did not prove to be one where it was tried: hankeld.conf(5) has the figures.
 *
 * There is no exponent before HK_HOELDER_SAMPLES samples, and none of those older than as many rows counts: after a hole it
 * begins again. Costs 64 comparisons and 6 logarithms a sample. Thread: the owner's. */
#ifndef HK_HOELDER_H
#define HK_HOELDER_H

#include "cpu/field/last_samples.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_HOELDER_REACH 32u
#define HK_HOELDER_SAMPLES (2 * HK_HOELDER_REACH + 1)

/* One sensor's; all zero: no sample yet. */
struct hk_hoelder {
  double past[HK_HOELDER_SAMPLES]; /* a ring; 0 where there is none */
  struct hk_last_samples last;
};

/* Takes the sample of a row, which is after all earlier rows. value: |value| <= 1e30. Returns the exponent, NaN: none. */
double hk_hoelder_put(struct hk_hoelder *h, int64_t row, double value);
/* Whether bytes that were read are what hk_hoelder_put could have left after samples up to `newest`. */
bool hk_hoelder_valid(const struct hk_hoelder *h, int64_t newest);

#endif
