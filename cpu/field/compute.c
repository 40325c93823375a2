/* Computes rows of a field: see compute.h. */
#include "cpu/field/compute.h"

#include "cpu/field/arma.h"
#include "cpu/field/correlate.h"
#include "cpu/field/field_internal.h"
#include "cpu/field/hoelder.h"
#include "cpu/field/residual_learn.h"
#include "cpu/field/residual_refit.h"

#include <stdlib.h>

/* --- neighbours of fields that find them themselves ------------------------------------------------------------------- */

#define TIMES 3 /* number of times that a member chooses: when settled for so many rows: */
static const uint32_t times[TIMES] = { HK_RESIDUAL_SETTLE, 4 * HK_RESIDUAL_SETTLE, 16 * HK_RESIDUAL_SETTLE };
_Static_assert(HK_CORRELATE_LEAST == HK_RESIDUAL_SETTLE / 2, "whoever is settled for the first time has enough values");

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

static void compute_bind(struct hk_field *f, uint32_t i, const uint32_t *found)
{
  bool same = true;
  for (uint32_t k = 0; k < f->rule.q && found[k] != HK_RESIDUAL_NONE; k++)
    same = same && has(f, i, found[k]);
  if (same)
    return;
  for (uint32_t k = 0; k < f->rule.q; k++)
    hk_residual_bind(&f->residual, i, k, found[k]);
  learn_again(f, i);
}

/* After a row: members that are due choose their neighbours, on the device that has the field, if it can. If there is no memory
 * for that, they keep their neighbours and choose again the next time. */
static void compute_choose(struct hk_field *f)
{
  uint32_t *due = malloc(f->top * sizeof *due), n_due = 0;
  if (!due)
    return;
  for (uint32_t i = 0; i < f->top; i++)
    if (is_due(f, i))
      due[n_due++] = i;
  uint32_t *found = n_due > 0 ? malloc((size_t)n_due * f->rule.q * sizeof *found) : NULL;
  const struct hk_correlate_task task = { .ring = f->ring,
                                          .room = f->residual.room,
                                          .kept = f->kept,
                                          .n = f->top,
                                          .q = f->rule.q,
                                          .due = due,
                                          .n_due = n_due,
                                          .found = found };
  if (n_due > 0)
    hk_offload_change(f->offload);
  const bool chosen = found && (hk_offload_correlate(f->offload, &task) || hk_correlate(&task) == 0);
  for (uint32_t d = 0; chosen && d < n_due; d++)
    compute_bind(f, due[d], found + (size_t)d * f->rule.q);
  free(found);
  free(due);
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

/* Keeps z of the last row. */
static void compute_keep(struct hk_field *f)
{
  memcpy(f->ring + (size_t)f->at * f->residual.room, f->residual.now.z, f->residual.room * sizeof *f->ring);
  f->at = f->at + 1 < HK_FIELD_RESIDENT ? f->at + 1 : 0;
  f->kept += f->kept < HK_FIELD_RESIDENT;
}

/* Computes the residuals of a row. */
static void compute_residuals(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  if (!hk_offload_row(f->offload, &f->residual, f->n_members, f->next - 1, open->value, f->value))
    hk_residual_row(&f->residual, open->value, f->value);
  if (f->ring) {
    compute_keep(f);
    compute_choose(f);
  }
  for (uint32_t i = 0; i < f->top; i++)
    out->said += !isnan(f->value[i]);
  out->out = f->residual.out;
}

/* Computes the model's output for a row, the one before `next`. */
static void compute_model(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  const uint32_t sensors = f->model.is ? hk_model_plan_of(f->model.is)->sensors : 0;
  const double *nu = NULL;
  for (uint32_t k = 0; k < sensors; k++)
    f->model.value[k] = NAN;
  for (uint32_t i = 0; i < f->top; i++)
    if (hk_field_sensor_of(f, i) != HK_MODEL_NONE)
      f->model.value[hk_field_sensor_of(f, i)] = open->value[i];
  if (f->model.is)
    nu = hk_model_row(f->model.is, f->next - 1, f->model.value);
  for (uint32_t i = 0; i < f->top; i++) {
    const uint32_t k = hk_field_sensor_of(f, i);
    f->value[i] = k != HK_MODEL_NONE && nu && !isnan(nu[k]) ? hk_residual_tag(nu[k], 0) : NAN; /* no neighbour is to blame */
    if (isnan(f->value[i]))
      continue;
    const struct hk_model_check *check = hk_model_check_of(f->model.is, k);
    out->said++;
    out->out += check->values > HK_MODEL_SETTLE && fabs(nu[k] - check->mean) > f->rule.clip * check->error;
  }
}

/* Computes the strengths of a row, the one before `next`. */
static void compute_focus(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  struct hk_field_line *l = &f->line;
  const uint32_t sensors = l->is ? l->is->f.n : 0;
  int64_t time = 0;
  hk_field_line_begin(l);
  for (uint32_t i = 0; i < f->top; i++) {
    f->value[i] = NAN;
    const uint32_t j = hk_field_place_of(f, i);
    if (j == HK_FOCUS_NONE)
      continue;
    l->value[j] = open->value[i];
    l->member[j] = i;
  }
  if (!l->is)
    return;
  if (!hk_offload_row(f->offload, l->is, (uint32_t)(l->is->lags / HK_OFFLOAD_ADDS), f->next - 1, l->value, NULL))
    hk_focus_row(l->is, f->next - 1, l->value);
  if (!hk_field_line_began(l, f->next - 1, f->rule.interval, &time))
    return;
  for (uint32_t j = 0; j < sensors; j++) {
    const uint32_t i = l->member[j];
    if (i == HK_FOCUS_NONE || isnan(l->is->f.now.value[j]))
      continue;
    f->value[i] = hk_residual_tag((double)l->is->f.now.value[j], l->is->f.now.blamed[j] != HK_FOCUS_NONE);
    f->time[i] = out->latest = time;
    out->said++;
  }
  const double strongest = (double)l->is->found.strongest;
  out->own = out->said > 0 ? strongest / (strongest + f->rule.focus.threshold) : NAN;
}

/* Filters a row, the one before `next`. */
static void compute_filters(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  const struct hk_filter_rule rule = hk_field_filter_rule(&f->rule);
  for (uint32_t i = 0; i < f->top; i++) {
    bool spike = false;
    const double value = isnan(open->value[i]) ? NAN : hk_filter_put(&f->filter[i], &rule, f->next - 1, open->value[i], &spike);
    f->value[i] = isnan(value) ? NAN : hk_residual_tag(value, 0); /* no neighbour is to blame */
    out->said += !isnan(value);
    out->out += spike;
  }
  out->spikes = out->out;
}

/* Computes the exponents of a row, the one before `next`, or their forecasts for the next row. */
static void compute_exponents(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  const uint32_t rows = hk_field_arma_rows(&f->rule);
  double sum = 0;
  for (uint32_t i = 0; i < f->top; i++) {
    f->value[i] = NAN;
    if (isnan(open->value[i]))
      continue;
    const double exponent = hk_hoelder_put(&f->hoelder[i], f->next - 1, open->value[i]);
    const double value = f->arma ? hk_arma_put(&f->arma[i], rows, exponent) : exponent;
    if (isnan(value))
      continue;
    f->value[i] = hk_residual_tag(value, 0); /* no neighbour is to blame */
    sum += value;
    out->said++;
  }
  out->own = out->said > 0 ? sum / out->said : NAN;
}

void hk_field_compute(struct hk_field *f, const struct hk_field_open *open, struct hk_field_row *out)
{
  if (f->rule.kind == HK_FIELD_FOCUS) {
    compute_focus(f, open, out);
    return;
  }
  if (f->hoelder) {
    compute_exponents(f, open, out);
    return;
  }
  if (f->rule.kind == HK_FIELD_MODEL)
    compute_model(f, open, out);
  else if (f->filter)
    compute_filters(f, open, out);
  else
    compute_residuals(f, open, out);
  out->own = out->said > 0 ? (double)out->out / out->said : NAN;
}
