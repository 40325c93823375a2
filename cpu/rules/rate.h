/* Counters: what a counter's values say a second. Pure; any thread. */
#ifndef HK_RATE_H
#define HK_RATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one sensor. All zero: no value was seen. */
struct hk_rate {
  int64_t time; /* ns: of the last value */
  double value;
  bool known;
};

/* The difference to the value before, a second. NAN, which no backend takes: it is not known, for there is no value before, or
 * the counter is below it and so began anew. What is not finite, before 1970 or late comes back as it is, for the backend to say
 * so, and changes nothing. */
static inline double hk_rate_next(struct hk_rate *rate, int64_t time, double value)
{
  if (!isfinite(value) || time < 0 || (rate->known && time <= rate->time))
    return value;
  const struct hk_rate before = *rate;
  *rate = (struct hk_rate){ time, value, true };
  if (!before.known || value < before.value)
    return (double)NAN;
  return (value - before.value) * 1e9 / (double)(time - before.time);
}

#endif
