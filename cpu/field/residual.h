/* The graph residual: the value of each sensor of a field, less the value predicted from its neighbours.
 *
 * Written once, for host and device: inline functions for one node, called by kernels and by loops of the host. A field is stored
 * as columns of `room` nodes (a multiple of HK_RESIDUAL_LANES): all numbers of a column for 32 nodes are contiguous, with number
 * k of these nodes side by side (hk_residual_at), so that the data of a node is local, for caches and pages, and neighbouring
 * threads read neighbouring numbers. A node that is not a member has no neighbours and no value, and costs one test.
 *
 * A closed row is processed in four passes, from its values x (double, NaN: none), by node, to residuals r (double, NaN: none),
 * by node. Within a pass nodes are independent and may be processed in any order, by any number of threads; a pass begins when
 * the previous one is complete, because it reads what that one wrote for other nodes. Rows are processed in order.
 *
 *   1 hk_residual_standardise  reads  x                            writes z, settled, mean, spread
 *   2 hk_residual_show         reads  z, last of neighbours        writes seen
 *   3 hk_residual_predict      reads  seen of neighbours           writes lesson, and r
 *   4 hk_residual_learn        reads  lesson of neighbours         writes product, target, total, error, fast, slow, loud, last
 *
 * The data read of a neighbour is in two small records of 8 bytes, so that each costs one memory access. After pass 4 of
 * each rule.refit'th row (hk_residual.rows counts them) hk_residual_refit is called for each node; it reads and writes only that
 * node.
 *
 * With z_j = (x_j - m_j) / s_j, m and s the mean and the standard deviation of the first HK_RESIDUAL_SETTLE values, N(i) the
 * neighbours and u = (h of N(i), 1), h_j being z_j or its substitute:
 *
 *   p_i = w_i . u                     e_i = z_i - p_i                     r_i = s_i e_i
 *   z'_i = p_i + clip(e_i, +-clip c_i)                                    so that a fault is learned only slowly
 *   G_i = f G_i + u u^T,  b_i = f b_i + u z'_i,  W_i = f W_i + 1
 *   w_i = (G_i + rho W_i D)^-1 (b_i + rho W_i d),  rho = 0.01, D = diag(1..1, 1e-3), d = (1/q..1/q, 0), every `refit` rows
 *   c_i: mean of |e_i|, each limited to 5 c_i, over the first HK_RESIDUAL_SETTLE of them and then with weight 1 - f
 *
 * A node does not learn a row in which a neighbour is off by more than 4 clip c_j; otherwise one spike would be in its sums for a
 * thousand rows. A neighbour is ripe, and counts in w, after HK_RESIDUAL_SETTLE learned rows with a value of it; there is no
 * residual before two are ripe. The substitute of a neighbour without a value is its own prediction, made with the substitutes of
 * its neighbours from the row before; without a prediction it is its h of the row before. If neighbours with more than half of
 * |w| have no value, there is no residual, and nothing is learned. If a pivot of the ridge regression is below 2^-18 of its
 * diagonal, w is kept and `refused` counted.
 *
 * Blame. A faulty sensor leaks into the residuals of the nodes whose neighbour it is, by -w_ij times its own. The deviation of a
 * node is the larger of two: |fast - slow|, of a fast and a slow mean of e (a step), and loud - c, the fast mean of |e| less c
 * (other movements); each e is limited to 1000 c, in the slow mean to 5 c. A neighbour is to blame if it deviates more than the
 * node, each in its own c, and |w| times its deviation is more than a third of the node's; of several, the one that deviates
 * most. The five lowest bits of r's mantissa are 1 + k of the neighbour to blame, or 0 (hk_residual_blamed). They are 1e-14 of
 * the value, below the resolution of the detectors' float32, and stay with the value, so an alert caused by the value has them,
 * however the work was divided.
 *
 * Arithmetic, the same on every backend to the last bit: double are x - m, its division by s, m and s, the sums G, b and W
 * (products of two floats, exact in double, and f), the refit and s e; all else is float. So r differs from a computation in
 * double by less than 1e-5 s; with sums in float it would be 1e-4, because neighbours are so similar. Each operation is rounded
 * separately: no fma (-ffp-contract=off, --fmad=false), but where it gives the same bits (the GPU adds to G and b by fma, as the
 * products are exact). Sums run over k from 0, sequentially, with the constant last. Divisions
 * and square roots are IEEE's. NaN is tested by x != x.
 *
 * Cannot fail. Thread: the current owner of the field. */
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
#define HK_RESIDUAL_LANES 32u       /* room is a multiple of it */
#define HK_RESIDUAL_RIDGE 0.01
#define HK_RESIDUAL_RIDGE_LEVEL 1e-5 /* the ridge of the constant */
#define HK_RESIDUAL_PIVOT 3.814697265625e-06
#define HK_RESIDUAL_FAR 1e9f   /* maximum of |z| */
#define HK_RESIDUAL_STILL 1e-9 /* a spread below this share of the mean counts as zero: a constant value */

struct hk_residual_rule {
  uint32_t neighbours; /* q: maximum neighbours of a node; 2..HK_RESIDUAL_NEIGHBOURS_MAX */
  uint32_t refit;      /* rows; at least 1 */
  double forget;       /* f */
  float clip;          /* in c */
  float fast, slow;    /* weights of a new error in the two means, except for the first errors */
};

/* What other nodes read of a neighbour to predict. */
struct hk_residual_seen {
  float h;           /* z or its substitute; 0: none */
  uint32_t deviates; /* hk_residual_there, _out and far: a bit, and the first bits of two floats that are not negative */
};
#define HK_RESIDUAL_OUT_BITS 0x7ff80000u /* 4 bits of its mantissa */
#define HK_RESIDUAL_FAR_BITS 12u         /* by which far, the deviation in c, is shifted: 11 bits of its mantissa are left */

/* What other nodes read of a neighbour to learn, and the node itself. */
struct hk_residual_lesson {
  float h;        /* as above */
  uint32_t guess; /* p, but for its last two bits; NaN: none, or nothing may be said of it; and the bits of HK_RESIDUAL_KIND */
};
#define HK_RESIDUAL_THERE 1u /* h is z */
#define HK_RESIDUAL_WILD 2u  /* off by more than 4 clip c */
#define HK_RESIDUAL_KIND (HK_RESIDUAL_THERE | HK_RESIDUAL_WILD)

/* Columns of the current row: one number for each node. */
struct hk_residual_now {
  float *z;
  struct hk_residual_seen *seen;
  struct hk_residual_lesson *lesson;
};

/* Columns of a field, in host or device memory. q = rule.neighbours. In a new field all are zero except neighbour, z, last. */
struct hk_residual {
  struct hk_residual_rule rule;
  uint32_t room;       /* capacity of the columns, in nodes */
  uint64_t rows;       /* rows processed */
  uint32_t out;        /* nodes of the last row whose |e| is beyond clip c */
  bool shows;          /* z of a row is looked at behind it, wherever it is processed */
  uint32_t *neighbour; /* q; HK_RESIDUAL_NONE */
  float *weight;       /* q + 1: w; 0 for neighbours that are not ripe */
  double *product;     /* (q + 1)(q + 2)/2: G, a and b <= a at a(a + 1)/2 + b */
  double *target;      /* q + 1: b */
  double *total;       /* W */
  double *mean;        /* m; until settled the mean of the values so far */
  double *spread;      /* s; until settled the sum of the squared differences from the mean */
  float *error;        /* c */
  float *fast, *slow;  /* means of e */
  float *loud;         /* fast mean of |e| */
  float *last;         /* h of the row before; NaN: none */
  uint32_t *settled;   /* number of values, up to HK_RESIDUAL_SETTLE: then z exists */
  uint32_t *learned;   /* rows learned; w is fitted from HK_RESIDUAL_SETTLE on */
  uint32_t *errors;    /* number of e */
  uint32_t *refused;   /* refused refits */
  uint32_t *made;      /* 1: w exists */
  uint32_t *ripe;      /* q: rows learned with a value of the neighbour, up to HK_RESIDUAL_SETTLE */
  struct hk_residual_now now;
};

/* Index of number k of node i in a column with `numbers` numbers for each node. */
HK_INLINE size_t hk_residual_at(uint32_t numbers, uint32_t k, uint32_t i)
{
  return ((size_t)(i / HK_RESIDUAL_LANES) * numbers + k) * HK_RESIDUAL_LANES + i % HK_RESIDUAL_LANES;
}

/* Where a and b <= a of a packed triangle lie. */
HK_INLINE uint32_t hk_residual_packed(uint32_t a, uint32_t b)
{
  return a * (a + 1) / 2 + b;
}

/* Numbers of G. */
HK_INLINE uint32_t hk_residual_products(const struct hk_residual_rule *r)
{
  return hk_residual_packed(r->neighbours + 1, 0);
}

HK_INLINE float hk_residual_within(float x, float limit)
{
  return x > limit ? limit : x < -limit ? -limit : x;
}

/* Pass 1. */
HK_INLINE void hk_residual_standardise(const struct hk_residual *f, const double *x, uint32_t i)
{
  const double value = x[i];
  f->now.z[i] = NAN;
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
  f->now.z[i] = hk_residual_within((float)((value - f->mean[i]) / f->spread[i]), HK_RESIDUAL_FAR);
}

/* The substitute for a node without a value. */
HK_INLINE float hk_residual_stand_in(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float sum = 0;
  if (!f->made[i])
    return f->last[i];
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
    if (j == HK_RESIDUAL_NONE)
      continue;
    const float h = f->now.z[j] == f->now.z[j] ? f->now.z[j] : f->last[j];
    sum += f->weight[hk_residual_at(f->rule.neighbours + 1, k, i)] * (h == h ? h : 0);
  }
  return sum + f->weight[hk_residual_at(f->rule.neighbours + 1, q, i)];
}

HK_INLINE uint32_t hk_residual_bits(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

HK_INLINE float hk_residual_of_bits(uint32_t bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Whether h is z. */
HK_INLINE bool hk_residual_there(const struct hk_residual_seen *seen)
{
  return seen->deviates >> 31;
}

/* The deviation, in z; 0 if not known yet. */
HK_INLINE float hk_residual_out(const struct hk_residual_seen *seen)
{
  return hk_residual_of_bits(seen->deviates & HK_RESIDUAL_OUT_BITS);
}

/* Pass 2. */
HK_INLINE void hk_residual_show(const struct hk_residual *f, uint32_t i)
{
  const float z = f->now.z[i], c = f->error[i], step = fabsf(f->fast[i] - f->slow[i]), more = f->loud[i] - c;
  const float h = z == z ? z : hk_residual_stand_in(f, i);
  struct hk_residual_seen seen = { h == h ? h : 0, (uint32_t)(z == z) << 31 };
  if (f->errors[i] >= HK_RESIDUAL_SETTLE && c > 0) {
    const float out = step > more ? step : more;
    seen.deviates |= (hk_residual_bits(out) & HK_RESIDUAL_OUT_BITS) | hk_residual_bits(out / c) >> HK_RESIDUAL_FAR_BITS;
  }
  f->now.seen[i] = seen;
}

/* Pass 3, in parts. The prediction from the neighbours, and the one to blame. */
struct hk_residual_view {
  float sum, all, missing; /* sums of w h, of |w|, and of |w| of the neighbours without a value */
  float least;             /* one to blame has more than that in |w| times its deviation */
  uint32_t most;           /* bits of the deviation of the one to blame, in its c, at first the node's own; then 31 less 1 + k */
};

#define HK_RESIDUAL_BLAME_BITS 31u

/* far of a record, as a whole number that orders as it does, above the bits of the one to blame. */
HK_INLINE uint32_t hk_residual_far(const struct hk_residual_seen *seen, uint32_t blamed)
{
  return seen->deviates * (2u << HK_RESIDUAL_FAR_BITS) + (HK_RESIDUAL_BLAME_BITS - blamed);
}

HK_INLINE struct hk_residual_view hk_residual_begin(const struct hk_residual_seen *own)
{
  const float out = hk_residual_out(own);
  const struct hk_residual_view v = { 0, 0, 0, out > 0 ? out * (1.0f / 3) : INFINITY, hk_residual_far(own, 0) };
  return v;
}

/* Adds neighbour k, with weight w and record `from`, to a view. One with w = 0 changes nothing. */
HK_INLINE void hk_residual_look(struct hk_residual_view *v, const struct hk_residual_seen *from, float w, uint32_t k)
{
  const uint32_t far = hk_residual_far(from, 1 + k);
  v->sum += w * from->h;
  v->all += fabsf(w);
  if (!hk_residual_there(from))
    v->missing += fabsf(w);
  if (fabsf(w) * hk_residual_out(from) > v->least && far > v->most)
    v->most = far;
}

/* Returns the one to blame: 1 + k, or 0. */
HK_INLINE uint32_t hk_residual_most_blamed(const struct hk_residual_view *v)
{
  return HK_RESIDUAL_BLAME_BITS - (v->most & HK_RESIDUAL_BLAME_BITS);
}

/* Puts the neighbour to blame into the lowest bits of a residual. */
HK_INLINE double hk_residual_tag(double r, uint32_t blamed)
{
  uint64_t bits;
  memcpy(&bits, &r, sizeof bits);
  bits = (bits & ~(uint64_t)HK_RESIDUAL_BLAME_BITS) | blamed;
  memcpy(&r, &bits, sizeof r);
  return r;
}

/* Returns the one to blame: 1 + k of the node's neighbours, or 0. */
HK_INLINE uint32_t hk_residual_blamed(double r)
{
  uint64_t bits;
  memcpy(&bits, &r, sizeof bits);
  return (uint32_t)(bits & HK_RESIDUAL_BLAME_BITS);
}

/* c before the row, the unit of all bounds; 0: not known yet. */
HK_INLINE float hk_residual_bound(uint32_t errors, float error)
{
  return errors < HK_RESIDUAL_SETTLE ? 0 : error;
}

/* Result of a row for a node. */
struct hk_residual_verdict {
  double r;
  struct hk_residual_lesson lesson;
};

HK_INLINE struct hk_residual_lesson hk_residual_teach(const struct hk_residual_seen *own, float guess, bool wild)
{
  const uint32_t kind = (hk_residual_there(own) ? HK_RESIDUAL_THERE : 0) | (wild ? HK_RESIDUAL_WILD : 0);
  const struct hk_residual_lesson lesson = { own->h, (hk_residual_bits(guess) & ~HK_RESIDUAL_KIND) | kind };
  return lesson;
}

/* The verdict on a node without z or without w. */
HK_INLINE struct hk_residual_verdict hk_residual_silence(const struct hk_residual_seen *own)
{
  const struct hk_residual_verdict none = { (double)NAN, hk_residual_teach(own, NAN, false) };
  return none;
}

/* The verdict on a node with z (own->h), from a view of its neighbours, its weight of the constant, spread and bound. */
HK_INLINE struct hk_residual_verdict hk_residual_judge(const struct hk_residual *f, const struct hk_residual_seen *own,
                                                       const struct hk_residual_view *v, float level, double spread, float bound)
{
  struct hk_residual_verdict out = hk_residual_silence(own);
  if (2 * v->missing > v->all)
    return out;
  const float guess = v->sum + level, off = own->h - guess;
  out.r = hk_residual_tag(spread * (double)off, hk_residual_most_blamed(v));
  out.lesson = hk_residual_teach(own, guess, bound > 0 && fabsf(off) > 4 * f->rule.clip * bound);
  return out;
}

/* Pass 3. Returns r. */
HK_INLINE double hk_residual_predict(const struct hk_residual *f, uint32_t i)
{
  const struct hk_residual_seen own = f->now.seen[i];
  struct hk_residual_verdict out = hk_residual_silence(&own);
  if (f->made[i] && hk_residual_there(&own)) {
    struct hk_residual_view v = hk_residual_begin(&own);
    for (uint32_t k = 0; k < f->rule.neighbours; k++) {
      const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
      if (j != HK_RESIDUAL_NONE)
        hk_residual_look(&v, &f->now.seen[j], f->weight[hk_residual_at(f->rule.neighbours + 1, k, i)], k);
    }
    out = hk_residual_judge(f, &own, &v, f->weight[hk_residual_at(f->rule.neighbours + 1, f->rule.neighbours, i)], f->spread[i],
                            hk_residual_bound(f->errors[i], f->error[i]));
  }
  f->now.lesson[i] = out.lesson;
  return out.r;
}

/* --- residual.c: the same on the host ------------------------------------------------------------------------------- */

/* A column of struct hk_residual: offset of its pointer, bytes of a number, and numbers for each node. */
struct hk_residual_column {
  size_t at, bytes, numbers;
};
#define HK_RESIDUAL_STATE 18u /* the first columns, which are state; the others belong to a row */
#define HK_RESIDUAL_COLUMNS (HK_RESIDUAL_STATE + 3u)

/* hk_residual_columns: describes all columns. get, set: the memory of one. */
void hk_residual_columns(const struct hk_residual_rule *rule, struct hk_residual_column out[HK_RESIDUAL_COLUMNS]);
void *hk_residual_get(const struct hk_residual *field, const struct hk_residual_column *column);
void hk_residual_set(struct hk_residual *field, const struct hk_residual_column *column, void *memory);

/* Makes a new field with columns for `room` nodes, on the host. Returns 0 or -ENOMEM. hk_residual_close frees the columns. */
int hk_residual_open(struct hk_residual *field, const struct hk_residual_rule *rule, uint32_t room);
void hk_residual_close(struct hk_residual *field);
/* Bytes of the columns. */
uint64_t hk_residual_need(const struct hk_residual_rule *rule, uint32_t room);
/* Enlarges the columns to `room` nodes and keeps their contents. Returns 0 or -ENOMEM. */
int hk_residual_grow(struct hk_residual *field, uint32_t room);
/* Processes a row: reads x and writes r, of `room` values each. */
void hk_residual_row(struct hk_residual *field, const double *x, double *r);
/* Makes j, or HK_RESIDUAL_NONE, neighbour k of node i; what was learned with the former one is dropped, and w fitted again. No
 * effect if it is neighbour k already. */
void hk_residual_bind(struct hk_residual *field, uint32_t i, uint32_t k, uint32_t j);
/* Resets node i for another sensor: nothing is known of it, and it has no neighbours. To remove it as neighbour of others use
 * hk_residual_bind. */
void hk_residual_forget(struct hk_residual *field, uint32_t i);

/* Writes all state columns as bytes to memory aligned to 8: the first n nodes, in the order of struct hk_residual, n times its
 * numbers of each column, padded to 8 bytes only at the column's end. hk_residual_state_size: number of bytes, a multiple of
 * 8. */
size_t hk_residual_state_size(const struct hk_residual_rule *rule, uint32_t n);
void hk_residual_write(const struct hk_residual *field, uint32_t n, void *state);
/* Reads the state into a new field with room for n nodes. False: it contains numbers that no field can have. */
bool hk_residual_read(struct hk_residual *field, uint32_t n, const void *state);

#endif
