/* The distance of each point of a run from the nearest row of slow means: see kernels_novelty.c.
 *
 * The rows that all of the run's points are compared with are read once. Slow means of successive points are close to each other:
 * eight of them make a crowd, as in kernels_novelty_values.c, with a span in each mean and the least weights, and a vector of
 * rows is compared with those crowds only to which it may be nearer than what they have found. No row is nearer to a point than
 * to its crowd's span, also as it is rounded: each step of the distance grows with the one before it. */
#include "cpu/sst/kernels_novelty.h"

#define NEWEST 64 /* rows with which all points are compared, so that each has found something near */
#define PART 512  /* rows after which the crowds are made anew */

/* A vector of rows. */
struct rows_vector {
  vec mean[HK_NOVELTY_MEANS];
};

/* Points that may find something nearer: the spans of their means, their least weights, and how far it may be. None: nothing
 * reaches them. */
struct rows_crowd {
  float low[HK_NOVELTY_MEANS], high[HK_NOVELTY_MEANS], weight[HK_NOVELTY_MEANS], far;
};

static const struct rows_crowd no_crowd = {
  { INFINITY, INFINITY, INFINITY }, { -INFINITY, -INFINITY, -INFINITY }, { INFINITY, INFINITY, INFINITY }, 0
};

/* The points of a run, and the least squares that each lane found. */
struct rows_run {
  struct hk_novelty_point *point;
  uint32_t n;
  vec best[HK_BATCH_PER_SENSOR];
};

ALWAYS_INLINE struct rows_vector rows_load(const struct hk_novelty_view *v, uint32_t at)
{
  return (struct rows_vector){ { load(v->row[0] + at), load(v->row[1] + at), load(v->row[2] + at) } };
}

/* The squared distances of a point's means to rows. */
ALWAYS_INLINE vec rows_distance(const struct rows_vector *row, const struct hk_novelty_point *p)
{
  const vec a = (row->mean[0] - every(p->mean[0])) * every(p->weight[0]);
  const vec b = (row->mean[1] - every(p->mean[1])) * every(p->weight[1]);
  const vec c = (row->mean[2] - every(p->mean[2])) * every(p->weight[2]);
  return fused(c, c, fused(b, b, a * a));
}

/* The squared distances of n points from n contiguous rows. What is left after whole blocks is covered by vectors that overlap: a
 * minimum may count a number twice. */
ALWAYS_INLINE void rows_piece(const struct hk_novelty_view *v, uint32_t at, uint32_t length, const struct hk_novelty_point *p,
                              uint32_t n, vec *best)
{
  uint32_t i = 0;
  for (; i + 2 * HK_LANES <= length; i += 2 * HK_LANES) {
    const struct rows_vector a = rows_load(v, at + i), b = rows_load(v, at + i + HK_LANES);
    for (uint32_t k = 0; k < n; k++)
      best[k] = nearer(best[k], nearer(rows_distance(&a, &p[k]), rows_distance(&b, &p[k])));
  }
  for (; i < length && length >= HK_LANES; i += HK_LANES) {
    const struct rows_vector a = rows_load(v, at + (i + HK_LANES <= length ? i : length - HK_LANES));
    for (uint32_t k = 0; k < n; k++)
      best[k] = nearer(best[k], rows_distance(&a, &p[k]));
  }
  for (; i < length; i++)
    for (uint32_t k = 0; k < n; k++)
      best[k] = nearer(best[k], every(hk_novelty_row_distance(v, &p[k], at + i)));
}

static float rows_smaller(float a, float b)
{
  return b < a ? b : a;
}

static float rows_greater(float a, float b)
{
  return b > a ? b : a;
}

/* The crowd of n points, without those that found an equal row. */
static struct rows_crowd rows_crowd_of(const struct hk_novelty_point *p, const vec *best, uint32_t n)
{
  struct rows_crowd c = no_crowd;
  for (uint32_t k = 0; k < n; k++) {
    const float found = least(&best[k]);
    if (found <= 0)
      continue;
    c.far = rows_greater(c.far, found);
    for (int m = 0; m < HK_NOVELTY_MEANS; m++) {
      c.low[m] = rows_smaller(c.low[m], p[k].mean[m]);
      c.high[m] = rows_greater(c.high[m], p[k].mean[m]);
      c.weight[m] = rows_smaller(c.weight[m], p[k].weight[m]);
    }
  }
  return c;
}

static void rows_crowd_add(struct rows_crowd *all, const struct rows_crowd *one)
{
  all->far = rows_greater(all->far, one->far);
  for (int m = 0; m < HK_NOVELTY_MEANS; m++) {
    all->low[m] = rows_smaller(all->low[m], one->low[m]);
    all->high[m] = rows_greater(all->high[m], one->high[m]);
    all->weight[m] = rows_smaller(all->weight[m], one->weight[m]);
  }
}

/* As rows_distance, from the span of a crowd's mean. */
ALWAYS_INLINE vec rows_off(const struct rows_vector *row, const struct rows_crowd *c, int mean)
{
  const vec below = every(c->low[mean]) - row->mean[mean], above = row->mean[mean] - every(c->high[mean]);
  return larger(larger(below, above), every(0)) * every(c->weight[mean]);
}

/* Whether any of the rows may be nearer to a point of a crowd than what it has found. */
ALWAYS_INLINE bool rows_reach(const struct rows_crowd *c, const struct rows_vector *row)
{
  const vec x = rows_off(row, c, 0), y = rows_off(row, c, 1), z = rows_off(row, c, 2);
  return any(fused(z, z, fused(y, y, x * x)) < every(c->far));
}

/* As rows_piece, of a crowd at a time. */
static void rows_crowds(const struct hk_novelty_view *v, uint32_t at, uint32_t length, struct rows_run *p)
{
  const uint32_t crowds = (p->n + HK_NOVELTY_CROWD - 1) / HK_NOVELTY_CROWD;
  struct rows_crowd each[HK_NOVELTY_CROWDS], all = no_crowd;
  for (uint32_t c = 0; c < crowds; c++) {
    const uint32_t from = c * HK_NOVELTY_CROWD, left = p->n - from;
    each[c] = rows_crowd_of(p->point + from, p->best + from, left < HK_NOVELTY_CROWD ? left : HK_NOVELTY_CROWD);
    rows_crowd_add(&all, &each[c]);
  }
  uint32_t i = 0;
  for (; i + HK_LANES <= length; i += HK_LANES) {
    const struct rows_vector row = rows_load(v, at + i);
    if (!rows_reach(&all, &row))
      continue;
    for (uint32_t c = 0; c < crowds; c++) {
      if (!rows_reach(&each[c], &row))
        continue;
      const uint32_t to = (c + 1) * HK_NOVELTY_CROWD < p->n ? (c + 1) * HK_NOVELTY_CROWD : p->n;
      for (uint32_t k = c * HK_NOVELTY_CROWD; k < to; k++)
        p->best[k] = nearer(p->best[k], rows_distance(&row, &p->point[k]));
    }
  }
  rows_piece(v, at + i, length - i, p->point, p->n, p->best);
}

/* The squared distances of the points from the rows of a range. */
static void rows_shared(const struct hk_novelty_view *v, uint32_t origin, uint32_t room, struct ring_range rest,
                        struct rows_run *p)
{
  struct ring_range newest = rest;
  newest.from = rest.to - rest.from < NEWEST || p->n < HK_NOVELTY_CROWDED ? rest.from : rest.to + 1 - NEWEST;
  rest.to = newest.from - 1;
  uint32_t at = 0, length;
  while ((length = range_piece(&newest, origin, room, &at)) > 0)
    rows_piece(v, at, length, p->point, p->n, p->best);
  while ((length = range_piece(&rest, origin, room, &at)) > 0)
    for (uint32_t part; length > 0; at += part, length -= part) {
      part = length < PART ? length : PART;
      rows_crowds(v, at, part, p);
    }
}

/* The squared distances of a point from the rows of a range. */
ALWAYS_INLINE void rows_own(const struct hk_novelty_view *v, uint32_t origin, uint32_t room, struct ring_range own,
                            const struct hk_novelty_point *p, vec *best)
{
  uint32_t at = 0, length;
  while ((length = range_piece(&own, origin, room, &at)) > 0)
    rows_piece(v, at, length, p, 1, best);
}

/* The rows with which a point is compared; origin: the place that counts as 0. */
ALWAYS_INLINE struct ring_range rows_range(const struct hk_novelty_point *p, uint32_t origin, uint32_t room)
{
  const int32_t to = (int32_t)((p->row + room - origin) % room) - 1;
  return (struct ring_range){ to + 1 - (int32_t)p->rows, to };
}

static void rows_found(struct hk_novelty_point *p, const vec *best)
{
  p->nearest[HK_NOVELTY_CONTEXT] = least(best);
  p->has[HK_NOVELTY_CONTEXT] = p->rows > 0;
}

/* The same for a single point, with its data in registers. */
static void rows_single(const struct hk_novelty_view *v, struct hk_novelty_point *p, uint32_t room)
{
  vec best = every(INFINITY);
  rows_own(v, p->row, room, rows_range(p, p->row, room), p, &best);
  rows_found(p, &best);
}

void novelty_rows(const struct hk_novelty_view *v, struct hk_novelty_point *p, uint32_t n)
{
  const uint32_t room = hk_novelty_rows_room(v->detector), origin = p->row;
  struct rows_run points = { .point = p, .n = n };
  struct ring_range shared = { INT32_MIN, -1 };
  if (n == 1) {
    rows_single(v, p, room);
    return;
  }
  for (uint32_t k = 0; k < n; k++) {
    const int32_t from = rows_range(&p[k], origin, room).from;
    shared.from = from > shared.from ? from : shared.from;
    points.best[k] = every(INFINITY);
  }
  rows_shared(v, origin, room, shared, &points);
  const int32_t end = shared.from > shared.to ? shared.from - 1 : shared.to; /* of what is done */
  for (uint32_t k = 0; k < n; k++) {
    const struct ring_range own = rows_range(&p[k], origin, room);
    const struct ring_range before = { own.from, own.to < shared.from ? own.to : shared.from - 1 };
    const struct ring_range after = { end + 1 > own.from ? end + 1 : own.from, own.to };
    rows_own(v, origin, room, before, &p[k], &points.best[k]);
    rows_own(v, origin, room, after, &p[k], &points.best[k]);
    rows_found(&p[k], &points.best[k]);
  }
}
