/* IKA-SST by a group of lanes: "The present's direction" and "The score" in cpu/MATHEMATICS.md. */
#ifndef HK_IKA_CUH
#define HK_IKA_CUH

#include "gpu/sst/fourier.cuh"
#include "gpu/sst/krylov.cuh"
#include "gpu/sst/span.cuh"
#include "gpu/sst/tridiagonal.cuh"

/* hk_random_element (cpu/rules/window.h) of seed + i, in single. */
static __device__ __forceinline__ float hk_random_single(uint64_t z)
{
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (float)(int32_t)((uint32_t)(z >> 32) ^ 0x80000000u) * 0x1p-31f;
}

/* The sensor's random unit vector a0. */
template <int R, int L, bool F>
static __device__ __forceinline__ void hk_group_random(const hk_group<R, L, F> &g, uint64_t seed, float (&a)[R])
{
#pragma unroll
  for (int e = 0; e < R; e++)
    a[e] = hk_random_single(seed + (g.first() + e * g.step));
  hk_lane_trim(g, a);
  const float by = hk_inverse_root(hk_group_sum(g, hk_lane_dot(a, a)));
#pragma unroll
  for (int e = 0; e < R; e++)
    a[e] *= by;
}

/* The iteration that finds mu from the feedback vector, and the one on the past, from mu. */
static __device__ __forceinline__ hk_krylov_plan hk_plan_present(const hk_detector &d)
{
  const bool power = d.present == HK_PRESENT_POWER;
  const uint32_t products = power || d.operator_ == HK_OPERATOR_GRAM ? 2 : 1, steps = d.products / products;
  return { power || steps < d.window ? steps : d.window, products, power, d.reorthogonalise != 0 };
}

static __device__ __forceinline__ hk_krylov_plan hk_plan_past(const hk_detector &d)
{
  return { d.krylov, d.operator_ == HK_OPERATOR_GRAM ? 2u : 1u, false, d.reorthogonalise != 0 };
}

/* mu from the Krylov space of the present, over the vector that was iterated. order: what the iteration
 * returned. Returns sigma^2. A present of zeros gives what is never used. */
template <int R, int L, bool F>
static __device__ __forceinline__ float hk_group_mu(const hk_group<R, L, F> &g, const hk_basis<R, L> &q,
                                                    const hk_krylov_plan &plan, uint32_t order, const float *alpha,
                                                    const float *beta, float (&mu)[R])
{
  if (plan.power)
    return order > 0 ? beta[(order - 1) * HK_WARP] : 0;
  /* the present's sequences are not needed any more */
  static_assert(hk_group<R, L, F>::size >= 4 * (R * L < HK_PRODUCTS_MAX ? R * L : HK_PRODUCTS_MAX), "T, twice");
  const uint32_t set = __reduce_max_sync(HK_ALL, order); /* basis vectors that all groups have */
  float *const t_alpha = g.room, *const t_beta = t_alpha + set, *const y = t_beta + set, *const room = y + set;
  __syncwarp(); /* of the last product, all has been read */
  for (uint32_t t = g.lane; t < order; t += L) {
    t_alpha[t] = alpha[t * HK_WARP];
    if (t + 1 < order)
      t_beta[t] = beta[t * HK_WARP];
  }
  __syncwarp();
  const float theta = hk_group_leading_value(g, t_alpha, t_beta, order, (float2 *)y);
  __syncwarp(); /* so have the rows that stand where y will */
  if (g.lane == 0)
    hk_lane_vector(t_alpha, t_beta, order, theta, set, y, room);
  __syncwarp();
  const float sign = copysignf(1.0f, y[0]); /* mu . a >= 0 */
#pragma unroll
  for (int e = 0; e < R; e++)
    mu[e] = 0;
  q.combine(y, set, mu);
  const float by = sign * hk_inverse_root(hk_group_sum(g, hk_lane_dot(mu, mu)));
#pragma unroll
  for (int e = 0; e < R; e++)
    mu[e] *= by;
  return plan.products == 2 ? fabsf(theta) : theta * theta;
}

#endif
