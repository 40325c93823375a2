/* Computes how rare the distances of a run's points are, by a warp: the ratings of cpu/novelty/tail.h, bit for bit.
 *
 * A list changes only where a block closes, and no run closes two of one list. So all points up to there are rated side by side,
 * a lane for each point and list, then the lists take the distances, then the other points are rated. */
#ifndef HK_NOVELTY_RATE_CUH
#define HK_NOVELTY_RATE_CUH

#include "gpu/novelty/station.cuh"

static_assert(HK_RUN <= HK_NOVELTY_BLOCK, "a run closes at most one block of a list");

/* Computes the results of the passes for a run's points, by one warp: one lane for each point. */
static __device__ __noinline__ void distances_end(struct station *station)
{
  const struct hk_detector *d = station->view.detector;
  const uint32_t k = threadIdx.x % HK_WARP;
  if (k < station->n) {
    struct hk_novelty_point *const q = &station->point[k];
    q->has[HK_NOVELTY_VALUE] = hk_novelty_values(d, q) > 0;
    q->has[HK_NOVELTY_CONTEXT] = q->rows > 0;
    q->has[HK_NOVELTY_SHAPE] = hk_novelty_lags_counted(d, q) > 0;
    for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
      station->floored[k][c] = hk_novelty_floored(q, c);
  }
  __syncwarp();
}

/* Counts the distances of each channel, and finds the points that close blocks, by a lane for each list. */
static __device__ __forceinline__ void rate_begin(struct station *station, uint32_t list)
{
  struct hk_novelty *const s = station->view.novelty;
  const uint32_t c = list / 2, n = station->n;
  uint32_t seen = s->seen[c], length = s->tail[c][list % 2].length, closes = n;
  for (uint32_t k = 0; k < n; k++) {
    const bool has = station->point[k].has[c];
    seen = has ? hk_novelty_next(seen) : seen;
    if (has && hk_novelty_learns(c, list % 2, seen) && ++length == HK_NOVELTY_BLOCK)
      closes = k;
    if (list % 2 == 0)
      station->seen[k][c] = seen;
  }
  station->closes[list] = closes;
  station->fit[0][list] = hk_novelty_tail_fit(&s->tail[c][list % 2]);
}

/* Adds the distances to a list. */
static __device__ __forceinline__ void rate_learn(struct station *station, uint32_t list)
{
  struct hk_novelty *const s = station->view.novelty;
  const uint32_t c = list / 2, n = station->n;
  struct hk_novelty_tail *const t = &s->tail[c][list % 2];
  for (uint32_t k = 0; k < n; k++)
    if (station->point[k].has[c] && hk_novelty_learns(c, list % 2, station->seen[k][c]))
      hk_novelty_learn(t, list % 2, station->seen[k][c], station->floored[k][c]);
  if (list % 2 == 0)
    s->seen[c] = station->seen[n - 1][c];
  station->fit[1][list] = hk_novelty_tail_fit(t);
}

/* Rates point k by a list; the distance is over the usual. Called by all lanes with the same arguments. */
static __device__ __noinline__ void rate_large(struct station *station, uint32_t k, uint32_t list, bool after)
{
  const uint32_t lane = threadIdx.x % HK_WARP, c = list / 2;
  const struct hk_novelty_tail *const t = &station->view.novelty->tail[c][list % 2];
  const struct hk_novelty_fit *const fit = &station->fit[after][list];
  const double quantum = hk_novelty_quantum(&station->point[k]);
  for (uint32_t i = lane; i < fit->fitted; i += HK_WARP) {
    station->excess[0][i] = hk_novelty_excess(fit, t->top[i]);
    station->excess[1][i] = hk_novelty_coarse_excess(fit, t->top[i], quantum);
  }
  __syncwarp();
  double sum = 0; /* in the order of the list */
  if (lane < 2)
    for (uint32_t i = 0; i < fit->fitted; i++)
      sum += station->excess[lane][i];
  const double coarse = __shfl_sync(HK_ALL, sum, 1);
  if (lane == 0)
    station->rating[k][list] = hk_novelty_rate_large(fit, c, (double)station->floored[k][c], quantum, sum, coarse);
  __syncwarp();
}

/* Rates the points that come before, or after, a block closes. */
static __device__ __forceinline__ void rate_side(struct station *station, bool after)
{
  const uint32_t pairs = station->n * HK_LISTS;
#pragma unroll 1
  for (uint32_t begin = 0; begin < pairs; begin += HK_WARP) {
    const uint32_t pair = begin + threadIdx.x % HK_WARP, k = pair / HK_LISTS, list = pair % HK_LISTS, c = list / 2;
    bool large = false;
    if (pair < pairs && (k > station->closes[list]) == after) {
      const struct hk_novelty_fit *const fit = &station->fit[after][list];
      const double q = (double)station->floored[k][c];
      struct hk_novelty_rating r = { 0, 0 };
      if (station->point[k].has[c] && station->seen[k][c] > hk_novelty_skip(c) && fit->fitted > 0) {
        large = !(q <= fit->usual);
        if (!large)
          r = hk_novelty_rate_usual(fit, q, hk_novelty_quantum(&station->point[k]));
      }
      station->rating[k][list] = r;
    }
    for (uint32_t left = __ballot_sync(HK_ALL, large); left > 0; left &= left - 1) {
      const uint32_t which = begin + __ffs(left) - 1;
      rate_large(station, which / HK_LISTS, which % HK_LISTS, after);
    }
  }
  __syncwarp();
}

/* Rates the run's points. */
static __device__ __noinline__ void rate(struct station *station)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  if (lane < HK_LISTS)
    rate_begin(station, lane);
  __syncwarp();
  rate_side(station, false);
  if (lane < HK_LISTS)
    rate_learn(station, lane);
  __syncwarp();
  if (__any_sync(HK_ALL, lane < HK_LISTS && station->closes[lane] + 1 < station->n))
    rate_side(station, true);
}

/* The result of point k. */
static __device__ __forceinline__ struct hk_novelty_result rate_result(const struct station *station, uint32_t k)
{
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    const struct hk_novelty_fit *const fit = &station->fit[k >= station->closes[2 * c]][2 * c]; /* including this point */
    if (station->point[k].has[c])
      hk_novelty_result_take(&best, c, station->rating[k][2 * c], station->rating[k][2 * c + 1], station->floored[k][c],
                             fit->usual);
  }
  best.s = fmax(best.s, 0.0);
  return best;
}

#endif
