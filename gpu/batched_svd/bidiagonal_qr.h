/* Singular values of a bidiagonal matrix by implicit-shift QR, and the rotations for its singular vectors: the same code for a
 * CPU thread and a thread of the GPU. Golub and Kahan's sweeps with the shift of the last 2 x 2 block, and the zero-shift
 * sweep of Demmel and Kahan (SIAM J. Sci. Stat. Comput. 11, 1990) where a diagonal element or the shift vanishes.
 *
 * A sweep goes down a block of columns first..last and turns columns i, i + 1 of V, then of U. Rotations of up to HK_SWEEPS
 * sweeps are recorded together as a group, ready for applying them in one go through the columns: with sweep s two columns
 * behind sweep s - 1, at step t sweep s turns columns first + t - 2 s and the next one. So a step reads HK_SWEEPS rotations
 * that lie side by side and are independent of each other; rotations that there are not are c = 1, s = 0.
 *
 * Happy path: rounds until hk_qr.end is 0. A round ends when the room for rotations is full. Failure mode: after
 * HK_QR_SWEEPS_PER_VALUE sweeps a value, hk_qr.failed. */
#ifndef HK_BIDIAGONAL_QR_H
#define HK_BIDIAGONAL_QR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define HK_HOST_DEVICE static __host__ __device__ inline
#else
#define HK_HOST_DEVICE static inline
#endif

#define HK_SWEEPS 8u
#define HK_QR_GROUPS_MAX 256u
#define HK_QR_SWEEPS_PER_VALUE 30u
#define HK_QR_EPSILON 5.9604645e-8f /* 2^-24 */

/* State of a matrix between rounds. Begins as { columns, 0, 0, 0 }. */
struct hk_qr {
  uint32_t end;    /* singular values from number `end` on are found; 0: all */
  uint32_t sweeps; /* done so far */
  uint32_t failed; /* the iteration gave up; end is 0, too */
  float norm;      /* largest element; set by the first round */
};

struct hk_rotation {
  float c, s;
};

/* Columns first..last; steps = last - first + 2 (HK_SWEEPS - 1) + 1, of HK_SWEEPS rotations each, from `offset` on. */
struct hk_rotation_group {
  uint32_t first, last, offset, steps;
};

/* A round of a matrix: this header, then `room` rotations of the right side, then as many of the left. */
struct hk_rotations {
  uint32_t n_groups, pad[3];
  struct hk_rotation_group group[HK_QR_GROUPS_MAX];
};

HK_HOST_DEVICE uint32_t hk_qr_steps(uint32_t first, uint32_t last)
{
  return last - first + 2 * (HK_SWEEPS - 1) + 1;
}

/* Number of rotations of one side in a round: eight groups over the whole matrix. */
HK_HOST_DEVICE uint32_t hk_qr_room(uint32_t columns)
{
  return 8 * HK_SWEEPS * hk_qr_steps(0, columns - 1);
}

HK_HOST_DEVICE size_t hk_qr_bytes(uint32_t columns)
{
  return sizeof(struct hk_rotations) + 2 * (size_t)hk_qr_room(columns) * sizeof(struct hk_rotation);
}

HK_HOST_DEVICE struct hk_rotation *hk_qr_side(struct hk_rotations *r, uint32_t columns, bool left)
{
  return (struct hk_rotation *)(r + 1) + (left ? hk_qr_room(columns) : 0);
}

/* On the GPU a warp does a round: one lane does the sweep, all lanes look for the next block and fill in. On a CPU the thread
 * does both. */
#ifdef __CUDA_ARCH__
#define HK_QR_LANE threadIdx.x
#define HK_QR_LANES 32u
#define HK_QR_MEET() __syncwarp()
#else
#define HK_QR_LANE 0u
#define HK_QR_LANES 1u
#define HK_QR_MEET() (void)0
#endif

/* c, s with c f + s g = r, c g - s f = 0. If f and g are negligible (the matrix is about 1), g is left out. The same slight
 * rotation occurs in sweep after sweep, so c must not fall short of 1 by the same rounding each time. Therefore the CPU divides
 * instead of multiplying by an inverse; the GPU, which has no fast division, normalises c and s to c^2 + s^2 = 1. */
HK_HOST_DEVICE struct hk_rotation hk_rotation_of(float f, float g, float *r)
{
  const float square = f * f + g * g;
  const bool turns = square > 1e-30f;
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square));
  const float c = turns ? f * inverse : 1, s = turns ? g * inverse : 0, half = .5f * fmaf(-s, s, fmaf(-c, c, 1.f));
  const struct hk_rotation turn = { fmaf(half, c, c), fmaf(half, s, s) };
  *r = fmaf(turn.c, f, turn.s * g);
  return turn;
#else
  const float root = sqrtf(square);
  *r = turns ? root : f;
  return (struct hk_rotation){ turns ? f / root : 1, turns ? g / root : 0 };
#endif
}

/* The smaller singular value of [ f g ; 0 h ]. */
HK_HOST_DEVICE float hk_qr_shift(float f, float g, float h)
{
  f = fabsf(f);
  h = fabsf(h);
  const float larger = .5f * (sqrtf((f + h) * (f + h) + g * g) + sqrtf((f - h) * (f - h) + g * g));
  return larger > 0 ? f * (h / larger) : 0;
}

/* The output of the sweeps of a group; right: NULL if no rotations are wanted. */
struct hk_qr_record {
  struct hk_rotation *right, *left; /* of the group's step 0, slot 0 */
  uint32_t first, last, steps;      /* of the group */
  uint32_t slot;                    /* of the next sweep */
};

/* Fills the next slot's steps from..to-1 with rotations that do nothing. */
HK_HOST_DEVICE void hk_qr_pad(const struct hk_qr_record *r, uint32_t from, uint32_t to)
{
  for (uint32_t step = from + HK_QR_LANE; step < to; step += HK_QR_LANES) {
    r->right[step * HK_SWEEPS + r->slot] = (struct hk_rotation){ 1, 0 };
    r->left[step * HK_SWEEPS + r->slot] = (struct hk_rotation){ 1, 0 };
  }
}

/* The first rotation of the next sweep, of column `first`: the others follow HK_SWEEPS apart. */
HK_HOST_DEVICE size_t hk_qr_at(const struct hk_qr_record *r, uint32_t first)
{
  return (first - r->first + 2 * r->slot) * HK_SWEEPS + r->slot;
}

/* Fills the slots without a sweep. */
HK_HOST_DEVICE void hk_qr_end_group(struct hk_qr_record *r)
{
  for (; r->slot < HK_SWEEPS; r->slot++)
    hk_qr_pad(r, 0, r->steps);
}

HK_HOST_DEVICE void hk_qr_sweep_plain(float *d, float *e, uint32_t first, uint32_t last, const struct hk_qr_record *to)
{
  struct hk_rotation *const to_right = to->right, *const to_left = to->left;
  size_t at = hk_qr_at(to, first);
  struct hk_rotation right = { 1, 0 }, left = { 1, 0 };
  float diagonal = d[first], off = e[first];
  for (uint32_t i = first; i < last; i++) {
    const float below = d[i + 1], off_below = i + 1 < last ? e[i + 1] : 0;
    float r;
    right = hk_rotation_of(diagonal * right.c, off, &r);
    if (i > first)
      e[i - 1] = left.s * r;
    left = hk_rotation_of(left.c * r, below * right.s, &d[i]);
    if (to_right) {
      to_right[at] = right;
      to_left[at] = left;
      at += HK_SWEEPS;
    }
    diagonal = below;
    off = off_below;
  }
  diagonal *= right.c;
  d[last] = diagonal * left.c;
  e[last - 1] = diagonal * left.s;
}

HK_HOST_DEVICE void hk_qr_sweep_shifted(float *d, float *e, uint32_t first, uint32_t last, float shift,
                                        const struct hk_qr_record *to)
{
  struct hk_rotation *const to_right = to->right, *const to_left = to->left;
  size_t at = hk_qr_at(to, first);
  float diagonal = d[first], off = e[first];
  float f = (fabsf(diagonal) - shift) * (copysignf(1, diagonal) + shift / diagonal), g = off;
  for (uint32_t i = first; i < last; i++) {
    float below = d[i + 1], off_below = i + 1 < last ? e[i + 1] : 0, r;
    const struct hk_rotation right = hk_rotation_of(f, g, &r);
    if (i > first)
      e[i - 1] = r;
    f = right.c * diagonal + right.s * off;
    off = right.c * off - right.s * diagonal;
    g = right.s * below;
    below *= right.c;
    const struct hk_rotation left = hk_rotation_of(f, g, &r);
    d[i] = r;
    f = left.c * off + left.s * below;
    diagonal = left.c * below - left.s * off;
    g = left.s * off_below;
    off = left.c * off_below;
    if (to_right) {
      to_right[at] = right;
      to_left[at] = left;
      at += HK_SWEEPS;
    }
  }
  d[last] = diagonal;
  e[last - 1] = f;
}

/* Whether e[i - 1], between columns i - 1 and i, is negligible. */
HK_HOST_DEVICE bool hk_qr_apart(const float *d, const float *e, uint32_t i, float floor)
{
  const float off = fabsf(e[i - 1]);
  return off <= floor || off <= HK_QR_EPSILON * (fabsf(d[i - 1]) + fabsf(d[i]));
}

/* The first column of the undivided block that ends with column `last`, and the smallest diagonal element in it. */
HK_HOST_DEVICE uint32_t hk_qr_block(const float *d, const float *e, uint32_t last, float floor, float *smallest)
{
#ifdef __CUDA_ARCH__
  float least = INFINITY;
  for (uint32_t top = last;; top -= HK_QR_LANES) { /* lane l tests column top - l */
    const bool inside = HK_QR_LANE <= top;
    const uint32_t i = inside ? top - HK_QR_LANE : 0;
    const uint32_t ends = __ballot_sync(0xffffffffu, i == 0 || hk_qr_apart(d, e, i, floor));
    const uint32_t lane = ends ? (uint32_t)__ffs((int)ends) - 1 : HK_QR_LANES - 1;
    if (inside && HK_QR_LANE <= lane)
      least = fminf(least, fabsf(d[i]));
    if (ends) {
      *smallest = __uint_as_float(__reduce_min_sync(0xffffffffu, __float_as_uint(least)));
      return top - lane;
    }
  }
#else
  uint32_t first = last;
  *smallest = fabsf(d[last]);
  for (; first > 0 && !hk_qr_apart(d, e, first, floor); first--)
    *smallest = fminf(*smallest, fabsf(d[first - 1]));
  return first;
#endif
}

/* Does a round of the iteration. d: `columns` numbers, e: columns - 1; both change. rotations: NULL if no vectors are wanted. On
 * the GPU a warp calls it: d and e are the same memory for all lanes, *qr is each lane's own. */
HK_HOST_DEVICE void hk_qr_round(struct hk_qr *qr, float *d, float *e, uint32_t columns, struct hk_rotations *rotations)
{
  if (qr->sweeps == 0) {
    qr->norm = 0;
    for (uint32_t i = 0; i < columns; i++)
      qr->norm = fmaxf(qr->norm, fmaxf(fabsf(d[i]), i + 1 < columns ? fabsf(e[i]) : 0));
  }
  const float floor = .25f * HK_QR_EPSILON * qr->norm;
  const uint32_t room = hk_qr_room(columns);
  struct hk_qr_record to = { NULL, NULL, 0, 0, 0, HK_SWEEPS };
  uint32_t taken = 0, n_groups = 0;
  while (qr->end > 0) {
    const uint32_t last = qr->end - 1;
    float smallest;
    const uint32_t first = hk_qr_block(d, e, last, floor, &smallest);
    if (first == last) {
      qr->end = last;
      continue;
    }
    if (qr->sweeps == HK_QR_SWEEPS_PER_VALUE * columns) {
      qr->end = 0;
      qr->failed = 1;
      break;
    }
    if (rotations && (to.slot == HK_SWEEPS || first < to.first || last > to.last)) {
      hk_qr_end_group(&to);
      const uint32_t steps = hk_qr_steps(first, last);
      if (taken + steps * HK_SWEEPS > room || n_groups == HK_QR_GROUPS_MAX)
        break;
      rotations->group[n_groups++] = (struct hk_rotation_group){ first, last, taken, steps };
      to = (struct hk_qr_record){
        hk_qr_side(rotations, columns, false) + taken, hk_qr_side(rotations, columns, true) + taken, first, last, steps, 0
      };
      taken += steps * HK_SWEEPS;
    }
    if (rotations) {
      hk_qr_pad(&to, 0, first - to.first + 2 * to.slot);
      hk_qr_pad(&to, last - to.first + 2 * to.slot, to.steps);
    }
    const float shift = hk_qr_shift(d[last - 1], e[last - 1], d[last]), ratio = shift / fabsf(d[first]);
    const bool plain = smallest <= floor || !(ratio * ratio > HK_QR_EPSILON);
    HK_QR_MEET(); /* all lanes have read the numbers that change now */
    if (HK_QR_LANE == 0) {
      if (first > 0)
        e[first - 1] = 0;
      if (plain)
        hk_qr_sweep_plain(d, e, first, last, &to);
      else
        hk_qr_sweep_shifted(d, e, first, last, shift, &to);
    }
    HK_QR_MEET();
    qr->sweeps++;
    to.slot++;
  }
  if (rotations) {
    hk_qr_end_group(&to);
    rotations->n_groups = n_groups;
  }
}

#endif
