/* Moves by chance: see simulated_moves.h. */
#include "daemon/cli/simulated_moves.h"

#include <math.h>
#include <stdlib.h>

double hk_simulated_normal(unsigned short chance[3])
{
  const double a = 1 - erand48(chance), b = erand48(chance);
  return sqrt(-2 * log(a)) * cos(2 * 3.14159265358979323846 * b);
}

double hk_simulated_wait(unsigned short chance[3], double mean)
{
  return -mean * log(1 - erand48(chance));
}

void hk_simulated_move_on(struct hk_simulated_move *m, double time, double dt, double ramp, double mean, unsigned short chance[3])
{
  if (time >= m->next) {
    m->target = m->low + (m->high - m->low) * erand48(chance);
    m->next = time + hk_simulated_wait(chance, mean);
  }
  const double way = (m->high - m->low) * dt / ramp;
  m->now += fmax(-way, fmin(way, m->target - m->now));
}

void hk_simulated_wander(double *value, double spread, double slowly, double dt, unsigned short chance[3])
{
  *value += -*value * dt / slowly + spread * sqrt(2 * dt / slowly) * hk_simulated_normal(chance);
}
