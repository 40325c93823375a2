/* A step of one line of pipes by one thread: what hk_pipeline_step does on the host. The matrix is never in memory: its rows are
 * made of cells and states when they are needed (cpu/model/pipeline_rows.h), and solved by gpu/band/thread_solve.cuh.
 *
 * Numbers of 32 lines lie side by side: of a line each column has every 32nd number (HK_PIPES_STRIDE). */
#ifndef HK_PIPES_STEP_CUH
#define HK_PIPES_STEP_CUH

#include "cpu/model/pipeline_rows.h"
#include "gpu/band/thread_solve.cuh"

#define HK_PIPES_STRIDE 32
#define HK_PIPES_CELL 4 /* numbers for each cell, in the order of struct hk_pipeline_cell */

/* Columns of a line, from its first number on. */
struct hk_pipes_line {
  uint32_t cells;
  double impedance;
  const double *cell;               /* HK_PIPES_CELL numbers for each cell */
  double *state;                    /* s, q of each point */
  double *next, *change, *residual; /* like the state */
  double *done;                     /* hk_band_done<2> numbers for each unknown */
  double *ring;                     /* shared memory, see thread_solve.cuh */
};

/* Rows of a line's matrix, for hk_band_thread_solve: a chunk is a cell. */
struct hk_pipes_rows {
  static constexpr int half = 2, chunk = 2, numbers = 10;
  struct carry {
    double was[2], is[2]; /* s, q of the cell's first point */
  };
  const hk_pipes_line *line;
  const double *is; /* state at the start of the Newton step */
  hk_pipeline_end end[2];
  double dt, friction;
  const double *right;

  __device__ __forceinline__ uint32_t n() const { return 2 * line->cells + 2; }

  __device__ __forceinline__ void begin(carry &c, uint32_t row) const
  {
    const size_t at = (size_t)(row / 2) * 2 * HK_PIPES_STRIDE;
#pragma unroll
    for (int k = 0; k < 2; k++) {
      c.was[k] = line->state[at + k * HK_PIPES_STRIDE];
      c.is[k] = is[at + k * HK_PIPES_STRIDE];
    }
  }

  /* The cell's four numbers, s and q of its second point before and now, and right sides. */
  template <class Ring> __device__ __forceinline__ void read(const Ring &ring, int slot, uint32_t row) const
  {
    const uint32_t j = row / 2;
    const bool there = j < line->cells;
    const double *cell = line->cell + (size_t)j * HK_PIPES_CELL * HK_PIPES_STRIDE;
    const size_t point = (size_t)(j + 1) * 2 * HK_PIPES_STRIDE;
#pragma unroll
    for (int k = 0; k < HK_PIPES_CELL; k++)
      ring.read(slot, k, cell + k * HK_PIPES_STRIDE, there);
#pragma unroll
    for (int k = 0; k < 2; k++) {
      ring.read(slot, 4 + k, line->state + point + k * HK_PIPES_STRIDE, there);
      ring.read(slot, 6 + k, is + point + k * HK_PIPES_STRIDE, there);
    }
    if (right)
#pragma unroll
      for (int k = 0; k < 2; k++)
        ring.read(slot, 8 + k, right + (size_t)(row + k) * HK_PIPES_STRIDE, row + k < n());
  }

  __device__ __forceinline__ void end_row(int k, double s, double q, double (&a)[5], double &of) const
  {
    double row[2];
    hk_pipeline_end_row(&end[k], line->impedance, s, q, row, &of);
#pragma unroll
    for (int j = 0; j < 5; j++)
      a[j] = 0;
    a[k == 0 ? 2 : 1] = row[0];
    a[k == 0 ? 3 : 2] = row[1];
  }

  template <class Ring>
  __device__ __forceinline__ void take(const Ring &ring, int slot, uint32_t row, int k, carry &c, double (&a)[5],
                                       double &of) const
  {
    if (row + k >= n()) {
#pragma unroll
      for (int j = 0; j < 5; j++)
        a[j] = 0;
      of = 0;
    } else if (row + 1 == n()) {
      end_row(1, c.is[0], c.is[1], a, of);
    } else {
      const hk_pipeline_cell cell = { ring.get(slot, 0), ring.get(slot, 1), ring.get(slot, 2), ring.get(slot, 3) };
      const double was[4] = { c.was[0], c.was[1], ring.get(slot, 4), ring.get(slot, 5) };
      const double at[4] = { c.is[0], c.is[1], ring.get(slot, 6), ring.get(slot, 7) };
      double rows[2][HK_PIPELINE_WIDTH], rest[2];
      hk_pipeline_cell_rows(&cell, 0, dt, friction, was, at, rows, rest);
#pragma unroll
      for (int j = 0; j < 5; j++)
        a[j] = rows[k][j];
      of = rest[k];
      if (k == 1)
        c = { { was[2], was[3] }, { at[2], at[3] } };
    }
    if (right && row + k < n())
      of = ring.get(slot, 8 + k);
  }

  /* Computes one of the first three rows. */
  __device__ __forceinline__ void only(uint32_t row, double (&a)[5], double &of) const
  {
    double was[4], at[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      was[k] = line->state[k * HK_PIPES_STRIDE];
      at[k] = is[k * HK_PIPES_STRIDE];
    }
    const hk_pipeline_cell cell = { line->cell[0], line->cell[HK_PIPES_STRIDE], line->cell[2 * HK_PIPES_STRIDE],
                                    line->cell[3 * HK_PIPES_STRIDE] };
    double rows[2][HK_PIPELINE_WIDTH], rest[2];
    hk_pipeline_cell_rows(&cell, 0, dt, friction, was, at, rows, rest);
    if (row == 0)
      end_row(0, at[0], at[1], a, of);
#pragma unroll
    for (int j = 0; j < 5; j++)
      a[j] = row == 0 ? a[j] : rows[row == 2][j];
    of = row == 0 ? of : rest[row == 2];
    if (right)
      of = right[row * HK_PIPES_STRIDE];
  }
};

#define HK_PIPES_ONCE 16 /* numbers loaded before any is written, so that the loads overlap */

/* to = from + change, or from if change is NULL. Returns whether all numbers are finite. */
static __device__ bool hk_pipes_add(double *to, const double *from, const double *change, uint32_t n)
{
  bool finite = true;
  for (uint32_t i = 0; i < n; i += HK_PIPES_ONCE) {
    double now[HK_PIPES_ONCE], by[HK_PIPES_ONCE];
#pragma unroll
    for (int k = 0; k < HK_PIPES_ONCE; k++) {
      now[k] = i + k < n ? from[(size_t)(i + k) * HK_PIPES_STRIDE] : 0;
      by[k] = change && i + k < n ? change[(size_t)(i + k) * HK_PIPES_STRIDE] : 0;
    }
#pragma unroll
    for (int k = 0; k < HK_PIPES_ONCE; k++) {
      now[k] = change ? now[k] + by[k] : now[k];
      finite = finite && fabs(now[k]) < INFINITY;
      if (i + k < n)
        to[(size_t)(i + k) * HK_PIPES_STRIDE] = now[k];
    }
  }
  return finite;
}

/* Advances the line by dt seconds, with HK_PIPELINE_NEWTON Newton steps. Returns 0; -EDOM: the equations are singular, at
 * *singular; -ERANGE: there is no finite solution. After an error the state is unchanged. */
static __device__ int hk_pipes_step(const hk_pipes_line &l, const hk_pipeline_end (&end)[2], double dt, double friction,
                                    uint32_t *singular)
{
  const uint32_t n = 2 * l.cells + 2;
  const hk_band_thread t = { n, HK_PIPES_STRIDE, l.done, l.change, l.residual, l.ring };
  bool finite = true;
  for (int k = 0; k < HK_PIPELINE_NEWTON; k++) {
    const double *is = k == 0 ? l.state : l.next;
    const hk_pipes_rows rows = { &l, is, { end[0], end[1] }, dt, friction, nullptr };
    const hk_band_outcome o = hk_band_thread_solve(t, rows);
    if (o.status != 0) {
      *singular = o.singular / 2;
      return o.status;
    }
    finite = hk_pipes_add(l.next, is, l.change, n) && finite;
  }
  if (!finite)
    return -ERANGE;
  (void)hk_pipes_add(l.state, l.next, nullptr, n);
  return 0;
}

#endif
