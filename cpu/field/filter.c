/* Filters: see filter.h. */
#include "cpu/field/filter.h"

#include <math.h>
#include <string.h>

#define NORMAL 1.4826   /* spread of normal values by their median distance from the median */
#define SLOW (1.0 / 32) /* share by which `usual` moves with a sample */

/* The bits of a number as a whole one, in the same order; and back. */
static int64_t in_order(int64_t bits)
{
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

/* Sorts n numbers, none of them NaN: n rounds that order every second pair. The compiler knows n, so that all is in registers and
 * no branch, which would be a matter of chance, is in it. */
static inline __attribute__((always_inline)) void sort_all(uint32_t n, double *x)
{
  int64_t y[HK_FILTER_SAMPLES_MAX];
  memcpy(y, x, n * sizeof *x);
  for (uint32_t i = 0; i < n; i++)
    y[i] = in_order(y[i]);
  for (uint32_t round = 0; round < n; round++)
    for (uint32_t i = round % 2; i + 1 < n; i += 2) {
      const int64_t a = y[i], b = y[i + 1];
      y[i] = a < b ? a : b;
      y[i + 1] = a < b ? b : a;
    }
  for (uint32_t i = 0; i < n; i++)
    y[i] = in_order(y[i]);
  memcpy(x, y, n * sizeof *x);
}

static void sort(uint32_t n, double *x)
{
  switch (n) {
  case 3:
    sort_all(3, x);
    break;
  case 5:
    sort_all(5, x);
    break;
  case 7:
    sort_all(7, x);
    break;
  default:
    sort_all(n, x);
  }
}

/* The median distance of n sorted numbers from their median, which is the least that holds half of the others: `below` numbers
 * down, and the rest up. */
static double filter_distance(uint32_t n, const double *x)
{
  const uint32_t half = n / 2;
  double least = INFINITY;
  for (uint32_t below = 0; below <= half; below++) {
    const double down = x[half] - x[half - below], up = x[n - 1 - below] - x[half], far = down > up ? down : up;
    least = far < least ? far : least;
  }
  return fabs(least); /* never -0 */
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
  const double spread = NORMAL * filter_distance(n, sorted);
  f->usual = slower(f->usual, spread);
  *spike = fabs(value - median) > rule->spike * fmax(spread, f->usual / 2);
  return *spike || !rule->despike ? median : value;
}

bool hk_filter_valid(const struct hk_filter *f, const struct hk_filter_rule *rule, int64_t newest)
{
  return hk_last_samples_valid(&f->last, f->past, rule->samples, HK_FILTER_SAMPLES_MAX, newest) && f->usual >= 0 &&
         f->usual <= 4 * HK_LAST_VALUE_MAX && !signbit(f->usual) && (f->last.n > 0 || f->usual == 0);
}
