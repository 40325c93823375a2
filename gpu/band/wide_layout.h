/* The layout of wide bands on the GPU, which their kernels and gpu/band/wide_gpu.c share.
 *
 * A matrix is cut into segments of equations, which are eliminated side by side. A separator lies between two segments: as many
 * equations as there are diagonals on a side. A segment has its own equations, then those of the separator after it; the last
 * segment is reversed, so that its separator, too, comes after it. A segment between two separators has the one before it as
 * additional columns and rows, its border. Rows of separators are never pivots. The remainders of the separators are one more
 * system, with a band twice as wide.
 *
 * Band: A[row][column] is number row + column * (stride - 1) from `band` on. As in LAPACK's format there is room for the fill-in
 * of row exchanges. Each column has `pad` more numbers at both ends, so that a block of `pad` columns is part of a dense matrix
 * with leading dimension stride - 1. */
#ifndef HK_WIDE_LAYOUT_H
#define HK_WIDE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_WIDE_PANEL 32u      /* columns that are factorised at once */
#define HK_WIDE_BLOCK_MAX 512u /* columns of a block; a power of 2 from HK_WIDE_PANEL on */
#define HK_WIDE_SEGMENTS 64u
#define HK_WIDE_THREADS 576u /* of a panel, at most: they have 96 registers each */
#define HK_WIDE_CLUSTER 8u   /* thread blocks of a cluster, at most */
#define HK_WIDE_FEW 160u     /* maximum rows of each of these, unless there are HK_WIDE_CLUSTER of them */
#define HK_WIDE_NONE UINT32_MAX

/* How a matrix is factorised; zeros: chosen by its shape. */
struct hk_band_wide_way {
  uint32_t segments; /* 1: as a whole */
  uint32_t block;    /* columns that the product takes at once: 32, 64, .. 512 */
};

/* Row exchanges of a panel, numbered from its first row: row i becomes the former row from[i], and the former row i becomes row
 * to[i], or leaves the panel (HK_WIDE_NONE). */
struct hk_wide_exchange {
  uint32_t from[HK_WIDE_PANEL], to[HK_WIDE_PANEL];
};

struct hk_wide_segment {
  double *band;                      /* of n + after columns */
  double *columns;                   /* n + after rows: border columns if there is a border, then the right side */
  double *left;                      /* rows of the border: `border` rows, n + after columns; NULL: none */
  double *corner;                    /* border rows of `columns`: `border` rows */
  double *x;                         /* n + after unknowns */
  struct hk_wide_exchange *exchange; /* of each panel */
  uint32_t n, after;                 /* its own equations, and those of the separator behind it */
  uint32_t border;                   /* equations of the separator before it; 0: none */
  uint32_t low, turned;              /* its first equation in A (the last one if it is turned round) */
};

/* Common to all segments. */
struct hk_wide_layout {
  const struct hk_wide_segment *segment; /* in device memory */
  size_t stride;
  uint32_t segments, longest; /* the largest n */
  uint32_t below, reach;      /* diagonals below; diagonals above with fill-in */
  uint32_t border, after;     /* the largest of all segments */
  bool clusters;              /* the device has clusters of thread blocks, and kernels that begin early */
};

/* Columns on which a step works: those from `left` on, `lefts` of them, which only exchange rows; those of the band from..to-1,
 * where those beside the block (from = row + width) begin behind the segment's equations if these end in the block; and of the
 * extra ones all, the right side alone, or none; HK_WIDE_OWN: none, and of the band those of the segment's own equations alone.
 */
enum hk_wide_extra { HK_WIDE_ALL, HK_WIDE_RIGHT, HK_WIDE_NONE_MORE, HK_WIDE_OWN };
struct hk_wide_step {
  uint32_t row, width; /* the block: first column, columns */
  uint32_t left, lefts, from, to;
  enum hk_wide_extra extra;
};

/* A in device memory, as hk_band_at has it. */
struct hk_wide_matrix {
  const double *a;
  uint32_t n, below, above;
};

/* Sums of a solution, and the first column without a pivot. */
struct hk_wide_sums {
  double matrix, solution, right, residual;
  uint32_t singular, unused;
};

/* Thread blocks of a cluster, a power of 2, whose threads have a row each of a panel with so many diagonals below; 0: they are
 * too many for a device, with or without clusters. */
static inline uint32_t hk_wide_panel_blocks(uint32_t below, bool clusters)
{
  const uint32_t rows = below + HK_WIDE_PANEL;
  uint32_t blocks = 1;
  if (rows <= HK_WIDE_THREADS)
    return 1;
  while (blocks < HK_WIDE_CLUSTER && blocks * HK_WIDE_FEW < rows)
    blocks *= 2;
  return clusters && blocks * HK_WIDE_THREADS >= rows ? blocks : 0;
}

#endif
