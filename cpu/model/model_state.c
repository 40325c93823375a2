/* The state of a model as bytes: see model_state.h. */
#include "cpu/model/model_state.h"
#include "cpu/model/model_internal.h"

#include <math.h>
#include <string.h>

size_t hk_model_state_size(const struct hk_model_plan *p)
{
  return sizeof(struct hk_model_head) + p->lines * sizeof(struct hk_model_course) + p->sensors * sizeof(struct hk_model_check) +
         2 * (size_t)hk_model_all_points(p) * sizeof(double);
}

void hk_model_write(const struct hk_model *m, void *state)
{
  const size_t checks = m->plan->sensors * sizeof *m->check, lines = m->plan->lines * sizeof *m->line;
  uint8_t *at = state;
  memcpy(at, &m->now, sizeof m->now);
  memcpy(at + sizeof m->now, m->line, lines);
  memcpy(at + sizeof m->now + lines, m->check, checks);
  double *points = (double *)(void *)(at + sizeof m->now + lines + checks);
  if (m->pipes && m->place.kind->get(m->pipes, points) == 0)
    return;
  memset(points, 0, 2 * (size_t)m->now.points * sizeof *points); /* lines lost by a device begin again */
  for (uint32_t i = 0; i < m->plan->lines; i++)
    ((struct hk_model_course *)(void *)(at + sizeof m->now))[i].running = 0;
}

static bool is_sound_line(const struct hk_model_course *l)
{
  return l->running <= 1 && l->unused == 0 && l->held[0] <= HK_MODEL_HOLD_MAX + 1 && l->held[1] <= HK_MODEL_HOLD_MAX + 1 &&
         l->failing <= HK_MODEL_FAILURES && isfinite(l->at[0]) && isfinite(l->at[1]) && l->friction >= HK_MODEL_FRICTION_MIN &&
         l->friction <= HK_MODEL_FRICTION_MAX;
}

static bool model_state_is_sound(const struct hk_model *m, const double *points)
{
  bool sound = m->now.unused == 0;
  for (uint32_t i = 0; i < m->plan->lines && sound; i++)
    sound = is_sound_line(&m->line[i]);
  for (uint32_t i = 0; i < m->plan->sensors && sound; i++) {
    const struct hk_model_check *c = &m->check[i];
    sound = isfinite(c->mean) && c->error >= 0 && isfinite(c->error) && isfinite(c->level) && c->moves >= 0 && c->differs >= 0 &&
            isfinite(c->recent) && isfinite(c->past);
  }
  for (size_t i = 0; i < 2 * (size_t)m->now.points && sound; i++)
    sound = isfinite(points[i]);
  return sound;
}

bool hk_model_read(struct hk_model *m, const void *state, size_t size)
{
  const size_t checks = m->plan->sensors * sizeof *m->check, lines = m->plan->lines * sizeof *m->line;
  const uint8_t *at = state;
  struct hk_model_head head;
  if (size != hk_model_state_size(m->plan))
    return false;
  memcpy(&head, at, sizeof head);
  if (head.sensors != m->now.sensors || head.points != m->now.points || head.lines != m->now.lines)
    return false;
  m->now = head;
  memcpy(m->line, at + sizeof head, lines);
  memcpy(m->check, at + sizeof head + lines, checks);
  const double *points = (const double *)(const void *)(at + sizeof head + lines + checks);
  if (!model_state_is_sound(m, points))
    return false;
  for (uint32_t i = 0; i < m->plan->lines; i++)
    if (m->place.kind->put(m->pipes, i, points + 2 * (size_t)hk_model_first_point(m->plan, i)) != 0)
      return false;
  return true;
}
