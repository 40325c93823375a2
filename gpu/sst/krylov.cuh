/* Krylov iterations with a Hankel matrix H, or with H H^T, by a group of lanes: see "Lanczos" in cpu/MATHEMATICS.md.
 *
 * All groups of a warp walk in step; a group whose Krylov space is complete goes on with zeros, which change nothing of its own.
 */
#ifndef HK_KRYLOV_CUH
#define HK_KRYLOV_CUH

#include "gpu/sst/lane_group.cuh"

#define HK_BREAKDOWN 0x1p-20f /* a beta below this share of the largest |alpha| + beta before: the Krylov space is complete */
#define HK_AGAIN 0x1p-6f      /* a beta below that share of it is taken once more from what is orthogonal to all vectors */

/* The basis, in device memory that is the warp's own: elements e .. e + 3 of vector t stand at [t][e / 4][lane of the warp]. */
template <int R, int L> class hk_basis
{
public:
  /* Floats of memory a warp for so many vectors. */
  static __host__ __device__ constexpr uint32_t floats(uint32_t vectors) { return vectors * R * HK_WARP; }

  __device__ __forceinline__ explicit hk_basis(float *memory) : q((float4 *)memory + threadIdx.x % HK_WARP) {}

  /* Vector t := a. */
  __device__ __forceinline__ void set(uint32_t t, const float (&a)[R])
  {
    float4 *const to = at(t);
#pragma unroll
    for (int e = 0; e < R; e += 4)
      to[e / 4 * HK_WARP] = make_float4(a[e], a[e + 1], a[e + 2], a[e + 3]);
  }

  __device__ __forceinline__ void get(uint32_t t, float (&a)[R]) const
  {
    const float4 *const from = at(t);
#pragma unroll
    for (int e = 0; e < R; e += 4) {
      const float4 four = from[e / 4 * HK_WARP];
      a[e] = four.x;
      a[e + 1] = four.y;
      a[e + 2] = four.z;
      a[e + 3] = four.w;
    }
  }

  /* Takes the vectors first .. n - 1 out of u, by pairs, each as u stands then. by: 1, or 0, which leaves u as it is. */
  template <bool F>
  __device__ __forceinline__ void take_out(const hk_group<R, L, F> &g, uint32_t first, uint32_t n, float by, float (&u)[R]) const
  {
#pragma unroll 1
    for (uint32_t t = first; t < n; t += 2) {
      float a[R], b[R];
      get(t, a);
      get(t + 1 < n ? t + 1 : t, b);
      float c[2] = { hk_lane_dot(a, u), hk_lane_dot(b, u) };
      hk_group_sums(g, c);
      hk_lane_add(u, -by * c[0], a);
      if (t + 1 < n)
        hk_lane_add(u, -by * c[1], b);
    }
  }

  /* a += Q y over the first n vectors; y in shared memory. */
  __device__ __forceinline__ void combine(const float *y, uint32_t n, float (&a)[R]) const
  {
    constexpr int at_once = R <= 16 ? 4 : 2;
#pragma unroll at_once
    for (uint32_t t = 0; t < n; t++) {
      float b[R];
      get(t, b);
      hk_lane_add(a, y[t], b);
    }
  }

private:
  __device__ __forceinline__ float4 *at(uint32_t t) const
  {
    return q + (size_t)t * (R / 4 * HK_WARP);
  }

  float4 *q; /* this lane's */
};

/* How a Krylov iteration runs. */
struct hk_krylov_plan {
  uint32_t steps;    /* at least 1 */
  uint32_t products; /* a step: 1 works on H, 2 on H H^T */
  bool power;        /* power iteration; else Lanczos */
  bool reorthogonalise;
};

/* Takes out of v what step s has left of the first n vectors, by pairs, so that each is read once and sums do not wait for each
 * other. Where less is left than HK_AGAIN of `top`, much of that may be rounding; then, unless `once`, the vectors from number
 * `first` up to s are taken out once more, which is enough (B. N. Parlett, "The Symmetric Eigenvalue Problem", 6.9). Returns
 * |v|^2. */
template <int R, int L, bool F>
static __device__ __forceinline__ float hk_krylov_rest(const hk_group<R, L, F> &g, const hk_basis<R, L> &q, uint32_t s,
                                                       uint32_t n, uint32_t first, float top, bool once, float (&v)[R])
{
  float square, share = 1;
  uint32_t from = 0;
#pragma unroll 1
  for (;;) {
    q.take_out(g, from, n, share, v);
    square = hk_group_sum(g, hk_lane_dot(v, v));
    const bool again = !once && square < HK_AGAIN * HK_AGAIN * top * top;
    if (n > s || !__any_sync(HK_ALL, again))
      return square;
    from = first;
    n = s + 1;
    share = again ? 1 : 0;
  }
}

/* Lanczos: at most plan.steps steps from `v`, a unit vector, which is overwritten; alpha and beta receive T. Returns its order,
 * at least 1; the basis vectors beyond it are zero, or were not set. In a step, what u = A q_s has of q_s and q_(s-1), nearly all
 * of it, is taken out first, then what is left of all other vectors.
 *
 * Power iteration: v := normalise(A v) plan.steps times, or until A v = 0; beta receives the norms. Returns how many there are,
 * which may be 0.
 *
 * Element t of alpha and beta stands at [t * HK_WARP]; the group's first lane writes it, and all may read it afterwards. There is
 * one such loop in the kernel, for the same reason as in hk_group_product. */
template <int R, int L, bool F>
static __device__ __forceinline__ uint32_t hk_group_krylov(const hk_group<R, L, F> &g, hk_basis<R, L> &q,
                                                           const hk_krylov_plan &plan, float (&v)[R], float *alpha, float *beta)
{
  const bool full = plan.reorthogonalise && !plan.power;
  float before = 0, top = 0;
  uint32_t order = 0;
  bool complete = false;
  q.set(0, v);
#pragma unroll 1
  for (uint32_t s = 0; s < plan.steps; s++) {
    if (plan.power)
      q.set(0, v); /* to go back to */
#pragma unroll 1
    for (uint32_t product = 0; product < plan.products; product++)
      hk_group_product(g, v);
    if (!plan.power) {
      float at[R], last[R];
      q.get(s, at);
      q.get(s > 0 ? s - 1 : 0, last);
      float c[2] = { hk_lane_dot(at, v), hk_lane_dot(last, v) };
      hk_group_sums(g, c);
      if (!complete) {
        order = s + 1;
        if (g.lane == 0)
          alpha[s * HK_WARP] = c[0];
      }
      if (s + 1 == plan.steps)
        break;
      hk_lane_add(v, s > 0 && plan.reorthogonalise ? -c[1] : -before, last);
      hk_lane_add(v, -c[0], at);
      top = fmaxf(top, fabsf(c[0]) + before);
    }
    const float square =
        hk_krylov_rest(g, q, s, full && s > 1 ? s - 1 : 0, full || s == 0 ? 0 : s - 1, top, plan.power || complete, v);
    const float by = hk_inverse_root(square), norm = square * by;
    const bool ends = !(square > 0x1p-100f && norm > HK_BREAKDOWN * top); /* NaN does, too */
    complete = complete || ends;
    if (!complete && g.lane == 0)
      beta[s * HK_WARP] = norm;
    if (plan.power) {
      order += !complete;
      float back[R];
      q.get(0, back);
#pragma unroll
      for (int e = 0; e < R; e++)
        v[e] = complete ? back[e] : v[e] * by;
    }
    if (__all_sync(HK_ALL, complete))
      break;
    before = complete ? 0 : norm;
    if (!plan.power) {
#pragma unroll
      for (int e = 0; e < R; e++)
        v[e] *= complete ? 0 : by;
      q.set(s + 1, v);
    }
  }
  __syncwarp();
  return order;
}

#endif
