/* The process model: see model.h. */
#include "cpu/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SILENT 3.0       /* transits */
#define SLOWLY 1e-3      /* weight of a value in slow means of nu, */
#define LONG 2.5e-4      /* and in those of squares */
#define FRICTION_MIN 0.2 /* phi */
#define FRICTION_MAX 5.0
#define MEASURED 9 /* steps */

/* What of a model is written. All numbers are as they are in memory, which is little-endian. */
struct head {
  uint32_t sensors, points;
  uint32_t running; /* 0 or 1 */
  uint32_t silent;  /* rows to go */
  uint32_t held[2]; /* rows for which a boundary has had no value */
  uint32_t failing; /* steps in a row */
  uint32_t unused;
  int64_t last;    /* row */
  double at[2];    /* last values of the boundaries */
  double friction; /* phi */
  uint64_t taught; /* rows of which it was learned */
};
_Static_assert(sizeof(struct head) == 72, "no padding");

struct hk_model {
  const struct hk_model_plan *plan;
  struct hk_model_rule rule;
  struct hk_pipeline line;
  struct head now;
  struct hk_model_check *check; /* by sensor, as */
  double *nu;
};

/* --- life --------------------------------------------------------------------------------------------------------------- */

int hk_model_new(struct hk_model **out, const struct hk_model_plan *plan, const struct hk_model_rule *rule)
{
  struct hk_model *m = calloc(1, sizeof *m);
  if (!m)
    return -ENOMEM;
  m->plan = hk_model_plan_hold(plan);
  m->rule = *rule;
  m->now = (struct head){ .sensors = plan->sensors, .points = plan->cells + 1, .friction = 1 };
  m->check = calloc(plan->sensors, sizeof *m->check);
  m->nu = calloc(plan->sensors, sizeof *m->nu);
  if (!m->check || !m->nu || hk_pipeline_open(&m->line, plan->cell, plan->cells, plan->impedance) != 0) {
    hk_model_free(m);
    return -ENOMEM;
  }
  *out = m;
  return 0;
}

void hk_model_free(struct hk_model *m)
{
  if (!m)
    return;
  hk_pipeline_close(&m->line);
  hk_model_plan_release(m->plan);
  free(m->check);
  free(m->nu);
  free(m);
}

uint64_t hk_model_need(const struct hk_model_plan *plan)
{
  return sizeof(struct hk_model) + hk_pipeline_need(plan->cells) +
         plan->sensors * (sizeof(struct hk_model_check) + sizeof(double));
}

const struct hk_model_plan *hk_model_plan_of(const struct hk_model *m)
{
  return m->plan;
}

/* --- friction ----------------------------------------------------------------------------------------------------------- */

/* How a steady line's sensor changes with phi, in its unit. */
static double slope_of(const struct hk_model *m, const struct hk_model_sensor *s)
{
  const struct hk_model_plan *p = m->plan;
  const bool first = p->sensor[p->boundary[0]].flow, last = p->sensor[p->boundary[1]].flow;
  const double q = (hk_pipeline_flow(&m->line, 0) + hk_pipeline_flow(&m->line, p->cells)) / 2, drop = q * fabs(q);
  if (!first && !last) /* pressures at both ends: less flows */
    return s->flow ? -q / (2 * m->now.friction) / s->unit : 0;
  if (s->flow) /* it is what is measured, whatever the friction */
    return 0;
  return (first ? p->loss - s->loss : -s->loss) * drop / s->unit;
}

static double within(double value, double bound)
{
  return fmax(-bound, fmin(bound, value));
}

static void adapt(struct hk_model *m)
{
  const double transits = SILENT * m->plan->transit / m->rule.interval;
  const double rate = fmax(m->rule.adapt, 1 / ((double)m->now.taught + transits + 1));
  double above = 0, below = 0;
  if (m->rule.adapt == 0)
    return;
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    const double c = m->check[i].error;
    if (isnan(m->nu[i]) || !(c > 0))
      continue;
    const double s = slope_of(m, &m->plan->sensor[i]) / c;
    above += s * within(m->nu[i] / c, m->check[i].values > HK_MODEL_SETTLE ? m->rule.clip : INFINITY);
    below += s * s;
  }
  if (!(below >= HK_MODEL_SEEN))
    return;
  m->now.taught++;
  m->now.friction = fmax(FRICTION_MIN, fmin(FRICTION_MAX, m->now.friction + rate * above / below));
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

/* A value with weight 1/n of the first, and `slowly` of later ones. */
static void take(double *mean, double value, uint64_t n, double slowly)
{
  *mean += (value - *mean) * fmax(slowly, 1 / (double)n);
}

static void count(struct hk_model_check *c, double y, double nu)
{
  const double away = nu - c->mean, bound = c->values >= HK_MODEL_SETTLE && c->error > 0 ? 5 * c->error : INFINITY;
  c->values++;
  take(&c->error, fmin(fabs(away), bound), c->values, SLOWLY);
  take(&c->mean, c->mean + within(away, bound), c->values, SLOWLY);
  take(&c->level, y, c->values, LONG);
  take(&c->moves, (y - c->level) * (y - c->level), c->values, LONG);
  take(&c->differs, away * away, c->values, LONG);
}

static struct hk_pipeline_end end_of(const struct hk_model *m, uint32_t k)
{
  const struct hk_model_sensor *s = &m->plan->sensor[m->plan->boundary[k]];
  return (struct hk_pipeline_end){ !s->flow, s->flow, 0, m->now.at[k] * s->unit };
}

static int step(struct hk_model *m)
{
  const struct hk_pipeline_end end[2] = { end_of(m, 0), end_of(m, 1) };
  return hk_pipeline_step(&m->line, end, NULL, m->rule.interval, m->now.friction);
}

static enum hk_model_turn begin(struct hk_model *m)
{
  const struct hk_pipeline_end end[2] = { end_of(m, 0), end_of(m, 1) };
  if (m->now.held[0] > 0 || m->now.held[1] > 0 || hk_pipeline_steady(&m->line, end, m->now.friction) != 0)
    return HK_MODEL_WAITS;
  m->now.running = 1;
  m->now.failing = 0;
  m->now.silent = (uint32_t)fmin(UINT32_MAX, ceil(SILENT * m->plan->transit / m->rule.interval));
  return HK_MODEL_BEGINS;
}

static enum hk_model_turn lose(struct hk_model *m, enum hk_model_turn why)
{
  m->now.running = 0;
  return why;
}

/* What the checks differ by. */
static void compare(struct hk_model *m, const double *y)
{
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    const struct hk_model_sensor *s = &m->plan->sensor[i];
    const double is = s->flow ? hk_pipeline_flow(&m->line, s->point) : hk_pipeline_pressure(&m->line, s->point);
    if (s->boundary || isnan(y[i]))
      continue;
    m->nu[i] = y[i] - is / s->unit;
  }
}

static void take_boundaries(struct hk_model *m, const double *y, uint32_t missed)
{
  for (uint32_t k = 0; k < 2; k++) {
    const double value = y[m->plan->boundary[k]];
    m->now.held[k] = isnan(value) ? m->now.held[k] + missed + 1 : 0;
    if (m->now.held[k] > HK_MODEL_HOLD_MAX + 1)
      m->now.held[k] = HK_MODEL_HOLD_MAX + 1;
    if (!isnan(value))
      m->now.at[k] = value;
  }
}

static void forget_nu(struct hk_model *m)
{
  for (uint32_t i = 0; i < m->plan->sensors; i++)
    m->nu[i] = NAN;
}

/* A row of a line that goes on. */
static enum hk_model_turn go_on(struct hk_model *m, const double *y)
{
  if (step(m) != 0)
    return ++m->now.failing < HK_MODEL_FAILURES ? HK_MODEL_GAP : lose(m, HK_MODEL_UNSOLVED);
  m->now.failing = 0;
  compare(m, y);
  adapt(m);
  if (m->now.silent > 0) {
    m->now.silent--;
    forget_nu(m);
    return HK_MODEL_SILENT;
  }
  for (uint32_t i = 0; i < m->plan->sensors; i++)
    if (!isnan(m->nu[i]))
      count(&m->check[i], y[i], m->nu[i]);
  return HK_MODEL_SAYS;
}

enum hk_model_turn hk_model_row(struct hk_model *m, int64_t row, const double *y, const double **nu)
{
  const uint64_t between = m->now.running && row > m->now.last ? (uint64_t)row - (uint64_t)m->now.last - 1 : 0;
  const uint32_t missed = between > HK_MODEL_HOLD_MAX ? HK_MODEL_HOLD_MAX + 1 : (uint32_t)between;
  forget_nu(m);
  *nu = m->nu;
  m->now.last = row;
  for (uint32_t k = 0; k < missed && missed <= m->rule.hold && m->now.failing < HK_MODEL_FAILURES; k++)
    m->now.failing = step(m) == 0 ? 0 : m->now.failing + 1;
  take_boundaries(m, y, missed);
  if (!m->now.running)
    return begin(m);
  if (missed > m->rule.hold || m->now.held[0] > m->rule.hold || m->now.held[1] > m->rule.hold)
    return lose(m, HK_MODEL_MISSED);
  return m->now.failing < HK_MODEL_FAILURES ? go_on(m, y) : lose(m, HK_MODEL_UNSOLVED);
}

/* --- questions ---------------------------------------------------------------------------------------------------------- */

double hk_model_friction(const struct hk_model *m)
{
  return m->now.friction;
}

const struct hk_model_check *hk_model_check_of(const struct hk_model *m, uint32_t sensor)
{
  return &m->check[sensor];
}

double hk_model_explains(const struct hk_model *m, uint32_t sensor)
{
  const struct hk_model_check *c = &m->check[sensor];
  return c->values > HK_MODEL_SETTLE && c->moves > 0 ? 1 - c->differs / c->moves : NAN;
}

uint32_t hk_model_missing(const struct hk_model *m)
{
  return m->now.held[1] > m->now.held[0];
}

const struct hk_model_pipe *hk_model_fault(const struct hk_model *m)
{
  return hk_model_plan_pipe(m->plan, m->line.singular);
}

/* --- state -------------------------------------------------------------------------------------------------------------- */

size_t hk_model_state_size(const struct hk_model_plan *p)
{
  return sizeof(struct head) + p->sensors * sizeof(struct hk_model_check) + 2 * ((size_t)p->cells + 1) * sizeof(double);
}

void hk_model_write(const struct hk_model *m, void *state)
{
  uint8_t *at = state;
  memcpy(at, &m->now, sizeof m->now);
  at += sizeof m->now;
  memcpy(at, m->check, m->plan->sensors * sizeof *m->check);
  memcpy(at + m->plan->sensors * sizeof *m->check, m->line.state, 2 * (size_t)m->line.points * sizeof(double));
}

static bool is_sound(const struct hk_model *m)
{
  const struct head *h = &m->now;
  bool sound = h->running <= 1 && h->unused == 0 && h->held[0] <= HK_MODEL_HOLD_MAX + 1 && h->held[1] <= HK_MODEL_HOLD_MAX + 1 &&
               h->failing <= HK_MODEL_FAILURES && isfinite(h->at[0]) && isfinite(h->at[1]) && h->friction >= FRICTION_MIN &&
               h->friction <= FRICTION_MAX;
  for (uint32_t i = 0; i < m->plan->sensors && sound; i++) {
    const struct hk_model_check *c = &m->check[i];
    sound = isfinite(c->mean) && c->error >= 0 && isfinite(c->error) && isfinite(c->level) && c->moves >= 0 && c->differs >= 0;
  }
  for (size_t i = 0; i < 2 * (size_t)m->line.points && sound; i++)
    sound = isfinite(m->line.state[i]);
  return sound;
}

bool hk_model_read(struct hk_model *m, const void *state, size_t size)
{
  const uint8_t *at = state;
  struct head head;
  if (size != hk_model_state_size(m->plan))
    return false;
  memcpy(&head, at, sizeof head);
  if (head.sensors != m->plan->sensors || head.points != m->line.points)
    return false;
  m->now = head;
  at += sizeof head;
  memcpy(m->check, at, m->plan->sensors * sizeof *m->check);
  memcpy(m->line.state, at + m->plan->sensors * sizeof *m->check, 2 * (size_t)m->line.points * sizeof(double));
  return is_sound(m);
}

/* --- how long it takes -------------------------------------------------------------------------------------------------- */

static double now(void)
{
  struct timespec t;
  return clock_gettime(CLOCK_MONOTONIC, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9 : 0;
}

static int compare_times(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int hk_model_measure(const struct hk_model_plan *plan, double interval, double *seconds)
{
  struct hk_pipeline line;
  double took[MEASURED];
  const bool first = plan->sensor[plan->boundary[0]].flow, last = plan->sensor[plan->boundary[1]].flow;
  const double flow = plan->pipe[0].area; /* 1 m/s */
  struct hk_pipeline_end end[2] = { { !first, first, 0, first ? flow : 1e6 }, { !last, last, 0, last ? flow : 1e6 } };
  int status = hk_pipeline_open(&line, plan->cell, plan->cells, plan->impedance);
  for (uint32_t k = 0; k < MEASURED && status == 0; k++) {
    const double from = now();
    end[0].is *= 1.01; /* so that something moves */
    status = hk_pipeline_step(&line, end, NULL, interval, 1);
    took[k] = now() - from;
  }
  hk_pipeline_close(&line);
  if (status != 0)
    return status;
  qsort(took, MEASURED, sizeof *took, compare_times);
  *seconds = took[MEASURED / 2];
  return 0;
}
