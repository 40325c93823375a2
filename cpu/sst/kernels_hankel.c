/* Products with Hankel matrices, one matrix in each lane: y_i = sum over j of x_(i+j) v_j. An uncut square is processed in tiles
 * of rows: the sums of a tile, and the numbers of x that slide past them, stay in registers, so that a step reads one number of x
 * and one of v for as many multiply-adds as the tile has rows. */
#include "cpu/sst/lanes.h"

/* Rows of the largest tile: its sums, as many numbers of x, and one of v fill the registers. */
#ifdef __AVX512VL__
#define ROWS 12u
#else
#define ROWS 7u
#endif

ALWAYS_INLINE void tile(const uint32_t rows, vec *restrict y, bool add, const vec *restrict x, const vec *restrict v, uint32_t n)
{
  vec sum[ROWS], seen[ROWS];
  UNROLL for (uint32_t r = 0; r < rows; r++) sum[r] = add ? y[r] : (vec){ 0 };
  UNROLL for (uint32_t r = 0; r + 1 < rows; r++) seen[r] = x[r];
  uint32_t j = 0;
  for (; j + rows <= n; j += rows) {
    UNROLL for (uint32_t t = 0; t < rows; t++)
    {
      const vec vj = v[j + t];
      seen[(t + rows - 1) % rows] = x[j + t + rows - 1];
      UNROLL for (uint32_t r = 0; r < rows; r++) sum[r] += seen[(t + r) % rows] * vj;
    }
  }
  for (; j < n; j++) {
    UNROLL for (uint32_t r = 0; r < rows; r++) sum[r] += x[j + r] * v[j];
  }
  UNROLL for (uint32_t r = 0; r < rows; r++) y[r] = sum[r];
}

/* y := H v, or y += H v, with tiles as equal as possible. */
static void kernels_hankel_square(vec *restrict y, bool add, const vec *restrict x, const vec *restrict v, uint32_t n)
{
  uint32_t tiles = (n + ROWS - 1) / ROWS;
  for (uint32_t i = 0; i < n; tiles--) {
    const uint32_t rows = (n - i + tiles - 1) / tiles;
    switch (rows) {
#define CASE(r)                                                                                                                  \
  case r:                                                                                                                        \
    tile(r, y + i, add, x + i, v, n);                                                                                            \
    break;
      CASE(1)
      CASE(2)
      CASE(3)
      CASE(4)
      CASE(5)
      CASE(6)
      CASE(7)
#ifdef __AVX512VL__
      CASE(8)
      CASE(9)
      CASE(10)
      CASE(11)
      CASE(12)
#endif
    default:
      __builtin_unreachable();
    }
    i += rows;
  }
}

/* In the tree, a matrix of n is followed by A - B, C - B, and what their and B's own quarters need, in that order. */
static vec *split(vec *tree, const vec *x, uint32_t n, uint32_t levels)
{
  if (levels == 0)
    return tree;
  const uint32_t half = n / 2, length = n - 1;
  vec *a = tree, *c = tree + length, *next = tree + 2 * length;
  for (uint32_t m = 0; m < length; m++) {
    a[m] = x[m] - x[half + m];
    c[m] = x[2 * half + m] - x[half + m];
  }
  next = split(next, a, half, levels - 1);
  next = split(next, c, half, levels - 1);
  return split(next, x + half, half, levels - 1);
}

static void kernels_hankel_product(vec *restrict y, bool add, const vec *restrict x, const vec *restrict tree,
                                   const vec *restrict v, vec *restrict sum, uint32_t n, uint32_t levels)
{
  if (levels == 0) {
    kernels_hankel_square(y, add, x, v, n);
    return;
  }
  const uint32_t half = n / 2;
  const size_t below = hk_tree_size(half, levels - 1);
  const vec *a = tree, *c = tree + n - 1, *next = tree + 2 * (n - 1);
  vec *both = sum, *b = sum + half;
  for (uint32_t i = 0; i < half; i++)
    both[i] = v[i] + v[half + i];
  kernels_hankel_product(b, false, x + half, next + 2 * below, both, sum + n, half, levels - 1);
  for (uint32_t i = 0; i < half; i++) {
    const vec bi = b[i];
    y[i] = add ? y[i] + bi : bi;
    y[half + i] = add ? y[half + i] + bi : bi;
  }
  kernels_hankel_product(y, true, a, next, v, sum, half, levels - 1);
  kernels_hankel_product(y + half, true, c, next + below, v + half, sum, half, levels - 1);
}

void hankel_split(float *tree, const float *x, const struct hk_shape *shape)
{
  split((vec *)tree, (const vec *)x, shape->padded, shape->levels);
}

void hankel_product(float *y, const float *x, const float *tree, const float *v, float *sum, const struct hk_shape *shape)
{
  kernels_hankel_product((vec *)y, false, (const vec *)x, (const vec *)tree, (const vec *)v, (vec *)sum, shape->padded,
                         shape->levels);
}
