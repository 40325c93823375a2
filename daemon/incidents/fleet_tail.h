/* Fleet tail: the rate, per sensor and day, of incidents of rank R or more.
 *
 * A histogram of ranks, in which each incident counts once, beside the exposure in sensor-days; both forget with a half-life.
 * New entries have weight w = 2^(age of the tail / half-life), so that old ones need not be rescaled. A prior of 10^-R a block of
 * HK_TAIL_BLOCK points, of HK_TAIL_PRIOR sensor-days, stands for ranks that were never seen. The clock is the data's.
 *
 * Thread: one at a time. Owner: the caller. No memory is allocated. */
#ifndef HK_FLEET_TAIL_H
#define HK_FLEET_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#define HK_TAIL_BINS 800u
#define HK_TAIL_BIN .05 /* rank: the bins go from 0 to 40 */
#define HK_TAIL_PRIOR 500.0
#define HK_TAIL_BLOCK 40
#define HK_TAIL_HALF 7.0               /* days */
#define HK_TAIL_WEAKEST 1.5            /* severity of the weakest event that counts */
#define HK_DAY INT64_C(86400000000000) /* ns */

struct hk_fleet_tail {           /* plain data: a copy is a snapshot */
  double count[HK_TAIL_BINS];    /* weighted, like all members below marked so */
  double at_least[HK_TAIL_BINS]; /* not weighted: incidents of this bin and those above, by hk_tail_rates, in this tick */
  double exposure;               /* sensor-days, decayed */
  double raises;                 /* weighted: incidents that began, including merged ones */
  double weight;                 /* of new entries */
  double blocks;                 /* of a sensor a day */
  int64_t time, begin;           /* ns: now, and when the weight was 1 */
  bool begun, summed;            /* the clock was set; at_least is valid */
};

/* interval: ns between points of a sensor, > 0. */
void hk_tail_init(struct hk_fleet_tail *tail, int64_t interval);

/* Advances the clock to `time` (ns); an earlier time changes nothing. sensors: scored ones. A step of more than a day counts as a
 * day of exposure. Returns the divisor of all weights, including those that the caller keeps: 1, unless they would grow too
 * large. */
double hk_tail_clock(struct hk_fleet_tail *tail, int64_t time, double sensors);

/* Counts an incident of rank R, with a weight; a negative one takes it back. */
void hk_tail_add(struct hk_fleet_tail *tail, double R, double weight);

/* The least rank, a multiple of HK_TAIL_BIN, that so many sensors are expected to reach at most a_day times a day; infinite where
 * a_day <= 0. */
double hk_tail_threshold(const struct hk_fleet_tail *tail, double a_day, double sensors);

/* Incidents of severity S or more, per sensor and day: the observed rate, but at least 10^-(S - HK_TAIL_WEAKEST) of the rate of
 * all. For many severities at one moment: hk_tail_rates, then hk_tail_rate for each, with fade = 10^-(S - HK_TAIL_WEAKEST). */
struct hk_tail_rates {
  const double *at_least; /* by bin */
  double raised, days;    /* a sensor and day, of any severity; sensor-days */
};
struct hk_tail_rates hk_tail_rates(struct hk_fleet_tail *tail);

static inline uint32_t hk_tail_bin(double R)
{
  const double bin = R / HK_TAIL_BIN;
  return bin <= 0 ? 0 : bin >= HK_TAIL_BINS - 1 ? HK_TAIL_BINS - 1 : (uint32_t)bin;
}
static inline double hk_tail_rate(const struct hk_tail_rates *rates, double S, double fade)
{
  const double faded = rates->raised * fade, seen = rates->at_least[hk_tail_bin(S)] / rates->days;
  return faded > seen ? faded : seen;
}

#endif
