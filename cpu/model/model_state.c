/* The state of a model as bytes: see model_state.h. */
#include "cpu/model/model_state.h"
#include "cpu/model/model_internal.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Bytes of a line's course in states of before means of its friction were kept: they begin with the first row after the start. */
#define OLD_COURSE offsetof(struct hk_model_course, said)
_Static_assert(OLD_COURSE == 32, "as it was written");

size_t hk_model_state_size(const struct hk_model_plan *p)
{
  return sizeof(struct hk_model_head) + p->lines * sizeof(struct hk_model_course) +
         p->boundaries * sizeof(struct hk_model_drive) + p->sensors * sizeof(struct hk_model_check) +
         hk_model_all_numbers(p) * sizeof(double);
}

/* Where the parts of a state begin. */
struct parts {
  size_t lines, drives, checks, points;
};

/* course: bytes of a line's. */
static struct parts parts_of(const struct hk_model_plan *p, size_t course)
{
  struct parts of = { .lines = sizeof(struct hk_model_head) };
  of.drives = of.lines + p->lines * course;
  of.checks = of.drives + p->boundaries * sizeof(struct hk_model_drive);
  of.points = of.checks + p->sensors * sizeof(struct hk_model_check);
  return of;
}

void hk_model_write(const struct hk_model *m, void *state)
{
  const struct parts of = parts_of(m->plan, sizeof(struct hk_model_course));
  uint8_t *at = state;
  memcpy(at, &m->now, sizeof m->now);
  memcpy(at + of.lines, m->line, of.drives - of.lines);
  memcpy(at + of.drives, m->drive, of.checks - of.drives);
  memcpy(at + of.checks, m->check, of.points - of.checks);
  double *points = (double *)(void *)(at + of.points);
  if (m->pipes && m->place.kind->get(m->pipes, points) == 0)
    return;
  memset(points, 0, hk_model_all_numbers(m->plan) * sizeof *points); /* lines lost by a device begin again */
  for (uint32_t i = 0; i < m->plan->lines; i++)
    ((struct hk_model_course *)(void *)(at + of.lines))[i].running = 0;
}

static bool is_sound_line(const struct hk_model_course *l)
{
  return l->running <= 1 && l->unused == 0 && l->failing <= HK_MODEL_FAILURES && l->friction >= HK_MODEL_FRICTION_MIN &&
         l->friction <= HK_MODEL_FRICTION_MAX && isfinite(l->recent) && isfinite(l->past);
}

static bool model_state_is_sound(const struct hk_model *m, const double *points)
{
  bool sound = m->now.unused == 0;
  for (uint32_t i = 0; i < m->plan->lines && sound; i++)
    sound = is_sound_line(&m->line[i]);
  for (uint32_t i = 0; i < m->plan->boundaries && sound; i++)
    sound = isfinite(m->drive[i].at) && m->drive[i].held <= HK_MODEL_HOLD_MAX + 1 && m->drive[i].unused == 0;
  for (uint32_t i = 0; i < m->plan->sensors && sound; i++) {
    const struct hk_model_check *c = &m->check[i];
    sound = isfinite(c->mean) && c->error >= 0 && isfinite(c->error) && isfinite(c->level) && c->moves >= 0 && c->differs >= 0 &&
            isfinite(c->recent) && isfinite(c->past);
  }
  for (size_t i = 0; i < hk_model_all_numbers(m->plan) && sound; i++)
    sound = isfinite(points[i]);
  return sound;
}

bool hk_model_read(struct hk_model *m, const void *state, size_t size)
{
  const size_t now = hk_model_state_size(m->plan), old = now - m->plan->lines * (sizeof(struct hk_model_course) - OLD_COURSE),
               course = size == old ? OLD_COURSE : sizeof(struct hk_model_course);
  const struct parts of = parts_of(m->plan, course);
  const uint8_t *at = state;
  struct hk_model_head head;
  if (size != now && size != old)
    return false;
  memcpy(&head, at, sizeof head);
  if (head.sensors != m->now.sensors || head.points != m->now.points || head.lines != m->now.lines)
    return false;
  m->now = head;
  for (uint32_t i = 0; i < m->plan->lines; i++) {
    m->line[i] = (struct hk_model_course){ 0 };
    memcpy(&m->line[i], at + of.lines + i * course, course);
  }
  memcpy(m->drive, at + of.drives, of.checks - of.drives);
  memcpy(m->check, at + of.checks, of.points - of.checks);
  const double *points = (const double *)(const void *)(at + of.points);
  if (!model_state_is_sound(m, points))
    return false;
  for (uint32_t i = 0; i < m->plan->lines; i++)
    if (m->place.kind->put(m->pipes, i, points + hk_model_first_number(m->plan, i)) != 0)
      return false;
  return true;
}
