/* A polynomial's values at many points of the unit circle, by one lane: the steps of a Fourier transform that are known when
 * compiled.
 *
 * Given R coefficients v_e, the values of sum of v_e y^e at all R roots of y^R = -i; and the transposed of that map, back to R
 * numbers. With s^2 = t, a polynomial modulo y^2n - t falls into two, modulo y^n - s and y^n + s: pairs become a + s b and a - s
 * b (6 multiply-adds, as a - s b = 2 a - (a + s b)), until n = 1; odd factors of R (3, 5, 7; one at most) fall apart likewise.
 * Back, a + b and s (a - b), of which s is divided by its larger part, to be made up for in constants of the steps that follow: 6
 * again. Roots come out in an order of their own: hk_root tells which. */
#ifndef HK_EVALUATE_CUH
#define HK_EVALUATE_CUH

#include <utility>

/* sin(2 pi num / den) */
static __host__ __device__ constexpr double hk_sine(int num, int den)
{
  num %= den;
  if (2 * num > den)
    num -= den;
  if (2 * num < -den)
    num += den;
  const double x = 6.283185307179586 * num / den;
  double sum = 0, term = x;
  for (int n = 1; n < 40; n += 2) {
    sum += term;
    term *= -x * x / ((n + 1) * (n + 2));
  }
  return sum;
}

static __host__ __device__ constexpr double hk_cosine(int num, int den)
{
  return hk_sine(4 * num + den, 4 * den);
}

static __host__ __device__ constexpr int hk_radix(int n)
{
  return n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : 7;
}

/* Which root stands at place `at` of R after hk_lane_evaluate: exp(2 pi i num / den) */
struct hk_angle {
  int num, den;
};

static __host__ __device__ constexpr hk_angle hk_root(int R, int at)
{
  hk_angle angle = { -1, 4 };
  for (int n = R; n > 1;) {
    const int r = hk_radix(n);
    n /= r;
    angle.num += at / n * angle.den;
    angle.den *= r;
    at %= n;
  }
  return angle;
}

/* exp(2 pi i num k / den) for k = 0 .. N - 1 */
template <int N> struct hk_powers {
  float re[N], im[N];
  __host__ __device__ constexpr hk_powers(int num, int den) : re(), im()
  {
    for (int k = 0; k < N; k++) {
      re[k] = (float)hk_cosine(num * k, den);
      im[k] = (float)hk_sine(num * k, den);
    }
  }
};

/* (a, b) := (a + s b, a - s b) */
static __device__ __forceinline__ void hk_halve(float &a_re, float &a_im, float &b_re, float &b_im, float s_re, float s_im)
{
  const float re = fmaf(-s_im, b_im, fmaf(s_re, b_re, a_re)), im = fmaf(s_im, b_re, fmaf(s_re, b_im, a_im));
  b_re = fmaf(2.0f, a_re, -re);
  b_im = fmaf(2.0f, a_im, -im);
  a_re = re;
  a_im = im;
}

/* s^m = exp(2 pi i m num / den) for m = 0 .. r - 1, each as scale (re + i im), the larger part being 1: it takes two
 * multiply-adds to multiply by what is in brackets, and `scale` goes into constants of later steps. */
template <int r> struct hk_turns {
  double scale[r];
  float re[r], im[r];
  __host__ __device__ constexpr hk_turns(int num, int den) : scale(), re(), im()
  {
    for (int m = 0; m < r; m++) {
      const double cosine = hk_cosine(m * num, den), sine = hk_sine(m * num, den);
      const bool wide = cosine * cosine >= sine * sine;
      scale[m] = wide ? cosine : sine;
      re[m] = wide ? 1 : (float)(cosine / sine);
      im[m] = wide ? (float)(sine / cosine) : 1;
    }
  }
};

/* a *= re + i im, one of which is 1 */
static __device__ __forceinline__ void hk_turn(float &a_re, float &a_im, float by_re, float by_im)
{
  const float re = a_re;
  a_re = by_re == 1 ? fmaf(-by_im, a_im, re) : fmaf(by_re, re, -a_im);
  a_im = by_re == 1 ? fmaf(by_im, re, a_im) : fmaf(by_re, a_im, re);
}

/* a_m, m = 0 .. r - 1, r odd, each to be multiplied by scale[m] (scale[0] = 1): a_k := sum over m of scale[m] a_m exp(2 pi i k m
 * / r) */
template <int r> static __device__ __forceinline__ void hk_divide(float (&re)[r], float (&im)[r], const double (&scale)[r])
{
  constexpr int half = r / 2;
  constexpr hk_powers<r> root(1, r);
  float sum_re[half + 1], sum_im[half + 1], off_re[half + 1], off_im[half + 1];
  const float first_re = re[0], first_im = im[0];
#pragma unroll
  for (int m = 1; m <= half; m++) {
    const float beside = (float)(scale[r - m] / scale[m]), by = (float)scale[m];
    sum_re[m] = fmaf(beside, re[r - m], re[m]);
    sum_im[m] = fmaf(beside, im[r - m], im[m]);
    off_re[m] = fmaf(-beside, re[r - m], re[m]);
    off_im[m] = fmaf(-beside, im[r - m], im[m]);
    re[0] = fmaf(by, sum_re[m], re[0]);
    im[0] = fmaf(by, sum_im[m], im[0]);
  }
#pragma unroll
  for (int k = 1; k <= half; k++) {
    float even_re = first_re, even_im = first_im;
#pragma unroll
    for (int m = 1; m <= half; m++) {
      const float by = (float)(scale[m] * root.re[k * m % r]);
      even_re = fmaf(by, sum_re[m], even_re);
      even_im = fmaf(by, sum_im[m], even_im);
    }
    re[k] = even_re;
    im[k] = even_im;
#pragma unroll
    for (int m = 1; m <= half; m++) {
      const float by = (float)(scale[m] * root.im[k * m % r]);
      re[k] = fmaf(-by, off_im[m], re[k]);
      im[k] = fmaf(by, off_re[m], im[k]);
    }
    re[r - k] = fmaf(2.0f, even_re, -re[k]);
    im[r - k] = fmaf(2.0f, even_im, -im[k]);
  }
}

/* What the way back leaves to be multiplied by, for coefficients of a polynomial modulo y^N - exp(2 pi i num / den). */
template <int N> struct hk_scales {
  double of[N];
  __host__ __device__ constexpr hk_scales(int num, int den) : of()
  {
    of[0] = 1;
    if constexpr (N > 1) {
      constexpr int r = hk_radix(N), n = N / r;
      const hk_scales<n> part(num, r * den);
      const hk_turns<r> s(num, r * den);
      for (int m = 0; m < r; m++)
        for (int j = 0; j < n; j++)
          of[m * n + j] = (r == 2 ? part.of[j] : 1) * s.scale[m];
    }
  }
};

/* The way there, and back, for coefficients AT .. AT + N - 1 of a polynomial modulo y^N - exp(2 pi i NUM / DEN). */
template <int AT, int N, int NUM, int DEN, int R>
static __device__ __forceinline__ void hk_evaluate(float (&re)[R], float (&im)[R]);
template <int AT, int N, int NUM, int DEN, int R>
static __device__ __forceinline__ void hk_unevaluate(float (&re)[R], float (&im)[R]);

/* The same for the `r` parts of N coefficients each that it falls into. */
template <int AT, int N, int NUM, int DEN, int R, int... K>
static __device__ __forceinline__ void hk_evaluate_parts(float (&re)[R], float (&im)[R], std::integer_sequence<int, K...>)
{
  (hk_evaluate<AT + K * N, N, NUM + K * DEN, (int)sizeof...(K) * DEN>(re, im), ...);
}

template <int AT, int N, int NUM, int DEN, int R, int... K>
static __device__ __forceinline__ void hk_unevaluate_parts(float (&re)[R], float (&im)[R], std::integer_sequence<int, K...>)
{
  (hk_unevaluate<AT + K * N, N, NUM + K * DEN, (int)sizeof...(K) * DEN>(re, im), ...);
}

template <int AT, int N, int NUM, int DEN, int R>
static __device__ __forceinline__ void hk_evaluate(float (&re)[R], float (&im)[R])
{
  if constexpr (N > 1) {
    constexpr int r = hk_radix(N), n = N / r;
#pragma unroll
    for (int j = AT; j < AT + n; j++) {
      if constexpr (r == 2) {
        constexpr hk_powers<r> s(NUM, r * DEN);
        hk_halve(re[j], im[j], re[j + n], im[j + n], s.re[1], s.im[1]);
      } else {
        constexpr hk_turns<r> s(NUM, r * DEN);
        float a_re[r], a_im[r];
#pragma unroll
        for (int m = 0; m < r; m++) {
          a_re[m] = re[j + m * n];
          a_im[m] = im[j + m * n];
          if (m > 0)
            hk_turn(a_re[m], a_im[m], s.re[m], s.im[m]);
        }
        hk_divide(a_re, a_im, s.scale);
#pragma unroll
        for (int m = 0; m < r; m++) {
          re[j + m * n] = a_re[m];
          im[j + m * n] = a_im[m];
        }
      }
    }
    hk_evaluate_parts<AT, n, NUM, DEN>(re, im, std::make_integer_sequence<int, r>());
  }
}

template <int AT, int N, int NUM, int DEN, int R>
static __device__ __forceinline__ void hk_unevaluate(float (&re)[R], float (&im)[R])
{
  if constexpr (N > 1) {
    constexpr int r = hk_radix(N), n = N / r;
    constexpr hk_turns<r> s(NUM, r * DEN);
    hk_unevaluate_parts<AT, n, NUM, DEN>(re, im, std::make_integer_sequence<int, r>());
#pragma unroll
    for (int j = 0; j < n; j++) {
      float a_re[r], a_im[r];
#pragma unroll
      for (int m = 0; m < r; m++) {
        a_re[m] = re[AT + j + m * n];
        a_im[m] = im[AT + j + m * n];
      }
      if constexpr (r == 2) {
        constexpr hk_scales<n> first(NUM, r * DEN), second(NUM + DEN, r * DEN);
        const float beside = (float)(second.of[j] / first.of[j]);
        const float re_1 = a_re[1], im_1 = a_im[1];
        a_re[1] = fmaf(-beside, re_1, a_re[0]);
        a_im[1] = fmaf(-beside, im_1, a_im[0]);
        a_re[0] = fmaf(beside, re_1, a_re[0]);
        a_im[0] = fmaf(beside, im_1, a_im[0]);
      } else {
        static_assert(r == 2 || n == 1, "one odd factor");
        constexpr hk_turns<r> none(0, 1);
        hk_divide(a_re, a_im, none.scale);
      }
#pragma unroll
      for (int m = 0; m < r; m++) {
        if (m > 0)
          hk_turn(a_re[m], a_im[m], s.re[m], s.im[m]);
        re[AT + j + m * n] = a_re[m];
        im[AT + j + m * n] = a_im[m];
      }
    }
  }
}

/* The values of v at the R roots of y^R = -i, two halves of which are those of y^(R/2) = +-exp(-2 pi i / 8). R even. */
template <int R> static __device__ __forceinline__ void hk_lane_evaluate(const float (&v)[R], float (&re)[R], float (&im)[R])
{
  constexpr float s = (float)hk_sine(1, 8);
#pragma unroll
  for (int j = 0; j < R / 2; j++) {
    const float b = s * v[j + R / 2];
    re[j] = v[j] + b;
    im[j] = -b;
    re[j + R / 2] = v[j] - b;
    im[j + R / 2] = b;
  }
  hk_evaluate<0, R / 2, -1, 8>(re, im);
  hk_evaluate<R / 2, R / 2, 3, 8>(re, im);
}

/* Transposed; the real part alone. */
template <int R> static __device__ __forceinline__ void hk_lane_unevaluate(float (&re)[R], float (&im)[R], float (&v)[R])
{
  constexpr double s = hk_sine(1, 8);
  constexpr hk_scales<R / 2> first(-1, 8), second(3, 8);
  hk_unevaluate<0, R / 2, -1, 8>(re, im);
  hk_unevaluate<R / 2, R / 2, 3, 8>(re, im);
#pragma unroll
  for (int j = 0; j < R / 2; j++) {
    const float beside = (float)(second.of[j] / first.of[j]);
    v[j] = (float)first.of[j] * fmaf(beside, re[j + R / 2], re[j]);
    v[j + R / 2] = (float)(s * first.of[j]) * (fmaf(-beside, re[j + R / 2], re[j]) + fmaf(-beside, im[j + R / 2], im[j]));
  }
}

#endif
