/* Friction that adapts: see model_friction.h. */
#include "cpu/model/model_friction.h"
#include "cpu/model/model_internal.h"
#include "cpu/model/pipelines_network.h"

#include <math.h>
#include <string.h>

double hk_model_slope(const struct hk_model *m, uint32_t sensor)
{
  const struct hk_model_sensor *s = &m->plan->sensor[sensor];
  const struct hk_model_line *l = &m->plan->line[s->line];
  if (m->plan->matrix) /* nothing adapts */
    return 0;
  if (m->plan->network)
    return m->slope[sensor];
  const bool first = m->plan->sensor[l->boundary[0]].flow, last = m->plan->sensor[l->boundary[1]].flow;
  const double q = (m->seen.flow[2 * s->line] + m->seen.flow[2 * s->line + 1]) / 2, drop = q * fabs(q);
  if (m->plan->heat) /* the excess over the ground falls exponentially */
    return s->flow || !(q > 0) ? 0 : -(m->seen.value[sensor] - m->plan->ground) * s->loss / q / s->unit;
  if (!first && !last) /* pressures at both ends: less flows */
    return s->flow ? -q / (2 * m->line[s->line].friction) / s->unit : 0;
  if (s->flow) /* a measured flow does not depend on friction */
    return 0;
  return (first ? l->loss - s->loss : -s->loss) * drop / s->unit;
}

void hk_model_learn(const struct hk_model *m)
{
  memset(m->lesson, 0, m->plan->lines * sizeof *m->lesson);
  if (m->plan->network && m->rule.adapt > 0 && m->step->active && m->step->status == 0 &&
      hk_pipelines_slopes(m->pipes, m->line->friction, m->slope) != 0)
    return;
  for (uint32_t i = 0; i < m->plan->sensors; i++) {
    const double c = m->check[i].error;
    struct hk_model_lesson *l = &m->lesson[m->plan->sensor[i].line];
    if (isnan(m->nu[i]) || !(c > 0))
      continue;
    const double s = hk_model_slope(m, i) / c;
    l->above += s * hk_model_within(m->nu[i] / c, m->check[i].values > HK_MODEL_SETTLE ? m->rule.clip : INFINITY);
    l->below += s * s;
  }
}

void hk_model_adapt(const struct hk_model *m, uint32_t i, double silence)
{
  const struct hk_model_lesson *lesson = &m->lesson[i];
  struct hk_model_course *l = &m->line[i];
  const double transits = fmin(1e6, silence / m->rule.interval);
  const double rate = fmax(m->rule.adapt, 1 / ((double)l->taught + transits + 1));
  if (m->rule.adapt == 0 || !(lesson->below >= HK_MODEL_SEEN))
    return;
  l->taught++;
  l->friction = fmax(HK_MODEL_FRICTION_MIN, fmin(HK_MODEL_FRICTION_MAX, l->friction + rate * lesson->above / lesson->below));
}

void hk_model_count_friction(struct hk_model_course *l, double friction)
{
  l->said++;
  hk_model_take(&l->recent, friction, l->said, 1.0 / HK_MODEL_RECENT);
  hk_model_take(&l->past, friction, l->said, 1.0 / HK_MODEL_PAST);
}

double hk_model_friction_moved(const struct hk_model *m, uint32_t line)
{
  return m->line[line].recent - m->line[line].past;
}
