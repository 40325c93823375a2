/* SVD-SST of one window through LAPACK, in double: for the few whose Krylov iteration does not get there. */
#ifndef HK_SVD_EXACT_H
#define HK_SVD_EXACT_H

#include <stddef.h>
#include <stdint.h>

/* Work space of one thread for windows up to a limit. Owner: the scorer. */
struct hk_exact;

/* NULL when there is no memory. BLAS is told to use one thread: the callers are our own worker threads. */
struct hk_exact *hk_exact_new(uint32_t window_max);
void hk_exact_free(struct hk_exact *exact); /* NULL is allowed */

/* Both read the Hankel matrix H[i][j] = x[(i + j) * stride], 0 <= i, j < w, and give -1 when LAPACK reports no convergence.
 *
 * The eigenvector of largest |eigenvalue|, of either sign, into mu[i * stride]. Returns the eigenvalue's square. */
double hk_exact_present(struct hk_exact *exact, const float *x, float *mu, size_t stride, uint32_t w);
/* z of mu[i * stride] against the r eigenvectors of largest |eigenvalue|. */
double hk_exact_score(struct hk_exact *exact, const float *x, const float *mu, size_t stride, uint32_t w, uint32_t r);

#endif
