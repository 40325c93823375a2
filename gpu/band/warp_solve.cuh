/* One band system, solved by one warp: as thread_solve.cuh does it, with the columns of the window among the lanes.
 *
 * Column j of the matrix lies in slot j mod (2 K + 1) as long as the window has it, the right side in one slot more; slot s
 * belongs to lane s mod 32. So nothing moves from lane to lane but the column of the pivot, which all lanes get. */
#ifndef HK_BAND_WARP_SOLVE_CUH
#define HK_BAND_WARP_SOLVE_CUH

#include "gpu/band/thread_solve.cuh"

#define HK_BAND_ALL_LANES 0xffffffffu

template <int K> struct hk_band_warp {
  static constexpr int columns = 2 * K + 1;             /* columns of the window */
  static constexpr int parts = (columns + 1 + 31) / 32; /* slots for each lane */
  static constexpr int ahead = 4;                       /* rows loaded in advance */

  uint32_t n, below, above, lane;
  const double *a, *b; /* of the system, whose numbers are contiguous */
  double *done, *x, *residual;

  struct window {
    double v[parts][K + 1], top[parts];
  };

  /* Number `place` of a row of A as columns row - K .. row + K have it; `columns`: the right side. */
  __device__ __forceinline__ double number(const double *right, uint32_t row, uint32_t place) const
  {
    const uint32_t column = row + place - K, at = place - K + below; /* wrap around if there is none */
    if (row >= n)
      return 0;
    if (place == columns)
      return right[row];
    return place < columns && column < n && at <= below + above ? a[(size_t)row * (below + 1 + above) + at] : 0;
  }

  /* The place in the window of a slot, where the window's first column lies in slot `first`. */
  __device__ __forceinline__ uint32_t place_of(uint32_t slot, uint32_t first) const
  {
    return slot >= columns ? slot : slot >= first ? slot - first : slot + columns - first;
  }

  /* What a lane has of the row that comes to the window when its first column is `column`. */
  __device__ __forceinline__ void fresh(const double *right, uint32_t column, double (&to)[parts]) const
  {
#pragma unroll
    for (int p = 0; p < parts; p++)
      to[p] = number(right, column + K, place_of(lane + 32 * p, column % columns));
  }

  __device__ __forceinline__ double of_slot(const double (&value)[parts], uint32_t slot) const
  {
    return __shfl_sync(HK_BAND_ALL_LANES, parts == 1 || slot < 32 ? value[0] : value[parts - 1], slot % 32);
  }

  /* Eliminates a column, advances the window, and fills in the fresh numbers. False: there is no pivot. */
  __device__ __forceinline__ bool eliminate(window &w, uint32_t column, const double (&fresh)[parts]) const
  {
    const uint32_t first = column % columns;
    double by[K + 1], best = 0, upper[parts];
    int pivot = 0;
#pragma unroll
    for (int i = 0; i <= K; i++) {
      by[i] = __shfl_sync(HK_BAND_ALL_LANES, parts == 1 || first < 32 ? w.v[0][i] : w.v[parts - 1][i], first % 32);
      if (fabs(by[i]) > best) {
        best = fabs(by[i]);
        pivot = i;
      }
    }
    const double top = of_slot(w.top, first);
    double found = by[0];
#pragma unroll
    for (int i = 1; i <= K; i++)
      if (pivot == i) {
        found = by[i];
        by[i] = by[0];
      }
    const double inverse = 1 / found;
#pragma unroll
    for (int p = 0; p < parts; p++) {
      const uint32_t slot = lane + 32 * p, place = place_of(slot, first);
      const bool leaves = slot == first;
      upper[p] = w.v[p][0];
#pragma unroll
      for (int i = 1; i <= K; i++)
        if (pivot == i) {
          upper[p] = w.v[p][i];
          w.v[p][i] = w.v[p][0];
        }
      if (place <= columns)
        done[(size_t)column * hk_band_done<K> + place] = leaves ? inverse : upper[p];
#pragma unroll
      for (int i = 1; i <= K; i++)
        w.v[p][i - 1] = leaves ? 0 : w.v[p][i] - by[i] * inverse * upper[p];
      w.v[p][K] = fresh[p];
      w.top[p] = fmax(leaves ? 0 : w.top[p], fabs(fresh[p]));
    }
    return best >= HK_BAND_PIVOT * top && top > 0;
  }

  /* Eliminates all columns. Returns the first column without a pivot; n: all have one. */
  __device__ uint32_t forward(const double *right) const
  {
    window w = {};
    double next[ahead][parts];
    uint32_t singular = n;
#pragma unroll
    for (int p = 0; p < parts; p++)
#pragma unroll
      for (int i = 0; i <= K; i++) {
        const uint32_t slot = lane + 32 * p, place = slot < columns ? slot + K - i : slot;
        w.v[p][i] = slot == columns || (slot < columns && place < columns) ? number(right, i, place) : 0;
        w.top[p] = fmax(w.top[p], fabs(w.v[p][i]));
      }
#pragma unroll
    for (int k = 0; k < ahead; k++)
      fresh(right, k + 1, next[k]);
    for (uint32_t from = 0; from < n; from += ahead)
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        if (from + k < n && !eliminate(w, from + k, next[k]) && singular == n)
          singular = from + k;
        fresh(right, from + k + 1 + ahead, next[k]);
      }
    __syncwarp();
    return singular;
  }

  /* A lane's part of a finished row. */
  __device__ __forceinline__ void load_done(uint32_t row, double (&to)[parts]) const
  {
#pragma unroll
    for (int p = 0; p < parts; p++) {
      const uint32_t place = place_of(lane + 32 * p, row % columns);
      to[p] = row < n && place <= columns ? done[(size_t)row * hk_band_done<K> + place] : 0;
    }
  }

  /* Sets x to the solution, or adds the solution to x. */
  __device__ void backward(bool change) const
  {
    double known[parts] = {}, next[ahead][parts];
#pragma unroll
    for (int k = 0; k < ahead; k++)
      load_done(n - 1 - k, next[k]);
    for (uint32_t back = 0; back < n; back += ahead)
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        const uint32_t row = n - 1 - back - k, first = row % columns; /* wraps around before the first row */
        double sum = 0;
#pragma unroll
        for (int p = 0; p < parts; p++) {
          const uint32_t slot = lane + 32 * p;
          sum += slot == columns ? next[k][p] : slot < columns && slot != first ? -next[k][p] * known[p] : 0;
        }
#pragma unroll
        for (uint32_t by = 16; by > 0; by /= 2)
          sum += __shfl_xor_sync(HK_BAND_ALL_LANES, sum, by);
        const double found = sum * of_slot(next[k], first);
#pragma unroll
        for (int p = 0; p < parts; p++)
          known[p] = row < n && lane + 32 * p == first ? found : known[p];
        if (row < n && lane == 0)
          x[row] = found + (change ? x[row] : 0);
        load_done(row - ahead, next[k]);
      }
    __syncwarp();
  }

  /* Returns the backward error of x, with the rows divided among the lanes; with `store`, sets residual to b - A x. */
  __device__ double check(bool store) const
  {
    hk_band_norms norms = {};
    for (uint32_t row = lane; row < n; row += 32) {
      double number_of[columns], x_of[columns];
#pragma unroll
      for (int j = 0; j < columns; j++) {
        number_of[j] = number(b, row, j);
        x_of[j] = row + j - K < n ? x[row + j - K] : 0;
      }
      const double rest = hk_band_measure<K>(norms, number_of, b[row], x_of);
      if (store)
        residual[row] = rest;
    }
#pragma unroll
    for (uint32_t by = 16; by > 0; by /= 2) {
      norms.matrix = fmax(norms.matrix, __shfl_xor_sync(HK_BAND_ALL_LANES, norms.matrix, by));
      norms.solution = fmax(norms.solution, __shfl_xor_sync(HK_BAND_ALL_LANES, norms.solution, by));
      norms.right = fmax(norms.right, __shfl_xor_sync(HK_BAND_ALL_LANES, norms.right, by));
      norms.residual = fmax(norms.residual, __shfl_xor_sync(HK_BAND_ALL_LANES, norms.residual, by));
    }
    __syncwarp();
    return hk_band_error(norms);
  }

  __device__ hk_band_outcome solve() const
  {
    hk_band_outcome out = {};
    out.singular = forward(b);
    if (out.singular < n) {
      out.status = -EDOM;
      return out;
    }
    out.singular = 0;
    backward(false);
    out.error = check(false);
    if (out.error > HK_BAND_ERROR) {
      (void)check(true);
      (void)forward(residual);
      backward(true);
      out.error = check(false);
      out.refined = 1;
    }
    out.status = out.error <= HK_BAND_ERROR ? 0 : -ERANGE; /* also if it is NaN */
    return out;
  }
};

#endif
