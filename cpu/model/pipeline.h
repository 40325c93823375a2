/* One line of pipes full of a liquid: computes the pressure and flow at its points for successive times.
 *
 * Water hammer (Wylie and Streeter, Fluid Transients in Systems, 1993, chapters 2 and 3): with the pressure p, the flow q along
 * the line, the density rho, the area A, the diameter D, the wave speed a, the height h and Darcy's friction factor f
 *
 *   dp/dt + (rho a^2 / A) dq/dx = 0      dq/dt + (A / rho) dp/dx + A g dh/dx + f q |q| / (2 D A) = 0
 *
 * by Preissmann's box scheme: both equations are evaluated at the middle of a cell, and times are weighted with
 * HK_PIPELINE_WEIGHT (new) and 1 - HK_PIPELINE_WEIGHT (old). The scheme is stable for any step. A point has two unknowns,
 * s = p / Z and q, with Z = rho a / A of the first pipe; each cell gives two equations, each end of the line one; the matrix has
 * two diagonals below the main one and two above. A step makes HK_PIPELINE_NEWTON Newton steps; each is solved with partial
 * pivoting, to a backward error of at most HK_BAND_ERROR (cpu/band/band.h).
 *
 * On one machine the same numbers give the same bits. Thread: the owner's. */
#ifndef HK_PIPELINE_H
#define HK_PIPELINE_H

#include "cpu/band/band.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_PIPELINE_WEIGHT 0.55
#define HK_PIPELINE_NEWTON 2

/* A cell of length dx. */
struct hk_pipeline_cell {
  double wave;     /* rho a^2 / (A Z dx), 1/s */
  double push;     /* A Z / (rho dx), 1/s */
  double friction; /* f / (2 D A), 1/m^3 */
  double lift;     /* A g dh/dx, m^3/s^2 */
};

/* The equation at an end: p P + q Q + square Q |Q| = is, with the pressure P in Pa and the flow Q along the line in m^3/s.
 * { 1, 0, 0, P } is a measured pressure, { 0, 1, 0, Q } a measured flow. */
struct hk_pipeline_end {
  double p, q, square, is;
};

struct hk_pipeline {
  const struct hk_pipeline_cell *cell; /* owned by the caller */
  uint32_t points;                     /* cells + 1; at least 2 */
  double impedance;                    /* Z, Pa s/m^3 */
  double *state;                       /* s, q of each point */
  double *memory;                      /* work memory of a step */
  struct hk_band_work work;
  double error;      /* the largest backward error of the last step */
  uint32_t refined;  /* number of refined solutions */
  uint32_t singular; /* after -EDOM: the equations of the points up to this one are singular */
};

/* Makes a line at rest with a pressure of zero. cells: 1..2^24. Returns 0, -ENOMEM or -ELIBACC. hk_pipeline_close frees the
 * memory of a line, which may be zeroed. */
int hk_pipeline_open(struct hk_pipeline *line, const struct hk_pipeline_cell *cell, uint32_t cells, double impedance);
void hk_pipeline_close(struct hk_pipeline *line);
/* Bytes of a line, without its cells. */
uint64_t hk_pipeline_need(uint32_t cells);

/* Computes the steady state. friction: factor of the friction of all cells, > 0. Returns 0, or -EDOM: there is no steady state,
 * or it is not unique. */
int hk_pipeline_steady(struct hk_pipeline *line, const struct hk_pipeline_end end[2], double friction);
/* Advances the line by dt seconds. sink: m^3/s that leave each cell; NULL: none. Returns 0; -EDOM: the equations are singular, at
 * line->singular; -ERANGE: there is no finite solution. After an error the state is unchanged. */
int hk_pipeline_step(struct hk_pipeline *line, const struct hk_pipeline_end end[2], const double *sink, double dt,
                     double friction);

static inline double hk_pipeline_pressure(const struct hk_pipeline *line, uint32_t point) /* Pa */
{
  return line->state[2 * (uint64_t)point] * line->impedance;
}

static inline double hk_pipeline_flow(const struct hk_pipeline *line, uint32_t point) /* m^3/s */
{
  return line->state[2 * (uint64_t)point + 1];
}

#ifdef __cplusplus
}
#endif
#endif
