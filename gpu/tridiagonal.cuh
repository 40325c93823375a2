/* Leading eigenpairs of a symmetric tridiagonal matrix T (alpha on the diagonal, beta beside it), in double.
 *
 * Eigenvalues by bisection on Sturm counts, a thread each; the eigenvalues of largest magnitude lie at the two ends, so only
 * r at each end are looked for. Eigenvectors by twisted factorisation: T - theta I is factored from the top and from the
 * bottom, and the vector is solved for outwards from the row where both meet with the smallest pivot (Parlett and Dhillon,
 * "Fernando's solution to Wilkinson's problem", 1997). Neighbours are then made orthogonal, since vectors of close
 * eigenvalues need not be. */
#ifndef HK_TRIDIAGONAL_CUH
#define HK_TRIDIAGONAL_CUH

#include "gpu/block.cuh"

/* Pivots smaller than this are replaced by it; the matrices here have norms between about 1e-3 and 1e6. */
#define HK_PIVOT_MIN 1e-60

static __device__ double hk_pivot(double d) { return fabs(d) < HK_PIVOT_MIN ? -HK_PIVOT_MIN : d; }

/* Number of eigenvalues of the leading m x m part below x. */
static __device__ uint32_t hk_sturm_count(const double *alpha, const double *beta, uint32_t m, double x)
{
  double d = hk_pivot(alpha[0] - x);
  uint32_t count = d < 0;
  for (uint32_t i = 1; i < m; i++) {
    d = hk_pivot(alpha[i] - x - beta[i - 1] * beta[i - 1] / d);
    count += d < 0;
  }
  return count;
}

/* Eigenvalue number `index`, counted from 0 upwards from the smallest. */
static __device__ double hk_tridiagonal_value(const double *alpha, const double *beta, uint32_t m, uint32_t index)
{
  double low = alpha[0], high = alpha[0]; /* Gershgorin's discs */
  for (uint32_t i = 0; i < m; i++) {
    const double radius = (i > 0 ? fabs(beta[i - 1]) : 0) + (i + 1 < m ? fabs(beta[i]) : 0);
    low = fmin(low, alpha[i] - radius);
    high = fmax(high, alpha[i] + radius);
  }
  const double slack = 0x1p-50 * fmax(fabs(low), fabs(high));
  low -= slack;
  high += slack;
  for (uint32_t turn = 0; turn < 64; turn++) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high)
      break;
    if (hk_sturm_count(alpha, beta, m, middle) > index)
      high = middle;
    else
      low = middle;
  }
  return 0.5 * (low + high);
}

/* Unit eigenvector of theta into y[0], y[stride], ...; forward: room laid out alike. One thread. */
static __device__ void hk_tridiagonal_vector(const double *alpha, const double *beta, uint32_t m, double theta, double *y,
                                             double *forward, uint32_t stride)
{
  double d = hk_pivot(alpha[0] - theta);
  forward[0] = d;
  for (uint32_t i = 1; i < m; i++) {
    d = hk_pivot(alpha[i] - theta - beta[i - 1] * beta[i - 1] / d);
    forward[(size_t)i * stride] = d;
  }
  uint32_t twist = m - 1;
  double smallest = fabs(d);
  d = hk_pivot(alpha[m - 1] - theta);
  y[(size_t)(m - 1) * stride] = d; /* y holds the pivots from the bottom until the vector takes their place */
  for (uint32_t i = m - 1; i-- > 0;) {
    d = hk_pivot(alpha[i] - theta - beta[i] * beta[i] / d);
    y[(size_t)i * stride] = d;
    const double meet = fabs(forward[(size_t)i * stride] + d - (alpha[i] - theta));
    if (meet < smallest) {
      smallest = meet;
      twist = i;
    }
  }
  double z = 1, sum = 1;
  for (uint32_t i = twist; i-- > 0;) {
    z *= -beta[i] / forward[(size_t)i * stride];
    y[(size_t)i * stride] = z;
    sum += z * z;
  }
  z = 1;
  for (uint32_t i = twist + 1; i < m; i++) {
    z *= -beta[i - 1] / y[(size_t)i * stride];
    y[(size_t)i * stride] = z;
    sum += z * z;
  }
  y[(size_t)twist * stride] = 1;
  const double scale = 1 / sqrt(sum);
  for (uint32_t i = 0; i < m; i++)
    y[(size_t)i * stride] *= scale;
}

/* The r eigenpairs of largest |theta| (fewer when m < r) of room's alpha and beta: values into room->leading, largest first,
 * orthonormal vectors into the columns of room->y, an m x r matrix. Returns how many. All threads; barriers before and
 * after. A vector that cannot be told from an earlier one is zero. */
static __device__ uint32_t hk_tridiagonal_leading(const struct hk_room *room, uint32_t m, uint32_t r)
{
  const uint32_t candidates = m < 2 * r ? m : 2 * r, found = m < r ? m : r;
  __syncthreads();
  for HK_EACH (i, candidates) {
    const uint32_t index = i < candidates - candidates / 2 ? i : m - candidates + i;
    room->theta[i] = hk_tridiagonal_value(room->alpha, room->beta, m, index);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t low = 0, high = candidates - 1;
    for (uint32_t j = 0; j < found; j++)
      room->leading[j] = fabs(room->theta[low]) > fabs(room->theta[high]) ? room->theta[low++] : room->theta[high--];
  }
  __syncthreads();
  for HK_EACH (j, found)
    hk_tridiagonal_vector(room->alpha, room->beta, m, room->leading[j], room->y + j, room->forward + j, r);
  __syncthreads();
  for (uint32_t j = 1; j < found; j++) {
    for (uint32_t p = 0; p < j; p++) {
      double dot = 0;
      for HK_EACH (i, m)
        dot += room->y[(size_t)i * r + p] * room->y[(size_t)i * r + j];
      dot = hk_block_sum(room, dot);
      for HK_EACH (i, m)
        room->y[(size_t)i * r + j] -= dot * room->y[(size_t)i * r + p];
    }
    double norm = 0;
    for HK_EACH (i, m)
      norm += room->y[(size_t)i * r + j] * room->y[(size_t)i * r + j];
    norm = hk_block_sum(room, norm);
    for HK_EACH (i, m)
      room->y[(size_t)i * r + j] *= norm > 0.25 ? 1 / sqrt(norm) : 0;
  }
  __syncthreads();
  return found;
}

#endif
