/* A process given as matrices, as the only line of its plan: see pipelines_matrix.h. */
#include "cpu/model/pipelines_matrix.h"

#include "cpu/monotonic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 9     /* that are measured, */
#define SECONDS 1.0 /* or so many s of them */

struct hk_pipelines {
  const struct hk_model_plan *plan; /* the owner's */
  struct hk_matrix process;
};

int hk_pipelines_matrix_open(struct hk_pipelines **out, const struct hk_model_plan *plan, const struct hk_matrix_band *band,
                             uint32_t number, char *error, size_t size)
{
  struct hk_pipelines *p = calloc(1, sizeof *p);
  if (!p) {
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  const int status = hk_matrix_open(&p->process, plan->matrix, band, number, error, size);
  if (status != 0) {
    free(p);
    return status;
  }
  p->plan = plan;
  *out = p;
  return 0;
}

static int open_matrix(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size)
{
  (void)number;
  return hk_pipelines_matrix_open(out, plan, &hk_matrix_band_host, 0, error, size);
}

void hk_pipelines_matrix_close(struct hk_pipelines *p)
{
  if (!p)
    return;
  hk_matrix_close(&p->process);
  free(p);
}

int hk_pipelines_matrix_step(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt,
                             const struct hk_pipelines_seen *seen)
{
  const int status = hk_matrix_step(&p->process, line->drive, NULL, dt, 1);
  if (status == -EIO)
    return status;
  line->status = status == -ENOMEM ? -ERANGE : status; /* tried again in the next row */
  line->singular = status == -EDOM ? p->process.singular : 0;
  hk_matrix_read(&p->process, p->plan->where, p->plan->sensors, seen->value);
  return 0;
}

int hk_pipelines_matrix_put(struct hk_pipelines *p, uint32_t line, const double *state)
{
  (void)line;
  memcpy(p->process.state, state, p->plan->matrix->n * sizeof *state);
  return 0;
}

int hk_pipelines_matrix_get(struct hk_pipelines *p, double *state)
{
  memcpy(state, p->process.state, p->plan->matrix->n * sizeof *state);
  return 0;
}

int hk_pipelines_matrix_get_line(struct hk_pipelines *p, uint32_t line, double *state)
{
  (void)line;
  return hk_pipelines_matrix_get(p, state);
}

int hk_pipelines_matrix_settle(struct hk_pipelines *p, const double *drive, double *age, double *state)
{
  const int status = hk_matrix_steady(&p->process, drive, 1);
  if (status == 0)
    memcpy(state, p->process.state, p->plan->matrix->n * sizeof *state);
  *age = p->process.age;
  return status;
}

const struct hk_pipelines_kind hk_pipelines_matrix = { open_matrix,
                                                       hk_pipelines_matrix_close,
                                                       hk_pipelines_matrix_step,
                                                       hk_pipelines_matrix_put,
                                                       hk_pipelines_matrix_get,
                                                       hk_pipelines_matrix_get_line,
                                                       false };

/* --- what it costs ------------------------------------------------------------------------------------------------------ */

static int matrix_ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int hk_pipelines_matrix_measure(const struct hk_model_plan *plan, double interval, struct hk_matrix_cost *out, uint32_t *singular)
{
  double *is = calloc(plan->boundaries + 1, sizeof *is), took[STEPS], all = 0, from = hk_monotonic_seconds();
  struct hk_matrix w;
  char error[160];
  uint32_t n = 0;
  int status = is ? hk_matrix_open(&w, plan->matrix, NULL, 0, error, sizeof error) : -ENOMEM;
  if (status != 0) {
    free(is);
    return status;
  }
  for (uint32_t i = 0; i < plan->boundaries; i++)
    is[i] = 1;
  status = hk_matrix_steady(&w, is, 1);
  if (status == 0)
    status = hk_matrix_step(&w, is, NULL, interval, 1);
  out->begin = hk_monotonic_seconds() - from;
  for (; n < STEPS && all < SECONDS && status == 0; n++) {
    from = hk_monotonic_seconds();
    is[0] = 1 + 0.01 * n; /* so that something moves */
    status = hk_matrix_step(&w, is, NULL, interval, 1);
    took[n] = hk_monotonic_seconds() - from;
    all += took[n];
  }
  *singular = w.singular;
  out->solver = hk_matrix_solver(&w);
  out->age = w.age;
  hk_matrix_close(&w);
  free(is);
  if (status != 0)
    return status;
  qsort(took, n, sizeof *took, matrix_ascending);
  out->row = took[n / 2];
  return 0;
}
