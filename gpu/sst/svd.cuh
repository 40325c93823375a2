/* Leading eigenpairs of a Hankel matrix H by a warp, to working accuracy: Lanczos with full re-orthogonalisation, run until
 * residuals are at rounding level. "SVD-SST" in gpu/MATHEMATICS.md says why this way.
 *
 * A run continues until the wanted pairs, and the next one, have converged, or until its Krylov space is complete. A complete
 * space contains one eigenvector of each eigenvalue in which the start vector has a component; H may have more, so another run
 * starts from a random vector outside the basis. The search ends with a run that adds no pair to the leading ones, or with a full
 * basis: after at most w steps, for any numbers. */
#ifndef HK_SVD_CUH
#define HK_SVD_CUH

#include "gpu/sst/leading.cuh"

#define HK_COMPLETE                                                                                                              \
  0x1p-20f                 /* below this share of the largest earlier |alpha| + beta, a beta means that the Krylov space is      \
                            * complete */
#define HK_ROUGH 0x1p-6f   /* above this share, two steps may pass between re-orthogonalisations */
#define HK_BITS_LOOK 22.0f /* digits of eigenvalues for a check of convergence, relative to the largest row of T */
#define HK_BITS_MORE 18.0f /* and the further digits for the result */

/* The memory of a warp. */
template <int R> struct hk_svd_room {
  hk_group<R, HK_WARP> g;
  double2 *t;    /* shared: T of a run, w + HK_ROWS_AT_ONCE rows */
  float *along;  /* shared: basis vectors of the run times the given vector; w */
  float2 *basis; /* device: this lane's numbers of w vectors; e and e + 1 of vector s, e even, at [(s R + e) / 2 * HK_WARP] */
};

/* The search's goal. */
struct hk_svd_search {
  uint32_t rank;   /* number of wanted leading pairs */
  bool full;       /* continue until the basis is full: then nothing of H is missing */
  bool vector;     /* whether the first pair's vector is wanted, too */
  uint32_t look;   /* steps before convergence is first looked at */
  float pace;      /* steps until the next check, for each bit by which a residual is too large */
  float tolerance; /* maximum residuals of the wanted pairs, relative to the largest |theta| */
  float next;      /* and that of the next pair */
};

/* The part of a leading pair of H that a score needs. */
struct hk_leading {
  double size;  /* |theta| */
  double along; /* the product of the unit eigenvector and the given vector */
};

/* Tells the compiler where a warp's memory lies. */
template <int R> static __device__ __forceinline__ void hk_svd_assume(const hk_svd_room<R> &room)
{
  __builtin_assume(__isShared(room.g.room));
  __builtin_assume(__isShared(room.t));
  __builtin_assume(__isShared(room.along));
  __builtin_assume(__isGlobal(room.basis));
}

template <int R> static __device__ __forceinline__ void hk_basis_load(const hk_svd_room<R> &room, uint32_t s, float (&q)[R])
{
  const float2 *const from = room.basis + (size_t)s * (R / 2 * HK_WARP);
#pragma unroll
  for (int e = 0; e < R / 2; e++) {
    const float2 two = from[e * HK_WARP];
    q[2 * e] = two.x;
    q[2 * e + 1] = two.y;
  }
}

template <int R>
static __device__ __forceinline__ void hk_basis_store(const hk_svd_room<R> &room, uint32_t s, const float (&q)[R])
{
  float2 *const to = room.basis + (size_t)s * (R / 2 * HK_WARP);
#pragma unroll
  for (int e = 0; e < R / 2; e++)
    to[e * HK_WARP] = make_float2(q[2 * e], q[2 * e + 1]);
}

/* Computes four sums over the warp at once, in c[0 .. 3]: the lanes first divide the sums among them. */
static __device__ __forceinline__ void hk_warp_sums(float *c)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  const bool upper = lane & 16, odd = lane & 8;
  const float a = (upper ? c[2] : c[0]) + __shfl_xor_sync(HK_ALL, upper ? c[0] : c[2], 16);
  const float b = (upper ? c[3] : c[1]) + __shfl_xor_sync(HK_ALL, upper ? c[1] : c[3], 16);
  float sum = (odd ? b : a) + __shfl_xor_sync(HK_ALL, odd ? a : b, 8);
#pragma unroll
  for (int other = 4; other > 0; other /= 2)
    sum += __shfl_xor_sync(HK_ALL, sum, other);
#pragma unroll
  for (int i = 0; i < 4; i++)
    c[i] = __shfl_sync(HK_ALL, sum, 8 * i);
}

/* Loads vectors s .. s + N - 1; those from number n on are zero. */
template <int R, int N>
static __device__ __forceinline__ void hk_basis_some(const hk_svd_room<R> &room, uint32_t s, uint32_t n, float (&q)[N][R])
{
#pragma unroll
  for (uint32_t i = 0; i < N; i++) {
    if (s + i < n) {
      hk_basis_load(room, s + i, q[i]);
    } else {
#pragma unroll
      for (int e = 0; e < R; e++)
        q[i][e] = 0;
    }
  }
}

/* Makes a and b orthogonal to the first n basis vectors, a few at a time. Both at once, so that the basis is read from memory
 * once for the two; if registers allow, the next few vectors are prefetched. */
template <int R>
static __device__ __forceinline__ void hk_orthogonalise(const hk_svd_room<R> &room, uint32_t n, float (&a)[R], float (&b)[R])
{
  constexpr bool ahead = R <= 16;
  constexpr int N = ahead ? 2 : 4;
  float q[N][R];
  hk_basis_some(room, 0, n, q);
#pragma unroll 1
  for (uint32_t s = 0; s < n; s += N) {
    float next[N][R], c[2 * N];
    if (ahead)
      hk_basis_some(room, s + N, n, next);
#pragma unroll
    for (int i = 0; i < N; i++) {
      c[i] = hk_lane_dot(q[i], a);
      c[N + i] = hk_lane_dot(q[i], b);
    }
#pragma unroll
    for (int i = 0; i < 2 * N; i += 4)
      hk_warp_sums(c + i);
#pragma unroll
    for (int i = 0; i < N; i++) {
      hk_lane_add(a, -c[i], q[i]);
      hk_lane_add(b, -c[N + i], q[i]);
    }
    if (!ahead)
      hk_basis_some(room, s + N, n, next);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int e = 0; e < R; e++)
        q[i][e] = next[i][e];
  }
}

/* a /= |a|; returns |a|. */
template <int R> static __device__ __forceinline__ float hk_normalise(const hk_svd_room<R> &room, float (&a)[R])
{
  const float norm = sqrtf(hk_group_sum(room.g, hk_lane_dot(a, a))), by = 1 / norm;
#pragma unroll
  for (int e = 0; e < R; e++)
    a[e] *= by;
  return norm;
}

/* Makes unit vector `number` of the seed; number 0 is the sensor's a0. */
template <int R>
static __device__ __forceinline__ void hk_svd_random(const hk_svd_room<R> &room, uint64_t seed, uint32_t number, float (&a)[R])
{
#pragma unroll
  for (int e = 0; e < R; e++)
    a[e] = (float)hk_random_element(seed, number * room.g.window + room.g.lane * R + e);
  hk_lane_trim(room.g, a);
  (void)hk_normalise(room, a);
}

/* Merges a run's pairs into the held ones; lane i has number i by size. Equal new ones come after the held ones. */
static __device__ __forceinline__ hk_leading hk_merge(hk_leading held, hk_leading run, uint32_t keep)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  uint32_t held_at = lane, run_at = lane;
  for (uint32_t i = 0; i < keep; i++) {
    held_at += __shfl_sync(HK_ALL, run.size, i) > held.size;
    run_at += __shfl_sync(HK_ALL, held.size, i) >= run.size;
  }
  hk_leading merged = { 0, 0 };
  for (uint32_t i = 0; i < keep; i++) {
    const uint32_t from_held = __ballot_sync(HK_ALL, lane < keep && held_at == i);
    const uint32_t from_run = __ballot_sync(HK_ALL, lane < keep && run_at == i);
    const uint32_t from = __ffs(from_held ? from_held : from_run) - 1;
    const double size = __shfl_sync(HK_ALL, from_held ? held.size : run.size, from);
    const double along = __shfl_sync(HK_ALL, from_held ? held.along : run.along, from);
    if (lane == i) {
      merged.size = size;
      merged.along = along;
    }
  }
  return merged;
}

/* The eigenvector of H that belongs to lane 0's pair of T, so turned that its product with the given vector is not negative.
 * first: of the run's basis vectors. Row by row from both ends to the peak, as in hk_vector; from the end on with 1 in the place
 * of the last component, which a double may not hold, until the peak tells what is true. */
template <int R>
static __device__ __forceinline__ void hk_combine(const hk_svd_room<R> &room, const hk_tridiagonal &m, hk_pair pair,
                                                  uint32_t first, float (&sum)[R])
{
  pair.theta = __shfl_sync(HK_ALL, pair.theta, 0);
  pair.along = __shfl_sync(HK_ALL, pair.along, 0);
  pair.first = __shfl_sync(HK_ALL, pair.first, 0);
  pair.height = __shfl_sync(HK_ALL, pair.height, 0);
  pair.peak = __shfl_sync(HK_ALL, pair.peak, 0);
  double y = 1, after = 0;
#pragma unroll
  for (int e = 0; e < R; e++)
    sum[e] = 0;
#pragma unroll 1
  for (uint32_t i = m.order; i-- > 0;) {
    const bool forward = i < pair.peak;
    if (i + 1 == pair.peak) {
      y = pair.first;
      after = 0;
    }
    const uint32_t at = forward ? pair.peak - 1 - i : i;
    float q[R];
    hk_basis_load(room, first + at, q);
    hk_lane_add(sum, (float)y, q);
    if (!forward && (i == pair.peak || fabs(y) > 0x1p60)) {
      const double by = i == pair.peak ? pair.height / y : 0x1p-60;
      y *= by;
      after *= by;
#pragma unroll
      for (int e = 0; e < R; e++)
        sum[e] *= (float)by;
    }
    const double above = at > 0 ? m.t[at - 1].y : 0, beside = m.t[at].y;
    const double next =
        -fma(m.t[at].x - pair.theta, y, (forward ? above : beside) * after) * hk_inverse(forward ? beside : above);
    after = y;
    y = next;
  }
  (void)hk_normalise(room, sum);
  if (pair.along < 0)
#pragma unroll
    for (int e = 0; e < R; e++)
      sum[e] = -sum[e];
}

/* Whether samples, or their second differences, come again so often, or nearly, that H may have repeated eigenvalues, of which
 * one Krylov space shows one vector each: see "Repeated eigenvalues" in cpu/MATHEMATICS.md. value: the i-th of n samples. seen:
 * room for n bytes in shared memory, in words. The whole warp. */
template <typename F> static __device__ __forceinline__ bool hk_svd_few(uint32_t n, uint32_t *seen, F value)
{
  const uint32_t lane = threadIdx.x % HK_WARP, words = (n + 3) / 4;
  float low = INFINITY, high = -INFINITY;
  for (uint32_t i = lane; i < n; i += HK_WARP) {
    low = fminf(low, value(i));
    high = fmaxf(high, value(i));
  }
  for (uint32_t turn = HK_WARP / 2; turn > 0; turn /= 2) {
    low = fminf(low, __shfl_xor_sync(HK_ALL, low, turn));
    high = fmaxf(high, __shfl_xor_sync(HK_ALL, high, turn));
  }
  const float by = high > low ? (float)(8 * n - 1) / (high - low) : 0;
  for (uint32_t i = lane; i < words; i += HK_WARP)
    seen[i] = 0;
  __syncwarp();
  for (uint32_t i = lane; i < n; i += HK_WARP) {
    const uint32_t at = min((uint32_t)((value(i) - low) * by), 8 * n - 1);
    atomicOr(seen + at / 32, 1u << at % 32);
  }
  __syncwarp();
  uint32_t count = 0;
  for (uint32_t i = lane; i < words; i += HK_WARP)
    count += (uint32_t)__popc(seen[i]);
  for (uint32_t turn = HK_WARP / 2; turn > 0; turn /= 2)
    count += __shfl_xor_sync(HK_ALL, count, turn);
  __syncwarp();
  return 2 * count < n;
}

/* A Krylov step from v, vector s of the basis: u receives H v, made orthogonal to v and the vectors before it. Returns alpha.
 * before: beta of the last step, 0 at the begin of a run. *top: largest |alpha| + beta so far. *rough: v is orthogonal only to
 * the two vectors before it; then this step makes v and u so to all. */
template <int R>
static __device__ __forceinline__ float hk_svd_step(const hk_svd_room<R> &room, uint32_t s, bool first, float before, float *top,
                                                    bool *rough, float (&v)[R], float (&u)[R])
{
  const hk_group<R, HK_WARP> &g = room.g;
  hk_basis_store(room, s, v);
#pragma unroll
  for (int e = 0; e < R; e++)
    u[e] = v[e];
  hk_group_product(g, u);
  const float alpha = hk_group_sum(g, hk_lane_dot(v, u));
  *top = fmaxf(*top, fabsf(alpha) + before);
  hk_lane_add(u, -alpha, v);
  if (!first) {
    float q[R];
    hk_basis_load(room, s - 1, q);
    hk_lane_add(u, -before, q);
  }
  *rough = !*rough && hk_group_sum(g, hk_lane_dot(u, u)) > *top * *top * (HK_ROUGH * HK_ROUGH);
  if (!*rough) {
    hk_orthogonalise(room, s, v, u);
    hk_basis_store(room, s, v);
    hk_lane_add(u, -hk_group_sum(g, hk_lane_dot(v, u)), v);
  }
  return alpha;
}

/* Ends T after `order` rows, for now, and finds its leading pairs roughly: the wanted ones and the next. */
template <int R>
static __device__ __forceinline__ hk_pair hk_svd_look_at(const hk_svd_room<R> &room, const hk_tridiagonal &t, uint32_t wanted,
                                                         hk_bracket *bracket)
{
  if (room.g.lane == 0)
    room.t[t.order - 1].y = 0;
  if (room.g.lane < HK_ROWS_AT_ONCE)
    room.t[t.order + room.g.lane] = make_double2(0, 0);
  __syncwarp();
  *bracket = hk_bracket_narrow(t, wanted, HK_BITS_LOOK, hk_bracket_begin(t));
  return hk_vectors(t, wanted, HK_BITS_LOOK, *bracket, room.along);
}

/* The largest residual of the pairs, in units of what the search allows; 1 or less: they have converged. norm: the last beta. */
template <int R>
static __device__ __forceinline__ float hk_svd_excess(const hk_svd_room<R> &room, const hk_svd_search &search,
                                                      const hk_pair &pair, float norm)
{
  const float largest = (float)fabs(__shfl_sync(HK_ALL, pair.theta, 0));
  const float limit = largest * (room.g.lane < search.rank ? search.tolerance : search.next);
  return hk_group_max(room.g, fabsf((float)pair.last) * norm / limit);
}

/* Begins run `run` of the seed with a random v, orthogonal to the first n vectors of the basis. */
template <int R>
static __device__ __forceinline__ void hk_svd_begin(const hk_svd_room<R> &room, uint64_t seed, uint32_t run, uint32_t n,
                                                    float (&v)[R], float (&u)[R])
{
  hk_svd_random(room, seed, run, v);
  hk_orthogonalise(room, n, v, u); /* u is no longer needed */
  hk_orthogonalise(room, n, v, u);
  (void)hk_normalise(room, v);
}

/* The leading pairs of H, whose sequences are laid out in room.g: number i in lane i, i <= search.rank, of size 0 where there is
 * none. vector: the start, not zero; replaced by the first eigenvector if search.vector. */
template <int R>
static __device__ __noinline__ hk_leading hk_svd_leading(const hk_svd_room<R> room, const hk_svd_search search, uint64_t seed,
                                                         const float (&given)[R], float (&vector)[R])
{
  hk_svd_assume(room);
  const hk_group<R, HK_WARP> g = room.g;
  hk_leading held = { 0, 0 };
  float along[R], v[R], u[R], before = 0, top = 0; /* v: the newest basis vector; u: the next one */
#pragma unroll
  for (int e = 0; e < R; e++) {
    v[e] = vector[e];
    along[e] = given[e];
  }
  (void)hk_normalise(room, v);
  bool rough = false;
  uint32_t runs = 0, order = 0, look = search.full ? UINT32_MAX : search.look;
  for (uint32_t s = 0;; s++) {
    const float alpha = hk_svd_step(room, s, order == 0, before, &top, &rough, v, u);
    const float part = hk_group_sum(g, hk_lane_dot(v, along)), norm = hk_normalise(room, u);
    if (g.lane == 0) {
      room.t[order] = make_double2(alpha, norm);
      room.along[order] = part;
    }
    order++;
    before = norm;
#pragma unroll
    for (int e = 0; e < R; e++)
      v[e] = u[e];
    const bool full = s + 1 == g.window, complete = !(norm > HK_COMPLETE * top); /* NaN ends the loop, too */
    if (!full && !complete && order < look)
      continue;

    const hk_tridiagonal t = { room.t, order };
    const uint32_t wanted = min(order, search.rank + 1);
    hk_bracket bracket;
    hk_pair pair = hk_svd_look_at(room, t, wanted, &bracket);
    const float over = hk_svd_excess(room, search, pair, norm);
    if (!full && !complete && (search.full || order <= search.rank || over > 1)) {
      __syncwarp(); /* all lanes have read T */
      if (g.lane == 0)
        room.t[order - 1].y = norm;
      look = search.full ? UINT32_MAX : order + max(2u, (uint32_t)fminf(search.pace * log2f(over), (float)g.window));
      continue;
    }

    bracket = hk_bracket_narrow(t, wanted, HK_BITS_MORE, bracket);
    pair = hk_vectors(t, wanted, HK_BITS_LOOK + HK_BITS_MORE, bracket, room.along);
    const hk_leading run = { fabs(pair.theta), pair.along };
    const double first = __shfl_sync(HK_ALL, run.size, 0);
    if (search.vector && first > __shfl_sync(HK_ALL, held.size, 0))
      hk_combine(room, t, pair, s + 1 - order, vector);
    const bool more = first > __shfl_sync(HK_ALL, held.size, search.rank - 1) && first > (double)(HK_COMPLETE * top);
    held = hk_merge(held, run, search.rank + 1);
    if (full || !complete || !more)
      return held;
    hk_svd_begin(room, seed, ++runs, s + 1, v, u);
    rough = false;
    order = 0;
    before = 0;
    look = search.full ? UINT32_MAX : search.look;
  }
}

#endif
