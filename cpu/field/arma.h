/* Forecasts of a series, one value ahead, by an ARMA(2,1) model that is fitted once in `rows` values:
 *
 *   h_t = c + p h_t-1 + q h_t-2 + e_t + m e_t-1
 *
 * E. J. Hannan and J. Rissanen, Recursive estimation of mixed autoregressive-moving average order, 1982, in two steps, each of
 * plain least squares: a long autoregression, of HK_ARMA_LONG values and a constant, whose errors stand for the e_t-1 that
 * nobody sees; then h_t over 1, h_t-1, h_t-2 and that error. Both are fitted over the same `rows` values, so that only sums are
 * kept, not values: the errors are those by the long autoregression of the `rows` values before. So the first forecast comes
 * after two times as many. The forecasts' own errors are the e then; |m| is at most HK_ARMA_FADES, so that they fade.
 *
 * A fit whose equations have no solution is left out, and the one before stays. Costs O(HK_ARMA_LONG^2) a value. Thread: the
 * owner's. */
#ifndef HK_ARMA_H
#define HK_ARMA_H

#include <stdbool.h>
#include <stdint.h>

#define HK_ARMA_LONG 8u
#define HK_ARMA_SHORT 3u /* h_t-1, h_t-2 and the error */
#define HK_ARMA_FADES 0.98
#define HK_ARMA_ROWS_LEAST 256u
#define HK_ARMA_ROWS_MOST 1048576u
#define HK_ARMA_VALUE_MAX 1e6
#define HK_ARMA_SUMS(n) (((n) + 1) * ((n) + 2) / 2 + (n) + 1) /* of n numbers and 1: of products, packed, and with h_t */

/* One series'; all zero: no value yet. */
struct hk_arma {
  double past[HK_ARMA_LONG]; /* the last `n` values, the newest first; 0 where there is none */
  double long_sum[HK_ARMA_SUMS(HK_ARMA_LONG)], short_sum[HK_ARMA_SUMS(HK_ARMA_SHORT)]; /* of this fit */
  double long_fit[HK_ARMA_LONG + 1], short_fit[HK_ARMA_SHORT + 1];                     /* the last ones; the constant first */
  double guess;      /* the last value by long_fit; for the next error */
  double forecast;   /* of the next value */
  double error;      /* of the forecast of the last value */
  uint32_t n, count; /* values without a gap, up to HK_ARMA_LONG; and those of this fit */
  uint32_t has;      /* HK_ARMA_*: */
  uint32_t unused;
};
#define HK_ARMA_LONG_FIT 1u  /* long_fit is there */
#define HK_ARMA_SHORT_FIT 2u /* short_fit is */
#define HK_ARMA_GUESS 4u     /* guess is, by this long_fit */
#define HK_ARMA_FORECAST 8u

/* Takes the next value; rows: HK_ARMA_ROWS_LEAST..MOST. NaN, or one beyond HK_ARMA_VALUE_MAX: there is a gap, and what comes
 * behind it does not follow. Returns the forecast of the next value, NaN: none. */
double hk_arma_put(struct hk_arma *a, uint32_t rows, double value);
/* Whether bytes that were read can be a series'. */
bool hk_arma_valid(const struct hk_arma *a, uint32_t rows);

#endif
