/* Vectors of lanes, for the sources that are compiled once for each instruction set: HK_ISA names it, HK_LANES is the number
 * of lanes. Private to the kernels. */
#ifndef HK_LANES_H
#define HK_LANES_H

#include "cpu/fused.h"
#include "cpu/sst/kernels.h"

#include <math.h>
#include <stdbool.h>

#ifndef HK_ISA /* set by the build; these values let the header compile alone */
#define HK_ISA portable
#define HK_LANES 4
#endif

/* What a processor does with all lanes at a time. Not all by <immintrin.h>: most of it is AVX-512, and reading it takes longer
 * than compiling most kernels. */
#if HK_LANES == 16 && defined(__AVX512F__)
#include <immintrin.h>
#define LANES_MIN(a, b) _mm512_min_ps((__m512)(a), (__m512)(b))
#define LANES_MAX(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define LANES_ROOT(x) _mm512_sqrt_ps((__m512)(x))
#define LANES_BITS(m) _mm512_test_epi32_mask((__m512i)(m), (__m512i)(m))
#define LANES_FUSED(a, b, c) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#elif HK_LANES == 8 && defined(__AVX__) && !defined(__clang__) /* gcc has a name for each instruction */
#define LANES_MIN(a, b) __builtin_ia32_minps256(a, b)
#define LANES_MAX(a, b) __builtin_ia32_maxps256(a, b)
#define LANES_ROOT(x) __builtin_ia32_sqrtps256(x)
#define LANES_BITS(m) __builtin_ia32_movmskps256((vec)(m))
#ifdef __FMA__
#define LANES_FUSED(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#endif
#elif HK_LANES == 8 && defined(__AVX__)
#include <immintrin.h>
#define LANES_MIN(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define LANES_MAX(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define LANES_ROOT(x) _mm256_sqrt_ps((__m256)(x))
#define LANES_BITS(m) _mm256_movemask_ps((__m256)(m))
#ifdef __FMA__
#define LANES_FUSED(a, b, c) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#endif
#elif HK_LANES == 4 && defined(__SSE2__)
#include <emmintrin.h>
#define LANES_MIN(a, b) _mm_min_ps((__m128)(a), (__m128)(b))
#define LANES_MAX(a, b) _mm_max_ps((__m128)(a), (__m128)(b))
#define LANES_ROOT(x) _mm_sqrt_ps((__m128)(x))
#define LANES_BITS(m) _mm_movemask_ps((__m128)(m))
#elif HK_LANES == 4 && defined(__aarch64__)
#include <arm_neon.h>
#define LANES_FUSED(a, b, c) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#endif

#define HK_PASTE2(a, b) a##_##b
#define HK_PASTE(a, b) HK_PASTE2(a, b)
#define FOR_ISA(name) HK_PASTE(name, HK_ISA)

/* Blocks of floats are read as these types: the sources are compiled with -fno-strict-aliasing. */
typedef float vec __attribute__((vector_size(4 * HK_LANES)));
typedef int32_t mask __attribute__((vector_size(4 * HK_LANES)));            /* all bits of a lane, or none */
typedef float loose __attribute__((vector_size(4 * HK_LANES), aligned(4))); /* a vector at any address */

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

ALWAYS_INLINE vec load(const float *x)
{
  return *(const loose *)x;
}

ALWAYS_INLINE vec every(float x)
{
  return x - (vec){ 0 };
}

ALWAYS_INLINE vec pick(mask m, vec yes, vec no)
{
  return (vec)((m & (mask)yes) | (~m & (mask)no));
}

ALWAYS_INLINE vec keep(mask m, vec x)
{
  return (vec)(m & (mask)x);
}

ALWAYS_INLINE vec magnitude(vec x)
{
  return (vec)((mask)x & 0x7fffffff);
}

ALWAYS_INLINE vec with_sign(vec x, vec sign)
{
  return (vec)((mask)magnitude(x) | ((mask)sign & INT32_MIN));
}

/* b where they are equal, or one is not a number. */
ALWAYS_INLINE vec smaller(vec a, vec b)
{
#ifdef LANES_MIN
  return (vec)LANES_MIN(a, b);
#else
  return pick(a < b, a, b);
#endif
}

/* As smaller. */
ALWAYS_INLINE vec larger(vec a, vec b)
{
#ifdef LANES_MAX
  return (vec)LANES_MAX(a, b);
#else
  return pick(a > b, a, b);
#endif
}

ALWAYS_INLINE vec root(vec x)
{
#ifdef LANES_ROOT
  return (vec)LANES_ROOT(x);
#else
  for (int l = 0; l < HK_LANES; l++)
    x[l] = sqrtf(x[l]);
  return x;
#endif
}

/* The lanes of a mask, a bit each. */
ALWAYS_INLINE uint32_t lanes_of(mask m)
{
#ifdef LANES_BITS
  return (uint32_t)LANES_BITS(m);
#else
  uint32_t bits = 0;
  for (int l = 0; l < HK_LANES; l++)
    bits |= (uint32_t)(m[l] & 1) << l;
  return bits;
#endif
}

ALWAYS_INLINE bool any(mask m)
{
  return lanes_of(m) != 0;
}

#ifdef LANES_FUSED
/* As hk_fused. */
ALWAYS_INLINE vec fused(vec a, vec b, vec c)
{
  return (vec)LANES_FUSED(a, b, c);
}
#elif defined(HK_HAVE_FUSED)
ALWAYS_INLINE vec fused(vec a, vec b, vec c)
{
  for (int l = 0; l < HK_LANES; l++)
    a[l] = hk_fused(a[l], b[l], c[l]);
  return a;
}
#else
typedef double twice __attribute__((vector_size(8 * HK_LANES)));
typedef int64_t twice_mask __attribute__((vector_size(8 * HK_LANES)));

#define WIDE(x) __builtin_convertvector(x, twice) /* no function returns one: a processor without AVX has no register for it */

/* As hk_fused_exactly. */
static __attribute__((noinline)) vec fused_exactly(vec a, vec b, vec c)
{
  const twice product = WIDE(a) * WIDE(b), addend = WIDE(c), sum = product + addend, part = sum - product;
  const twice side = sum * ((product - (sum - part)) + (addend - part));
  const twice_mask below = side<0, above = side> 0, odd = ((twice_mask)sum + below) | ((below | above) & 1);
  return __builtin_convertvector((twice)odd, vec);
}

/* As hk_fused. The sum in float64 rounds to the same number unless it is half way between two, or the result so small that it has
 * fewer digits: those are computed anew. A result of 0 is exact, or far from half way. */
ALWAYS_INLINE vec fused(vec a, vec b, vec c)
{
  const twice sum = WIDE(a) * WIDE(b) + WIDE(c);
  const vec x = __builtin_convertvector(sum, vec);
  const mask half = (__builtin_convertvector((twice_mask)sum, mask) & 0x1fffffff) == 0x10000000;
  return any(half | ((magnitude(x) <= FLT_MIN) & (x != 0))) ? fused_exactly(a, b, c) : x;
}
#endif

/* 1 / x, and 0 where x is 0. */
ALWAYS_INLINE vec inverse(vec x)
{
  const mask zero = x == 0;
  return keep(~zero, 1 / pick(zero, every(1), x));
}

ALWAYS_INLINE vec dot(const vec *a, const vec *b, uint32_t n)
{
  vec s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < n; i++)
    s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

/* y := x * factor, zeros from w to n. */
ALWAYS_INLINE void scale(vec *y, const vec *x, vec factor, uint32_t w, uint32_t n)
{
  for (uint32_t i = 0; i < w; i++)
    y[i] = x[i] * factor;
  for (uint32_t i = w; i < n; i++)
    y[i] = (vec){ 0 };
}

/* Properties of the matrices of a group. */
struct spans {
  mask past_zero;
  mask present_zero;
};

/* Lanczos on one matrix for each lane. */
struct krylov {
  struct hk_work *work;
  const float *x;
  bool gram; /* on H H, not on H */
  bool reorthogonalise;
  vec top;       /* max |alpha_i| + beta_(i-1) */
  mask complete; /* the Krylov space is complete: q is zero from here on */
};

#define spans_load FOR_ISA(hk_spans_load)
#define spans_load_only FOR_ISA(hk_spans_load_only)
#define spans_energy FOR_ISA(hk_spans_energy)
#define feedback_load FOR_ISA(hk_feedback_load)
#define feedback_store FOR_ISA(hk_feedback_store)
#define hankel_split FOR_ISA(hk_hankel_split)
#define hankel_product FOR_ISA(hk_hankel_product)
#define krylov_begin FOR_ISA(hk_krylov_begin)
#define krylov_step FOR_ISA(hk_krylov_step)
#define krylov_take_out FOR_ISA(hk_krylov_take_out)
#define krylov_operator FOR_ISA(hk_krylov_operator)
#define krylov_combine FOR_ISA(hk_krylov_combine)
#define eigen_solve FOR_ISA(hk_eigen_solve)
#define eigen_identity FOR_ISA(hk_eigen_identity)
#define ika_present FOR_ISA(hk_ika_present)
#define ika_score FOR_ISA(hk_ika_score)
#define svd_repeats FOR_ISA(hk_svd_repeats)
#define svd_missed FOR_ISA(hk_svd_missed)
#define svd_present FOR_ISA(hk_svd_present)
#define svd_score FOR_ISA(hk_svd_score)
#define graph_add FOR_ISA(hk_graph_add)
#define novelty_distances FOR_ISA(hk_novelty_distances)
#define novelty_lags_bring FOR_ISA(hk_novelty_lags_bring)
#define novelty_values FOR_ISA(hk_novelty_values)
#define novelty_rows FOR_ISA(hk_novelty_rows)
#define graph_profile FOR_ISA(hk_graph_profile)
#define picture_rows FOR_ISA(hk_picture_rows)

/* kernels_span.c */
struct spans spans_load(struct hk_work *work, const struct hk_detector *d, const struct hk_task *task, uint32_t n);
void spans_load_only(struct hk_work *work, const struct hk_detector *d, const struct hk_task *task, uint32_t n);
/* |H|_F^2 of the matrix of x. */
vec spans_energy(const float *x, uint32_t w);
/* Loads the feedback vectors into q_1. */
void feedback_load(struct hk_work *work, const struct hk_task *task, uint32_t n, uint32_t span);
/* a := normalise(mu + 1e-3 a0), except in lanes `stays`. */
void feedback_store(struct hk_work *work, struct hk_task *task, uint32_t n, mask stays);

/* kernels_hankel.c */
void hankel_split(float *tree, const float *x, const struct hk_shape *shape);
void hankel_product(float *y, const float *x, const float *tree, const float *v, float *sum, const struct hk_shape *shape);

/* kernels_krylov.c */
/* Prepares work for Lanczos on the matrix of x; the caller sets q_1. */
void krylov_begin(struct krylov *k, struct hk_work *work, const float *x, bool gram, bool reorthogonalise);
/* Step s = 0, 1, ...: alpha[s], and unless it is the last step beta[s] and q_(s+1). */
void krylov_step(struct krylov *k, uint32_t s, bool last);
/* u -= Q (Q^T u) in the given lanes, with all products computed first: count vectors of w numbers each, `stride` apart. Returns
 * |u|^2. */
vec krylov_take_out(float *u, const float *q, size_t stride, float *dots, uint32_t w, uint32_t count, mask lanes);
/* u := A v, v padded with zeros. */
void krylov_operator(const struct krylov *k, float *u, const float *v);
/* out := normalise(sum of y[s] q_s), s < m; out may be q_1. */
void krylov_combine(struct hk_work *work, float *out, const float *y, uint32_t m);

/* kernels_eigen.c */
void eigen_solve(float *diagonal, float *beside, uint32_t n, float *rows, uint32_t n_rows);
/* rows := the identity of n. */
void eigen_identity(float *rows, uint32_t n);

/* ika.c and svd.c. present: mu from q_1 = a, returns sigma^2. score: z from mu. */
vec ika_present(struct hk_work *work, const struct hk_detector *d);
vec ika_score(struct hk_work *work, const struct hk_detector *d);
vec svd_present(struct hk_work *work, const struct hk_detector *d);
vec svd_score(struct hk_work *work, const struct hk_detector *d, uint32_t n);

/* svd_missed.c */
/* Returns those of the given lanes in which numbers of x, or their second differences, are repeated, exactly or nearly, so often
 * that the matrix may have repeated eigenvalues. Uses work->u and work->sum. */
mask svd_repeats(struct hk_work *work, const float *x, mask lanes);
/* Returns those of the given lanes in which k, after `steps` steps, may have missed an eigenvector whose |eigenvalue| is `least`
 * or more. q is zero after a lane's own steps. */
mask svd_missed(struct krylov *k, uint32_t steps, mask lanes, vec least);

/* kernels_graph.c */
extern const struct hk_picture_rows picture_rows;
void graph_add(const struct hk_graph_view *v, const struct hk_graph_samples *s);
struct hk_graph_split graph_profile(const struct hk_graph_view *v, const struct hk_graph_counts *counts);

/* kernels_novelty.c */
hk_novelty_pass novelty_distances;
hk_novelty_bring novelty_lags_bring;

#endif
