/* Profiles of lines: see profile.h. */
#include "cpu/model/model_friction.h"
#include "cpu/model/profile_network.h"

#include <stdlib.h>

#define PLACES 1000u /* of a leak that are tried, at most */

/* What the steady state depends on. */
struct steady {
  const struct hk_model_line *line;
  bool flow[2]; /* the boundaries: flows, else pressures */
  double slope; /* k */
};

/* --- what would follow from what, in Pa and m^3/s ---------------------------------------------------------------------- */

/* Reading at a check because one m^3/s leaves the line where its loss is `at`. */
static double by_leak(const struct steady *s, const struct hk_model_sensor *check, double at)
{
  const double whole = s->line->loss, before = s->flow[0] ? 0 : s->flow[1] ? 1 : 1 - at / whole; /* change of the first flow */
  const double behind = check->loss - fmin(check->loss, at);
  if (check->flow)
    return check->loss > at || (check->loss >= at && check->point == s->line->cells) ? before - 1 : before;
  if (s->flow[0]) /* the last pressure is given */
    return -s->slope * (whole - fmax(check->loss, at));
  return -s->slope * (before * check->loss - behind);
}

/* Reading at a check less the model's because boundary k reads one unit too much. */
static double by_boundary(const struct steady *s, const struct hk_model_sensor *check, uint32_t k)
{
  const double whole = s->line->loss, sign = k == 0 ? 1 : -1;
  if (s->flow[k]) /* the other one is a pressure */
    return check->flow ? -1 : s->slope * (k == 0 ? -(whole - check->loss) : check->loss);
  if (s->flow[1 - k])
    return check->flow ? 0 : -1;
  if (check->flow)
    return -sign / (s->slope * whole);
  return k == 0 ? -(1 - check->loss / whole) : -check->loss / whole;
}

/* --- hypotheses --------------------------------------------------------------------------------------------------------- */

/* The share of the departures that the hypothesis g explains, and its size. */
static double share_of(const struct hk_departures *of, double *size)
{
  double with = 0, own = 0;
  for (uint32_t i = 0; i < of->n; i++) {
    with += of->g[i] * of->d[i];
    own += of->g[i] * of->g[i];
  }
  return hk_departures_share(of, with, own, size);
}

static double leak_at(const struct hk_departures *of, const struct steady *s, double at, double *size)
{
  for (uint32_t i = 0; i < of->n; i++)
    of->g[i] = by_leak(s, of->is[i], at) / of->is[i]->unit / of->c[i];
  return share_of(of, size);
}

/* m from the first node, and loss, of a point that is a whole number of steps from the first one. */
struct where {
  double place, loss;
};

static struct where where_of(const struct hk_model_plan *plan, uint32_t line, uint32_t step, uint32_t steps)
{
  const struct hk_model_line *l = &plan->line[line];
  const double at = (double)step / steps * l->cells;
  struct where w = { 0 };
  for (uint32_t i = l->pipe; i < l->pipe + l->pipes; i++) {
    const struct hk_model_pipe *pipe = &plan->pipe[i];
    const double part = fmax(0, fmin(1, (at - pipe->first) / pipe->cells)), before = i == l->pipe ? 0 : pipe[-1].loss;
    w.place += part * pipe->length;
    w.loss += part * (pipe->loss - before);
  }
  return w;
}

static void consider_leaks(struct hk_profile *p, const struct hk_departures *of, const struct steady *s)
{
  const uint32_t steps = s->line->cells < PLACES / 4 ? 4 * s->line->cells : PLACES;
  struct hk_profile_cause best = { .kind = HK_CAUSE_NONE };
  for (uint32_t k = 0; k <= steps; k++) {
    const struct where w = where_of(p->plan, p->line, k, steps);
    double size;
    const double share = leak_at(of, s, w.loss, &size);
    if (size > 0 && share > best.share)
      best = (struct hk_profile_cause){ .kind = HK_CAUSE_LEAK, .share = share, .size = size, .place = w.place };
  }
  const double noise = hk_departures_noise(of, best.share);
  if (best.kind == HK_CAUSE_NONE || (best.share - p->cause.share) * of->sum <= HK_DEPARTURES_NEARLY * noise)
    return; /* a leak at a measured flow does what that sensor does */
  best.from = best.to = best.place;
  for (uint32_t k = 0; k <= steps; k++) {
    const struct where w = where_of(p->plan, p->line, k, steps);
    double size;
    const double share = leak_at(of, s, w.loss, &size);
    if (size > 0 && (best.share - share) * of->sum <= HK_DEPARTURES_NEARLY * noise) {
      best.from = fmin(best.from, w.place);
      best.to = fmax(best.to, w.place);
    }
  }
  p->cause = best;
}

static void consider_sensors(struct hk_profile *p, const struct hk_departures *of, const struct steady *s)
{
  double size;
  for (uint32_t i = 0; i < of->n; i++) {
    for (uint32_t k = 0; k < of->n; k++)
      of->g[k] = k == i ? 1 / of->c[i] : 0;
    const double share = share_of(of, &size);
    if (share > p->cause.share)
      p->cause = (struct hk_profile_cause){ .kind = HK_CAUSE_SENSOR, .share = share, .size = size, .sensor = of->sensor[i] };
  }
  for (uint32_t k = 0; k < 2 && !p->plan->heat && hk_model_is_along(p->plan); k++) {
    const struct hk_model_sensor *boundary = &p->plan->sensor[s->line->boundary[k]];
    for (uint32_t i = 0; i < of->n; i++)
      of->g[i] = by_boundary(s, of->is[i], k) * boundary->unit / of->is[i]->unit / of->c[i];
    const double share = share_of(of, &size);
    if (share > p->cause.share)
      p->cause =
          (struct hk_profile_cause){ .kind = HK_CAUSE_SENSOR, .share = share, .size = size, .sensor = s->line->boundary[k] };
  }
}

/* Looks for the cause of the departures of the line's checks. flow: m^3/s. False: no memory. */
static bool find_cause(struct hk_profile *p, const struct hk_model *m, double flow)
{
  const struct hk_model_line *line = &p->plan->line[p->line];
  const bool ends = hk_model_is_along(p->plan);
  const struct steady steady = { .line = line,
                                 .flow = { ends && p->plan->sensor[line->boundary[0]].flow,
                                           ends && p->plan->sensor[line->boundary[1]].flow },
                                 .slope = 2 * p->friction * fabs(flow) };
  struct hk_departures of = { .is = calloc(p->sensors, sizeof *of.is),
                              .sensor = calloc(p->sensors, sizeof *of.sensor),
                              .d = calloc(3 * (size_t)p->sensors, sizeof *of.d) };
  bool room = of.is && of.sensor && of.d;
  const double moved = hk_model_friction_moved(m, p->line);
  for (uint32_t i = 0; i < p->sensors && room; i++) {
    const struct hk_profile_sensor *s = &p->sensor[i];
    if (isnan(s->recent) || !(s->error > 0))
      continue;
    of.is[of.n] = &p->plan->sensor[s->sensor];
    of.sensor[of.n] = s->sensor;
    of.d[of.n] = (s->recent + hk_model_slope(m, s->sensor) * moved) / s->error; /* as if phi had stayed */
    of.d[p->sensors + of.n] = s->error;
    of.sum += of.d[of.n] * of.d[of.n];
    of.largest = fmax(of.largest, fabs(of.d[of.n++]));
  }
  if (room) {
    of.c = of.d + p->sensors;
    of.g = of.c + p->sensors;
  }
  if (room && of.n > 1 && of.largest >= HK_PROFILE_DEPARTS && (line->loss > 0 || p->plan->matrix)) {
    consider_sensors(p, &of, &steady);
    if (p->plan->network)
      room = hk_departures_network(p, m, &of);
    else if (!p->plan->heat && !p->plan->matrix)
      consider_leaks(p, &of, &steady);
  }
  if (p->cause.share < HK_PROFILE_SHARE) {
    p->cause = (struct hk_profile_cause){ .kind = HK_CAUSE_NONE };
    p->nodes = 0;
  }
  free(of.is);
  free(of.sensor);
  free(of.d);
  return room;
}

/* --- the line ----------------------------------------------------------------------------------------------------------- */

/* Values at the points of the line. Returns the flow in the middle, m^3/s; 0: it does not run. False: no memory. */
static bool take_points(struct hk_profile *p, const struct hk_model *m, double *flow)
{
  const struct hk_model_line *line = &p->plan->line[p->line];
  const uint32_t steps = line->cells < HK_PROFILE_POINTS ? line->cells : HK_PROFILE_POINTS - 1;
  double *state = calloc(2 * (size_t)hk_model_points(line), sizeof *state);
  p->point = calloc(steps + 1, sizeof *p->point);
  const bool room = state && p->point;
  *flow = 0;
  if (room && hk_model_points_of(m, p->line, state)) {
    for (uint32_t k = 0; k <= steps; k++) {
      const uint32_t at = (uint32_t)((uint64_t)k * line->cells / steps);
      p->point[k] = (struct hk_profile_point){ where_of(p->plan, p->line, at, line->cells).place,
                                               state[2 * (size_t)at] * line->impedance / p->plan->in[0],
                                               state[2 * (size_t)at + 1] / p->plan->in[1] };
    }
    p->points = steps + 1;
    *flow = state[2 * (size_t)(line->cells / 2) + 1];
  }
  free(state);
  return room;
}

static bool profile_take_sensors(struct hk_profile *p, const struct hk_model *m)
{
  const struct hk_model_line *line = &p->plan->line[p->line];
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->plan->sensors; i++)
    n += p->plan->sensor[i].line == p->line;
  p->sensor = calloc(n + 1, sizeof *p->sensor);
  for (uint32_t i = 0; i < p->plan->sensors && p->sensor; i++) {
    const struct hk_model_sensor *is = &p->plan->sensor[i];
    if (is->line != p->line)
      continue;
    const struct hk_model_check *c = hk_model_check_of(m, i);
    const bool known = !is->boundary && c->values > HK_MODEL_SETTLE;
    p->sensor[p->sensors++] =
        (struct hk_profile_sensor){ .sensor = i,
                                    .place =
                                        hk_model_is_along(p->plan) ? where_of(p->plan, p->line, is->point, line->cells).place : 0,
                                    .reading = hk_model_reading(m, i),
                                    .seen = hk_model_seen(m, i),
                                    .recent = known ? c->recent - c->past : NAN,
                                    .error = known ? c->error : NAN,
                                    .explained = hk_model_explains(m, i) };
  }
  return p->sensor != NULL;
}

struct hk_profile *hk_profile_new(const struct hk_model *m, uint32_t line)
{
  struct hk_profile *p = calloc(1, sizeof *p);
  double flow = 0;
  if (!p)
    return NULL;
  p->plan = hk_model_plan_hold(hk_model_plan_of(m));
  p->line = line;
  p->running = hk_model_runs(m, line);
  p->friction = hk_model_friction(m, line);
  for (uint32_t i = p->plan->line[line].pipe; i < p->plan->line[line].pipe + p->plan->line[line].pipes; i++)
    p->length += p->plan->pipe[i].length;
  if ((!hk_model_is_along(p->plan) || take_points(p, m, &flow)) && profile_take_sensors(p, m) && find_cause(p, m, flow)) {
    p->cause.size /= p->cause.kind == HK_CAUSE_LEAK ? p->plan->in[1] : 1;
    for (uint32_t i = 0; i < p->nodes; i++)
      p->node[i].size /= p->plan->in[1];
    return p;
  }
  hk_profile_free(p);
  return NULL;
}

void hk_profile_free(struct hk_profile *p)
{
  if (!p)
    return;
  hk_model_plan_release(p->plan);
  free(p->point);
  free(p->sensor);
  free(p->node);
  free(p);
}
