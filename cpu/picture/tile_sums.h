/* A tile's sums by column, and what becomes of them: written once for the host and the GPU, which give the same bits. */
#ifndef HK_PICTURE_TILE_SUMS_H
#define HK_PICTURE_TILE_SUMS_H

#include "cpu/detector.h"
#include "cpu/picture/tile.h"

#include <math.h>

/* By column, over the rows of a tile so far: finite numbers, the first one, the greatest, and sums of differences from the
 * first. */
struct hk_picture_columns {
  float *n, *first, *most, *sum, *square;
};

/* Whether a pixel is there. */
HK_INLINE int hk_picture_there(float x)
{
  return fabsf(x) <= 3e38f;
}

/* Sums up columns from..to-1 of a tile of so many rows. */
HK_INLINE struct hk_picture_tile hk_picture_sum_up(const struct hk_picture_columns *c, uint32_t from, uint32_t to, uint32_t rows)
{
  struct hk_picture_tile t = { 0, (to - from) * rows, 0, 0, 0 };
  double total = 0, apart = 0;
  int any = 0;
  for (uint32_t i = from; i < to; i++) {
    t.n += (uint32_t)c->n[i];
    total += (double)c->n[i] * (double)c->first[i] + (double)c->sum[i];
    if (c->n[i] > 0 && (!any || (double)c->most[i] > t.most)) {
      t.most = (double)c->most[i];
      any = 1;
    }
  }
  if (t.n == 0)
    return t;
  t.mean = total / t.n;
  for (uint32_t i = from; i < to; i++) {
    const double n = (double)c->n[i], mean = n > 0 ? (double)c->sum[i] / n : 0, off = (double)c->first[i] + mean - t.mean;
    apart += (double)c->square[i] - n * mean * mean + n * off * off;
  }
  t.spread = sqrt(apart > 0 ? apart / t.n : 0);
  return t;
}

#endif
