/* Filters of picture rows, one function for each step, compiled for each instruction set; picture.h puts them together. Rows are
 * floats; a row's first pixel is at [0], and it can be read and written from -HK_PICTURE_EDGE to HK_PICTURE_EDGE +
 * HK_PICTURE_BEYOND numbers behind its end. Every set gives the same bits. Thread: any. */
#ifndef HK_PICTURE_ROWS_H
#define HK_PICTURE_ROWS_H

#include <stdint.h>

#define HK_PICTURE_EDGE 16u   /* numbers before and behind a row; at least the reach of a filter, 7 */
#define HK_PICTURE_BEYOND 32u /* a vector and a reach may lie behind these */

struct hk_picture_columns; /* tile_sums.h */

struct hk_picture_rows {
  /* out: medians of 3 x 3 of the rows row[0..2], w of them. work: 3 rows. */
  void (*median_3)(float *out, const float *const *row, uint32_t w, float *const *work);
  /* out: medians of 5 x 5 of the rows row[0..4]. work: 5 rows. */
  void (*median_5)(float *out, const float *const *row, uint32_t w, float *const *work);
  /* out[i]: sum of in[i - 7 .. i + 7]. */
  void (*across)(float *out, const float *in, uint32_t w);
  /* out: in less the mean of its 15 x 15, by the sums of 15 rows, and by the numbers of pixels in these; NULL: 225 each. */
  void (*less_mean)(float *out, const float *in, const float *const *sum, const float *const *count, uint32_t w);
  /* out: 4 in less its four neighbours. */
  void (*laplacian)(float *out, const float *in, const float *above, const float *below, uint32_t w);
  /* Adds a row to columns; `begins`: it is the first of its tile. */
  void (*add)(const struct hk_picture_columns *columns, const float *in, uint32_t w, uint32_t begins);
};

#endif
