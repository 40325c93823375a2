/* The lines of a plan on the host: see pipelines.h. A thread has the memory that a step of the longest line needs. */
#include "cpu/model/pipelines.h"

#include "cpu/lapack.h"
#include "cpu/model/pipelines_matrix.h"
#include "cpu/model/pipelines_network.h"
#include "cpu/monotonic.h"
#include "cpu/workers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEASURED 9  /* steps, */
#define MEASURE 1.0 /* or so many s of them, of a network */

struct worker {
  struct hk_worker thread;
  struct hk_pipelines *all;
  struct hk_pipeline line; /* the current line, with memory for the longest one */
};

struct hk_pipelines {
  const struct hk_model_plan *plan; /* the owner's */
  double *state;                    /* of all points, by line */
  struct worker *worker;
  uint32_t workers;
  struct hk_pipelines_line *line; /* of a step, as */
  double dt;
  atomic_uint next; /* next line to take */
};

static double *state_of(const struct hk_pipelines *p, uint32_t line)
{
  return p->state + 2 * (size_t)hk_model_first_point(p->plan, line);
}

static void close_host(struct hk_pipelines *p)
{
  if (!p)
    return;
  for (uint32_t i = 0; i < p->workers && p->worker; i++)
    hk_pipeline_close(&p->worker[i].line);
  free(p->worker);
  free(p->state);
  free(p);
}

static int open_host(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t threads, char *error, size_t size)
{
  int status = hk_lapack_load(error, size);
  if (status != 0)
    return status;
  struct hk_pipelines *p = calloc(1, sizeof *p);
  status = p ? 0 : -ENOMEM;
  if (status == 0) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads > 0 ? threads : cores > 0 ? (uint32_t)cores : 1;
    p->plan = plan;
    p->workers = threads < plan->lines ? threads : plan->lines;
    p->state = calloc(2 * (size_t)hk_model_all_points(plan), sizeof *p->state);
    p->worker = calloc(p->workers, sizeof *p->worker);
    status = p->state && p->worker ? 0 : -ENOMEM;
  }
  for (uint32_t i = 0; status == 0 && i < p->workers; i++) {
    p->worker[i].all = p;
    status = hk_pipeline_open(&p->worker[i].line, plan->cell, plan->longest, 1);
  }
  if (status != 0) {
    snprintf(error, size, "out of memory");
    close_host(p);
    return status;
  }
  *out = p;
  return 0;
}

uint64_t hk_pipelines_need(const struct hk_model_plan *plan)
{
  struct hk_sparse_facts facts;
  if (plan->matrix)
    return hk_matrix_bytes(plan->matrix);
  if (plan->network)
    return hk_pipelines_facts(plan, &facts) == 0 ? facts.bytes : 0;
  return sizeof(struct hk_pipelines) + sizeof(struct worker) + hk_pipeline_need(plan->longest) +
         2 * (uint64_t)hk_model_all_points(plan) * sizeof(double);
}

/* --- a step ------------------------------------------------------------------------------------------------------------- */

/* The part of the plan that is line i, with the memory of a worker. */
static struct hk_heat_line warm_line(struct worker *w, uint32_t i)
{
  const struct hk_model_plan *plan = w->all->plan;
  return (struct hk_heat_line){ plan->heat + plan->line[i].cell,
                                hk_model_points(&plan->line[i]),
                                plan->ground,
                                state_of(w->all, i),
                                w->line.memory,
                                &w->line.work };
}

static void step_line(struct worker *w, uint32_t i)
{
  struct hk_pipelines *p = w->all;
  const struct hk_model_line *of = &p->plan->line[i];
  struct hk_pipelines_line *line = &p->line[i];
  if (p->plan->heat) {
    struct hk_heat_line warm = warm_line(w, i);
    line->status = hk_heat_step(&warm, line->end[0].is, line->end[1].is, NULL, p->dt, line->friction);
    line->singular = 0;
    return;
  }
  struct hk_pipeline pipe = w->line; /* a copy for this line during the step */
  pipe.cell = p->plan->cell + of->cell;
  pipe.points = hk_model_points(of);
  pipe.impedance = of->impedance;
  pipe.state = state_of(p, i);
  line->status = hk_pipeline_step(&pipe, line->end, NULL, p->dt, line->friction);
  line->singular = pipe.singular;
}

static void *work(void *argument)
{
  struct worker *w = argument;
  for (uint32_t i; (i = atomic_fetch_add_explicit(&w->all->next, 1, memory_order_relaxed)) < w->all->plan->lines;)
    if (w->all->line[i].active)
      step_line(w, i);
  return NULL;
}

static int step_host(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen)
{
  p->line = line;
  p->dt = dt;
  atomic_store_explicit(&p->next, 0, memory_order_relaxed);
  hk_workers_run(work, p->worker, sizeof *p->worker, p->workers);
  for (uint32_t i = 0; i < p->plan->sensors; i++) {
    const struct hk_model_sensor *s = &p->plan->sensor[i];
    const double *at = state_of(p, s->line) + 2 * (size_t)s->point;
    seen->value[i] = s->flow ? at[1] : at[0] * p->plan->line[s->line].impedance;
  }
  for (uint32_t i = 0; i < p->plan->lines; i++) {
    seen->flow[2 * (size_t)i] = state_of(p, i)[1];
    seen->flow[2 * (size_t)i + 1] = state_of(p, i)[2 * (size_t)p->plan->line[i].cells + 1];
  }
  return 0;
}

static int put_host(struct hk_pipelines *p, uint32_t line, const double *state)
{
  memcpy(state_of(p, line), state, 2 * (size_t)hk_model_points(&p->plan->line[line]) * sizeof *state);
  return 0;
}

static int get_host(struct hk_pipelines *p, double *state)
{
  memcpy(state, p->state, 2 * (size_t)hk_model_all_points(p->plan) * sizeof *state);
  return 0;
}

static int get_line_host(struct hk_pipelines *p, uint32_t line, double *state)
{
  memcpy(state, state_of(p, line), 2 * (size_t)hk_model_points(&p->plan->line[line]) * sizeof *state);
  return 0;
}

const struct hk_pipelines_kind hk_pipelines_host = { open_host, close_host, step_host, put_host, get_host, get_line_host, false };

/* --- how long it takes -------------------------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Steps of the longest line, with a memory for it. */
static int measure_warm(const struct hk_model_plan *plan, const struct hk_model_line *l, struct hk_pipeline *memory,
                        double interval, double *took)
{
  struct hk_heat_line warm = { plan->heat + l->cell, hk_model_points(l), plan->ground,
                               memory->state,        memory->memory,     &memory->work };
  int status = 0;
  for (uint32_t k = 0; k < MEASURED && status == 0; k++) {
    const double from = hk_monotonic_seconds();
    status = hk_heat_step(&warm, plan->ground + k, plan->pipe[l->pipe].area, NULL, interval, 1); /* 1 m/s */
    took[k] = hk_monotonic_seconds() - from;
  }
  return status;
}

/* Steps of a network that begins at rest. */
static int measure_network(const struct hk_model_plan *plan, double interval, double *seconds)
{
  const struct hk_network_shape *shape = plan->network;
  double *is = calloc(shape->drives, sizeof *is), took[MEASURED], all = 0;
  struct hk_network network;
  uint32_t n = 0;
  int status = is ? hk_network_open(&network, shape, plan->line->impedance, NULL) : -ENOMEM;
  if (status != 0) {
    free(is);
    return status;
  }
  for (; n < MEASURED && all < MEASURE && status == 0; n++) {
    const double from = hk_monotonic_seconds();
    for (uint32_t i = 0; i < shape->drives; i++)
      is[i] = shape->drive[i].flow ? 0 : 1e6 * (1 + 0.01 * n); /* so that something moves */
    status = hk_network_step(&network, is, NULL, interval, 1);
    took[n] = hk_monotonic_seconds() - from;
    all += took[n];
  }
  hk_network_close(&network);
  free(is);
  qsort(took, n, sizeof *took, compare_times);
  *seconds = took[n / 2];
  return status;
}

int hk_pipelines_measure(const struct hk_model_plan *plan, double interval, double *seconds)
{
  if (plan->network)
    return measure_network(plan, interval, seconds);
  const struct hk_model_line *l = plan->line;
  double took[MEASURED];
  struct hk_pipeline pipe;
  while (l->cells < plan->longest)
    l++;
  const bool first = plan->sensor[l->boundary[0]].flow, last = plan->sensor[l->boundary[1]].flow;
  const double flow = plan->pipe[l->pipe].area; /* 1 m/s */
  struct hk_pipeline_end end[2] = { { !first, first, 0, first ? flow : 1e6 }, { !last, last, 0, last ? flow : 1e6 } };
  int status = hk_pipeline_open(&pipe, plan->heat ? NULL : plan->cell + l->cell, l->cells, l->impedance);
  if (status == 0 && plan->heat)
    status = measure_warm(plan, l, &pipe, interval, took);
  for (uint32_t k = 0; k < MEASURED && status == 0 && !plan->heat; k++) {
    const double from = hk_monotonic_seconds();
    end[0].is *= 1.01; /* so that something moves */
    status = hk_pipeline_step(&pipe, end, NULL, interval, 1);
    took[k] = hk_monotonic_seconds() - from;
  }
  hk_pipeline_close(&pipe);
  if (status != 0)
    return status;
  qsort(took, MEASURED, sizeof *took, compare_times);
  *seconds = took[MEASURED / 2] * hk_model_all_points(plan) / hk_model_points(l);
  return 0;
}
