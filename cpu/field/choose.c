/* Chooses the neighbours of a field that finds them itself: those with the greatest correlation with a member. */
#include "cpu/field/choose.h"
#include "cpu/field/field_internal.h"
#include "cpu/field/residual_refit.h"

#include <stdlib.h>

#define LANES 16 /* partial sums, so that the order of a sum does not depend on the machine */
#define TIMES 3  /* number of times that a member chooses: when settled for so many rows: */
static const uint32_t times[TIMES] = { HK_RESIDUAL_SETTLE, 4 * HK_RESIDUAL_SETTLE, 16 * HK_RESIDUAL_SETTLE };
#define LEAST (HK_RESIDUAL_SETTLE / 2) /* minimum number of values for a correlation */

/* Counts the row for a member. Returns whether the member is due to choose. */
static bool is_due(const struct hk_field *f, uint32_t i)
{
  struct hk_field_member *m = &f->member[i];
  if (m->status != HK_FIELD_MEMBER || isnan(f->residual.now.z[i]) || m->seen > times[TIMES - 1])
    return false;
  m->seen++;
  for (uint32_t k = 0; k < TIMES; k++)
    if (m->seen == times[k])
      return true;
  return false;
}

/* Writes the z of a member in the kept rows, less their mean and scaled to length 1; 0 if there is none. False: there are too
 * few, or they are constant. */
static bool normalise(const struct hk_field *f, uint32_t i, float *out)
{
  double sum = 0, square = 0;
  uint32_t n = 0;
  memset(out, 0, HK_FIELD_RESIDENT * sizeof *out);
  for (uint32_t row = 0; row < f->kept; row++) {
    const float z = f->ring[(size_t)row * f->residual.room + i];
    sum += isnan(z) ? 0 : (double)z;
    n += !isnan(z);
  }
  if (n < LEAST)
    return false;
  const double mean = sum / n;
  for (uint32_t row = 0; row < f->kept; row++) {
    const float z = f->ring[(size_t)row * f->residual.room + i];
    square += isnan(z) ? 0 : ((double)z - mean) * ((double)z - mean);
  }
  for (uint32_t row = 0; row < f->kept && square > 0; row++) {
    const float z = f->ring[(size_t)row * f->residual.room + i];
    out[row] = isnan(z) ? 0 : (float)(((double)z - mean) / sqrt(square));
  }
  return square > 0;
}

static float product(const float *a, const float *b)
{
  float part[LANES] = { 0 }, sum = 0;
  for (uint32_t row = 0; row < HK_FIELD_RESIDENT; row += LANES)
    for (uint32_t k = 0; k < LANES; k++)
      part[k] += a[row + k] * b[row + k];
  for (uint32_t k = 0; k < LANES; k++)
    sum += part[k];
  return sum;
}

/* Finds the q members with the greatest positive correlations, the greatest first; of equal ones the lower number. Returns their
 * number. */
static uint32_t choose_nearest(const struct hk_field *f, uint32_t i, const float *all, const bool *fit, uint32_t out[])
{
  float best[HK_RESIDUAL_NEIGHBOURS_MAX];
  uint32_t n = 0;
  for (uint32_t j = 0; j < f->top; j++) {
    const float r = j == i || !fit[j] ? 0 : product(all + (size_t)i * HK_FIELD_RESIDENT, all + (size_t)j * HK_FIELD_RESIDENT);
    if (!(r > 0) || (n == f->rule.q && !(r > best[n - 1])))
      continue;
    uint32_t at = n < f->rule.q ? n++ : n - 1;
    for (; at > 0 && r > best[at - 1]; at--) {
      best[at] = best[at - 1];
      out[at] = out[at - 1];
    }
    best[at] = r;
    out[at] = j;
  }
  return n;
}

static bool has(const struct hk_field *f, uint32_t i, uint32_t j)
{
  for (uint32_t k = 0; k < f->rule.q; k++)
    if (f->residual.neighbour[hk_residual_at(f->rule.q, k, i)] == j)
      return true;
  return false;
}

/* Drops what a member has learned, and learns it anew from the kept rows. */
static void learn_again(struct hk_field *f, uint32_t i)
{
  struct hk_residual *r = &f->residual;
  float u[HK_RESIDUAL_NEIGHBOURS_MAX + 1];
  r->total[i] = 0;
  r->learned[i] = 0;
  for (uint32_t k = 0; k <= r->rule.neighbours; k++) {
    r->target[hk_residual_at(r->rule.neighbours + 1, k, i)] = 0;
    for (uint32_t b = 0; b <= k; b++)
      r->product[hk_residual_at(hk_residual_products(&r->rule), hk_residual_packed(k, b), i)] = 0;
  }
  for (uint32_t row = f->kept; row > 0; row--) {
    const float *z = f->ring + (size_t)((f->at + HK_FIELD_RESIDENT - row) % HK_FIELD_RESIDENT) * r->room;
    if (isnan(z[i]))
      continue;
    for (uint32_t k = 0; k < r->rule.neighbours; k++) {
      const uint32_t j = f->residual.neighbour[hk_residual_at(f->rule.q, k, i)];
      const bool there = j != HK_RESIDUAL_NONE && !isnan(z[j]);
      u[k] = there ? z[j] : 0;
      if (there && r->ripe[hk_residual_at(r->rule.neighbours, k, i)] < HK_RESIDUAL_SETTLE)
        r->ripe[hk_residual_at(r->rule.neighbours, k, i)]++;
    }
    u[r->rule.neighbours] = 1;
    hk_residual_add(r, i, u, z[i]);
  }
  hk_residual_refit(r, i);
}

static void choose(struct hk_field *f, uint32_t i, const float *all, const bool *fit)
{
  uint32_t found[HK_RESIDUAL_NEIGHBOURS_MAX];
  const uint32_t n = fit[i] ? choose_nearest(f, i, all, fit, found) : 0;
  bool same = true;
  for (uint32_t k = 0; k < n; k++)
    same = same && has(f, i, found[k]);
  if (n == 0 || same)
    return;
  for (uint32_t k = 0; k < f->rule.q; k++)
    hk_residual_bind(&f->residual, i, k, k < n ? found[k] : HK_RESIDUAL_NONE);
  learn_again(f, i);
}

void hk_field_choose(struct hk_field *f)
{
  bool *due = calloc(2 * (size_t)f->top, sizeof *due), any = false;
  if (!due)
    return;
  bool *fit = due + f->top;
  for (uint32_t i = 0; i < f->top; i++)
    any |= due[i] = is_due(f, i);
  if (any)
    hk_offload_change(f->offload, &f->residual);
  float *all = any ? malloc((size_t)f->top * HK_FIELD_RESIDENT * sizeof *all) : NULL;
  for (uint32_t i = 0; all && i < f->top; i++)
    fit[i] = normalise(f, i, all + (size_t)i * HK_FIELD_RESIDENT);
  for (uint32_t i = 0; all && i < f->top; i++)
    if (due[i])
      choose(f, i, all, fit);
  free(all);
  free(due);
}
