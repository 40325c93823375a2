/* One buried pipe that carries heat: the temperature of its water for successive times.
 *
 * With the temperature T, the flow q along the pipe, which is the same everywhere, its area A, density rho and specific heat c of
 * the water, the loss U in W/(m K) to the ground, whose temperature is T_g:
 *
 *   A dT/dt + q dT/dx = A D d2T/dx2 - (U / (rho c)) (T - T_g)
 *
 * by control volumes around the points: central differences for what flows, upwind at the last point, times weighted with
 * HK_HEAT_WEIGHT (new) and 1 - HK_HEAT_WEIGHT (old). The diffusion D of turbulent pipes is far below what cells can resolve; that
 * which the scheme has, HK_HEAT_SMOOTH q dx / A, keeps it free of waves of two cells. The first point has the measured
 * temperature, so the flow must not be negative. The matrix has a diagonal below the main one and one above, solved as in
 * cpu/band/band.h.
 *
 * The state of a point is T and q, two numbers, as that of a point of pipeline.h. Any unit of temperature will do. On one machine
 * the same numbers give the same bits. Thread: the owner's. */
#ifndef HK_MODEL_HEAT_H
#define HK_MODEL_HEAT_H

#include "cpu/band/band.h"

#define HK_HEAT_WEIGHT 0.55
#define HK_HEAT_SMOOTH 0.05

/* A cell. */
struct hk_heat_cell {
  double volume; /* m^3 */
  double loss;   /* U dx / (rho c), m^3/s: at this flow the water would lose its excess within the cell */
};

struct hk_heat_line {
  const struct hk_heat_cell *cell; /* owned by the caller, as */
  uint32_t points;                 /* cells + 1; at least 2 */
  double ground;                   /* T_g */
  double *state;                   /* T and q of each point */
  double *memory;                  /* HK_HEAT_MEMORY numbers a point */
  struct hk_band_work *work;       /* opened for hk_heat_shape, or a larger one */
};

#define HK_HEAT_MEMORY 6u

static inline struct hk_band_shape hk_heat_shape(uint32_t points)
{
  return (struct hk_band_shape){ 1, points, 1, 1 };
}

/* The steady state for a temperature at the first point and a flow > 0. loss: factor of all losses. Returns 0; -EDOM: there is
 * none; or -ERANGE. */
int hk_heat_steady(struct hk_heat_line *line, double temperature, double flow, double loss);
/* Advances the line by dt seconds. more: m^3/s of loss beside that of each cell; NULL: none. Returns 0; -EDOM: the equations are
 * singular; -ERANGE: the flow is negative, or there is no finite solution. After an error the state is unchanged. */
int hk_heat_step(struct hk_heat_line *line, double temperature, double flow, const double *more, double dt, double loss);

#endif
