/* Pipes that carry heat: see heat.h. */
#include "cpu/model/heat.h"

#include <errno.h>
#include <math.h>

/* Columns of a solution. */
struct columns {
  double *band; /* three numbers a row */
  double *right, *next;
};

static struct columns heat_columns_of(const struct hk_heat_line *l)
{
  const size_t n = l->points;
  return (struct columns){ l->memory, l->memory + 3 * n, l->memory + 4 * n };
}

/* The volume of water around a point, and its loss. */
struct around {
  double volume, loss;
};

static struct around around(const struct hk_heat_line *l, uint32_t point, const double *more, double loss)
{
  struct around a = { 0, 0 };
  for (uint32_t k = point > 0 ? point - 1 : 0; k <= point && k < l->points - 1; k++) {
    a.volume += l->cell[k].volume / 2;
    a.loss += (loss * l->cell[k].loss + (more ? more[k] : 0)) / 2;
  }
  return a;
}

/* What leaves the volume around a point, by the temperatures at it and beside it: coefficients of before, own and behind; the
 * ground's part is `loss` times its temperature. */
static void leaves(const struct hk_heat_line *l, uint32_t point, double flow, double loss, double out[3])
{
  const bool last = point == l->points - 1;
  const double mixed = HK_HEAT_SMOOTH * flow;
  out[0] = -flow / 2 - mixed;
  out[1] = (last ? flow / 2 + mixed : 2 * mixed) + loss;
  out[2] = last ? 0 : flow / 2 - mixed;
}

/* Puts the equation of a point; dt = INFINITY: of the steady state. */
static void put_row(const struct hk_heat_line *l, const struct columns *c, uint32_t i, double flow, const double *more, double dt,
                    double loss)
{
  const struct around a = around(l, i, more, loss);
  const double keeps = isinf(dt) ? 0 : a.volume / dt, w = isinf(dt) ? 1 : HK_HEAT_WEIGHT, *is = &l->state[2 * (size_t)i];
  double now[3], before[3];
  leaves(l, i, flow, a.loss, now);
  leaves(l, i, isinf(dt) ? flow : is[1], a.loss, before);
  for (uint32_t k = 0; k < 3; k++)
    c->band[3 * (size_t)i + k] = w * now[k];
  c->band[3 * (size_t)i + 1] += keeps;
  c->right[i] = a.loss * l->ground;
  if (isinf(dt))
    return;
  const double behind = i + 1 < l->points ? is[2] : 0;
  c->right[i] += keeps * is[0] - (1 - w) * (before[0] * is[-2] + before[1] * is[0] + before[2] * behind);
}

static int heat_solve(struct hk_heat_line *l, double temperature, double flow, const double *more, double dt, double loss)
{
  const struct columns c = heat_columns_of(l);
  const struct hk_band_shape shape = hk_heat_shape(l->points);
  c.band[0] = c.band[2] = 0;
  c.band[1] = 1;
  c.right[0] = temperature;
  for (uint32_t i = 1; i < l->points; i++)
    put_row(l, &c, i, flow, more, dt, loss);
  const struct hk_band_outcome o = hk_band_solve_one(l->work, &shape, 0, c.band, c.right, c.next);
  for (uint32_t i = 0; i < l->points && o.status == 0; i++)
    if (!isfinite(c.next[i]))
      return -ERANGE;
  for (uint32_t i = 0; i < l->points && o.status == 0; i++) {
    l->state[2 * (size_t)i] = c.next[i];
    l->state[2 * (size_t)i + 1] = flow;
  }
  return o.status;
}

int hk_heat_steady(struct hk_heat_line *l, double temperature, double flow, double loss)
{
  return flow > 0 && isfinite(flow) && isfinite(temperature) ? heat_solve(l, temperature, flow, NULL, INFINITY, loss) : -EDOM;
}

int hk_heat_step(struct hk_heat_line *l, double temperature, double flow, const double *more, double dt, double loss)
{
  return flow >= 0 && isfinite(flow) && isfinite(temperature) ? heat_solve(l, temperature, flow, more, dt, loss) : -ERANGE;
}
