/* One band system, solved by one thread: elimination with partial pivoting as LAPACK's dgbtf2 does it, K diagonals on either
 * side, from the first row to the last, with the right side beside it; then backwards; then the backward error.
 *
 * The window of the elimination, K + 1 rows of 2 K + 1 columns, stays in registers; of a row that is done, 2 K + 2 numbers go to
 * memory (1 / pivot, U, y), and are read backwards. L is not kept: a solution is refined by eliminating once more. Memory is read
 * ahead, in chunks of rows, while a chunk is computed: that hides its latency, since a multiprocessor has few of these threads.
 *
 * Rows says what the matrix is:
 *
 *   static constexpr int half            K
 *   static constexpr int chunk           rows that are loaded at once
 *   struct loaded                        what is loaded of them
 *   load(loaded &, row)                  rows row .. row + chunk - 1, of which those from n on are not there
 *   take(loaded, row, k, a, right)       row + k of them; zeros from n on
 *   only(row, a, right)                  one row, of the first K + 1
 *   right                                NULL, or right sides in place of the rows' own
 *
 * where a are columns row - K .. row + K, zeros where there is none. Chunks begin at rows 1 and K + 1 plus multiples of chunk. */
#ifndef HK_BAND_THREAD_SOLVE_CUH
#define HK_BAND_THREAD_SOLVE_CUH

#include "cpu/band/band.h"

#include <errno.h>

/* Numbers of a row that is done. */
template <int K> constexpr int hk_band_done = 2 * K + 2;

/* What the thread works on: numbers of a vector are `stride` apart. */
struct hk_band_thread {
  uint32_t n;
  size_t stride;
  double *done;     /* n rows of hk_band_done numbers, each of them stride apart */
  double *x;        /* n */
  double *residual; /* n: where a solution is refined */
};

template <int K> struct hk_band_window {
  double a[K + 1][2 * K + 1];
  double right[K + 1];
  double top[2 * K + 1]; /* the largest number of each column */
};

/* Calls body(row, a, right) for rows from .. end - 1, those from n on with zeros. */
template <class Rows, class Body>
static __device__ __forceinline__ void hk_band_rows(const Rows &rows, uint32_t from, uint32_t end, Body body)
{
  typename Rows::loaded now, next;
  rows.load(now, from);
  for (uint32_t row = from; row < end; row += Rows::chunk) {
    rows.load(next, row + Rows::chunk);
#pragma unroll
    for (int k = 0; k < Rows::chunk; k++)
      if (row + k < end) {
        double a[2 * Rows::half + 1], right;
        rows.take(now, row, k, a, right);
        body(row + k, a, right);
      }
    now = next;
  }
}

/* The first row of the window becomes that of the pivot. */
template <int K> static __device__ __forceinline__ void hk_band_exchange(hk_band_window<K> &w)
{
  double best = fabs(w.a[0][0]);
  int pivot = 0;
#pragma unroll
  for (int i = 1; i <= K; i++)
    if (fabs(w.a[i][0]) > best) {
      best = fabs(w.a[i][0]);
      pivot = i;
    }
#pragma unroll
  for (int i = 1; i <= K; i++) {
    const bool is = pivot == i;
#pragma unroll
    for (int j = 0; j <= 2 * K; j++) {
      const double upper = w.a[0][j], lower = w.a[i][j];
      w.a[0][j] = is ? lower : upper;
      w.a[i][j] = is ? upper : lower;
    }
    const double upper = w.right[0], lower = w.right[i];
    w.right[0] = is ? lower : upper;
    w.right[i] = is ? upper : lower;
  }
}

/* Eliminates the first column of the window, whose row becomes `done`; the window moves on by a row and a column, of which it
 * does not have the numbers yet. False: there is no pivot. */
template <int K> static __device__ __forceinline__ bool hk_band_eliminate(hk_band_window<K> &w, double (&done)[hk_band_done<K>])
{
  hk_band_exchange(w);
  const bool fine = fabs(w.a[0][0]) >= HK_BAND_PIVOT * w.top[0] && w.top[0] > 0;
  done[0] = 1 / w.a[0][0];
#pragma unroll
  for (int j = 1; j <= 2 * K; j++) {
    done[j] = w.a[0][j];
    w.top[j - 1] = w.top[j];
  }
  done[2 * K + 1] = w.right[0];
  w.top[2 * K] = 0;
#pragma unroll
  for (int i = 1; i <= K; i++) {
    const double by = w.a[i][0] * done[0];
#pragma unroll
    for (int j = 1; j <= 2 * K; j++)
      w.a[i - 1][j - 1] = w.a[i][j] - by * done[j];
    w.a[i - 1][2 * K] = 0;
    w.right[i - 1] = w.right[i] - by * done[2 * K + 1];
  }
  return fine;
}

/* Eliminates all. The first column without a pivot; n: each has one. */
template <class Rows> static __device__ uint32_t hk_band_forward(const hk_band_thread &t, const Rows &rows)
{
  constexpr int K = Rows::half;
  hk_band_window<K> w = {};
  uint32_t singular = t.n;
#pragma unroll
  for (int i = 0; i <= K; i++) {
    double a[2 * K + 1];
    rows.only(i, a, w.right[i]);
#pragma unroll
    for (int j = 0; j <= K + i; j++) {
      w.a[i][j] = a[j - i + K];
      w.top[j] = fmax(w.top[j], fabs(w.a[i][j]));
    }
  }
  hk_band_rows(rows, K + 1, t.n + K + 1, [&](uint32_t row, const double(&a)[2 * K + 1], double right) {
    const uint32_t column = row - K - 1;
    double done[hk_band_done<K>];
    if (!hk_band_eliminate(w, done) && singular == t.n)
      singular = column;
    double *to = t.done + (size_t)column * hk_band_done<K> * t.stride;
#pragma unroll
    for (int j = 0; j < hk_band_done<K>; j++)
      to[j * t.stride] = done[j];
#pragma unroll
    for (int j = 0; j <= 2 * K; j++) {
      w.a[K][j] = a[j];
      w.top[j] = fmax(w.top[j], fabs(a[j]));
    }
    w.right[K] = right;
  });
  return singular;
}

/* Rows row, row - 1, .. of what is done; those before the first are not there. */
template <int K, int CHUNK>
static __device__ __forceinline__ void hk_band_load_done(const hk_band_thread &t, uint32_t row,
                                                         double (&to)[CHUNK][hk_band_done<K>])
{
#pragma unroll
  for (int k = 0; k < CHUNK; k++)
#pragma unroll
    for (int j = 0; j < hk_band_done<K>; j++)
      to[k][j] = row >= (uint32_t)k && row < t.n ? t.done[((size_t)(row - k) * hk_band_done<K> + j) * t.stride] : 0;
}

/* x becomes, or changes by, the solution. */
template <int K, int CHUNK> static __device__ void hk_band_backward(const hk_band_thread &t, bool change)
{
  double x[2 * K + 1] = {}, now[CHUNK][hk_band_done<K>], next[CHUNK][hk_band_done<K>]; /* x[j]: of the row + j */
  hk_band_load_done<K, CHUNK>(t, t.n - 1, now);
  for (uint32_t done = 0; done < t.n; done += CHUNK) {
    const uint32_t row = t.n - 1 - done; /* wraps around where there is none before the chunk */
    hk_band_load_done<K, CHUNK>(t, row - CHUNK, next);
#pragma unroll
    for (int k = 0; k < CHUNK; k++) {
      double rest = now[k][2 * K + 1];
#pragma unroll
      for (int j = 2 * K; j >= 1; j--) { /* what was found last comes last */
        x[j] = x[j - 1];
        rest -= now[k][j] * x[j];
      }
      x[0] = rest * now[k][0];
      if (row >= (uint32_t)k)
        t.x[(size_t)(row - k) * t.stride] = x[0] + (change ? t.x[(size_t)(row - k) * t.stride] : 0);
    }
#pragma unroll
    for (int k = 0; k < CHUNK; k++)
#pragma unroll
      for (int j = 0; j < hk_band_done<K>; j++)
        now[k][j] = next[k][j];
  }
}

/* The largest numbers of a system and its solution, of which its backward error is made. */
struct hk_band_norms {
  double matrix, solution, right, residual;
};

static __device__ __forceinline__ double hk_band_error(const hk_band_norms &n)
{
  return n.residual > 0 ? n.residual / (n.matrix * n.solution + n.right) : 0;
}

/* A row's part in them; x[K]: of the row. */
template <int K>
static __device__ __forceinline__ double hk_band_measure(hk_band_norms &norms, const double (&a)[2 * K + 1], double right,
                                                         const double (&x)[2 * K + 1])
{
  double rest = right, sum = 0;
#pragma unroll
  for (int j = 0; j <= 2 * K; j++) {
    rest -= a[j] * x[j];
    sum += fabs(a[j]);
  }
  norms.matrix = fmax(norms.matrix, sum);
  norms.solution = fmax(norms.solution, fabs(x[K]));
  norms.right = fmax(norms.right, fabs(right));
  norms.residual = rest == rest ? fmax(norms.residual, fabs(rest)) : INFINITY;
  return rest;
}

/* The backward error of x; where `store` is said, residual becomes b - A x. */
template <class Rows> static __device__ double hk_band_check(const hk_band_thread &t, const Rows &rows, bool store)
{
  constexpr int K = Rows::half;
  hk_band_norms norms = {};
  double x[2 * K + 1] = {}; /* of row - K .. row + K */
#pragma unroll
  for (int j = 0; j < K; j++)
    x[K + 1 + j] = (uint32_t)j < t.n ? t.x[j * t.stride] : 0;
  const auto body = [&](uint32_t row, const double(&a)[2 * K + 1], double right) {
#pragma unroll
    for (int j = 0; j < 2 * K; j++)
      x[j] = x[j + 1];
    x[2 * K] = row + K < t.n ? t.x[(size_t)(row + K) * t.stride] : 0;
    const double rest = hk_band_measure<K>(norms, a, right, x);
    if (store)
      t.residual[(size_t)row * t.stride] = rest;
  };
  double a[2 * K + 1], right;
  rows.only(0, a, right);
  body(0, a, right);
  hk_band_rows(rows, 1, t.n, body);
  return hk_band_error(norms);
}

/* Solves it. CHUNK: rows that are read at once on the way back. */
template <class Rows, int CHUNK> static __device__ hk_band_outcome hk_band_thread_solve(const hk_band_thread &t, Rows rows)
{
  hk_band_outcome out = {};
  out.singular = hk_band_forward(t, rows);
  if (out.singular < t.n) {
    out.status = -EDOM;
    return out;
  }
  out.singular = 0;
  hk_band_backward<Rows::half, CHUNK>(t, false);
  out.error = hk_band_check(t, rows, false);
  if (out.error > HK_BAND_ERROR) {
    Rows again = rows;
    (void)hk_band_check(t, rows, true);
    again.right = t.residual;
    (void)hk_band_forward(t, again);
    hk_band_backward<Rows::half, CHUNK>(t, true);
    out.error = hk_band_check(t, rows, false);
    out.refined = 1;
  }
  out.status = out.error <= HK_BAND_ERROR ? 0 : -ERANGE; /* also where it is no number */
  return out;
}

/* A matrix in memory, as hk_band_shape has it. */
template <int K, int CHUNK> struct hk_band_stored {
  static constexpr int half = K, chunk = CHUNK;
  struct loaded {
    double a[CHUNK][2 * K + 1], right[CHUNK];
  };
  uint32_t n, below, above;
  size_t stride;
  const double *a, *b, *right;

  __device__ __forceinline__ void only(uint32_t row, double (&to)[2 * K + 1], double &of) const
  {
    const uint32_t width = below + 1 + above;
#pragma unroll
    for (int j = 0; j <= 2 * K; j++) {
      const uint32_t column = row + j - K, at = j - K + below; /* wrap around where there is none */
      to[j] = row < n && column < n && at < width ? a[((size_t)row * width + at) * stride] : 0;
    }
    of = row < n ? (right ? right : b)[(size_t)row * stride] : 0;
  }
  __device__ __forceinline__ void load(loaded &to, uint32_t row) const
  {
#pragma unroll
    for (int k = 0; k < CHUNK; k++)
      only(row + k, to.a[k], to.right[k]);
  }
  __device__ __forceinline__ void take(const loaded &from, uint32_t, int k, double (&to)[2 * K + 1], double &of) const
  {
#pragma unroll
    for (int j = 0; j <= 2 * K; j++)
      to[j] = from.a[k][j];
    of = from.right[k];
  }
};

#endif
