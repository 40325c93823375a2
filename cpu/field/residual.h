/* The graph residual: what each sensor of a field reads, less what its neighbours say that it should.
 *
 * Written once, for host and device: inline functions of one node, as kernels and the loops of the host call them. A field is
 * columns of `room` nodes (a multiple of HK_RESIDUAL_LANES): all numbers of a column of 32 nodes lie together, number k of these
 * nodes side by side (hk_residual_at), so that what a node needs lies in one place, for caches and pages, and neighbouring
 * threads read neighbouring numbers. A node that is no member has no neighbour and no value, and costs a look.
 *
 * What is done with a closed row: its values x (double, NaN: none), by node, become residuals r (double, NaN: none), by node, in
 * four passes. Within a pass nodes are independent of each other and may be taken in any order, by any number of threads; a pass
 * begins when the one before is whole, for it reads what that one wrote of other nodes. Rows are taken in order, one by one.
 *
 *   1 hk_residual_standardise  reads  x                            writes z, settled, mean, spread
 *   2 hk_residual_show         reads  z, last of neighbours        writes seen
 *   3 hk_residual_predict      reads  seen of neighbours           writes guess, off, lesson, and r
 *   4 hk_residual_learn        reads  lesson of neighbours         writes product, target, total, error, fast, slow, loud, last
 *
 * What is read of neighbours lies in two small records of theirs, 16 and 8 bytes, so that each costs one access to memory.
 * Behind pass 4 of each rule.refit'th row (hk_residual.rows counts them) comes hk_residual_refit for every node, which reads and
 * writes that node alone.
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
 * |e| less c (it moves otherwise); each e is taken as 1000 c at most, in the slow mean as 5 c. A neighbour is to blame if it is
 * farther out than the node, each in its own c, and |w| times that is at least a third of what the node is; of several, the one
 * that is farthest out. The five lowest bits of r's mantissa say who is: 1 + k of the neighbour, or 0 (hk_residual_blamed). They
 * are 1e-14 of the value, below what the detectors' float32 can tell, and go wherever the value goes, so an alert that comes of
 * the value knows, however the work was cut.
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

/* What a node shows those whose neighbour it is, for what they predict. */
struct hk_residual_seen {
  float h;        /* z, or what stands for it; NaN: nothing does */
  float out;      /* how far it is out of its ways, in z; 0 where that is not known yet */
  float far;      /* the same in its own c */
  uint32_t there; /* 1: h is z */
};

/* And for what they learn. */
struct hk_residual_lesson {
  float h;       /* as above; 0: nothing */
  uint32_t kind; /* HK_RESIDUAL_THERE, HK_RESIDUAL_WILD or both */
};
#define HK_RESIDUAL_THERE 1u
#define HK_RESIDUAL_WILD 2u /* off by more than 4 clip c */

/* Columns of the row that is being taken: one number a node. */
struct hk_residual_now {
  float *z, *guess, *off; /* off: e; NaN: none */
  struct hk_residual_seen *seen;
  struct hk_residual_lesson *lesson;
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
  struct hk_residual_now now;
};

/* Where number k of node i stands in a column with so many numbers a node. */
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

/* What stands for a node that has no value. */
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

/* Pass 2. */
HK_INLINE void hk_residual_show(const struct hk_residual *f, uint32_t i)
{
  const float z = f->now.z[i], c = f->error[i], step = fabsf(f->fast[i] - f->slow[i]), more = f->loud[i] - c;
  struct hk_residual_seen seen = { z == z ? z : hk_residual_stand_in(f, i), 0, 0, z == z };
  if (f->errors[i] >= HK_RESIDUAL_SETTLE && c > 0) {
    seen.out = step > more ? step : more;
    seen.far = seen.out / c;
  }
  f->now.seen[i] = seen;
}

/* Pass 3, in parts. What the neighbours let expect, and who of them is to blame. */
struct hk_residual_view {
  float sum, all, missing; /* of w h, of |w|, and of |w| of those without a value */
  float most;              /* how far the one to blame is out, in its c; at first the node itself */
  uint32_t blamed;         /* 1 + k of whose it is; 0: nobody's */
};

HK_INLINE struct hk_residual_view hk_residual_begin(const struct hk_residual_seen *own)
{
  const struct hk_residual_view v = { 0, 0, 0, own->far, 0 };
  return v;
}

/* Takes neighbour k, with weight w and seen as `from`, into the view of the node that is seen as `own`. */
HK_INLINE void hk_residual_look(struct hk_residual_view *v, const struct hk_residual_seen *own,
                                const struct hk_residual_seen *from, float w, uint32_t k)
{
  v->sum += w * (from->h == from->h ? from->h : 0);
  v->all += fabsf(w);
  v->missing += from->there ? 0 : fabsf(w);
  if (own->out > 0 && from->out > 0 && fabsf(w) * from->out * 3 >= own->out && from->far > v->most) {
    v->most = from->far;
    v->blamed = 1 + k;
  }
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

/* c before the row, of which all bounds are multiples; 0: not known yet. */
HK_INLINE float hk_residual_bound(uint32_t errors, float error)
{
  return errors < HK_RESIDUAL_SETTLE ? 0 : error;
}

/* What the row is to a node. */
struct hk_residual_verdict {
  double r;
  float guess, off;
  struct hk_residual_lesson lesson;
};

/* Of a node without a z, or with nothing learned. */
HK_INLINE struct hk_residual_verdict hk_residual_silence(const struct hk_residual_seen *own)
{
  const struct hk_residual_verdict none = {
    (double)NAN, NAN, NAN, { own->h == own->h ? own->h : 0, own->there ? HK_RESIDUAL_THERE : 0 }
  };
  return none;
}

/* Of a node with a z, which is own->h, a view of its neighbours, its weight of the constant, spread and bound. */
HK_INLINE struct hk_residual_verdict hk_residual_judge(const struct hk_residual *f, const struct hk_residual_seen *own,
                                                       const struct hk_residual_view *v, float level, double spread, float bound)
{
  struct hk_residual_verdict out = hk_residual_silence(own);
  out.guess = v->sum + level;
  if (2 * v->missing > v->all)
    return out;
  out.off = own->h - out.guess;
  out.r = hk_residual_tag(spread * (double)out.off, v->blamed);
  if (bound > 0 && fabsf(out.off) > 4 * f->rule.clip * bound)
    out.lesson.kind |= HK_RESIDUAL_WILD;
  return out;
}

/* Pass 3. Returns r. */
HK_INLINE double hk_residual_predict(const struct hk_residual *f, uint32_t i)
{
  const struct hk_residual_seen own = f->now.seen[i];
  struct hk_residual_verdict out = hk_residual_silence(&own);
  if (f->made[i] && own.there) {
    struct hk_residual_view v = hk_residual_begin(&own);
    for (uint32_t k = 0; k < f->rule.neighbours; k++) {
      const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
      if (j != HK_RESIDUAL_NONE)
        hk_residual_look(&v, &own, &f->now.seen[j], f->weight[hk_residual_at(f->rule.neighbours + 1, k, i)], k);
    }
    out = hk_residual_judge(f, &own, &v, f->weight[hk_residual_at(f->rule.neighbours + 1, f->rule.neighbours, i)], f->spread[i],
                            hk_residual_bound(f->errors[i], f->error[i]));
  }
  f->now.guess[i] = out.guess;
  f->now.off[i] = out.off;
  f->now.lesson[i] = out.lesson;
  return out.r;
}

/* Takes the error of a node into its means. */
HK_INLINE void hk_residual_mean_error(const struct hk_residual *f, uint32_t i)
{
  const float c = hk_residual_bound(f->errors[i], f->error[i]);
  const float e = c > 0 ? hk_residual_within(f->now.off[i], 5 * c) : f->now.off[i];
  const float n = (float)(f->errors[i] += f->errors[i] < UINT32_MAX), slowly = (float)(1 - f->rule.forget), first = 1 / n;
  const bool new_one = n <= HK_RESIDUAL_SETTLE;
  f->error[i] += (fabsf(e) - f->error[i]) * (new_one || first > slowly ? first : slowly);
  const float far = c > 0 ? hk_residual_within(f->now.off[i], 1000 * c) : f->now.off[i];
  f->loud[i] += (fabsf(far) - f->loud[i]) * (first > f->rule.fast ? first : f->rule.fast);
  f->fast[i] += (far - f->fast[i]) * (first > f->rule.fast ? first : f->rule.fast);
  f->slow[i] += (e - f->slow[i]) * (first > f->rule.slow ? first : f->rule.slow);
}

/* A sum of a node with one more row in it: of G with u_a and u_b, of b with u_a and the node's z. */
HK_INLINE double hk_residual_sum(const struct hk_residual *f, double sum, float a, float b)
{
  return f->rule.forget * sum + (double)a * (double)b;
}

HK_INLINE void hk_residual_count_row(const struct hk_residual *f, uint32_t i)
{
  f->total[i] = f->rule.forget * f->total[i] + 1;
  f->learned[i] += f->learned[i] < UINT32_MAX;
}

/* Adds a row to all sums of a node: u of its neighbours and 1, z for itself. */
HK_INLINE void hk_residual_add(const struct hk_residual *f, uint32_t i, const float *u, float z)
{
  for (uint32_t a = 0; a <= f->rule.neighbours; a++) {
    double *t = &f->target[hk_residual_at(f->rule.neighbours + 1, a, i)];
    for (uint32_t b = 0; b <= a; b++) {
      double *g = &f->product[hk_residual_at(hk_residual_products(&f->rule), hk_residual_packed(a, b), i)];
      *g = hk_residual_sum(f, *g, u[a], u[b]);
    }
    *t = hk_residual_sum(f, *t, u[a], z);
  }
  hk_residual_count_row(f, i);
}

/* Pass 4, in parts. The value that a node with a z learns, with its error taken into the means. False: none, because one of its
 * neighbours was wild, or it had no error although it is made. */
HK_INLINE bool hk_residual_lesson_of(const struct hk_residual *f, uint32_t i, bool wild, float *z)
{
  *z = f->now.z[i];
  if (f->now.off[i] != f->now.off[i])
    return !wild && !f->made[i];
  const float c = hk_residual_bound(f->errors[i], f->error[i]);
  *z = c > 0 ? f->now.guess[i] + hk_residual_within(f->now.off[i], f->rule.clip * c) : *z;
  hk_residual_mean_error(f, i);
  return !wild;
}

/* Counts the rows with a value of a neighbour; there: a bit a neighbour. */
HK_INLINE void hk_residual_ripen(const struct hk_residual *f, uint32_t i, uint32_t there)
{
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    if ((there >> k & 1) && f->ripe[hk_residual_at(f->rule.neighbours, k, i)] < HK_RESIDUAL_SETTLE)
      f->ripe[hk_residual_at(f->rule.neighbours, k, i)]++;
}

/* Pass 4. */
HK_INLINE void hk_residual_learn(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float u[HK_RESIDUAL_NEIGHBOURS_MAX + 1], z;
  uint32_t there = 0;
  bool wild = false;
  f->last[i] = f->now.seen[i].h;
  if (f->now.z[i] != f->now.z[i])
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
    struct hk_residual_lesson from = { 0, 0 };
    if (j != HK_RESIDUAL_NONE)
      from = f->now.lesson[j];
    u[k] = from.h;
    there |= (from.kind & HK_RESIDUAL_THERE) << k;
    wild |= (from.kind & HK_RESIDUAL_WILD) != 0;
  }
  u[q] = 1;
  if (!hk_residual_lesson_of(f, i, wild, &z))
    return;
  hk_residual_ripen(f, i, there);
  hk_residual_add(f, i, u, z);
}

/* --- residual.c: the same on the host ------------------------------------------------------------------------------- */

/* A column of struct hk_residual: where its pointer stands, bytes of a number, and numbers of a node. */
struct hk_residual_column {
  size_t at, bytes, numbers;
};
#define HK_RESIDUAL_STATE 18u /* the first ones, which are state; the others are of a row */
#define HK_RESIDUAL_COLUMNS (HK_RESIDUAL_STATE + 5u)

/* All of them, and the memory of one. */
void hk_residual_columns(const struct hk_residual_rule *rule, struct hk_residual_column out[HK_RESIDUAL_COLUMNS]);
void *hk_residual_get(const struct hk_residual *field, const struct hk_residual_column *column);
void hk_residual_set(struct hk_residual *field, const struct hk_residual_column *column, void *memory);

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
