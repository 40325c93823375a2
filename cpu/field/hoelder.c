/* Hoelder exponents: see hoelder.h. */
#include "cpu/field/hoelder.h"

#include <math.h>

#define RADII 6 /* 1, 2, 4, .., HK_HOELDER_REACH */
#define RADII_LEAST 3

/* The sample that is `back` before the newest of a full ring. */
static double hoelder_sample(const struct hk_hoelder *h, uint32_t back)
{
  return h->past[(h->last.at + HK_HOELDER_SAMPLES - 1 - back) % HK_HOELDER_SAMPLES];
}

/* Fills in ln o_r of the last radii, whose o_r is over 0. Returns the first of them. */
static uint32_t oscillations(const struct hk_hoelder *h, double out[RADII])
{
  double least = hoelder_sample(h, HK_HOELDER_REACH), most = least;
  uint32_t first = RADII, k = 0;
  for (uint32_t r = 1; r <= HK_HOELDER_REACH; r++) {
    const double before = hoelder_sample(h, HK_HOELDER_REACH + r), behind = hoelder_sample(h, HK_HOELDER_REACH - r);
    least = fmin(least, fmin(before, behind));
    most = fmax(most, fmax(before, behind));
    if ((r & (r - 1)) != 0)
      continue;
    if (most > least) {
      out[k] = log(most - least);
      first = first < k ? first : k;
    }
    k++;
  }
  return first;
}

double hk_hoelder_put(struct hk_hoelder *h, int64_t row, double value)
{
  double o[RADII], above = 0, below = 0;
  if (!hk_last_samples_put(&h->last, h->past, HK_HOELDER_SAMPLES, row, value))
    return NAN;
  const uint32_t first = oscillations(h, o);
  if (first + RADII_LEAST > RADII)
    return NAN;
  const double middle = (first + RADII - 1) / 2.0;
  for (uint32_t k = first; k < RADII; k++) {
    above += (k - middle) * o[k];
    below += (k - middle) * (k - middle);
  }
  return above / (below * log(2));
}

bool hk_hoelder_valid(const struct hk_hoelder *h, int64_t newest)
{
  return hk_last_samples_valid(&h->last, h->past, HK_HOELDER_SAMPLES, HK_HOELDER_SAMPLES, newest);
}
