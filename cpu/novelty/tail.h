/* Computes how rare a distance is among a sensor's own past distances: block maxima and the predictive tail of a Pareto
 * distribution.
 *
 * The largest maxima of blocks of HK_NOVELTY_BLOCK points are kept. With n closed blocks, k = the largest 30 % of them (at least
 * 5, at most HK_NOVELTY_TOP), u the k-th largest:
 *
 *   s0 = -log10(k / (n + 1))
 *   h  = sum over the k largest of ln(top_i / u)
 *   S  = s0 + (k - 1 + 20) log10(1 + ln(Q / u) / (h + 20 xi0))   if Q > u,     otherwise max(0, s0 Q / u)
 *
 * 10^-S is the probability that a block's maximum is at least Q, if exceedances over u follow a Pareto distribution whose index
 * has a gamma prior of weight 20 and mean xi0 (the mean of Hill's estimator, B. M. Hill, Annals of Statistics 3, 1975, with 20
 * more observations). So a share of 10^-S of the past blocks had such a large distance.
 *
 * S raises alerts. Their *severity* is computed from the same lists, with two differences: a prior of weight 5 instead of 20,
 * with mean 0.25 for value and 0.35 for context and shape; and the sensor's *quantum* g is added to Q and to the maxima, as q =
 * min(w_0 g, 1000) in spreads, where g is the smallest nonzero step between two points. So a short history gives less severity,
 * and a step of a counter hardly any:
 *
 *   h = sum over the k largest of ln((top_i + q) / (u + q)), q = min(w_0 g, 1000)
 *   severity = s0 + (k - 1 + 5) log10(1 + ln((Q + q) / (u + q)) / (h + 5 xi0)) if Q > u,
 *              otherwise max(0, s0 (Q + q) / (u + q))
 *
 * It is the mean over the two lists, the largest of the channels, at most HK_SEVERITY_MAX. At most 2 x 10^-severity of the blocks
 * of data without changes have such a peak: tests/bench/results/severity.txt.
 *
 * Lists forget: at HK_NOVELTY_BLOCKS_MOST closed blocks every second maximum is dropped, and the number of blocks is halved, as
 * if these had been the maxima of every second block. So each 20,480 points the influence of an earlier unquiet time is halved,
 * and the scale of the measure is kept: otherwise u would belong to ever rarer blocks, and S for Q <= u, which is only a line
 * from 0 to s0, would begin to raise alerts. Which one of a pair is dropped alternates, and differs between the two lists.
 * tests/bench/results/detection-tails.txt.
 *
 * Cannot fail. */
#ifndef HK_NOVELTY_TAIL_H
#define HK_NOVELTY_TAIL_H

#include "cpu/novelty/distances.h"
#include "cpu/rules/severity.h"

#define HK_NOVELTY_FLOOR 0.2 /* added to each distance: less than a fifth of a spread does not justify an alert */
#define HK_NOVELTY_SHARE 0.3 /* share of the blocks to whose maxima the tail is fitted */
#define HK_NOVELTY_SHARE_LEAST 5
#define HK_NOVELTY_BLOCKS_LEAST 4   /* minimum closed blocks for a rating */
#define HK_NOVELTY_BLOCKS_MOST 1024 /* closed blocks at which every second one is forgotten; even */
#define HK_NOVELTY_WEIGHT 20.0      /* weight of the prior, in observations */
#define HK_NOVELTY_SEVERITY_WEIGHT 5.0
#define HK_NOVELTY_QUANTUM_MOST 1000.0 /* maximum of the quantum, in spreads */

/* Mean of the prior of the tail index; hk_novelty_skip: how many first distances are not learned. */
HK_INLINE double hk_novelty_prior(uint32_t channel)
{
  return channel == HK_NOVELTY_VALUE ? 0.2 : 0.3;
}

HK_INLINE double hk_novelty_severity_prior(uint32_t channel)
{
  return channel == HK_NOVELTY_VALUE ? 0.25 : 0.35;
}

HK_INLINE uint32_t hk_novelty_skip(uint32_t channel)
{
  return channel == HK_NOVELTY_VALUE ? 100 : channel == HK_NOVELTY_SHAPE ? 50 : 0;
}

/* Number of largest maxima to which the tail is fitted. */
HK_INLINE uint32_t hk_novelty_tail_fitted(const struct hk_novelty_tail *t)
{
  const double share = fmin((double)HK_NOVELTY_TOP, fmax((double)HK_NOVELTY_SHARE_LEAST, HK_NOVELTY_SHARE * (double)t->blocks));
  return (uint32_t)share < t->n ? (uint32_t)share : t->n;
}

/* u: the usual distance, including the floor; 0 before the first block. */
HK_INLINE double hk_novelty_tail_usual(const struct hk_novelty_tail *t)
{
  const uint32_t k = hk_novelty_tail_fitted(t);
  return k > 0 ? (double)t->top[k - 1] : 0;
}

/* The rarity of a distance by one list. */
struct hk_novelty_rating {
  double s;
  float severity;
};

HK_INLINE struct hk_novelty_fit hk_novelty_tail_fit(const struct hk_novelty_tail *t)
{
  const uint32_t k = hk_novelty_tail_fitted(t);
  struct hk_novelty_fit fit = { k > 0 ? (double)t->top[k - 1] : 0, 0, 0 };
  if (t->blocks >= HK_NOVELTY_BLOCKS_LEAST && t->n >= 3) {
    fit.common = -log10(k / ((double)t->blocks + 1));
    fit.fitted = k;
  }
  return fit;
}

/* Rates a distance q <= u, including the floor. quantum: the smallest step of the sensor, in spreads. */
HK_INLINE struct hk_novelty_rating hk_novelty_rate_usual(const struct hk_novelty_fit *fit, double q, double quantum)
{
  const struct hk_novelty_rating r = { fmax(0.0, fit->common * q / fit->usual),
                                       (float)fmax(0.0, fit->common * (q + quantum) / (fit->usual + quantum)) };
  return r;
}

/* The term of a maximum in the sum h of a larger distance. quantum: of the severity; 0 for S, as the sum with it is exact. */
HK_INLINE double hk_novelty_excess(const struct hk_novelty_fit *fit, float top, double quantum)
{
  return log(((double)top + quantum) / (fit->usual + quantum));
}

/* S of a distance q > u, or its severity. h: the sum of the terms, the largest maximum first; weight, prior: see above. */
HK_INLINE double hk_novelty_rarity(const struct hk_novelty_fit *fit, double q, double quantum, double h, double weight,
                                   double prior)
{
  return fit->common + (fit->fitted - 1 + weight) * log10(1 + log((q + quantum) / (fit->usual + quantum)) / (h + weight * prior));
}

/* S of a distance q > u. hill: the sum of its terms. */
HK_INLINE double hk_novelty_large_s(const struct hk_novelty_fit *fit, uint32_t channel, double q, double hill)
{
  return hk_novelty_rarity(fit, q, 0, hill, HK_NOVELTY_WEIGHT, hk_novelty_prior(channel));
}

/* Rates a distance q > u. hill, coarse: the sums of the terms, of S and of the severity. */
HK_INLINE struct hk_novelty_rating hk_novelty_rate_large(const struct hk_novelty_fit *fit, uint32_t channel, double q,
                                                         double quantum, double hill, double coarse)
{
  const struct hk_novelty_rating r = { hk_novelty_large_s(fit, channel, q, hill),
                                       (float)hk_novelty_rarity(fit, q, quantum, coarse, HK_NOVELTY_SEVERITY_WEIGHT,
                                                                hk_novelty_severity_prior(channel)) };
  return r;
}

/* Rates a distance that includes the floor. quantum: the smallest step of the sensor, in spreads. */
HK_INLINE struct hk_novelty_rating hk_novelty_tail_score(const struct hk_novelty_tail *t, uint32_t channel, double q,
                                                         double quantum)
{
  const struct hk_novelty_rating none = { 0, 0 };
  const struct hk_novelty_fit fit = hk_novelty_tail_fit(t);
  if (fit.fitted == 0)
    return none;
  if (q <= fit.usual)
    return hk_novelty_rate_usual(&fit, q, quantum);
  double hill = 0, coarse = 0;
  for (uint32_t i = 0; i < fit.fitted; i++) {
    hill += hk_novelty_excess(&fit, t->top[i], 0);
    coarse += hk_novelty_excess(&fit, t->top[i], quantum);
  }
  return hk_novelty_rate_large(&fit, channel, q, quantum, hill, coarse);
}

/* Forgets every second maximum, beginning with the largest or, with drop = 1, with the second, and half of the blocks. */
HK_INLINE void hk_novelty_tail_thin(struct hk_novelty_tail *t, uint32_t drop)
{
  uint32_t n = 0;
  for (uint32_t i = 1 - drop; i < t->n; i += 2)
    t->top[n++] = t->top[i];
  for (uint32_t i = n; i < t->n; i++)
    t->top[i] = 0;
  t->n = n;
  t->blocks /= 2;
}

/* Adds a distance to the current block, of `block` distances. drop: for hk_novelty_tail_thin, if it is called. */
HK_INLINE void hk_novelty_tail_take(struct hk_novelty_tail *t, float q, uint32_t block, uint32_t drop)
{
  t->most = t->length == 0 || q > t->most ? q : t->most;
  if (++t->length < block)
    return;
  t->length = 0;
  if (++t->blocks >= HK_NOVELTY_BLOCKS_MOST)
    hk_novelty_tail_thin(t, drop);
  if (t->n == HK_NOVELTY_TOP && t->most <= t->top[HK_NOVELTY_TOP - 1])
    return;
  uint32_t at = t->n < HK_NOVELTY_TOP ? t->n++ : HK_NOVELTY_TOP - 1;
  for (; at > 0 && t->top[at - 1] < t->most; at--)
    t->top[at] = t->top[at - 1];
  t->top[at] = t->most;
}

/* Result of a point's distances. */
struct hk_novelty_result {
  double s;         /* the largest S of the channels */
  uint32_t channel; /* the channel with this S */
  float severity;   /* the largest severity of the channels, possibly of another channel; 0..HK_SEVERITY_MAX */
  double distance;  /* the channel's distance, including the floor, */
  double usual;     /* and u of its first list, including this point */
};

/* A distance including the floor, for the tails. */
HK_INLINE float hk_novelty_floored(const struct hk_novelty_point *p, uint32_t channel)
{
  return (float)(hk_novelty_distance(p, channel) + HK_NOVELTY_FLOOR);
}

/* The sensor's smallest step at a point, in spreads. */
HK_INLINE double hk_novelty_quantum(const struct hk_novelty_point *p)
{
  return fmin(p->unit * p->quantum, HK_NOVELTY_QUANTUM_MOST);
}

/* Whether a distance is added to a list, 0 or 1, of its channel. seen: number of distances of the channel, including this one. */
HK_INLINE bool hk_novelty_learns(uint32_t channel, uint32_t list, uint32_t seen)
{
  return seen > hk_novelty_skip(channel) && (list == 0 || seen - hk_novelty_skip(channel) > HK_NOVELTY_BLOCK / 2);
}

/* Adds a distance to a list, 0 or 1, of its channel. */
HK_INLINE void hk_novelty_learn(struct hk_novelty_tail *t, uint32_t list, uint32_t seen, float q)
{
  hk_novelty_tail_take(t, q, HK_NOVELTY_BLOCK, (seen / (HK_NOVELTY_BLOCK * (HK_NOVELTY_BLOCKS_MOST / 2)) + list) % 2);
}

/* Rates a distance by one list of its channel, 0 or 1, and then adds it to the list. */
HK_INLINE struct hk_novelty_rating hk_novelty_tail_rate(struct hk_novelty_tail *t, uint32_t channel, uint32_t list, uint32_t seen,
                                                        float q, double quantum)
{
  const struct hk_novelty_rating none = { 0, 0 };
  if (seen <= hk_novelty_skip(channel))
    return none;
  const struct hk_novelty_rating r = hk_novelty_tail_score(t, channel, (double)q, quantum);
  if (hk_novelty_learns(channel, list, seen))
    hk_novelty_learn(t, list, seen, q);
  return r;
}

/* The greater of a severity and a channel's, by its two lists. */
HK_INLINE float hk_novelty_graver(float severity, struct hk_novelty_rating first, struct hk_novelty_rating second)
{
  const double mean = 0.5 * (double)first.severity + 0.5 * (double)second.severity;
  return (float)fmax((double)severity, fmin(mean, HK_SEVERITY_MAX));
}

/* Makes a channel's rating that of the point if it is the largest so far. first, second: by its two lists. */
HK_INLINE void hk_novelty_result_take(struct hk_novelty_result *best, uint32_t channel, struct hk_novelty_rating first,
                                      struct hk_novelty_rating second, float q, double usual)
{
  const double s = 0.5 * first.s + 0.5 * second.s;
  best->severity = hk_novelty_graver(best->severity, first, second);
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
    -1, 0, 0, 0, 0                                                                                                               \
  }

/* S by a list, as hk_novelty_tail_score has it. */
HK_INLINE double hk_novelty_memo_s(struct hk_novelty_memo *m, const struct hk_novelty_tail *t, uint32_t channel, uint32_t list,
                                   double q)
{
  const uint32_t bit = 1u << (2 * channel + list);
  struct hk_novelty_fit *fit = &m->fit[channel][list];
  if (!(m->fits & bit))
    *fit = hk_novelty_tail_fit(t);
  m->fits |= bit;
  if (fit->fitted == 0)
    return 0;
  if (q <= fit->usual)
    return hk_novelty_rate_usual(fit, q, 0).s;
  if (!(m->hills & bit)) {
    double hill = 0;
    for (uint32_t i = 0; i < fit->fitted; i++)
      hill += hk_novelty_excess(fit, t->top[i], 0);
    m->hill[channel][list] = hill;
  }
  m->hills |= bit;
  return hk_novelty_large_s(fit, channel, q, m->hill[channel][list]);
}

/* Learns a point's distances. q: with the floor. Where a block of a list ends, the memo forgets what it says; its sum only if one
 * of its terms changes, which in a long list is rare. */
HK_INLINE void hk_novelty_memo_learn(struct hk_novelty_memo *m, struct hk_novelty *s, uint32_t channel, float q)
{
  for (uint32_t l = 0; l < 2; l++) {
    struct hk_novelty_tail *t = &s->tail[channel][l];
    if (!hk_novelty_learns(channel, l, s->seen[channel]))
      continue;
    const uint32_t bit = 1u << (2 * channel + l), fitted = hk_novelty_tail_fitted(t);
    const float usual = fitted > 0 ? t->top[fitted - 1] : 0;
    hk_novelty_learn(t, l, s->seen[channel], q);
    if (t->length > 0)
      continue;
    m->fits &= ~bit;
    if (t->most > usual || hk_novelty_tail_fitted(t) != fitted)
      m->hills &= ~bit;
  }
}

/* Scores a point's distances and learns from them. memo: always the same one of this sensor, s->memo or zeroed at first. The
 * severity is computed if S is at least `grave`, and is 0 otherwise. */
HK_INLINE struct hk_novelty_result hk_novelty_rate_from(struct hk_novelty *s, const struct hk_novelty_point *p,
                                                        struct hk_novelty_memo *memo, double grave)
{
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  float q[HK_NOVELTY_CHANNELS];
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    if (!p->has[c])
      continue;
    q[c] = hk_novelty_floored(p, c);
    s->seen[c] = hk_novelty_next(s->seen[c]);
    struct hk_novelty_rating by[2] = { { 0, 0 }, { 0, 0 } };
    for (uint32_t l = 0; l < 2 && s->seen[c] > hk_novelty_skip(c); l++)
      by[l].s = hk_novelty_memo_s(memo, &s->tail[c][l], c, l, (double)q[c]);
    hk_novelty_result_take(&best, c, by[0], by[1], q[c], 0);
  }
  const double quantum = hk_novelty_quantum(p);
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS && best.s >= grave; c++) {
    if (!p->has[c] || s->seen[c] <= hk_novelty_skip(c))
      continue;
    const struct hk_novelty_rating first = hk_novelty_tail_score(&s->tail[c][0], c, (double)q[c], quantum),
                                   second = hk_novelty_tail_score(&s->tail[c][1], c, (double)q[c], quantum);
    best.severity = hk_novelty_graver(best.severity, first, second);
  }
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
    if (p->has[c])
      hk_novelty_memo_learn(memo, s, c, q[c]);
  best.usual = best.s >= 0 ? hk_novelty_tail_usual(&s->tail[best.channel][0]) : 0;
  best.s = fmax(best.s, 0.0);
  return best;
}

/* The same of a single point, always with the severity. */
HK_INLINE struct hk_novelty_result hk_novelty_rate(struct hk_novelty *s, const struct hk_novelty_point *p)
{
  struct hk_novelty_memo memo;
  memo.fits = memo.hills = 0;
  return hk_novelty_rate_from(s, p, &memo, -INFINITY);
}

#endif
