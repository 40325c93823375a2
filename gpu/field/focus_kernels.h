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
  double *x;                  /* rows times n values */
  struct hk_focus_most *most; /* by row */
  const double *from;         /* NULL, or the values in page-locked memory of the host, which hk_focus_launch_whole puts to x */
  uint64_t *to; /* NULL, or such memory, to which it puts `most` and all that lies behind it, 8 bytes `back` times */
  size_t back;
  uint32_t blocks; /* of hk_focus_launch_whole, at most: so few that all are on the device at once */
};

/* The passes of all rows, in the order of cpu/field/focus.h, by a launch for each. Asynchronous; returns a cudaError_t. */
int hk_focus_launch(const struct hk_focus_rows *rows, struct CUstream_st *stream);
/* The same by one launch, with the copies: by blocks that wait for each other, so there are not more than are on the device at
 * once. */
int hk_focus_launch_whole(const struct hk_focus_rows *rows, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
