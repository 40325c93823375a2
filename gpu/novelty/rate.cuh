/* Computes how rare the distances of a run's points are, by a warp: the ratings of cpu/novelty/tail.h, bit for bit.
 *
 * A list changes only where a block closes, and no run closes two of one list. So all points up to there are rated side by side,
 * a lane for each point and list, then the lists take the distances, then the other points are rated. */
#ifndef HK_NOVELTY_RATE_CUH
#define HK_NOVELTY_RATE_CUH

#include "gpu/novelty/turn.cuh"

/* Shared memory of a warp for at most POINTS points. */
template <uint32_t POINTS> struct rate_desk {
  double quantum[POINTS];
  float floored[POINTS][HK_NOVELTY_CHANNELS];
  bool has[POINTS][HK_NOVELTY_CHANNELS];
  bool steady[HK_NOVELTY_CHANNELS]; /* all points have the channel's distance, and both of its lists learn all of them */
  uint32_t seen[POINTS][HK_NOVELTY_CHANNELS]; /* number of distances of the channel, including this one */
  struct hk_novelty_rating rating[POINTS][HK_LISTS];
  struct hk_novelty_fit fit[2][HK_LISTS]; /* of each list, before and after a block closes */
  uint32_t closes[HK_LISTS];              /* the point that closes a block of the list; n: none */
  union {
    double excess[2][HK_NOVELTY_TOP];
    struct hk_novelty_result result[POINTS];
  };
};

/* Computes the results of the passes for a run's points, by one warp: one lane for each point. */
template <class DESK> static __device__ __noinline__ void distances_end(const struct turn *turn, DESK *desk)
{
  const struct hk_detector *d = turn->view.detector;
  const uint32_t k = threadIdx.x % HK_WARP;
  if (k < turn->n) {
    struct hk_novelty_point *const q = &turn->point[k];
    q->has[HK_NOVELTY_VALUE] = hk_novelty_values(d, q) > 0;
    q->has[HK_NOVELTY_CONTEXT] = q->rows > 0;
    q->has[HK_NOVELTY_SHAPE] = hk_novelty_lags_counted(d, q) > 0;
    desk->quantum[k] = hk_novelty_quantum(q);
  }
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    const bool has = k < turn->n && turn->point[k].has[c];
    const uint32_t seen = turn->view.novelty->seen[c];
    const bool steady = __ballot_sync(HK_ALL, has) == HK_ALL >> (HK_WARP - turn->n) &&
                        seen >= hk_novelty_skip(c) + HK_NOVELTY_BLOCK / 2 && seen < UINT32_MAX - turn->n;
    if (k < turn->n) {
      desk->has[k][c] = has;
      desk->floored[k][c] = hk_novelty_floored(&turn->point[k], c);
      desk->seen[k][c] = seen + k + 1; /* if steady; else see rate_begin */
    }
    if (k == 0)
      desk->steady[c] = steady;
  }
  __syncwarp();
}

/* Counts the distances of each channel, and finds the points that close blocks, by a lane for each list. */
template <class DESK> static __device__ __forceinline__ void rate_begin(const struct turn *turn, DESK *desk, uint32_t list)
{
  struct hk_novelty *const s = turn->view.novelty;
  const uint32_t c = list / 2, n = turn->n;
  uint32_t seen = s->seen[c], length = s->tail[c][list % 2].length, closes = n;
  if (desk->steady[c])
    closes = min(n, HK_NOVELTY_BLOCK - 1 - length);
  else
    for (uint32_t k = 0; k < n; k++) {
      const bool has = desk->has[k][c];
      seen = has ? hk_novelty_next(seen) : seen;
      if (has && hk_novelty_learns(c, list % 2, seen) && ++length == HK_NOVELTY_BLOCK)
        closes = k;
      if (list % 2 == 0)
        desk->seen[k][c] = seen;
    }
  desk->closes[list] = closes;
  desk->fit[0][list] = hk_novelty_tail_fit(&s->tail[c][list % 2]);
}

/* Adds the distances to a list. */
template <class DESK> static __device__ __forceinline__ void rate_learn(const struct turn *turn, DESK *desk, uint32_t list)
{
  struct hk_novelty *const s = turn->view.novelty;
  const uint32_t c = list / 2, n = turn->n;
  struct hk_novelty_tail *const t = &s->tail[c][list % 2];
  float most = t->most; /* of the block, in registers until it closes */
  uint32_t length = t->length;
  for (uint32_t k = 0; k < n; k++) {
    if (!desk->steady[c] && (!desk->has[k][c] || !hk_novelty_learns(c, list % 2, desk->seen[k][c])))
      continue;
    const float q = desk->floored[k][c];
    if (k == desk->closes[list]) {
      t->most = most;
      t->length = length;
      hk_novelty_learn(t, list % 2, desk->seen[k][c], q);
      length = t->length;
    } else {
      most = length == 0 || q > most ? q : most;
      length++;
    }
  }
  t->most = length > 0 ? most : t->most;
  t->length = length;
  if (list % 2 == 0)
    s->seen[c] = desk->seen[n - 1][c];
  desk->fit[1][list] = hk_novelty_tail_fit(t);
}

/* Rates point k by a list; the distance is over the usual. Called by all lanes with the same arguments. */
template <class DESK>
static __device__ __noinline__ void rate_large(const struct turn *turn, DESK *desk, uint32_t k, uint32_t list, bool after)
{
  const uint32_t lane = threadIdx.x % HK_WARP, c = list / 2;
  const struct hk_novelty_tail *const t = &turn->view.novelty->tail[c][list % 2];
  const struct hk_novelty_fit *const fit = &desk->fit[after][list];
  const double quantum = desk->quantum[k];
  for (uint32_t i = lane; i < fit->fitted; i += HK_WARP) {
    desk->excess[0][i] = hk_novelty_excess(fit, t->top[i], 0);
    desk->excess[1][i] = hk_novelty_excess(fit, t->top[i], quantum);
  }
  __syncwarp();
  double sum = 0; /* in the order of the list */
  if (lane < 2)
    for (uint32_t i = 0; i < fit->fitted; i++)
      sum += desk->excess[lane][i];
  if (lane < 2) { /* S and severity */
    const double rarity = hk_novelty_rarity(fit, (double)desk->floored[k][c], lane == 0 ? 0 : quantum, sum,
                                            lane == 0 ? HK_NOVELTY_WEIGHT : HK_NOVELTY_SEVERITY_WEIGHT,
                                            lane == 0 ? hk_novelty_prior(c) : hk_novelty_severity_prior(c));
    if (lane == 0)
      desk->rating[k][list].s = rarity;
    else
      desk->rating[k][list].severity = (float)rarity;
  }
  __syncwarp();
}

/* Rates the points that come before, or after, a block closes. */
template <class DESK> static __device__ __forceinline__ void rate_side(const struct turn *turn, DESK *desk, bool after)
{
  const uint32_t pairs = turn->n * HK_LISTS;
#pragma unroll 1
  for (uint32_t begin = 0; begin < pairs; begin += HK_WARP) {
    const uint32_t pair = begin + threadIdx.x % HK_WARP, k = pair / HK_LISTS, list = pair % HK_LISTS, c = list / 2;
    bool large = false;
    if (pair < pairs && (k > desk->closes[list]) == after) {
      const struct hk_novelty_fit *const fit = &desk->fit[after][list];
      const double q = (double)desk->floored[k][c];
      struct hk_novelty_rating r = { 0, 0 };
      if (desk->has[k][c] && desk->seen[k][c] > hk_novelty_skip(c) && fit->fitted > 0) {
        large = !(q <= fit->usual);
        if (!large)
          r = hk_novelty_rate_usual(fit, q, desk->quantum[k]);
      }
      desk->rating[k][list] = r;
    }
    for (uint32_t left = __ballot_sync(HK_ALL, large); left > 0; left &= left - 1) {
      const uint32_t which = begin + __ffs(left) - 1;
      rate_large(turn, desk, which / HK_LISTS, which % HK_LISTS, after);
    }
  }
  __syncwarp();
}

/* Rates the run's points. */
template <class DESK> static __device__ __noinline__ void rate(const struct turn *turn, DESK *desk)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  if (lane < HK_LISTS)
    rate_begin(turn, desk, lane);
  __syncwarp();
  rate_side(turn, desk, false);
  if (lane < HK_LISTS)
    rate_learn(turn, desk, lane);
  __syncwarp();
  if (__any_sync(HK_ALL, lane < HK_LISTS && desk->closes[lane] + 1 < turn->n))
    rate_side(turn, desk, true);
}

/* The result of point k. */
template <class DESK>
static __device__ __forceinline__ struct hk_novelty_result rate_result(const struct turn *turn, DESK *desk, uint32_t k)
{
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    const struct hk_novelty_fit *const fit = &desk->fit[k >= desk->closes[2 * c]][2 * c]; /* including this point */
    if (desk->has[k][c])
      hk_novelty_result_take(&best, c, desk->rating[k][2 * c], desk->rating[k][2 * c + 1], desk->floored[k][c], fit->usual);
  }
  best.s = fmax(best.s, 0.0);
  return best;
}

#endif
