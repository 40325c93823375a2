/* Correlations of many sensors: see correlate.h. */
#include "cpu/field/correlate.h"

#include "cpu/field/residual.h"

#include <errno.h>
#include <stdlib.h>

/* Writes the z of a member in the kept rows, less their mean and scaled to length 1; 0 if there is none. False: there are too
 * few, or they are constant. */
static bool normalise(const struct hk_correlate_task *t, uint32_t i, float *out)
{
  double sum = 0, square = 0;
  uint32_t n = 0;
  memset(out, 0, HK_FIELD_RESIDENT * sizeof *out);
  for (uint32_t row = 0; row < t->kept; row++) {
    const float z = t->ring[(size_t)row * t->room + i];
    sum += isnan(z) ? 0 : (double)z;
    n += !isnan(z);
  }
  if (n < HK_CORRELATE_LEAST)
    return false;
  const double mean = sum / n;
  for (uint32_t row = 0; row < t->kept; row++) {
    const float z = t->ring[(size_t)row * t->room + i];
    square += isnan(z) ? 0 : ((double)z - mean) * ((double)z - mean);
  }
  for (uint32_t row = 0; row < t->kept && square > 0; row++) {
    const float z = t->ring[(size_t)row * t->room + i];
    out[row] = isnan(z) ? 0 : (float)(((double)z - mean) / sqrt(square));
  }
  return square > 0;
}

static float product(const float *a, const float *b)
{
  float part[HK_CORRELATE_LANES] = { 0 }, sum = 0;
  for (uint32_t row = 0; row < HK_FIELD_RESIDENT; row += HK_CORRELATE_LANES)
    for (uint32_t k = 0; k < HK_CORRELATE_LANES; k++)
      part[k] += a[row + k] * b[row + k];
  for (uint32_t k = 0; k < HK_CORRELATE_LANES; k++)
    sum += part[k];
  return sum;
}

/* Finds the q members with the greatest positive correlations, the greatest first; of equal ones the lower number. Returns their
 * number. */
static uint32_t choose_nearest(const struct hk_correlate_task *t, uint32_t i, const float *all, const bool *fit, uint32_t out[])
{
  float best[HK_RESIDUAL_NEIGHBOURS_MAX];
  uint32_t n = 0;
  for (uint32_t j = 0; j < t->n; j++) {
    const float r = j == i || !fit[j] ? 0 : product(all + (size_t)i * HK_FIELD_RESIDENT, all + (size_t)j * HK_FIELD_RESIDENT);
    if (!(r > 0) || (n == t->q && !(r > best[n - 1])))
      continue;
    uint32_t at = n < t->q ? n++ : n - 1;
    for (; at > 0 && r > best[at - 1]; at--) {
      best[at] = best[at - 1];
      out[at] = out[at - 1];
    }
    best[at] = r;
    out[at] = j;
  }
  return n;
}

int hk_correlate(const struct hk_correlate_task *t)
{
  float *all = malloc((size_t)t->n * HK_FIELD_RESIDENT * sizeof *all);
  bool *fit = calloc(t->n, sizeof *fit);
  const int status = all && fit ? 0 : -ENOMEM;
  for (uint32_t i = 0; status == 0 && i < t->n; i++)
    fit[i] = normalise(t, i, all + (size_t)i * HK_FIELD_RESIDENT);
  for (uint32_t d = 0; status == 0 && d < t->n_due; d++) {
    uint32_t *found = t->found + (size_t)d * t->q;
    for (uint32_t k = fit[t->due[d]] ? choose_nearest(t, t->due[d], all, fit, found) : 0; k < t->q; k++)
      found[k] = HK_RESIDUAL_NONE;
  }
  free(all);
  free(fit);
  return status;
}
