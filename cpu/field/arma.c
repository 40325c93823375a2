/* ARMA(2,1): see arma.h. */
#include "cpu/field/arma.h"

#include <math.h>
#include <string.h>

#define SINGULAR 1e-12 /* a pivot below this share of its diagonal */
#define NUMBER_MAX 1e60

/* The product of numbers a and b <= a, or the product of number a and h_t, of n numbers beside 1; number 0 is 1. */
static uint32_t arma_product(uint32_t a, uint32_t b)
{
  return a * (a + 1) / 2 + b;
}

static uint32_t arma_with_value(uint32_t n, uint32_t a)
{
  return arma_product(n + 1, 0) + a;
}

/* Adds an equation h = fit . (1, u). */
static void arma_add(uint32_t n, double *sum, const double *u, double h)
{
  for (uint32_t a = 0; a <= n; a++) {
    const double left = a > 0 ? u[a - 1] : 1;
    for (uint32_t b = 0; b <= a; b++)
      sum[arma_product(a, b)] += left * (b > 0 ? u[b - 1] : 1);
    sum[arma_with_value(n, a)] += left * h;
  }
}

/* Solves the sums' equations by Cholesky, in place. False: they have no solution; fit is unchanged. */
static bool arma_solve(uint32_t n, double *sum, double *fit)
{
  double *side = sum + arma_with_value(n, 0);
  for (uint32_t a = 0; a <= n; a++) {
    const double diagonal = sum[arma_product(a, a)];
    for (uint32_t b = 0; b <= a; b++) {
      double *at = &sum[arma_product(a, b)];
      for (uint32_t k = 0; k < b; k++)
        *at -= sum[arma_product(a, k)] * sum[arma_product(b, k)];
      if (b < a)
        *at /= sum[arma_product(b, b)];
    }
    double *pivot = &sum[arma_product(a, a)];
    if (!(*pivot > SINGULAR * diagonal))
      return false;
    *pivot = sqrt(*pivot);
    for (uint32_t k = 0; k < a; k++)
      side[a] -= sum[arma_product(a, k)] * side[k];
    side[a] /= *pivot;
  }
  for (uint32_t a = n + 1; a-- > 0;) {
    for (uint32_t k = a + 1; k <= n; k++)
      side[a] -= sum[arma_product(k, a)] * side[k];
    side[a] /= sum[arma_product(a, a)];
  }
  memcpy(fit, side, (n + 1) * sizeof *fit);
  return true;
}

static double arma_apply(uint32_t n, const double *fit, const double *u)
{
  double sum = fit[0];
  for (uint32_t a = 0; a < n; a++)
    sum += fit[a + 1] * u[a];
  return sum;
}

/* Ends a fit, and begins the next one. */
static void arma_fit(struct hk_arma *a)
{
  if ((a->has & HK_ARMA_LONG_FIT) && arma_solve(HK_ARMA_SHORT, a->short_sum, a->short_fit)) {
    a->short_fit[HK_ARMA_SHORT] = fmin(fmax(a->short_fit[HK_ARMA_SHORT], -HK_ARMA_FADES), HK_ARMA_FADES);
    a->has |= HK_ARMA_SHORT_FIT;
  }
  if (arma_solve(HK_ARMA_LONG, a->long_sum, a->long_fit))
    a->has |= HK_ARMA_LONG_FIT;
  memset(a->long_sum, 0, sizeof a->long_sum);
  memset(a->short_sum, 0, sizeof a->short_sum);
  a->has &= ~HK_ARMA_GUESS;
  a->guess = 0;
  a->count = 0;
}

/* Adds a value to the sums, where enough of them came before it. */
static void arma_learn(struct hk_arma *a, double value)
{
  const double u[HK_ARMA_SHORT] = { a->past[0], a->past[1], a->past[0] - a->guess };
  if (a->has & HK_ARMA_GUESS)
    arma_add(HK_ARMA_SHORT, a->short_sum, u, value);
  a->has &= ~HK_ARMA_GUESS;
  a->guess = 0;
  if (a->n < HK_ARMA_LONG)
    return;
  arma_add(HK_ARMA_LONG, a->long_sum, a->past, value);
  a->count++;
  if (a->has & HK_ARMA_LONG_FIT) {
    a->guess = arma_apply(HK_ARMA_LONG, a->long_fit, a->past);
    a->has |= HK_ARMA_GUESS;
  }
}

/* After a gap nothing follows what came before; the sums stay. */
static void arma_break(struct hk_arma *a)
{
  memset(a->past, 0, sizeof a->past);
  a->n = 0;
  a->guess = a->forecast = a->error = 0;
  a->has &= ~(HK_ARMA_GUESS | HK_ARMA_FORECAST);
}

double hk_arma_put(struct hk_arma *a, uint32_t rows, double value)
{
  if (!(fabs(value) <= HK_ARMA_VALUE_MAX)) {
    arma_break(a);
    return NAN;
  }
  arma_learn(a, value);
  a->error = a->has & HK_ARMA_FORECAST ? value - a->forecast : 0;
  memmove(a->past + 1, a->past, (HK_ARMA_LONG - 1) * sizeof *a->past);
  a->past[0] = value;
  a->n += a->n < HK_ARMA_LONG;
  if (a->count == rows)
    arma_fit(a);
  const double u[HK_ARMA_SHORT] = { a->past[0], a->past[1], a->error };
  const double forecast = a->n >= 2 && (a->has & HK_ARMA_SHORT_FIT) ? arma_apply(HK_ARMA_SHORT, a->short_fit, u) : NAN;
  const bool there = fabs(forecast) <= HK_ARMA_VALUE_MAX;
  a->forecast = there ? forecast : 0;
  a->has = there ? a->has | HK_ARMA_FORECAST : a->has & ~HK_ARMA_FORECAST;
  return there ? forecast : NAN;
}

static bool arma_numbers(uint32_t n, const double *x, double most)
{
  bool good = true;
  for (uint32_t i = 0; i < n; i++)
    good &= fabs(x[i]) <= most;
  return good;
}

bool hk_arma_valid(const struct hk_arma *a, uint32_t rows)
{
  bool good = a->n <= HK_ARMA_LONG && a->count < rows && a->has < 2 * HK_ARMA_FORECAST && a->unused == 0 &&
              arma_numbers(HK_ARMA_LONG, a->past, HK_ARMA_VALUE_MAX) && fabs(a->forecast) <= HK_ARMA_VALUE_MAX &&
              arma_numbers(HK_ARMA_SUMS(HK_ARMA_LONG), a->long_sum, NUMBER_MAX) &&
              arma_numbers(HK_ARMA_SUMS(HK_ARMA_SHORT), a->short_sum, NUMBER_MAX) &&
              arma_numbers(HK_ARMA_LONG + 1, a->long_fit, NUMBER_MAX) &&
              arma_numbers(HK_ARMA_SHORT + 1, a->short_fit, NUMBER_MAX) && fabs(a->guess) <= NUMBER_MAX &&
              fabs(a->error) <= 2 * HK_ARMA_VALUE_MAX;
  for (uint32_t i = a->n; i < HK_ARMA_LONG && good; i++)
    good = a->past[i] == 0;
  return good;
}
