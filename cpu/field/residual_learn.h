/* What a node learns of a row: the fourth pass of residual.h; for host and device, like that. */
#ifndef HK_RESIDUAL_LEARN_H
#define HK_RESIDUAL_LEARN_H

#include "cpu/field/residual.h"

/* The means of a node's errors, as its columns have them. */
struct hk_residual_means {
  float error, fast, slow, loud;
  uint32_t errors;
};

HK_INLINE struct hk_residual_means hk_residual_means_of(const struct hk_residual *f, uint32_t i)
{
  const struct hk_residual_means m = { f->error[i], f->fast[i], f->slow[i], f->loud[i], f->errors[i] };
  return m;
}

/* Adds error e to the means of node i, m before, and writes them. Returns whether it is beyond clip c. */
HK_INLINE bool hk_residual_mean_error(const struct hk_residual *f, uint32_t i, const struct hk_residual_means *m, float off)
{
  const float c = hk_residual_bound(m->errors, m->error);
  const float e = c > 0 ? hk_residual_within(off, 5 * c) : off;
  const uint32_t errors = m->errors + (m->errors < UINT32_MAX);
  const float n = (float)errors, slowly = (float)(1 - f->rule.forget), first = 1 / n;
  const bool new_one = n <= HK_RESIDUAL_SETTLE;
  const float error = m->error + (fabsf(e) - m->error) * (new_one || first > slowly ? first : slowly);
  const float far = c > 0 ? hk_residual_within(off, 1000 * c) : off;
  f->errors[i] = errors;
  f->error[i] = error;
  f->loud[i] = m->loud + (fabsf(far) - m->loud) * (first > f->rule.fast ? first : f->rule.fast);
  f->fast[i] = m->fast + (far - m->fast) * (first > f->rule.fast ? first : f->rule.fast);
  f->slow[i] = m->slow + (e - m->slow) * (first > f->rule.slow ? first : f->rule.slow);
  return !new_one && error > 0 && fabsf(off) > f->rule.clip * error;
}

/* Adds a row to a sum of a node: G with u_a and u_b, b with u_a and the node's z. */
HK_INLINE double hk_residual_sum(const struct hk_residual *f, double sum, float a, float b)
{
  return f->rule.forget * sum + (double)a * (double)b;
}

/* What counts the rows that a node has learned, as its columns have it. */
struct hk_residual_count {
  double total;
  uint32_t learned;
};

HK_INLINE struct hk_residual_count hk_residual_count_of(const struct hk_residual *f, uint32_t i)
{
  const struct hk_residual_count count = { f->total[i], f->learned[i] };
  return count;
}

HK_INLINE void hk_residual_count_row(const struct hk_residual *f, uint32_t i, const struct hk_residual_count *before)
{
  f->total[i] = f->rule.forget * before->total + 1;
  f->learned[i] = before->learned + (before->learned < UINT32_MAX);
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
  const struct hk_residual_count count = hk_residual_count_of(f, i);
  hk_residual_count_row(f, i, &count);
}

/* Pass 4, in parts. What a node with z does with a row. */
struct hk_residual_use {
  bool learns; /* not if one of its neighbours was wild, or it has no error although w exists */
  bool out;    /* its |e| is beyond clip c */
  float z;     /* the value that it learns */
};

/* Determines that from its own lesson, and adds the node's error to the means, m before. */
HK_INLINE struct hk_residual_use hk_residual_use_of(const struct hk_residual *f, uint32_t i, const struct hk_residual_means *m,
                                                    const struct hk_residual_lesson *own, bool wild)
{
  const float z = own->h, guess = hk_residual_of_bits(own->guess & ~HK_RESIDUAL_KIND), off = z - guess;
  struct hk_residual_use use = { !wild, false, z };
  if (off != off) {
    use.learns = !wild && !f->made[i];
    return use;
  }
  const float c = hk_residual_bound(m->errors, m->error);
  use.z = c > 0 ? guess + hk_residual_within(off, f->rule.clip * c) : z;
  use.out = hk_residual_mean_error(f, i, m, off);
  return use;
}

/* Counts the rows with a value of each neighbour; there: one bit for each neighbour. */
HK_INLINE void hk_residual_ripen(const struct hk_residual *f, uint32_t i, uint32_t there)
{
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    if ((there >> k & 1) && f->ripe[hk_residual_at(f->rule.neighbours, k, i)] < HK_RESIDUAL_SETTLE)
      f->ripe[hk_residual_at(f->rule.neighbours, k, i)]++;
}

/* Pass 4. Returns whether the node's |e| is beyond clip c. */
HK_INLINE bool hk_residual_learn(const struct hk_residual *f, uint32_t i)
{
  const uint32_t q = f->rule.neighbours;
  float u[HK_RESIDUAL_NEIGHBOURS_MAX + 1];
  uint32_t there = 0;
  bool wild = false;
  const struct hk_residual_lesson own = f->now.lesson[i];
  if ((own.guess & HK_RESIDUAL_THERE) || f->made[i])
    f->last[i] = own.h;
  if (!(own.guess & HK_RESIDUAL_THERE))
    return false;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
    struct hk_residual_lesson from = { 0, 0 };
    if (j != HK_RESIDUAL_NONE)
      from = f->now.lesson[j];
    u[k] = from.h;
    there |= (from.guess & HK_RESIDUAL_THERE) << k;
    wild |= (from.guess & HK_RESIDUAL_WILD) != 0;
  }
  u[q] = 1;
  const struct hk_residual_means means = hk_residual_means_of(f, i);
  const struct hk_residual_use use = hk_residual_use_of(f, i, &means, &own, wild);
  if (use.learns) {
    hk_residual_ripen(f, i, there);
    hk_residual_add(f, i, u, use.z);
  }
  return use.out;
}

#endif
