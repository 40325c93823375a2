/* SVD-SST of one window with LAPACK, in double: for the few windows whose Krylov iteration does not converge. */
#ifndef HK_SVD_EXACT_H
#define HK_SVD_EXACT_H

#include <stddef.h>
#include <stdint.h>

/* Work space of one thread for windows up to a limit. Owner: the scorer. */
struct hk_exact;

/* Returns NULL if out of memory, or without LAPACK (cpu/lapack.h). */
struct hk_exact *hk_exact_new(uint32_t window_max);
void hk_exact_free(struct hk_exact *exact); /* NULL is allowed */

/* Both functions read the Hankel matrix H[i][j] = x[(i + j) * stride], 0 <= i, j < w, and return -1 if LAPACK reports no
 * convergence.
 *
 * hk_exact_present writes the eigenvector of largest |eigenvalue|, of either sign, to mu[i * stride]. Returns the square of the
 * eigenvalue. */
double hk_exact_present(struct hk_exact *exact, const float *x, float *mu, size_t stride, uint32_t w);
/* Returns z of mu[i * stride] against the r eigenvectors of largest |eigenvalue|. */
double hk_exact_score(struct hk_exact *exact, const float *x, const float *mu, size_t stride, uint32_t w, uint32_t r);

#endif
