/* The equations of a line of pipes (pipeline.h) as rows of a band matrix, for one Newton step. Written once for host and
 * device.
 *
 * Order of the equations: the first end, then continuity and momentum of each cell, then the last end. Order of the unknowns: s,
 * q by point. A row has HK_PIPELINE_WIDTH numbers, the first of which is HK_PIPELINE_BELOW columns before the diagonal, as in
 * cpu/band/band.h. `rest` is the negative residual of the equation: the right side for the change of the unknowns. */
#ifndef HK_PIPELINE_ROWS_H
#define HK_PIPELINE_ROWS_H

#include "cpu/detector.h"
#include "cpu/model/pipeline.h"

#include <math.h>

#define HK_PIPELINE_BELOW 2 /* diagonals */
#define HK_PIPELINE_ABOVE 2
#define HK_PIPELINE_WIDTH (HK_PIPELINE_BELOW + 1 + HK_PIPELINE_ABOVE)

/* The row of an end with the unknowns s and q, divided by its largest coefficient; only the coefficients of s and q. */
HK_INLINE void hk_pipeline_end_row(const struct hk_pipeline_end *e, double impedance, double s, double q, double row[2],
                                   double *rest)
{
  const double by_s = e->p * impedance, by_q = e->q + 2 * e->square * fabs(q);
  const double largest = fmax(fabs(by_s), fabs(by_q)), scale = largest > 0 ? 1 / largest : 1;
  row[0] = by_s * scale;
  row[1] = by_q * scale;
  *rest = -(by_s * s + e->q * q + e->square * q * fabs(q) - e->is) * scale;
}

/* The two rows of a cell, times 2 dt. was, is: s, q of the points at its two sides, before the step and at the start of the
 * Newton step. */
HK_INLINE void hk_pipeline_cell_rows(const struct hk_pipeline_cell *cell, double sink, double dt, double friction,
                                     const double was[4], const double is[4], double row[2][HK_PIPELINE_WIDTH], double rest[2])
{
  const double w = HK_PIPELINE_WEIGHT, wave = 2 * dt * cell->wave, push = 2 * dt * cell->push,
               rub = 2 * dt * friction * cell->friction;
  const double before = (was[1] + was[3]) / 2, now = (is[1] + is[3]) / 2;
  rest[0] = -(is[0] + is[2] - was[0] - was[2] + wave * (w * (is[3] - is[1]) + (1 - w) * (was[3] - was[1]) + sink));
  row[0][0] = 0;
  row[0][1] = row[0][3] = 1;
  row[0][2] = -wave * w;
  row[0][4] = wave * w;
  rest[1] = -(is[1] + is[3] - was[1] - was[3] + push * (w * (is[2] - is[0]) + (1 - w) * (was[2] - was[0])) + 2 * dt * cell->lift +
              rub * (w * now * fabs(now) + (1 - w) * before * fabs(before)));
  row[1][0] = -push * w;
  row[1][2] = push * w;
  row[1][1] = row[1][3] = 1 + rub * w * fabs(now);
  row[1][4] = 0;
}

#endif
