/* The oracle of the conformance test: see oracle.h. */
#define HK_REAL double
#define HK_REAL_BITS uint64_t
#include "tests/backend/oracle.h"
#include "cpu/rules/window.h"
#include "cpu/sst/reference.h"

#include <stdio.h>
#include <stdlib.h>

static double least(double a, double b)
{
  return a < b ? a : b;
}

static double exact_gap(struct hk_reference *r, const struct hk_detector *d, const double *before, const double *present)
{
  double values[HK_WINDOW_MAX], gap = 1;
  int status = 0;
  if (present) {
    status = hk_reference_singular_values(r, present, d->window, values);
    gap = (values[0] - values[1]) / values[0];
  }
  if (present && before && status == 0) {
    status = hk_reference_singular_values(r, before, d->window, values);
    gap = least(gap, (values[d->rank - 1] - values[d->rank]) / values[0]);
  }
  if (status != 0) {
    fprintf(stderr, "oracle: LAPACK failed\n");
    exit(1);
  }
  return gap;
}

static void score(struct hk_reference *r, const struct hk_detector *d, const struct hk_window *window, const double *ring,
                  const double *a0, double *feedback, struct oracle_point *out)
{
  double x[HK_SPAN_MAX], past[2 * HK_WINDOW_MAX - 1];
  hk_window_copy(window, ring, hk_detector_span(d), x);
  const struct hk_span_kind kind = hk_span_prepare(window, d, x, past);
  const double *present = kind.present_zero ? NULL : x + d->gap, *before = kind.past_zero ? NULL : past;
  struct hk_reference_score result;
  if (hk_reference_score(r, d, before, present, a0, feedback, &result) != 0) {
    fprintf(stderr, "oracle: LAPACK failed\n");
    exit(1);
  }
  out->z = result.z;
  out->share = result.share;
  out->ritz_gap = least(result.present_gap, result.past_gap);
  /* Most of the time would go into singular values that are not needed: svd itself chose between them, and if ika's Ritz
   * values are far apart, the score is determined. */
  const bool told = d->algorithm == HK_ALGORITHM_SVD || (d->reorthogonalise && out->ritz_gap > ORACLE_OPEN_GAP);
  out->exact_gap = told ? out->ritz_gap : exact_gap(r, d, before, present);
}

void oracle_run(const struct hk_detector *d, uint64_t seed, const struct series *s, struct oracle_point *out)
{
  struct hk_window window = { .seed = seed };
  double *ring = calloc(hk_detector_span(d), sizeof *ring), *a0 = calloc(2 * d->window, sizeof *a0), *feedback = a0 + d->window;
  struct hk_reference *r;
  if (!ring || !a0 || hk_reference_new(&r, d->window) < 0) {
    perror("oracle");
    exit(1);
  }
  hk_reference_random(a0, seed, d->window);
  memcpy(feedback, a0, d->window * sizeof *a0);
  for (uint32_t i = 0; i < s->n; i++) {
    const struct hk_step step = hk_window_take(&window, ring, d, s->time[i], s->value[i], 0, false);
    out[i] = (struct oracle_point){ .state = step.state, .z = (double)NAN };
    if (step.restarted)
      memcpy(feedback, a0, d->window * sizeof *a0);
    if (step.score)
      score(r, d, &window, ring, a0, feedback, &out[i]);
  }
  hk_reference_free(r);
  free(ring);
  free(a0);
}
