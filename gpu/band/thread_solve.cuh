/* One band system, solved by one thread: elimination with partial pivoting as LAPACK's dgbtf2 does it, K diagonals on either
 * side, from the first row to the last, with the right side beside it; then backwards; then the backward error.
 *
 * The window of the elimination, K + 1 rows of 2 K + 1 columns, stays in registers; of a row that is done, 2 K + 2 numbers go to
 * memory (1 / pivot, U, y), and are read backwards. L is not kept: a solution is refined by eliminating once more.
 *
 * A multiprocessor has few of these threads, so memory is read far ahead: copies into a ring of shared memory, which each thread
 * has for itself, are under way while rows are computed (hk_band_ring).
 *
 * Rows says what the matrix is:
 *
 *   static constexpr int half         K
 *   static constexpr int chunk        rows that are read at once
 *   static constexpr int numbers      that are read of them
 *   struct carry                      what is kept from chunk to chunk; begin(carry, row): before the first
 *   read(ring, slot, row)             begins to read those of rows row .. row + chunk - 1, of which those from n on are not there
 *   take(ring, slot, row, k, carry, a, right)   row + k of them; zeros from n on
 *   only(row, a, right)               one row, of the first K + 1
 *   right                             NULL, or right sides in place of the rows' own
 *
 * where a are columns row - K .. row + K, zeros where there is none. Chunks begin at rows 1 and K + 1 plus multiples of chunk. */
#ifndef HK_BAND_THREAD_SOLVE_CUH
#define HK_BAND_THREAD_SOLVE_CUH

#include "cpu/band/band.h"

#include <errno.h>

/* Numbers of a finished row. */
template <int K> constexpr int hk_band_done = 2 * K + 2;

/* The data of a thread: numbers of a vector are `stride` apart. */
struct hk_band_thread {
  uint32_t n;
  size_t stride;
  double *done;     /* n rows of hk_band_done numbers, each of them stride apart */
  double *x;        /* n */
  double *residual; /* n: for the refinement of a solution */
  double *ring;     /* HK_BAND_AHEAD numbers of shared memory, every 32nd */
};

template <int K> struct hk_band_window {
  double a[K + 1][2 * K + 1];
  double right[K + 1];
  double top[2 * K + 1]; /* the largest number of each column */
};

/* Numbers that a thread loads in advance, in shared memory: number i of lane l at 32 i + l. */
#ifndef HK_BAND_AHEAD
#define HK_BAND_AHEAD 96
#endif

/* A ring of slots of so many numbers. */
template <int NUMBERS> struct hk_band_ring {
  static constexpr int depth = HK_BAND_AHEAD / NUMBERS;
  double *own; /* the lane's first number */

  /* Begins to read number k of a slot; zero if there is none. */
  __device__ __forceinline__ void read(int slot, int k, const double *from, bool there) const
  {
    double *to = own + (slot * NUMBERS + k) * 32;
#ifdef __CUDA_ARCH__
    const unsigned bytes = there ? 8 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(bytes)
                 : "memory"); /* the former contents of the slot were used before */
#else
    *to = there ? *from : 0;
#endif
  }
  __device__ __forceinline__ double get(int slot, int k) const
  {
    return own[(slot * NUMBERS + k) * 32];
  }
  /* Call before a pass, which reads what this thread wrote. */
  __device__ __forceinline__ void begin() const
  {
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
  }
  /* Ends a slot: all reads begun since the previous one belong to it. */
  __device__ __forceinline__ void commit() const
  {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  /* Waits for the oldest slot. */
  __device__ __forceinline__ void wait() const
  {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(depth - 1) : "memory");
#endif
  }
  /* Waits for all slots. */
  __device__ __forceinline__ void drain() const
  {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }
};

/* Calls body(row, a, right, x) for rows from .. end - 1, those from n on with zeros. LOOK: also x[row + K] is read. */
template <bool LOOK, class Rows, class Body>
static __device__ __forceinline__ void hk_band_rows(const hk_band_thread &t, const Rows &rows, uint32_t from, uint32_t end,
                                                    Body body)
{
  constexpr int K = Rows::half, C = Rows::chunk, numbers = Rows::numbers + (LOOK ? C : 0);
  const hk_band_ring<numbers> ring = { t.ring };
  const auto read = [&](int slot, uint32_t row) {
    rows.read(ring, slot, row);
    if (LOOK)
#pragma unroll
      for (int k = 0; k < C; k++)
        ring.read(slot, Rows::numbers + k, t.x + (size_t)(row + K + k) * t.stride, row + K + k < t.n);
    ring.commit();
  };
  typename Rows::carry carry;
  ring.begin();
  rows.begin(carry, from);
  for (int slot = 0; slot < ring.depth; slot++)
    read(slot, from + slot * C);
  int slot = 0;
  for (uint32_t row = from; row < end; row += C) {
    ring.wait();
#pragma unroll
    for (int k = 0; k < C; k++)
      if (row + k < end) {
        double a[2 * K + 1], right;
        rows.take(ring, slot, row, k, carry, a, right);
        body(row + k, a, right, LOOK ? ring.get(slot, Rows::numbers + k) : 0);
      }
    read(slot, row + ring.depth * C);
    slot = slot + 1 < ring.depth ? slot + 1 : 0;
  }
  ring.drain();
}

/* Swaps the pivot's row into the first row of the window. */
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

/* Eliminates the first column of the window, writes its row to `done`, and advances the window by a row and a column, whose
 * numbers it does not have yet. False: there is no pivot. */
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

/* Eliminates all columns. Returns the first column without a pivot; n: all have one. */
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
  hk_band_rows<false>(t, rows, K + 1, t.n + K + 1, [&](uint32_t row, const double(&a)[2 * K + 1], double right, double) {
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

/* Sets x to the solution, or adds the solution to x. */
template <int K> static __device__ void hk_band_backward(const hk_band_thread &t, bool change)
{
  constexpr int numbers = hk_band_done<K>;
  const hk_band_ring<numbers> ring = { t.ring };
  double x[2 * K + 1] = {};                       /* x[j]: x of row + j */
  const auto read = [&](int slot, uint32_t row) { /* wraps around before the first row */
                                                  const double *from = t.done + (size_t)row * numbers * t.stride;
#pragma unroll
                                                  for (int j = 0; j < numbers; j++)
                                                    ring.read(slot, j, from + j * t.stride, row < t.n);
                                                  ring.commit();
  };
  ring.begin();
  for (int slot = 0; slot < ring.depth; slot++)
    read(slot, t.n - 1 - slot);
  int slot = 0;
  for (uint32_t row = t.n; row-- > 0;) {
    ring.wait();
    double rest = ring.get(slot, 2 * K + 1);
#pragma unroll
    for (int j = 2 * K; j >= 1; j--) { /* what was found last comes last */
      x[j] = x[j - 1];
      rest -= ring.get(slot, j) * x[j];
    }
    x[0] = rest * ring.get(slot, 0);
    t.x[(size_t)row * t.stride] = x[0] + (change ? t.x[(size_t)row * t.stride] : 0);
    read(slot, row - ring.depth);
    slot = slot + 1 < ring.depth ? slot + 1 : 0;
  }
  ring.drain();
}

/* The largest numbers of a system and its solution, which determine its backward error. */
struct hk_band_norms {
  double matrix, solution, right, residual;
};

static __device__ __forceinline__ double hk_band_error(const hk_band_norms &n)
{
  return n.residual > 0 ? n.residual / (n.matrix * n.solution + n.right) : 0;
}

/* Adds a row to them; x[K]: x of the row. */
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

/* Returns the backward error of x; with `store`, sets residual to b - A x. */
template <class Rows> static __device__ double hk_band_check(const hk_band_thread &t, const Rows &rows, bool store)
{
  constexpr int K = Rows::half;
  hk_band_norms norms = {};
  double x[2 * K + 1] = {}; /* of row - K .. row + K */
#pragma unroll
  for (int j = 0; j < K; j++)
    x[K + 1 + j] = (uint32_t)j < t.n ? t.x[j * t.stride] : 0;
  const auto body = [&](uint32_t row, const double(&a)[2 * K + 1], double right, double last) {
#pragma unroll
    for (int j = 0; j < 2 * K; j++)
      x[j] = x[j + 1];
    x[2 * K] = last;
    const double rest = hk_band_measure<K>(norms, a, right, x);
    if (store)
      t.residual[(size_t)row * t.stride] = rest;
  };
  double a[2 * K + 1], right;
  rows.only(0, a, right);
  body(0, a, right, K < t.n ? t.x[K * t.stride] : 0);
  hk_band_rows<true>(t, rows, 1, t.n, body);
  return hk_band_error(norms);
}

template <class Rows> static __device__ hk_band_outcome hk_band_thread_solve(const hk_band_thread &t, Rows rows)
{
  hk_band_outcome out = {};
  out.singular = hk_band_forward(t, rows);
  if (out.singular < t.n) {
    out.status = -EDOM;
    return out;
  }
  out.singular = 0;
  hk_band_backward<Rows::half>(t, false);
  out.error = hk_band_check(t, rows, false);
  if (out.error > HK_BAND_ERROR) {
    Rows again = rows;
    (void)hk_band_check(t, rows, true);
    again.right = t.residual;
    (void)hk_band_forward(t, again);
    hk_band_backward<Rows::half>(t, true);
    out.error = hk_band_check(t, rows, false);
    out.refined = 1;
  }
  out.status = out.error <= HK_BAND_ERROR ? 0 : -ERANGE; /* also if it is NaN */
  return out;
}

/* A matrix in memory, in the layout of hk_band_shape. */
template <int K> struct hk_band_stored {
  static constexpr int half = K, chunk = 1, numbers = 2 * K + 2;
  struct carry {
  };
  uint32_t n, below, above;
  size_t stride;
  const double *a, *b, *right;

  /* Calls take(j, address, whether it is there) for columns row - K .. row + K, and for the right side. */
  template <class Take> __device__ __forceinline__ void each(uint32_t row, Take take) const
  {
    const uint32_t width = below + 1 + above;
    const double *first = a + (size_t)row * width * stride;
#pragma unroll
    for (int j = 0; j <= 2 * K; j++) {
      const uint32_t column = row + j - K, at = j - K + below; /* wrap around if there is none */
      take(j, first + (int64_t)(int32_t)at * (int64_t)stride, row < n && column < n && at < width);
    }
    take(2 * K + 1, (right ? right : b) + (size_t)row * stride, row < n);
  }
  __device__ __forceinline__ void only(uint32_t row, double (&to)[2 * K + 1], double &of) const
  {
    each(row, [&](int j, const double *from, bool there) { (j <= 2 * K ? to[j] : of) = there ? *from : 0; });
  }
  __device__ __forceinline__ void begin(carry &, uint32_t) const {}
  template <class Ring> __device__ __forceinline__ void read(const Ring &ring, int slot, uint32_t row) const
  {
    each(row, [&](int j, const double *from, bool there) { ring.read(slot, j, from, there); });
  }
  template <class Ring>
  __device__ __forceinline__ void take(const Ring &ring, int slot, uint32_t, int, carry &, double (&to)[2 * K + 1],
                                       double &of) const
  {
#pragma unroll
    for (int j = 0; j <= 2 * K; j++)
      to[j] = ring.get(slot, j);
    of = ring.get(slot, 2 * K + 1);
  }
};

#endif
