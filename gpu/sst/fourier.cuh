/* The Hankel product of wide windows, by Fourier transforms.
 *
 * With M = R L >= w, a number z with z^M = i, and X(z) = sum of x_j z^j over 0 <= j < 2M, v likewise: y_i = sum over j of x_(i+j)
 * v_j is what X(z) v(1/z) has at z^i, and for 0 <= i < w nothing wraps around, as i + j < 2 M. So, over the M roots z of z^M = i,
 *
 *   y_i = Re 1/M sum of X(z) v(1/z) z^-i
 *
 * (x and v are real, and so the conjugate roots, those of z^M = -i, give the conjugate terms). u = 1/z runs through the roots of
 * u^M = -i; F: the map from v to all v(u). H = Re F^T D F with D = X(1/u)/M on the diagonal: the way back is the transposed of
 * the way there, step by step.
 *
 * Element l + L e of a vector is lane l's e-th. Two steps, with an exchange through shared memory between them:
 *   in a lane   v_l(y) = sum over e of v_(l + L e) y^e at all R roots of y^R = -i; y = u^L
 *   across      for each such y, sum over l of v_l(y) u^l at the L roots of u^L = y; a lane has y number lane, lane + L, ..
 *
 * Both go by halving a polynomial (evaluate.cuh); the constants of the second come from a table. In which order roots come out
 * does not matter, as X is brought there the same way.
 *
 * A product takes about 6 M log2 M multiply-adds, and the halved one (lane_group.cuh) 3/4 M^2. */
#ifndef HK_FOURIER_CUH
#define HK_FOURIER_CUH

#include "gpu/sst/evaluate.cuh"
#include "gpu/sst/lane_group.cuh"

/* The factors s of the second step, for all roots of the first. Level d, which begins with 2^d polynomials modulo u^(L/2^d) - t
 * in the order in which they came out of the level before, needs a factor for each; every second is i times the one before it,
 * and the others are kept. */
template <int R, int L> struct hk_factors {
  static constexpr int turns = (R + L - 1) / L;
  struct alignas(8) factor {
    float re, im;
  } s[turns][L / 2][L]; /* [turn][number][lane]: for root number turn L + lane */

  __host__ __device__ constexpr hk_factors() : s()
  {
    for (int root = 0; root < R; root++) {
      const hk_angle y = hk_root(R, root);
      for (int d = 0, number = 0; 1 << d < L; d++)
        for (int m = 0; m < 1 << d; m += 2, number++) {
          int more = 0; /* turns, in units of 2^-d, that polynomial m's t has beside y's angle / 2^d: a half for its last bit, a
                           quarter .. */
          for (int bit = 0; bit < d; bit++)
            more += (m >> bit & 1) << (d - 1 - bit);
          const int num = y.num + more * y.den, den = y.den * (2 << d); /* of s, which is half of t's */
          s[root / L][number][root % L] = { (float)hk_cosine(num, den), (float)hk_sine(num, den) };
        }
    }
  }
};

/* Transposed: (a, b) := (a + b, s (a - b)) */
static __device__ __forceinline__ void hk_unhalve(float &a_re, float &a_im, float &b_re, float &b_im, float s_re, float s_im)
{
  const float re = a_re - b_re, im = a_im - b_im;
  a_re += b_re;
  a_im += b_im;
  b_re = fmaf(-s_im, im, s_re * re);
  b_im = fmaf(s_im, re, s_re * im);
}

/* The second step for one y, and back, level D: of L coefficients, with the factors above. */
template <int D = 0, int L>
static __device__ __forceinline__ void hk_across_evaluate(float (&re)[L], float (&im)[L], const float2 (&s)[L / 2])
{
  constexpr int n = L >> (D + 1);
#pragma unroll
  for (int m = 0; m < L / (2 * n); m++) {
    const float2 f = s[(1 << D) / 2 + m / 2];
#pragma unroll
    for (int j = 2 * n * m; j < 2 * n * m + n; j++)
      hk_halve(re[j], im[j], re[j + n], im[j + n], m % 2 ? -f.y : f.x, m % 2 ? f.x : f.y);
  }
  if constexpr (n > 1)
    hk_across_evaluate<D + 1>(re, im, s);
}

template <int D = 0, int L>
static __device__ __forceinline__ void hk_across_unevaluate(float (&re)[L], float (&im)[L], const float2 (&s)[L / 2])
{
  constexpr int n = L >> (D + 1);
  if constexpr (n > 1)
    hk_across_unevaluate<D + 1>(re, im, s);
#pragma unroll
  for (int m = 0; m < L / (2 * n); m++) {
    const float2 f = s[(1 << D) / 2 + m / 2];
#pragma unroll
    for (int j = 2 * n * m; j < 2 * n * m + n; j++)
      hk_unhalve(re[j], im[j], re[j + n], im[j + n], m % 2 ? -f.y : f.x, m % 2 ? f.x : f.y);
  }
}

/* A group in whose shared memory l's v_l(y) of root p stands at [l stride + p], and D beside it, each lane's own in the order of
 * its turns. Numbers are complex; lanes of a half-warp, which a load of 8 bytes serves at a time, find theirs in different banks,
 * be it for one p or for one l. */
template <int R, int L> struct hk_group<R, L, true> {
  static constexpr uint32_t stride = R | 1, turns = (R + L - 1) / L;
  static constexpr uint32_t used = L * stride > 80 ? L *stride : 80, size = 2 * (used + ((L - used) & 15));
  static constexpr uint32_t warp_floats = HK_WARP / L * size + turns * L * 2 * HK_WARP;
  static constexpr uint32_t block_floats = turns * L * L; /* the factors, for all warps of a block */

  uint32_t lane;   /* in the group, 0 .. L - 1 */
  uint32_t window; /* w */
  float *room;     /* `size` floats of shared memory */
  float2 *d;       /* this lane's part of D; number n of turn t stands at [(t L + n) * HK_WARP] */
  const float2 *s; /* this lane's factors; number k of turn t stands at [(t L / 2 + k) * L] */

  static __device__ __forceinline__ void prepare(float *block);
  static __device__ __forceinline__ void prepared();
  static __device__ __forceinline__ hk_group in(float *block, float *rooms, uint32_t window)
  {
    const uint32_t lane = threadIdx.x % HK_WARP;
    return { lane % L, window, rooms + lane / L * size, (float2 *)(rooms + HK_WARP / L * size) + lane,
             (const float2 *)block + lane % L };
  }

  static constexpr int step = L;
  __device__ __forceinline__ uint32_t first() const { return lane; }
};

template <int R, int L> static __device__ const hk_factors<R, L> hk_factors_of;

template <int R, int L> __device__ __forceinline__ void hk_group<R, L, true>::prepare(float *block)
{
  const uint32_t to = (uint32_t)__cvta_generic_to_shared(block);
  for (uint32_t i = 2 * threadIdx.x; i < block_floats; i += 2 * blockDim.x)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to + 4 * i), "l"((const float *)&hk_factors_of<R, L> + i)
                 : "memory");
}

template <int R, int L> __device__ __forceinline__ void hk_group<R, L, true>::prepared()
{
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

/* What the first step gave goes where the second finds it. */
template <int R, int L>
static __device__ __forceinline__ void hk_fourier_hand_over(const hk_group<R, L, true> &g, const float (&re)[R],
                                                            const float (&im)[R])
{
  float2 *const to = (float2 *)g.room + g.lane * g.stride;
  __syncwarp(); /* what stood there has been read by all */
#pragma unroll
  for (int p = 0; p < R; p++)
    to[p] = make_float2(re[p], im[p]);
  __syncwarp();
}

/* Where a lane is in the second step. */
template <int R, int L> struct hk_fourier_turn {
  int root;   /* R or more, in the last turn, where there is none: such a lane works for nothing */
  float2 *at; /* its column; numbers stand `stride` apart */
  float2 *d;  /* as in the group, of this turn */
  const float2 *s;

  __device__ __forceinline__ explicit hk_fourier_turn(const hk_group<R, L, true> &g)
      : root((int)g.lane), at((float2 *)g.room + min(root, R)), d(g.d), s(g.s) /* nothing stands in column R */
  {
  }

  __device__ __forceinline__ bool exists() const { return R % L == 0 || root < R; }

  __device__ __forceinline__ void next()
  {
    root += L;
    at += exists() ? L : 0;
    d += L * HK_WARP;
    s += L / 2 * L;
  }

  __device__ __forceinline__ void load(float (&re)[L], float (&im)[L], float2 (&factors)[L / 2]) const
  {
#pragma unroll
    for (int l = 0; l < L; l++) {
      const float2 a = at[l * (int)hk_group<R, L, true>::stride];
      re[l] = a.x;
      im[l] = a.y;
    }
#pragma unroll
    for (int k = 0; k < L / 2; k++)
      factors[k] = s[k * L];
  }
};

/* v := H v */
template <int R, int L> static __device__ __forceinline__ void hk_group_product(const hk_group<R, L, true> &g, float (&v)[R])
{
  float re[R], im[R];
  hk_lane_evaluate(v, re, im);
  hk_fourier_hand_over(g, re, im);
  hk_fourier_turn<R, L> turn(g);
#pragma unroll 1
  for (int t = 0; t < (int)g.turns; t++) {
    float a_re[L], a_im[L];
    float2 s[L / 2], d[L];
    turn.load(a_re, a_im, s);
#pragma unroll
    for (int n = 0; n < L; n++)
      d[n] = turn.d[n * (int)HK_WARP];
    hk_across_evaluate(a_re, a_im, s);
#pragma unroll
    for (int n = 0; n < L; n++) {
      const float a = a_re[n];
      a_re[n] = fmaf(-d[n].y, a_im[n], d[n].x * a);
      a_im[n] = fmaf(d[n].y, a, d[n].x * a_im[n]);
    }
    hk_across_unevaluate(a_re, a_im, s);
    if (turn.exists())
#pragma unroll
      for (int l = 0; l < L; l++)
        turn.at[l * (int)g.stride] = make_float2(a_re[l], a_im[l]);
    turn.next();
  }
  __syncwarp();
  const float2 *const from = (const float2 *)g.room + g.lane * g.stride;
#pragma unroll
  for (int p = 0; p < R; p++) {
    const float2 a = from[p];
    re[p] = a.x;
    im[p] = a.y;
  }
  hk_lane_unevaluate(re, im, v);
  hk_lane_trim(g, v);
}

/* D from x, of which x_i stands in x[n][part]; i = part R L / 2 + n L + lane. As x is real, X(1/u) is the conjugate of X(u); and
 * u^M = -i, so that x_(i + M) counts as -i x_(i + M) beside x_i. */
template <int R, int L>
static __device__ __forceinline__ void hk_group_lay_out(const hk_group<R, L, true> &g, const float (&x)[R / 2][4])
{
  constexpr float share = 1 / (float)(R * L);
  float re[R], im[R];
#pragma unroll
  for (int n = 0; n < R / 2; n++) {
    re[n] = x[n][0];
    re[n + R / 2] = x[n][1];
    im[n] = -x[n][2];
    im[n + R / 2] = -x[n][3];
  }
  hk_evaluate<0, R, -1, 4>(re, im);
  hk_fourier_hand_over(g, re, im);
  hk_fourier_turn<R, L> turn(g);
#pragma unroll 1
  for (int t = 0; t < (int)g.turns; t++) {
    float a_re[L], a_im[L];
    float2 s[L / 2];
    turn.load(a_re, a_im, s);
    hk_across_evaluate(a_re, a_im, s);
#pragma unroll
    for (int n = 0; n < L; n++)
      turn.d[n * (int)HK_WARP] = make_float2(share * a_re[n], -share * a_im[n]);
    turn.next();
  }
}

#endif
