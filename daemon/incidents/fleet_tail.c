#include "daemon/incidents/fleet_tail.h"

#include <math.h>
#include <string.h>

#define WEIGHT_MOST 1073741824.0 /* 2^30 */
#define RAISES_PRIOR 100.0       /* sensor-days */
#define STEP_MOST 1.0            /* days */

void hk_tail_init(struct hk_fleet_tail *t, int64_t interval)
{
  memset(t, 0, sizeof *t);
  t->weight = 1;
  t->blocks = (double)HK_DAY / (double)interval / HK_TAIL_BLOCK;
}

static double days(int64_t from, int64_t to)
{
  return ((double)to - (double)from) / (double)HK_DAY;
}

double hk_tail_clock(struct hk_fleet_tail *t, int64_t time, double sensors)
{
  if (!t->begun) {
    t->begun = true;
    t->time = t->begin = time;
  }
  if (time <= t->time)
    return 1;
  const double passed = days(t->time, time);
  t->exposure = t->exposure * pow(.5, passed / HK_TAIL_HALF) + sensors * fmin(passed, STEP_MOST);
  t->time = time;
  t->summed = false;
  t->weight = pow(2, fmin(days(t->begin, time) / HK_TAIL_HALF, 1000));
  if (t->weight < WEIGHT_MOST)
    return 1;
  const double scale = t->weight;
  for (uint32_t i = 0; i < HK_TAIL_BINS; i++)
    t->count[i] /= scale;
  t->raises /= scale;
  t->weight = 1;
  t->begin = time;
  return scale;
}

void hk_tail_add(struct hk_fleet_tail *t, double R, double weight)
{
  t->count[hk_tail_bin(R)] += weight;
}

double hk_tail_threshold(const struct hk_fleet_tail *t, double a_day, double sensors)
{
  if (!(a_day > 0))
    return INFINITY;
  const double most = a_day * (t->exposure + HK_TAIL_PRIOR) / sensors;
  double sum = 0;
  for (uint32_t i = HK_TAIL_BINS; i-- > 0;) {
    sum += t->count[i] / t->weight;
    if (sum + HK_TAIL_PRIOR * t->blocks * pow(10, -(double)i * HK_TAIL_BIN) > most)
      return (i + 1) * HK_TAIL_BIN;
  }
  return 0;
}

struct hk_tail_rates hk_tail_rates(struct hk_fleet_tail *t)
{
  double sum = 0;
  for (uint32_t i = HK_TAIL_BINS; !t->summed && i-- > 0;)
    t->at_least[i] = sum += t->count[i] / t->weight;
  t->summed = true;
  const double unseen = .5 * t->blocks * pow(10, -HK_TAIL_WEAKEST);
  return (struct hk_tail_rates){ t->at_least, (t->raises / t->weight + RAISES_PRIOR * unseen) / (t->exposure + RAISES_PRIOR),
                                 t->exposure + HK_TAIL_PRIOR };
}
