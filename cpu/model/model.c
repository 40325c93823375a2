/* The process model: see model.h. */
#include "cpu/model/model_friction.h"
#include "cpu/model/model_internal.h"
#include "cpu/model/pipelines_matrix.h"
#include "cpu/model/pipelines_network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SILENT_WATER 1.5           /* of heat lines, whose water takes its heat along */
#define SILENT 3.0                 /* transits */
#define SLOWLY 1e-3                /* weight of a value in slow means of nu, */
#define LONG 2.5e-4                /* and in those of squares */
#define GET_MAX ((size_t)64 << 20) /* bytes of all lines that are copied for one of them */

/* --- life --------------------------------------------------------------------------------------------------------------- */

static bool model_make_columns(struct hk_model *m)
{
  const struct hk_model_plan *p = m->plan;
  m->drive = calloc(p->boundaries, sizeof *m->drive);
  m->is = calloc(p->boundaries, sizeof *m->is);
  m->slope = p->network ? calloc(p->sensors, sizeof *m->slope) : NULL;
  m->line = calloc(p->lines, sizeof *m->line);
  m->step = calloc(p->lines, sizeof *m->step);
  m->turn = calloc(p->lines, sizeof *m->turn);
  m->singular = calloc(p->lines, sizeof *m->singular);
  m->lesson = calloc(p->lines, sizeof *m->lesson);
  m->check = calloc(p->sensors, sizeof *m->check);
  m->nu = calloc(p->sensors, sizeof *m->nu);
  m->reading = calloc(p->sensors, sizeof *m->reading);
  m->seen.value = calloc(p->sensors, sizeof *m->seen.value);
  m->seen.flow = calloc(p->lines, 2 * sizeof *m->seen.flow);
  return m->drive && m->is && (m->slope || !p->network) && m->line && m->step && m->turn && m->singular && m->lesson &&
         m->check && m->nu && m->reading && m->seen.value && m->seen.flow;
}

/* Where a plan is computed: on the host, of some kinds. */
static struct hk_pipelines_place model_place_for(const struct hk_model_plan *plan, const struct hk_pipelines_place *place)
{
  return plan->network                             ? (struct hk_pipelines_place){ &hk_pipelines_network, 1 }
         : plan->matrix && !place->kind->on_device ? (struct hk_pipelines_place){ &hk_pipelines_matrix, 1 }
                                                   : *place;
}

int hk_model_new(struct hk_model **out, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                 const struct hk_pipelines_place *place, char *error, size_t size)
{
  struct hk_model *m = calloc(1, sizeof *m);
  if (!m) {
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  m->plan = hk_model_plan_hold(plan);
  m->rule = *rule;
  m->place = model_place_for(plan, place);
  m->now = (struct hk_model_head){ .sensors = plan->sensors, .points = hk_model_all_points(plan), .lines = plan->lines };
  int status = -ENOMEM;
  if (model_make_columns(m))
    status = m->place.kind->open(&m->pipes, plan, m->place.number, error, size);
  else
    snprintf(error, size, "out of memory");
  if (status != 0) {
    hk_model_free(m);
    return status;
  }
  for (uint32_t i = 0; i < plan->lines; i++)
    m->line[i].friction = 1;
  for (uint32_t i = 0; i < plan->sensors; i++)
    m->reading[i] = NAN;
  *out = m;
  return 0;
}

void hk_model_free(struct hk_model *m)
{
  if (!m)
    return;
  if (m->pipes)
    m->place.kind->close(m->pipes);
  hk_model_plan_release(m->plan);
  free(m->drive);
  free(m->is);
  free(m->slope);
  free(m->line);
  free(m->step);
  free(m->turn);
  free(m->singular);
  free(m->lesson);
  free(m->check);
  free(m->nu);
  free(m->reading);
  free(m->seen.value);
  free(m->seen.flow);
  free(m);
}

uint64_t hk_model_need(const struct hk_model_plan *plan)
{
  return sizeof(struct hk_model) + hk_pipelines_need(plan) +
         plan->sensors * (sizeof(struct hk_model_check) + 3 * sizeof(double)) +
         plan->boundaries * (sizeof(struct hk_model_drive) + sizeof(double)) +
         plan->lines *
             (sizeof(struct hk_model_course) + sizeof(struct hk_pipelines_line) + 2 * sizeof(uint32_t) + 2 * sizeof(double));
}

/* Seconds for which a line that begins in the steady state is silent: until what was in it, unknown, has left it. */
double hk_model_silence(const struct hk_model *m, uint32_t i)
{
  const struct hk_model_line *l = &m->plan->line[i];
  const double flow = m->plan->heat ? m->drive[l->drive + 1].at * m->plan->sensor[l->boundary[1]].unit : 0;
  return m->plan->heat ? SILENT_WATER * l->transit / fmax(flow, 1e-9) : m->plan->matrix ? SILENT * m->age : SILENT * l->transit;
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

static void model_count(struct hk_model_check *c, double y, double nu)
{
  const double away = nu - c->mean, bound = c->values >= HK_MODEL_SETTLE && c->error > 0 ? 5 * c->error : INFINITY;
  c->values++;
  hk_model_take(&c->recent, nu, c->values, 1.0 / HK_MODEL_RECENT);
  hk_model_take(&c->past, nu, c->values, 1.0 / HK_MODEL_PAST);
  hk_model_take(&c->error, fmin(fabs(away), bound), c->values, SLOWLY);
  hk_model_take(&c->mean, c->mean + hk_model_within(away, bound), c->values, SLOWLY);
  hk_model_take(&c->level, y, c->values, LONG);
  hk_model_take(&c->moves, (y - c->level) * (y - c->level), c->values, LONG);
  hk_model_take(&c->differs, away * away, c->values, LONG);
}

static struct hk_pipeline_end end_of(const struct hk_model *m, uint32_t line, uint32_t k)
{
  const struct hk_model_sensor *s = &m->plan->sensor[m->plan->line[line].boundary[k]];
  return (struct hk_pipeline_end){ !s->flow, s->flow, 0, m->drive[m->plan->line[line].drive + k].at * s->unit };
}

/* The device failed: all lines are lost, and begin again on the host. */
static void leave_device(struct hk_model *m)
{
  char error[64];
  m->place.kind->close(m->pipes);
  m->place = model_place_for(m->plan, &(struct hk_pipelines_place){ &hk_pipelines_host, 1 });
  m->pipes = NULL;
  if (m->place.kind->open(&m->pipes, m->plan, m->place.number, error, sizeof error) != 0)
    m->pipes = NULL; /* then lines do not begin */
  for (uint32_t i = 0; i < m->plan->lines; i++) {
    m->turn[i] = m->line[i].running ? HK_MODEL_BROKEN : HK_MODEL_WAITS;
    m->line[i].running = 0;
    m->step[i].active = 0;
  }
}

/* The values of the boundaries of a network, in Pa and m^3/s, or of a process given as matrices. */
static void take_drives(struct hk_model *m)
{
  for (uint32_t k = 0; k < m->plan->boundaries; k++)
    m->is[k] = m->drive[k].at * m->plan->sensor[m->plan->line->boundary[k]].unit;
}

/* Makes a step of all active lines. */
static void step(struct hk_model *m)
{
  uint32_t active = 0;
  for (uint32_t i = 0; i < m->plan->lines; i++) {
    struct hk_pipelines_line *s = &m->step[i];
    active += s->active;
    if (!hk_model_is_along(m->plan)) {
      take_drives(m);
      s->drive = m->is;
    } else {
      s->end[0] = end_of(m, i, 0);
      s->end[1] = end_of(m, i, 1);
    }
    s->friction = m->line[i].friction;
  }
  if (active == 0)
    return;
  if (m->place.kind->step(m->pipes, m->step, m->rule.interval, &m->seen) != 0) {
    leave_device(m);
    return;
  }
  for (uint32_t i = 0; i < m->plan->lines; i++) {
    const struct hk_pipelines_line *s = &m->step[i];
    if (s->active && s->status == -EDOM)
      m->singular[i] = s->singular;
    if (s->active)
      m->line[i].failing = s->status == 0 ? 0 : m->line[i].failing + 1;
  }
}

/* Computes the steady state of a line; state: of its points, zero. Returns 0 or a negative errno. */
static int model_settle(struct hk_model *m, uint32_t i, double *state)
{
  if (!hk_model_is_along(m->plan))
    take_drives(m);
  if (m->plan->matrix)
    return hk_pipelines_matrix_settle(m->pipes, m->is, &m->age, state);
  if (m->plan->network) {
    return hk_pipelines_settle(m->plan, m->is, m->line[i].friction, state);
  }
  const struct hk_model_line *of = &m->plan->line[i];
  const struct hk_pipeline_end end[2] = { end_of(m, i, 0), end_of(m, i, 1) };
  struct hk_pipeline pipe = { .cell = m->plan->heat ? NULL : m->plan->cell + of->cell,
                              .points = hk_model_points(of),
                              .impedance = of->impedance,
                              .state = state };
  if (!m->plan->heat)
    return hk_pipeline_steady(&pipe, end, m->line[i].friction);
  const struct hk_band_shape shape = hk_heat_shape(pipe.points);
  struct hk_band_work work;
  struct hk_heat_line warm = { m->plan->heat + of->cell, pipe.points, m->plan->ground, state, NULL, &work };
  int status = hk_band_open(&work, &shape);
  if (status != 0)
    return status;
  warm.memory = malloc(HK_HEAT_MEMORY * (size_t)pipe.points * sizeof *warm.memory);
  status = warm.memory ? hk_heat_steady(&warm, end[0].is, end[1].is, m->line[i].friction) : -ENOMEM;
  free(warm.memory);
  hk_band_close(&work);
  return status;
}

/* Number of rows for which a boundary of a line has had no value: of the worst. */
static uint32_t longest_held(const struct hk_model *m, uint32_t i)
{
  const struct hk_model_line *of = &m->plan->line[i];
  uint32_t most = 0;
  for (uint32_t k = of->drive; k < of->drive + of->boundaries; k++)
    most = m->drive[k].held > most ? m->drive[k].held : most;
  return most;
}

static void model_begin(struct hk_model *m, uint32_t i)
{
  struct hk_model_course *l = &m->line[i];
  m->turn[i] = HK_MODEL_WAITS;
  if (longest_held(m, i) > 0 || !m->pipes)
    return;
  double *state = calloc(hk_model_numbers(m->plan, i), sizeof *state);
  const int status = state ? model_settle(m, i, state) : -ENOMEM;
  if (status == -EIO)
    leave_device(m);
  if (status == 0) {
    if (m->place.kind->put(m->pipes, i, state) != 0) {
      leave_device(m);
    } else {
      l->running = 1;
      l->failing = 0;
      l->silent = (uint32_t)fmin(UINT32_MAX, ceil(hk_model_silence(m, i) / m->rule.interval));
      m->turn[i] = HK_MODEL_BEGINS;
    }
  }
  free(state);
}

static void model_lose(struct hk_model *m, uint32_t i, enum hk_model_turn why)
{
  m->line[i].running = 0;
  m->turn[i] = why;
}

static void take_boundaries(struct hk_model *m, uint32_t i, const double *y, uint32_t missed)
{
  const struct hk_model_line *of = &m->plan->line[i];
  for (uint32_t k = 0; k < of->boundaries; k++) {
    const double value = y[of->boundary[k]];
    struct hk_model_drive *d = &m->drive[of->drive + k];
    d->held = isnan(value) ? d->held + missed + 1 : 0;
    if (d->held > HK_MODEL_HOLD_MAX + 1)
      d->held = HK_MODEL_HOLD_MAX + 1;
    if (!isnan(value))
      d->at = value;
  }
}

/* Processes missing rows, in which the boundaries keep their values. */
static void make_up(struct hk_model *m, uint32_t missed)
{
  for (uint32_t i = 0; i < m->plan->lines; i++)
    m->step[i].active = m->line[i].running && missed <= m->rule.hold;
  for (uint32_t k = 0; k < missed && missed <= m->rule.hold; k++) {
    uint32_t going = 0;
    for (uint32_t i = 0; i < m->plan->lines; i++) {
      m->step[i].active = m->step[i].active && m->line[i].failing < HK_MODEL_FAILURES;
      going += m->step[i].active;
    }
    if (going == 0)
      return;
    step(m);
  }
}

/* Reads a row's boundaries. Returns whether the line makes a step. */
static bool model_look_at(struct hk_model *m, uint32_t i, const double *y, uint32_t missed)
{
  const struct hk_model_course *l = &m->line[i];
  take_boundaries(m, i, y, missed);
  if (m->turn[i] == HK_MODEL_BROKEN)
    return false;
  if (!l->running)
    model_begin(m, i);
  else if (missed > m->rule.hold || longest_held(m, i) > m->rule.hold)
    model_lose(m, i, HK_MODEL_MISSED);
  else if (l->failing >= HK_MODEL_FAILURES)
    model_lose(m, i, HK_MODEL_UNSOLVED);
  else
    return true;
  return false;
}

/* Computes the differences of the checks of lines that made a step. */
static void model_compare(struct hk_model *m, const double *y)
{
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    const struct hk_model_sensor *s = &m->plan->sensor[i];
    if (!s->boundary && m->step[s->line].active && m->step[s->line].status == 0 && !isnan(y[i]))
      m->nu[i] = y[i] - m->seen.value[i] / s->unit;
  }
}

/* Processes the result of a line's step. */
static void conclude(struct hk_model *m, uint32_t i)
{
  struct hk_model_course *l = &m->line[i];
  if (m->step[i].status != 0) {
    m->turn[i] = HK_MODEL_GAP;
    if (l->failing >= HK_MODEL_FAILURES)
      model_lose(m, i, HK_MODEL_UNSOLVED);
    return;
  }
  hk_model_adapt(m, i, hk_model_silence(m, i));
  m->turn[i] = l->silent > 0 ? HK_MODEL_SILENT : HK_MODEL_SAYS;
  l->silent -= l->silent > 0;
}

const double *hk_model_row(struct hk_model *m, int64_t row, const double *y)
{
  const uint64_t between = m->now.last < row ? (uint64_t)row - (uint64_t)m->now.last - 1 : 0;
  const uint32_t missed = between > HK_MODEL_HOLD_MAX ? HK_MODEL_HOLD_MAX + 1 : (uint32_t)between;
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    m->nu[i] = NAN;
    m->reading[i] = y[i];
  }
  for (uint32_t i = 0; i < m->plan->lines; i++)
    m->turn[i] = HK_MODEL_WAITS;
  m->now.last = row;
  make_up(m, missed);
  for (uint32_t i = 0; i < m->plan->lines; i++)
    m->step[i].active = model_look_at(m, i, y, m->line[i].running ? missed : 0);
  step(m);
  model_compare(m, y);
  hk_model_learn(m);
  for (uint32_t i = 0; i < m->plan->lines; i++)
    if (m->step[i].active)
      conclude(m, i);
  for (uint32_t i = 0; i < m->plan->lines; i++)
    if (m->turn[i] == HK_MODEL_SAYS)
      hk_model_count_friction(&m->line[i], m->step[i].friction);
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    const uint32_t line = m->plan->sensor[i].line;
    if (m->turn[line] != HK_MODEL_SAYS)
      m->nu[i] = NAN;
    else if (!isnan(m->nu[i]))
      model_count(&m->check[i], y[i], m->nu[i]);
  }
  return m->nu;
}

/* --- questions ---------------------------------------------------------------------------------------------------------- */

const struct hk_model_plan *hk_model_plan_of(const struct hk_model *m)
{
  return m->plan;
}

struct hk_pipelines_place hk_model_place(const struct hk_model *m)
{
  return m->place;
}

enum hk_model_turn hk_model_turn_of(const struct hk_model *m, uint32_t line)
{
  return m->turn[line];
}

double hk_model_friction(const struct hk_model *m, uint32_t line)
{
  return m->line[line].friction;
}

const struct hk_model_check *hk_model_check_of(const struct hk_model *m, uint32_t sensor)
{
  return &m->check[sensor];
}

bool hk_model_runs(const struct hk_model *m, uint32_t line)
{
  return m->line[line].running != 0;
}

double hk_model_reading(const struct hk_model *m, uint32_t sensor)
{
  return m->reading[sensor];
}

double hk_model_seen(const struct hk_model *m, uint32_t sensor)
{
  const struct hk_model_sensor *s = &m->plan->sensor[sensor];
  return m->step[s->line].active && m->step[s->line].status == 0 ? m->seen.value[sensor] / s->unit : NAN;
}

bool hk_model_points_of(const struct hk_model *m, uint32_t line, double *state)
{
  const size_t all = hk_model_all_numbers(m->plan) * sizeof *state;
  if (!m->line[line].running || !m->pipes)
    return false;
  if (m->place.kind->get_line)
    return m->place.kind->get_line(m->pipes, line, state) == 0;
  double *whole = all <= GET_MAX ? malloc(all) : NULL;
  const bool got = whole && m->place.kind->get(m->pipes, whole) == 0;
  if (got)
    memcpy(state, whole + hk_model_first_number(m->plan, line), hk_model_numbers(m->plan, line) * sizeof *state);
  free(whole);
  return got;
}

struct hk_network *hk_model_network(const struct hk_model *m)
{
  return m->plan->network && m->pipes ? hk_pipelines_network_of(m->pipes) : NULL;
}

double hk_model_explains(const struct hk_model *m, uint32_t sensor)
{
  const struct hk_model_check *c = &m->check[sensor];
  return c->values > HK_MODEL_SETTLE && c->moves > 0 ? 1 - c->differs / c->moves : NAN;
}

uint32_t hk_model_missing(const struct hk_model *m, uint32_t line)
{
  const struct hk_model_line *of = &m->plan->line[line];
  uint32_t worst = 0;
  for (uint32_t k = 1; k < of->boundaries; k++)
    if (m->drive[of->drive + k].held > m->drive[of->drive + worst].held)
      worst = k;
  return of->boundary[worst];
}

const struct hk_model_pipe *hk_model_fault(const struct hk_model *m, uint32_t line)
{
  return hk_model_plan_pipe(m->plan, line, m->singular[line]);
}

uint32_t hk_model_singular(const struct hk_model *m, uint32_t line)
{
  return m->singular[line];
}
