/* Counters: converts a counter's values to rates per second, and decides whether a sensor is a counter. Pure functions; any
 * thread.
 *
 * rate = yes: each value becomes its difference from the previous one, per second. If the counter fell, it was restarted, and the
 * rate is unknown.
 *
 * rate = auto: a sensor whose first values only rise, as those of collectd and Prometheus do, is a counter. A fall to at most
 * half of the previous value, and not below 0, is a *reset*. Of the first HK_RATE_LOOK values
 *
 *   a fall without a reset, a value below 0, a second reset                  the sensor is a gauge: its values are unchanged
 *   HK_RATE_RISES of them are above the previous one                         it is a counter, from this value on
 *   neither                                                                 a gauge
 *
 * A counter that falls without a reset becomes a gauge permanently. Whenever the kind is decided or changes, the value is
 * replaced by hk_anew's (window.h), so that the window contains either values or rates, never both. Only the sensor's accepted
 * values and their order matter. */
#ifndef HK_RATE_H
#define HK_RATE_H

#include "cpu/rules/window.h"

#define HK_RATE_LOOK 64
#define HK_RATE_RISES 32

enum hk_rate_kind { HK_RATE_UNDECIDED, HK_RATE_COUNTER, HK_RATE_GAUGE }; /* the numbers are part of snapshots */

/* State of one sensor. All zero: no value yet. */
struct hk_rate {
  int64_t time; /* ns: time of the last value */
  double value;
  uint8_t known;               /* 1: there was a value */
  uint8_t kind;                /* enum hk_rate_kind; unused with rate = yes */
  uint8_t seen, rises, resets; /* while undecided: numbers of values, of rises, and of resets */
  uint8_t unused[3];
};

/* The value that makes a window start anew. */
static inline double hk_rate_anew(void)
{
  const uint64_t bits = HK_ANEW_BITS;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Updates and returns the kind of a sensor with its next value. */
static inline uint8_t hk_rate_judge(struct hk_rate *rate, double value)
{
  const bool fell = rate->known && value < rate->value, reset = fell && value >= 0 && value <= rate->value / 2;
  if (rate->kind == HK_RATE_GAUGE || value < 0 || (fell && !reset))
    return HK_RATE_GAUGE;
  if (rate->kind == HK_RATE_COUNTER)
    return HK_RATE_COUNTER;
  rate->seen++;
  rate->rises += rate->known && value > rate->value;
  rate->resets += reset;
  return rate->rises == HK_RATE_RISES                     ? HK_RATE_COUNTER
         : rate->resets > 1 || rate->seen == HK_RATE_LOOK ? HK_RATE_GAUGE
                                                          : HK_RATE_UNDECIDED;
}

/* Returns what is passed to the window for the next value of a sensor whose detector has rate = yes or auto. NAN, which every
 * backend rejects: the rate is unknown, because there is no previous value, or the counter fell below it and so was restarted.
 * Values that are not finite, before 1970 or late are returned unchanged, for the backend to reject, and change nothing. */
static inline double hk_rate_next(struct hk_rate *rate, uint8_t how, int64_t time, double value)
{
  if (!isfinite(value))
    return isnan(value) ? (double)NAN : value; /* only this function returns hk_anew's value */
  if (time < 0 || (rate->known && time <= rate->time))
    return value;
  const struct hk_rate before = *rate;
  if (how == HK_RATE_AUTO)
    rate->kind = hk_rate_judge(rate, value);
  rate->time = time;
  rate->value = value;
  rate->known = 1;
  if (how == HK_RATE_AUTO && rate->kind != HK_RATE_COUNTER)
    return before.kind == HK_RATE_COUNTER ? hk_rate_anew() : value;
  if (how == HK_RATE_AUTO && before.kind != HK_RATE_COUNTER)
    return hk_rate_anew();
  if (!before.known || value < before.value)
    return (double)NAN;
  return (value - before.value) * 1e9 / (double)(time - before.time);
}

#endif
