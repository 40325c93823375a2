/* How rare is a distance among a sensor's own past distances? Block maxima and the predictive tail of a Pareto law.
 *
 * The largest maxima of blocks of HK_NOVELTY_BLOCK points are remembered. With n closed blocks, k = the largest 30 % of them (at
 * least 5, at most HK_NOVELTY_TOP), u the k-th largest:
 *
 *   s0 = -log10(k / (n + 1))
 *   h  = sum over the k largest of ln(top_i / u)
 *   S  = s0 + (k - 1 + 20) log10(1 + ln(Q / u) / (h + 20 xi0))   where Q > u,     max(0, s0 Q / u) elsewhere
 *
 * which is the chance that a block's maximum is at least Q where exceedances over u follow a Pareto law whose index has a gamma
 * prior of weight 20 and mean xi0 (the mean of Hill's estimator, B. M. Hill, Annals of Statistics 3, 1975, with 20 observations
 * more). So of past blocks a share of 10^-S had so large a distance.
 *
 * Cannot fail. */
#ifndef HK_NOVELTY_TAIL_H
#define HK_NOVELTY_TAIL_H

#include "cpu/novelty/distances.h"

#define HK_NOVELTY_FLOOR 0.2 /* added to each distance: nothing below a fifth of a spread is worth an alert */
#define HK_NOVELTY_SHARE 0.3 /* of the blocks, whose maxima the tail is fitted to */
#define HK_NOVELTY_SHARE_LEAST 5
#define HK_NOVELTY_BLOCKS_LEAST 4 /* closed blocks without which nothing is rare */
#define HK_NOVELTY_WEIGHT 20.0    /* of the prior, in observations */

/* Mean of the prior of the tail index; and how many of the first distances are not learned. */
HK_INLINE double hk_novelty_prior(uint32_t channel)
{
  return channel == HK_NOVELTY_VALUE ? 0.2 : 0.3;
}

HK_INLINE uint32_t hk_novelty_skip(uint32_t channel)
{
  return channel == HK_NOVELTY_VALUE ? 100 : channel == HK_NOVELTY_SHAPE ? 50 : 0;
}

/* How many of the largest maxima the tail is fitted to. */
HK_INLINE uint32_t hk_novelty_tail_fitted(const struct hk_novelty_tail *t)
{
  const double share = fmin((double)HK_NOVELTY_TOP, fmax((double)HK_NOVELTY_SHARE_LEAST, HK_NOVELTY_SHARE * (double)t->blocks));
  return (uint32_t)share < t->n ? (uint32_t)share : t->n;
}

/* u: the usual distance, the floor with it; 0 before the first block. */
HK_INLINE double hk_novelty_tail_usual(const struct hk_novelty_tail *t)
{
  const uint32_t k = hk_novelty_tail_fitted(t);
  return k > 0 ? (double)t->top[k - 1] : 0;
}

/* S of a distance with the floor. */
HK_INLINE double hk_novelty_tail_score(const struct hk_novelty_tail *t, uint32_t channel, double q)
{
  if (t->blocks < HK_NOVELTY_BLOCKS_LEAST || t->n < 3)
    return 0;
  const uint32_t k = hk_novelty_tail_fitted(t);
  const double u = (double)t->top[k - 1], common = -log10(k / ((double)t->blocks + 1));
  if (q <= u)
    return fmax(0.0, common * q / u);
  double hill = 0;
  for (uint32_t i = 0; i < k; i++)
    hill += log((double)t->top[i] / u);
  return common + (k - 1 + HK_NOVELTY_WEIGHT) * log10(1 + log(q / u) / (hill + HK_NOVELTY_WEIGHT * hk_novelty_prior(channel)));
}

/* Takes a distance into the block under way. */
HK_INLINE void hk_novelty_tail_take(struct hk_novelty_tail *t, float q)
{
  t->most = t->length == 0 || q > t->most ? q : t->most;
  if (++t->length < HK_NOVELTY_BLOCK)
    return;
  t->length = 0;
  t->blocks = hk_novelty_next(t->blocks);
  if (t->n == HK_NOVELTY_TOP && t->most <= t->top[HK_NOVELTY_TOP - 1])
    return;
  uint32_t at = t->n < HK_NOVELTY_TOP ? t->n++ : HK_NOVELTY_TOP - 1;
  for (; at > 0 && t->top[at - 1] < t->most; at--)
    t->top[at] = t->top[at - 1];
  t->top[at] = t->most;
}

/* What a point's distances come to. */
struct hk_novelty_result {
  double s;         /* the largest of the channels' */
  uint32_t channel; /* whose that is */
  double distance;  /* its distance, with the floor, */
  double usual;     /* and u of its first list, this point taken in */
};

/* A distance as the tails take it, the floor with it. */
HK_INLINE float hk_novelty_floored(const struct hk_novelty_point *p, uint32_t channel)
{
  return (float)(hk_novelty_distance(p, channel) + HK_NOVELTY_FLOOR);
}

/* S of a distance by one list of its channel, 0 or 1, which then takes it in. seen: distances of the channel, this one with them.
 */
HK_INLINE double hk_novelty_tail_rate(struct hk_novelty_tail *t, uint32_t channel, uint32_t list, uint32_t seen, float q)
{
  if (seen <= hk_novelty_skip(channel))
    return 0;
  const double s = hk_novelty_tail_score(t, channel, (double)q);
  if (list == 0 || seen - hk_novelty_skip(channel) > HK_NOVELTY_BLOCK / 2)
    hk_novelty_tail_take(t, q);
  return s;
}

/* Makes a channel's rating the point's, where it is the largest yet. first, second: S by its two lists. */
HK_INLINE void hk_novelty_result_take(struct hk_novelty_result *best, uint32_t channel, double first, double second, float q,
                                      double usual)
{
  const double s = 0.5 * first + 0.5 * second;
  if (s > best->s) {
    best->s = s;
    best->channel = channel;
    best->distance = (double)q;
    best->usual = usual;
  }
}

/* A point without any distance. */
#define HK_NOVELTY_RESULT_NULL                                                                                                   \
  {                                                                                                                              \
    -1, 0, 0, 0                                                                                                                  \
  }

/* Scores a point's distances and learns from them. */
HK_INLINE struct hk_novelty_result hk_novelty_rate(struct hk_novelty *s, const struct hk_novelty_point *p)
{
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    if (!p->has[c])
      continue;
    const float q = hk_novelty_floored(p, c);
    s->seen[c] = hk_novelty_next(s->seen[c]);
    const double first = hk_novelty_tail_rate(&s->tail[c][0], c, 0, s->seen[c], q);
    const double second = hk_novelty_tail_rate(&s->tail[c][1], c, 1, s->seen[c], q);
    hk_novelty_result_take(&best, c, first, second, q, hk_novelty_tail_usual(&s->tail[c][0]));
  }
  best.s = fmax(best.s, 0.0);
  return best;
}

#endif
