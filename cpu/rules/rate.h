/* Counters: what a counter's values say a second, and whether a sensor is one. Pure; any thread.
 *
 * rate = yes: each value becomes its difference to the one before, a second. Where the counter fell it began anew, and the rate
 * is not known.
 *
 * rate = auto: a sensor whose first values only rise, as those of collectd and Prometheus do, is a counter. A fall to at most
 * half of the value before, and not below 0, is a *reset*. Of the first HK_RATE_LOOK values
 *
 *   a fall that is no reset, a value below 0, a second reset                the sensor is a gauge: its values stay as they are
 *   HK_RATE_RISES of them lay above the one before                          it is a counter, from this value on
 *   neither                                                                 a gauge
 *
 * A counter that falls without a reset was none: it is a gauge from then on, for good. Whenever that is decided the value is
 * replaced by hk_anew's (window.h), so that the window holds values or rates, and never both. All of it goes by the sensor's
 * accepted values alone, in their order. */
#ifndef HK_RATE_H
#define HK_RATE_H

#include "cpu/rules/window.h"

#define HK_RATE_LOOK 64
#define HK_RATE_RISES 32

enum hk_rate_kind { HK_RATE_UNDECIDED, HK_RATE_COUNTER, HK_RATE_GAUGE }; /* the numbers are part of snapshots */

/* Of one sensor. All zero: no value was seen. */
struct hk_rate {
  int64_t time; /* ns: of the last value */
  double value;
  uint8_t known;               /* 1: there was one */
  uint8_t kind;                /* enum hk_rate_kind; with rate = yes it says nothing */
  uint8_t seen, rises, resets; /* while it is undecided: values, those above the one before, those that were resets */
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

/* What is known of a sensor by its next value. */
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

/* What goes into the window for the next value of a sensor of a detector with this `rate`, yes or auto. NAN, which no backend
 * takes: it is not known, for there is no value before, or the counter is below it and so began anew. What is not finite, before
 * 1970 or late comes back as no rate, for the backend to say so, and changes nothing. */
static inline double hk_rate_next(struct hk_rate *rate, uint8_t how, int64_t time, double value)
{
  if (!isfinite(value))
    return isnan(value) ? (double)NAN : value; /* nobody else says anew */
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
