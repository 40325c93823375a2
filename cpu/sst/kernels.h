/* The kernels of the float32 arithmetic: one table for each instruction set, all from the same sources.
 *
 * Lanes. A vector register holds one number of each of `lanes` tasks: lane l is task l, and a block of n numbers for each task is
 * n * lanes floats, number i of lane l at [i * lanes + l]. So the speed does not depend on the window, a sum needs no horizontal
 * step, the small eigenproblems run side by side, and lanes are independent: the result of one does not depend on the others.
 * Blocks are aligned to 64 bytes.
 *
 * Splitting. A Hankel matrix is cut into quarters, H = [A B; B C], each of them Hankel, and
 *
 *     y0 = (A - B) v0 + B (v0 + v1),    y1 = (C - B) v1 + B (v0 + v1)
 *
 * needs three products of half the size instead of four (Karatsuba's trick). The differences depend only on H and are computed
 * once for all its products. `levels` nested cuts leave squares of HK_LEAF to 2 HK_LEAF - 1 numbers. Windows are padded with
 * zeros to a multiple of 2^levels. */
#ifndef HK_KERNELS_H
#define HK_KERNELS_H

#include "cpu/graph/split.h"
#include "cpu/novelty/distances.h"
#include "cpu/sst/task.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum number of lanes of any instruction set. */
#define HK_LANES_MAX 16
/* Side of the smallest square that is not cut. */
#define HK_LEAF 20
/* Maximum number of Lanczos steps of SVD-SST; then LAPACK computes it. */
#define HK_SVD_STEPS 128
/* Maximum number of steps of the iteration that looks for missed eigenvectors. */
#define HK_SVD_AGAIN 48

/* How a window is cut. */
struct hk_shape {
  uint32_t window; /* w */
  uint32_t padded; /* n >= w: a multiple of 2^levels */
  uint32_t levels;
};

static inline struct hk_shape hk_shape(uint32_t window)
{
  struct hk_shape s = { window, window, 0 };
  while (window >> (s.levels + 1) >= HK_LEAF)
    s.levels++;
  const uint32_t unit = 1u << s.levels;
  s.padded = (window + unit - 1) / unit * unit;
  return s;
}

/* Number of multiply-adds in a product, instead of w^2. Additions are counted by hk_shape_additions. */
static inline uint64_t hk_shape_multiply_adds(const struct hk_shape *s)
{
  const uint64_t side = s->padded >> s->levels;
  uint64_t squares = 1;
  for (uint32_t i = 0; i < s->levels; i++)
    squares *= 3;
  return squares * side * side;
}

/* Number of additions in a product of n numbers with `levels` cuts; `added`: the product is added to a vector, as for two of
 * three halves. */
static inline uint64_t hk_shape_additions(uint32_t n, uint32_t levels, int added)
{
  if (levels == 0)
    return 0;
  return (added ? 3 : 1) * (uint64_t)(n / 2) + hk_shape_additions(n / 2, levels - 1, 0) +
         2 * hk_shape_additions(n / 2, levels - 1, 1);
}

/* Size of the differences of a matrix of n, in numbers. */
static inline size_t hk_tree_size(uint32_t n, uint32_t levels)
{
  return levels == 0 ? 0 : 2 * (size_t)(n - 1) + 3 * hk_tree_size(n / 2, levels - 1);
}

/* Work space of one thread: blocks of lanes. The comments begin with the count of numbers for each lane. */
struct hk_work {
  struct hk_shape shape;
  float *lines;           /* span: the rings straightened, one lane after the other */
  float *past;            /* 2n - 1: the samples of H1, zeros beyond 2w - 1 */
  float *present;         /* 2n - 1: the same for H2 */
  float *tree;            /* hk_tree_size(): the differences of the matrix in use */
  float *q;               /* steps * n: the Krylov vectors, one after the other */
  float *again;           /* (HK_SVD_AGAIN + 1) * n: those of the iteration that looks for missed eigenvectors; svd only */
  float *u;               /* n: the vector being computed */
  float *v;               /* n */
  float *mu;              /* n: the direction of the present */
  float *sum;             /* 2n: sums of halves, for the products */
  float *alpha;           /* steps */
  float *beta;            /* steps */
  float *dots;            /* steps */
  float *dots_kept;       /* steps */
  float *diagonal;        /* steps: for the eigenproblem, becomes the eigenvalues */
  float *beside;          /* steps */
  float *rows;            /* steps * steps */
  struct hk_exact *exact; /* for LAPACK; NULL if no detector is svd */
};

struct hk_picture_rows; /* cpu/picture/rows.h */

/* One instruction set. x: 2n - 1 numbers; v, y: n. All blocks of lanes. */
struct hk_kernels {
  const char *name;
  uint32_t lanes;
  /* Kernels with half as many lanes and the same bits, for small groups; or NULL. */
  const struct hk_kernels *half;
  /* Scores n <= lanes tasks of a detector; work->shape must be that of its window. */
  void (*score)(struct hk_work *work, const struct hk_detector *d, struct hk_task *task, uint32_t n);
  /* Adds a node to a graph, see graph.h, and finds the best split. */
  hk_graph_add_node *add_node;
  struct hk_graph_split (*best_split)(const struct hk_graph_view *v, const struct hk_graph_counts *counts);
  hk_novelty_pass *novelty_pass;         /* see novelty/distances.h */
  hk_novelty_bring *novelty_bring;       /* lags that share no memory with the samples: as hk_novelty_bring_plain */
  const struct hk_picture_rows *picture; /* see picture/rows.h */
  /* The members below are the parts, for tests and benchmarks. */
  /* Reads the rings into past and present: centred, scaled, zero as hk_span_prepare returns. */
  void (*load)(struct hk_work *work, const struct hk_detector *d, const struct hk_task *task, uint32_t n);
  /* Computes the differences of the Hankel matrix of x. */
  void (*split)(float *tree, const float *x, const struct hk_shape *shape);
  /* y = H v. sum: 2n numbers of work space. v is 0 beyond w; y is undefined there. */
  void (*product)(float *y, const float *x, const float *tree, const float *v, float *sum, const struct hk_shape *shape);
  /* Eigenvalues of symmetric tridiagonal matrices with the given diagonal (n) and the numbers beside it (n - 1); both are
   * overwritten, the diagonal by the eigenvalues in no order. rows: n_rows row vectors of n numbers, each replaced by itself
   * times the matrix of eigenvectors. */
  void (*eigen)(float *diagonal, float *beside, uint32_t n, float *rows, uint32_t n_rows);
};

/* The kernels that are compiled in and supported by this processor, best first; NULL-terminated. The last is "portable". */
const struct hk_kernels *const *hk_kernels_all(void);
/* The kernels in use. */
const struct hk_kernels *hk_kernels(void);
/* Name of the chosen instruction set: "portable", "avx2", "avx512". The environment variable HANKELD_KERNELS selects a lower one
 * (for tests). Chosen once, at the first call. */
const char *hk_kernels_name(void);

#endif
