/* The distance of each point of a run from the nearest value: see kernels_novelty.c.
 *
 * The values that all of the run's points are compared with are read once. Sorted by their values, eight points at a time make a
 * crowd; a vector of values is compared with the crowds that it comes nearer to than what they have found. The test is exact: in
 * floating point, too, a value outside a crowd's span is at least as far from each of its points as from the span's nearer end.
 * Where most vectors come near, as with noise, all points are compared with all values. */
#include "cpu/sst/kernels_novelty.h"

#define BLOCK (4 * HK_LANES)
#define NEWEST 256 /* values with which all points are compared, so that each has found something near */
#define PART 2048  /* values after which the crowds are made anew */

/* The points of a run in ascending order of their values. */
struct values_run {
  uint32_t n;
  uint32_t order[HK_BATCH_PER_SENSOR]; /* their places in the run */
  float value[HK_BATCH_PER_SENSOR];
  vec best[HK_BATCH_PER_SENSOR]; /* the least distance of each lane */
};

/* Points that may find something nearer: the span of their values, and how far it may be. None: nothing reaches them. */
struct values_crowd {
  float low, high, far;
};

/* The same in each lane. */
struct values_reach {
  vec low, high, far;
};

static void values_sort(struct values_run *v, const struct hk_novelty_point *p, uint32_t n)
{
  v->n = n;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = k;
    for (; i > 0 && v->value[i - 1] > p[k].value; i--) {
      v->value[i] = v->value[i - 1];
      v->order[i] = v->order[i - 1];
    }
    v->value[i] = p[k].value;
    v->order[i] = k;
    v->best[k] = every(INFINITY);
  }
}

/* The distances of n points from contiguous values. What is left after whole blocks is covered by vectors that overlap: a minimum
 * may count a number twice. */
ALWAYS_INLINE void values_piece(const float *value, uint32_t length, const float *x, uint32_t n, vec *best)
{
  uint32_t i = 0;
  for (; i + BLOCK <= length; i += BLOCK) {
    const vec a = load(value + i), b = load(value + i + HK_LANES), c = load(value + i + 2 * HK_LANES),
              d = load(value + i + 3 * HK_LANES);
    for (uint32_t k = 0; k < n; k++) {
      const vec at = every(x[k]);
      best[k] =
          nearer(best[k], nearer(nearer(magnitude(a - at), magnitude(b - at)), nearer(magnitude(c - at), magnitude(d - at))));
    }
  }
  for (; i < length && length >= HK_LANES; i += HK_LANES) {
    const vec a = load(value + (i + HK_LANES <= length ? i : length - HK_LANES));
    for (uint32_t k = 0; k < n; k++)
      best[k] = nearer(best[k], magnitude(a - every(x[k])));
  }
  for (; i < length; i++)
    for (uint32_t k = 0; k < n; k++)
      best[k] = nearer(best[k], magnitude(every(value[i]) - every(x[k])));
}

/* The crowd of n points in ascending order, without those that found an equal value. */
static struct values_crowd values_crowd_of(const float *x, const vec *best, uint32_t n)
{
  struct values_crowd c = { INFINITY, -INFINITY, 0 };
  for (uint32_t k = 0; k < n; k++) {
    const float found = least(&best[k]);
    if (found <= 0)
      continue;
    c.low = x[k] < c.low ? x[k] : c.low;
    c.high = x[k];
    c.far = found > c.far ? found : c.far;
  }
  return c;
}

static struct values_reach values_reach(const struct values_crowd *c)
{
  return (struct values_reach){ every(c->low), every(c->high), every(c->far) };
}

/* Whether any of two vectors of values may be nearer to a point of a crowd than what it has found. */
ALWAYS_INLINE bool values_reach_crowd(const struct values_reach *r, vec a, vec b)
{
  return any(smaller(larger(r->low - a, a - r->high), larger(r->low - b, b - r->high)) < r->far);
}

/* As values_piece, of a crowd at a time. Returns whether this was worth its tests. */
static bool values_crowds(const float *value, uint32_t length, struct values_run *v)
{
  const uint32_t crowds = (v->n + HK_NOVELTY_CROWD - 1) / HK_NOVELTY_CROWD;
  struct values_reach each[HK_NOVELTY_CROWDS];
  struct values_crowd all = { INFINITY, -INFINITY, 0 };
  for (uint32_t c = 0; c < crowds; c++) {
    const uint32_t from = c * HK_NOVELTY_CROWD, left = v->n - from;
    const struct values_crowd one =
        values_crowd_of(v->value + from, v->best + from, left < HK_NOVELTY_CROWD ? left : HK_NOVELTY_CROWD);
    each[c] = values_reach(&one);
    all.low = one.low < all.low ? one.low : all.low;
    all.high = one.high > all.high ? one.high : all.high;
    all.far = one.far > all.far ? one.far : all.far;
  }
  const struct values_reach any_crowd = values_reach(&all);
  uint32_t i = 0, compared = 0;
  for (; i + 2 * HK_LANES <= length; i += 2 * HK_LANES) {
    const vec a = load(value + i), b = load(value + i + HK_LANES);
    if (!values_reach_crowd(&any_crowd, a, b))
      continue;
    for (uint32_t c = 0; c < crowds; c++) {
      if (!values_reach_crowd(&each[c], a, b))
        continue;
      compared++;
      const uint32_t to = (c + 1) * HK_NOVELTY_CROWD < v->n ? (c + 1) * HK_NOVELTY_CROWD : v->n;
      for (uint32_t k = c * HK_NOVELTY_CROWD; k < to; k++) {
        const vec at = every(v->value[k]);
        v->best[k] = nearer(v->best[k], nearer(magnitude(a - at), magnitude(b - at)));
      }
    }
  }
  values_piece(value + i, length - i, v->value, v->n, v->best);
  return compared <= i / (2 * HK_LANES) * crowds / 3;
}

/* The distances of the points from the values of a range. */
static void values_shared(const float *ring, uint32_t origin, uint32_t room, struct ring_range rest, struct values_run *v)
{
  struct ring_range newest = rest;
  newest.from = rest.to - rest.from < NEWEST ? rest.from : rest.to + 1 - NEWEST;
  rest.to = newest.from - 1;
  bool crowded = v->n >= HK_NOVELTY_CROWDED;
  uint32_t at = 0, length;
  while ((length = range_piece(&newest, origin, room, &at)) > 0)
    values_piece(ring + at, length, v->value, v->n, v->best);
  while ((length = range_piece(&rest, origin, room, &at)) > 0)
    for (uint32_t part; length > 0; at += part, length -= part) {
      part = length < PART ? length : PART;
      if (crowded)
        crowded = values_crowds(ring + at, part, v);
      else
        values_piece(ring + at, part, v->value, v->n, v->best);
    }
}

/* The distances of a point from the values of a range. */
ALWAYS_INLINE void values_own(const float *ring, uint32_t origin, uint32_t room, struct ring_range own, const float *x, vec *best)
{
  uint32_t at = 0, length;
  while ((length = range_piece(&own, origin, room, &at)) > 0)
    values_piece(ring + at, length, x, 1, best);
}

/* The values with which a point is compared, the run's place k. */
ALWAYS_INLINE struct ring_range values_range(const struct hk_detector *d, const struct hk_novelty_point *p, uint32_t k)
{
  const int32_t to = (int32_t)k - HK_NOVELTY_RECENT;
  return (struct ring_range){ to + 1 - (int32_t)hk_novelty_values(d, p), to };
}

static void values_found(struct hk_novelty_point *p, const vec *best, struct ring_range own)
{
  p->nearest[HK_NOVELTY_VALUE] = least(best);
  p->has[HK_NOVELTY_VALUE] = own.from <= own.to;
}

/* The same for a single point, with its data in registers. */
static void values_single(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p)
{
  const struct ring_range own = values_range(v->detector, p, 0);
  vec best = every(INFINITY);
  values_own(ring, p->at, hk_detector_span(v->detector), own, &p->value, &best);
  values_found(p, &best, own);
}

void novelty_values(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  const uint32_t room = hk_detector_span(v->detector), origin = p->at;
  struct values_run points;
  struct ring_range shared = { INT32_MIN, -HK_NOVELTY_RECENT };
  if (n == 1) {
    values_single(v, ring, p);
    return;
  }
  values_sort(&points, p, n);
  for (uint32_t k = 0; k < n; k++) {
    const int32_t from = values_range(v->detector, &p[k], k).from;
    shared.from = from > shared.from ? from : shared.from;
  }
  values_shared(ring, origin, room, shared, &points);
  const int32_t end = shared.from > shared.to ? shared.from - 1 : shared.to; /* of what is done */
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t k = points.order[i];
    const struct ring_range own = values_range(v->detector, &p[k], k);
    const struct ring_range before = { own.from, own.to < shared.from ? own.to : shared.from - 1 };
    const struct ring_range after = { end + 1 > own.from ? end + 1 : own.from, own.to };
    values_own(ring, origin, room, before, &points.value[i], &points.best[i]);
    values_own(ring, origin, room, after, &points.value[i], &points.best[i]);
    values_found(&p[k], &points.best[i], own);
  }
}
