/* Who of many sensors is like whom: those with the greatest correlation with each. */
#ifndef HK_FIELD_CORRELATE_H
#define HK_FIELD_CORRELATE_H

#include <stdint.h>

#define HK_FIELD_RESIDENT 512u /* rows kept for the choice of neighbours */
#define HK_CORRELATE_LANES 16u /* partial sums of a correlation, of the rows k, k + 16, and so on */
#define HK_CORRELATE_LEAST 48u /* minimum number of values for a correlation */

/* Who chooses among whom. The correlation of i and j is sum over rows of z_i z_j, where z is what is kept of a member, less its
 * mean, scaled to length 1, and 0 where there is nothing. Its bits are the same wherever it is computed: mean and length in
 * double, row by row; z in float; products and sums in float, each rounded, as HK_CORRELATE_LANES partial sums by row, which are
 * added up in their order. */
struct hk_correlate_task {
  const float *ring; /* kept rows of `room` numbers, in any order of rows; NaN: none */
  uint32_t room, kept;
  uint32_t n, q;       /* members; neighbours of each, at most HK_RESIDUAL_NEIGHBOURS_MAX */
  const uint32_t *due; /* members that choose */
  uint32_t n_due;
  uint32_t *found; /* out: q of each of them, those with positive correlation, the greatest first, of equal ones the lower number;
                      then HK_RESIDUAL_NONE */
};

/* Chooses on the host. Returns 0 or -ENOMEM. */
int hk_correlate(const struct hk_correlate_task *task);

#endif
