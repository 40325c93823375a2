/* The graph residual: what each sensor of a field reads, less what its neighbours say that it should.
 *
 * Written once, for host and device: inline functions of one node, as kernels and the loops of the host call them. A field is
 * columns of `room` nodes (a multiple of 32); number k of node i lies at [k * room + i], so that neighbouring nodes lie side by
 * side. A node that is no member has no neighbour and no value, and costs a look.
 *
 * What is done with a closed row: its values x (double, NaN: none), by node, become residuals r (double, NaN: none), by node, in
 * four passes. Within a pass nodes are independent of each other and may be taken in any order, by any number of threads; a pass
 * begins when the one before is whole, for it reads what that one wrote of other nodes. Rows are taken in order, one by one.
 *
 *   1 hk_residual_standardise  reads  x                                      writes z, settled, mean, spread
 *   2 hk_residual_stand_in     reads  z, last of neighbours                  writes stand
 *   3 hk_residual_predict      reads  z, stand, error, errors, fast, slow, loud of neighbours     writes guess, off, bound, and r
 *   4 hk_residual_learn        reads  z, stand, off, error of neighbours     writes product, target, total, error, fast, slow,
 * last
 *
 * Pass 4 writes what pass 3 of the same row read: so no node's pass 4 may begin before pass 3 is whole; `error` of a neighbour is
 * read in pass 4 as it was before this row, for which pass 3 has put it into `bound`. Behind pass 4 of each rule.refit'th row
 * (hk_residual.rows counts them) comes hk_residual_refit for every node, which reads and writes that node alone.
 *
 * With z_j = (x_j - m_j) / s_j, m and s the mean and the standard deviation of the first HK_RESIDUAL_SETTLE values, N(i) the
 * neighbours and u = (h of N(i), 1), h_j being z_j or what stands for it:
 *
 *   p_i = w_i . u                     e_i = z_i - p_i                     r_i = s_i e_i
 *   z'_i = p_i + clip(e_i, +-clip c_i)                                    so that a fault is not learned quickly
 *   G_i = f G_i + u u^T,  b_i = f b_i + u z'_i,  W_i = f W_i + 1
 *   w_i = (G_i + rho W_i D)^-1 (b_i + rho W_i d),  rho = 0.01, D = diag(1..1, 1e-3), d = (1/q..1/q, 0), every `refit` rows
 *   c_i: mean of |e_i|, each taken as 5 c_i at most, over the first HK_RESIDUAL_SETTLE of them and then with weight 1 - f
 *
 * A row in which a neighbour is off by more than 4 clip c_j is not learned, by that node; else one spike would be in its sums for
 * a thousand rows. A neighbour counts in w from HK_RESIDUAL_SETTLE rows on that were learned with a value of it (it is ripe
 * then); there is no residual before two are. A neighbour that has no value in a row stands for its own prediction, with what its
 * neighbours without one stood for in the row before; where it has none, for what it stood for then; where neighbours with more
 * than half of |w| have no value there is no residual, and nothing is learned. If a pivot of the ridge is below 2^-18 of its
 * diagonal, w is kept and `refused` counted.
 *
 * Blame. A faulty sensor leaks into the residuals of those whose neighbour it is, by -w_ij times its own. How far a node is out
 * of its ways is the larger of two: |fast - slow|, a fast and a slow mean of e (it has stepped), and loud - c, the fast mean of
 * |e| less c (it moves otherwise); in these means each e is taken as 20 c at most. A neighbour is to blame if it is farther out
 * than the node, each in its own c, and |w| times that is at least half of what the node is; of several, the one that is farthest
 * out. The five lowest bits of r's mantissa say who is: 1 + k of the neighbour, or 0 (hk_residual_blamed).
 * They are 1e-14 of the value, below what the detectors' float32 can tell, and go wherever the value goes, so an alert that comes
 * of the value knows, however the work was cut.
 *
 * Arithmetic, the same on every backend to the last bit: x - m, its division by s, m and s, the sums G, b and W (products of two
 * floats, exact in double, and f), the refit and s e are double; all else is float. So r differs from a computation in double by
 * less than 1e-5 s; with sums in float it would by 1e-4, for neighbours are so alike. Every operation is rounded by itself: no
 * fma (-ffp-contract=off, --fmad=false). Sums run over k from 0 on, one after the other, and the constant comes last. Divisions
 * and square roots are IEEE's. NaN is decided by x != x.
 *
 * Cannot fail. Thread: whoever owns the field at the time. */
#ifndef HK_RESIDUAL_H
#define HK_RESIDUAL_H

#include "cpu/detector.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HK_RESIDUAL_NEIGHBOURS_MAX 16
#define HK_RESIDUAL_SETTLE 96u
#define HK_RESIDUAL_NONE UINT32_MAX /* no neighbour */
#define HK_RESIDUAL_LANES 32u       /* room is a multiple */
#define HK_RESIDUAL_RIDGE 0.01
#define HK_RESIDUAL_RIDGE_LEVEL 1e-5 /* the same of the constant */
#define HK_RESIDUAL_PIVOT 3.814697265625e-06
#define HK_RESIDUAL_FAR 1e9f   /* z is no farther from 0 */
#define HK_RESIDUAL_STILL 1e-9 /* a spread below so much of the mean is none: a value that stands still */

struct hk_residual_rule {
  uint32_t neighbours; /* q: of a node, at most; 2..HK_RESIDUAL_NEIGHBOURS_MAX */
  uint32_t refit;      /* rows; at least 1 */
  double forget;       /* f */
  float clip;          /* in c */
  float fast, slow;    /* weights of a new error in the two means, but for the first ones */
};

/* Columns of a field, in host or device memory. q = rule.neighbours. A field that is new is all zero, but neighbour, z, last. */
struct hk_residual {
  struct hk_residual_rule rule;
  uint32_t room;       /* nodes that there are columns for */
  uint64_t rows;       /* that were taken */
  uint32_t *neighbour; /* q; HK_RESIDUAL_NONE */
  float *weight;       /* q + 1: w; 0 where a neighbour is not ripe */
  double *product;     /* (q + 1)(q + 2)/2: G, a and b <= a at a(a + 1)/2 + b */
  double *target;      /* q + 1: b */
  double *total;       /* W */
  double *mean;        /* m; while it settles that of the values so far */
  double *spread;      /* s; while it settles the sum of the squared differences from the mean */
  float *error;        /* c */
  float *fast, *slow;  /* means of e */
  float *loud;         /* fast mean of |e| */
  float *last;         /* h of the row before; NaN: none */
  uint32_t *settled;   /* values, up to HK_RESIDUAL_SETTLE: then there is a z */
  uint32_t *learned;   /* rows; w is made from HK_RESIDUAL_SETTLE on */
  uint32_t *errors;    /* e that there were */
  uint32_t *refused;   /* refits */
  uint32_t *made;      /* 1: there is a w */
  uint32_t *ripe;      /* q: rows that were learned with a value of the neighbour, up to HK_RESIDUAL_SETTLE */
  /* Of the row that is being taken. */
  float *z, *stand, *guess, *off; /* off: e; NaN: none */
  float *bound; /* 5 c, 4 clip c and so on are multiples of this: c before the row, 0 where it is not known yet */
};

/* Where a and b <= a of a packed triangle lie. */
HK_INLINE size_t hk_residual_packed(uint32_t a, uint32_t b)
{
  return (size_t)a * (a + 1) / 2 + b;
}

HK_INLINE float hk_residual_within(float x, float limit)
{
  return x > limit ? limit : x < -limit ? -limit : x;
}

/* Pass 1. */
HK_INLINE void hk_residual_standardise(const struct hk_residual *f, const double *x, uint32_t i)
{
  const double value = x[i];
  f->z[i] = NAN;
  if (value != value)
    return;
  if (f->settled[i] < HK_RESIDUAL_SETTLE) {
    const double n = ++f->settled[i], from = value - f->mean[i];
    f->mean[i] += from / n;
    f->spread[i] += from * (value - f->mean[i]);
    if (f->settled[i] < HK_RESIDUAL_SETTLE)
      return;
    const double s = sqrt(f->spread[i] / n);
    if (s > HK_RESIDUAL_STILL * fabs(f->mean[i])) {
      f->spread[i] = s;
    } else { /* it stood still: there is nothing to measure it by yet */
      f->settled[i] = 0;
      f->mean[i] = f->spread[i] = 0;
    }
    return;
  }
  f->z[i] = hk_residual_within((float)((value - f->mean[i]) / f->spread[i]), HK_RESIDUAL_FAR);
}

/* Pass 2. */
HK_INLINE void hk_residual_stand_in(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float sum = 0;
  f->stand[i] = f->z[i];
  if (f->z[i] == f->z[i])
    return;
  f->stand[i] = f->last[i];
  if (!f->made[i])
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[(size_t)k * f->room + i];
    if (j == HK_RESIDUAL_NONE)
      continue;
    const float h = f->z[j] == f->z[j] ? f->z[j] : f->last[j];
    sum += f->weight[(size_t)k * f->room + i] * (h == h ? h : 0);
  }
  f->stand[i] = sum + f->weight[(size_t)q * f->room + i];
}

/* How far a node is out of its ways, in z; 0 where that is not known yet. */
HK_INLINE float hk_residual_out(const struct hk_residual *f, uint32_t i)
{
  if (f->errors[i] < HK_RESIDUAL_SETTLE || !(f->error[i] > 0))
    return 0;
  const float step = fabsf(f->fast[i] - f->slow[i]), more = f->loud[i] - f->error[i];
  return step > more ? step : more;
}

/* 1 + k of the neighbour that is to blame for the residual of node i; 0: none is. */
HK_INLINE uint32_t hk_residual_blame(const struct hk_residual *f, uint32_t i)
{
  const float own = hk_residual_out(f, i);
  uint32_t found = 0;
  if (!(own > 0))
    return 0;
  float most = own / f->error[i];
  for (uint32_t k = 0; k < f->rule.neighbours; k++) {
    const uint32_t j = f->neighbour[(size_t)k * f->room + i];
    const float out = j == HK_RESIDUAL_NONE ? 0 : hk_residual_out(f, j);
    if (!(out > 0) || fabsf(f->weight[(size_t)k * f->room + i]) * out < 0.5f * own || !(out / f->error[j] > most))
      continue;
    most = out / f->error[j];
    found = 1 + k;
  }
  return found;
}

#define HK_RESIDUAL_BLAME_BITS 31u

/* A residual with who is to blame for it in its lowest bits. */
HK_INLINE double hk_residual_tag(double r, uint32_t blamed)
{
  uint64_t bits;
  memcpy(&bits, &r, sizeof bits);
  bits = (bits & ~(uint64_t)HK_RESIDUAL_BLAME_BITS) | blamed;
  memcpy(&r, &bits, sizeof r);
  return r;
}

/* Who is: 1 + k of the node's neighbours, or 0. */
HK_INLINE uint32_t hk_residual_blamed(double r)
{
  uint64_t bits;
  memcpy(&bits, &r, sizeof bits);
  return (uint32_t)(bits & HK_RESIDUAL_BLAME_BITS);
}

/* Pass 3. Returns r. */
HK_INLINE double hk_residual_predict(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float sum = 0, all = 0, missing = 0;
  f->off[i] = f->guess[i] = NAN;
  f->bound[i] = f->errors[i] < HK_RESIDUAL_SETTLE ? 0 : f->error[i];
  if (!f->made[i] || f->z[i] != f->z[i])
    return (double)NAN;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[(size_t)k * f->room + i];
    if (j == HK_RESIDUAL_NONE)
      continue;
    const float w = f->weight[(size_t)k * f->room + i], h = f->stand[j];
    sum += w * (h == h ? h : 0);
    all += fabsf(w);
    missing += f->z[j] == f->z[j] ? 0 : fabsf(w);
  }
  f->guess[i] = sum + f->weight[(size_t)q * f->room + i];
  if (2 * missing > all)
    return (double)NAN;
  f->off[i] = f->z[i] - f->guess[i];
  return hk_residual_tag(f->spread[i] * (double)f->off[i], hk_residual_blame(f, i));
}

/* Takes the error of a node into its means. */
HK_INLINE void hk_residual_mean_error(const struct hk_residual *f, uint32_t i)
{
  const float c = f->bound[i];
  const float e = c > 0 ? hk_residual_within(f->off[i], 5 * c) : f->off[i];
  const float n = (float)(f->errors[i] += f->errors[i] < UINT32_MAX), slowly = (float)(1 - f->rule.forget), first = 1 / n;
  const bool new_one = n <= HK_RESIDUAL_SETTLE;
  f->error[i] += (fabsf(e) - f->error[i]) * (new_one || first > slowly ? first : slowly);
  const float far = c > 0 ? hk_residual_within(f->off[i], 20 * c) : f->off[i];
  f->loud[i] += (fabsf(far) - f->loud[i]) * (first > f->rule.fast ? first : f->rule.fast);
  f->fast[i] += (far - f->fast[i]) * (first > f->rule.fast ? first : f->rule.fast);
  f->slow[i] += (far - f->slow[i]) * (first > f->rule.slow ? first : f->rule.slow);
}

/* Adds a row to the sums of a node: u of its neighbours, and z for itself. */
HK_INLINE void hk_residual_add(const struct hk_residual *f, uint32_t i, const float *u, float z)
{
  const uint32_t q = f->rule.neighbours;
  const double forget = f->rule.forget;
  for (uint32_t a = 0; a <= q; a++) {
    for (uint32_t b = 0; b <= a; b++) {
      double *g = &f->product[hk_residual_packed(a, b) * f->room + i];
      *g = forget * *g + (double)u[a] * (double)u[b];
    }
    double *t = &f->target[(size_t)a * f->room + i];
    *t = forget * *t + (double)u[a] * (double)z;
  }
  f->total[i] = forget * f->total[i] + 1;
  f->learned[i] += f->learned[i] < UINT32_MAX;
}

/* Pass 4. */
HK_INLINE void hk_residual_learn(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float u[HK_RESIDUAL_NEIGHBOURS_MAX + 1];
  bool wild = f->made[i] && f->off[i] != f->off[i];
  f->last[i] = f->stand[i];
  if (f->z[i] != f->z[i])
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[(size_t)k * f->room + i];
    u[k] = j == HK_RESIDUAL_NONE || f->stand[j] != f->stand[j] ? 0 : f->stand[j];
    if (j != HK_RESIDUAL_NONE)
      wild |= f->bound[j] > 0 && fabsf(f->off[j]) > 4 * f->rule.clip * f->bound[j];
  }
  u[q] = 1;
  float z = f->z[i];
  if (f->off[i] == f->off[i]) {
    const float c = f->bound[i];
    z = c > 0 ? f->guess[i] + hk_residual_within(f->off[i], f->rule.clip * c) : z;
    hk_residual_mean_error(f, i);
  }
  if (wild)
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[(size_t)k * f->room + i];
    if (j != HK_RESIDUAL_NONE && f->z[j] == f->z[j] && f->ripe[(size_t)k * f->room + i] < HK_RESIDUAL_SETTLE)
      f->ripe[(size_t)k * f->room + i]++;
  }
  hk_residual_add(f, i, u, z);
}

HK_INLINE bool hk_residual_is_ripe(const struct hk_residual *f, uint32_t i, uint32_t k)
{
  return k == f->rule.neighbours || f->ripe[(size_t)k * f->room + i] >= HK_RESIDUAL_SETTLE;
}

/* The ridge's matrix in m, packed, and its right side in v; neighbours that are not ripe give 0. ripe: how many are. */
HK_INLINE void hk_residual_ridge(const struct hk_residual *f, uint32_t i, uint32_t ripe, double *m, double *v)
{
  const uint32_t q = f->rule.neighbours;
  const double ridge = HK_RESIDUAL_RIDGE * f->total[i];
  for (uint32_t a = 0; a <= q; a++) {
    const bool is = hk_residual_is_ripe(f, i, a);
    for (uint32_t b = 0; b <= a; b++) {
      const bool both = is && hk_residual_is_ripe(f, i, b);
      m[hk_residual_packed(a, b)] = both ? f->product[hk_residual_packed(a, b) * f->room + i] : 0;
    }
    double *diagonal = &m[hk_residual_packed(a, a)];
    *diagonal = !is ? 1 : *diagonal + (a < q ? ridge : HK_RESIDUAL_RIDGE_LEVEL * f->total[i]);
    v[a] = is ? f->target[(size_t)a * f->room + i] + (a < q ? ridge / ripe : 0) : 0;
  }
}

/* Solves m x = v in place, m = L D L^T of n unknowns. False: a pivot is too small, and both are spoilt. */
HK_INLINE bool hk_residual_solve(double *m, double *v, uint32_t n)
{
  for (uint32_t j = 0; j < n; j++) {
    const double diagonal = m[hk_residual_packed(j, j)];
    double pivot = diagonal;
    for (uint32_t k = 0; k < j; k++)
      pivot -= m[hk_residual_packed(j, k)] * m[hk_residual_packed(j, k)] * m[hk_residual_packed(k, k)];
    if (!(pivot >= HK_RESIDUAL_PIVOT * diagonal) || !(pivot > 0))
      return false;
    m[hk_residual_packed(j, j)] = pivot;
    for (uint32_t i = j + 1; i < n; i++) {
      double sum = m[hk_residual_packed(i, j)];
      for (uint32_t k = 0; k < j; k++)
        sum -= m[hk_residual_packed(i, k)] * m[hk_residual_packed(j, k)] * m[hk_residual_packed(k, k)];
      m[hk_residual_packed(i, j)] = sum / pivot;
    }
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < i; k++)
      v[i] -= m[hk_residual_packed(i, k)] * v[k];
  for (uint32_t i = n; i-- > 0;) {
    v[i] /= m[hk_residual_packed(i, i)];
    for (uint32_t k = i + 1; k < n; k++)
      v[i] -= m[hk_residual_packed(k, i)] * v[k];
  }
  return true;
}

/* Behind pass 4: w of a node. */
HK_INLINE void hk_residual_refit(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  double m[(HK_RESIDUAL_NEIGHBOURS_MAX + 1) * (HK_RESIDUAL_NEIGHBOURS_MAX + 2) / 2], v[HK_RESIDUAL_NEIGHBOURS_MAX + 1];
  uint32_t ripe = 0;
  for (uint32_t k = 0; k < q; k++)
    ripe += hk_residual_is_ripe(f, i, k);
  if (ripe < 2)
    f->made[i] = 0;
  if (ripe < 2 || f->learned[i] < HK_RESIDUAL_SETTLE)
    return;
  hk_residual_ridge(f, i, ripe, m, v);
  if (!hk_residual_solve(m, v, q + 1)) {
    f->refused[i]++;
    return;
  }
  for (uint32_t a = 0; a <= q; a++)
    f->weight[(size_t)a * f->room + i] = (float)v[a];
  f->made[i] = 1;
}

/* --- residual.c: the same on the host ------------------------------------------------------------------------------- */

/* Makes columns for `room` nodes, on the host, of a field that is new. 0 or -ENOMEM. hk_residual_close: frees them. */
int hk_residual_open(struct hk_residual *field, const struct hk_residual_rule *rule, uint32_t room);
void hk_residual_close(struct hk_residual *field);
/* Bytes of them. */
uint64_t hk_residual_need(const struct hk_residual_rule *rule, uint32_t room);
/* Room for more nodes; what was there stays. 0 or -ENOMEM. */
int hk_residual_grow(struct hk_residual *field, uint32_t room);
/* Takes a row: x of room values; r of as many is written. */
void hk_residual_row(struct hk_residual *field, const double *x, double *r);
/* Node i gets j as its neighbour k, or HK_RESIDUAL_NONE; what was learned with the one before goes, and w is made anew. Nothing
 * happens where it has it. */
void hk_residual_bind(struct hk_residual *field, uint32_t i, uint32_t k, uint32_t j);
/* Node i is another sensor's: nothing is known of it, and it has no neighbours. Who has it as one is for hk_residual_bind. */
void hk_residual_forget(struct hk_residual *field, uint32_t i);

/* All columns but those of a row, as bytes in memory that is aligned to 8: the first n nodes, in the order of struct hk_residual,
 * each column n * its numbers, unpadded but at its end to 8 bytes. hk_residual_state_size: how many bytes, a multiple of 8. */
size_t hk_residual_state_size(const struct hk_residual_rule *rule, uint32_t n);
void hk_residual_write(const struct hk_residual *field, uint32_t n, void *state);
/* Into a field that is new and has room for n. False: numbers stand in it that no field has. */
bool hk_residual_read(struct hk_residual *field, uint32_t n, const void *state);

#endif
