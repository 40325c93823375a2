/* Solves systems of linear equations A x = b with symmetric, positive definite, sparse matrices of one pattern, in double
 * precision, one after another: networks of pipes (cpu/model/network.h) have a new matrix in each step.
 *
 * The matrix is given by its diagonal and by a number for each edge (i, j), i != j, of a graph: A[i][j] = A[j][i]. Edges with the
 * same ends are added.
 *
 * Two kinds: LDL' of SuiteSparse's package LDL in the order of its package AMD, by far the faster one for networks (T. A. Davis,
 * Algorithm 849, and P. R. Amestoy, T. A. Davis, I. S. Duff, Algorithm 837, ACM Transactions on Mathematical Software), if the
 * build has it; and a band in reverse Cuthill-McKee order, by LAPACK's dpbtrf. Order and pattern of the factors are found once.
 * Nothing is exchanged while a matrix is factorised, so the factors depend on its numbers alone.
 *
 * Promise of each solution with status 0: the backward error |b - A x| / (|A| |x| + |b|), in the maximum norm, is at most
 * HK_BAND_ERROR (cpu/band/band.h); one with a larger error is refined once.
 *
 * On one machine and with one version of the libraries the same numbers give the same bits. Thread: the owner's. */
#ifndef HK_SPARSE_H
#define HK_SPARSE_H

#include <stdint.h>

#define HK_SPARSE_N_MAX (1u << 24)                /* equations, and edges */
#define HK_SPARSE_NUMBERS_MAX ((uint64_t)1 << 28) /* of a factor */

struct hk_sparse;
struct hk_sparse_kind;

extern const struct hk_sparse_kind *const hk_sparse_ldl; /* NULL: the build has none */
extern const struct hk_sparse_kind *const hk_sparse_band;

/* What a solver needs. */
struct hk_sparse_facts {
  const char *solver; /* name; static */
  uint64_t numbers;   /* of a factor */
  uint64_t bytes;     /* of all its memory */
};

/* Makes a solver for n equations. edge: copied. kind: NULL: the faster one. Returns 0; -ENOMEM; -ELIBACC; or -E2BIG: the limits
 * above. */
int hk_sparse_open(struct hk_sparse **out, const struct hk_sparse_kind *kind, uint32_t n, const uint32_t (*edge)[2],
                   uint32_t edges);
void hk_sparse_close(struct hk_sparse *solver); /* NULL is allowed */
struct hk_sparse_facts hk_sparse_facts(const struct hk_sparse *solver);

/* Factorises a matrix. diagonal: by equation; beside: by edge. Both are copied. Returns 0, or -EDOM: it is not positive definite,
 * or has numbers that are not finite. */
int hk_sparse_factorise(struct hk_sparse *solver, const double *diagonal, const double *beside);
/* Solves a system with the matrix factorised last; b may be x. Returns 0, or -ERANGE: there is no solution with a small backward
 * error. *error: it; NULL is allowed. */
int hk_sparse_solve(struct hk_sparse *solver, const double *b, double *x, double *error);

#endif
