/* Filters: see filter.h. */
#include "cpu/field/filter.h"

#include <math.h>
#include <string.h>

#define NORMAL 1.4826   /* spread of normal values by their median distance from the median */
#define SLOW (1.0 / 32) /* share by which `usual` moves with a sample */

/* Sorts a few numbers. */
static void sort(uint32_t n, double *x)
{
  for (uint32_t i = 1; i < n; i++) {
    const double moved = x[i];
    uint32_t at = i;
    for (; at > 0 && x[at - 1] > moved; at--)
      x[at] = x[at - 1];
    x[at] = moved;
  }
}

/* Takes a sample's spread into the slow median of spreads. */
static double slower(double usual, double spread)
{
  if (usual == 0)
    return spread;
  return spread > usual ? usual + usual * SLOW : spread < usual ? usual - usual * SLOW : usual;
}

double hk_filter_put(struct hk_filter *f, const struct hk_filter_rule *rule, int64_t row, double value, bool *spike)
{
  double sorted[HK_FILTER_SAMPLES_MAX];
  const uint32_t n = rule->samples;
  *spike = false;
  if (!hk_last_samples_put(&f->last, f->past, n, row, value))
    return NAN;
  memcpy(sorted, f->past, n * sizeof *sorted);
  sort(n, sorted);
  const double median = sorted[n / 2];
  for (uint32_t i = 0; i < n; i++)
    sorted[i] = fabs(f->past[i] - median);
  sort(n, sorted);
  const double spread = NORMAL * sorted[n / 2];
  f->usual = slower(f->usual, spread);
  *spike = fabs(value - median) > rule->spike * fmax(spread, f->usual / 2);
  return *spike || !rule->despike ? median : value;
}

bool hk_filter_valid(const struct hk_filter *f, const struct hk_filter_rule *rule, int64_t newest)
{
  return hk_last_samples_valid(&f->last, f->past, rule->samples, HK_FILTER_SAMPLES_MAX, newest) && f->usual >= 0 &&
         f->usual <= 4 * HK_LAST_VALUE_MAX && !signbit(f->usual) && (f->last.n > 0 || f->usual == 0);
}
