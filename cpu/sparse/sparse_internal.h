/* The kinds of sparse.h. */
#ifndef HK_SPARSE_INTERNAL_H
#define HK_SPARSE_INTERNAL_H

#include "cpu/sparse/sparse.h"

/* The pattern of the matrices. By equation: its neighbours, from at[i] to at[i + 1], each twice where two edges have the same
 * ends. */
struct hk_sparse_pattern {
  uint32_t n, edges;
  const uint32_t (*edge)[2];
  const uint32_t *at, *neighbour;
};

/* The functions of a kind; *out is what `open` makes. All return 0 or the errors of sparse.h. */
struct hk_sparse_kind {
  const char *name;
  int (*open)(void **out, const struct hk_sparse_pattern *pattern, struct hk_sparse_facts *facts); /* sets numbers and bytes */
  void (*close)(void *factors);                                                                    /* NULL is allowed */
  int (*factorise)(void *factors, const struct hk_sparse_pattern *pattern, const double *diagonal, const double *beside);
  void (*solve)(void *factors, const double *b, double *x); /* b is not x */
};

#endif
