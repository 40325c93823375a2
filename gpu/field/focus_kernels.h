/* The launchers of focus.cu for gpu/field/focus_gpu.c. */
#ifndef HK_FOCUS_KERNELS_H
#define HK_FOCUS_KERNELS_H

#include "cpu/field/focus.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* The change found in a row, as numbers of which the greatest is taken. All zero: none. */
struct hk_focus_most {
  uint64_t sensor; /* bits of the value of the sensor that finds a change, and behind them how far it is from the last number */
  uint32_t strongest; /* bits of the greatest value, and 1 */
  uint32_t unused;
};

/* Rows from `row` on, of a line whose tables and columns are in device memory: f as of the last row before. Columns that are
 * written anew by each row (strength, aimed, top, top_at) have HK_FOCUS_AT_ONCE times their numbers, one row after the other;
 * value and blamed of a row lie `apart` numbers from those of the row before. */
struct hk_focus_rows {
  struct hk_focus f;
  int64_t row;
  uint32_t rows; /* 1..HK_FOCUS_AT_ONCE */
  size_t apart;
  const double *x;            /* rows times n values */
  struct hk_focus_most *most; /* by row */
};

/* The passes of all rows, in the order of cpu/field/focus.h. Asynchronous; returns a cudaError_t. */
int hk_focus_launch(const struct hk_focus_rows *rows, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
