/* The passes of novelty in float32: see distances.h, whose results they give bit for bit. Compiled once for each instruction set,
 * without contraction of products and sums; here lanes are values, rows or lags of one sensor.
 *
 * All points of a run go over a block of what is resident while it is in registers: V and M of a lag are read and written once a
 * run, and the values and rows that all of the run's points are compared with are read once. What only some of them are compared
 * with, at either end, is done one by one. */
#include "cpu/novelty/distances.h"
#include "cpu/sst/lanes.h"

#define BLOCK (4 * HK_LANES)

/* As hk_novelty_nearer. */
ALWAYS_INLINE vec nearer(vec a, vec b)
{
  return smaller(b, a);
}

/* A range of a ring, in places relative to that of the run's first point; empty if from > to. */
struct range {
  int32_t from, to;
};

/* Takes the first part of a range, up to the ring's end: its place and its length. */
static uint32_t range_piece(struct range *range, uint32_t origin, uint32_t room, uint32_t *at)
{
  if (range->from > range->to)
    return 0;
  *at = (uint32_t)(((int64_t)origin + range->from) % room + room) % room;
  const uint32_t left = (uint32_t)(range->to - range->from + 1), n = left < room - *at ? left : room - *at;
  range->from += (int32_t)n;
  return n;
}

/* Least number of a vector. */
static float least(const vec *best)
{
  float each[HK_LANES], found = INFINITY;
  memcpy(each, best, sizeof each);
  for (uint32_t l = 0; l < HK_LANES; l++)
    found = hk_novelty_nearer(found, each[l]);
  return found;
}

/* The distances of each point from n contiguous values. */
ALWAYS_INLINE void values_piece(const float *value, uint32_t n, const struct hk_novelty_point *p, uint32_t points, vec *best)
{
  uint32_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    const vec a = load(value + i), b = load(value + i + HK_LANES), c = load(value + i + 2 * HK_LANES),
              d = load(value + i + 3 * HK_LANES);
    for (uint32_t k = 0; k < points; k++) {
      const vec x = every(p[k].value);
      best[k] = nearer(best[k], nearer(nearer(magnitude(a - x), magnitude(b - x)), nearer(magnitude(c - x), magnitude(d - x))));
    }
  }
  for (; i < n; i++)
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], magnitude(every(value[i]) - every(p[k].value)));
}

ALWAYS_INLINE void values_pass(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n,
                               vec *best)
{
  const uint32_t room = hk_detector_span(v->detector);
  struct range shared = { INT32_MIN, -HK_NOVELTY_RECENT }, own[HK_BATCH_PER_SENSOR];
  for (uint32_t k = 0; k < n; k++) {
    own[k].to = (int32_t)k - HK_NOVELTY_RECENT;
    own[k].from = own[k].to + 1 - (int32_t)hk_novelty_values(v->detector, &p[k]);
    shared.from = own[k].from > shared.from ? own[k].from : shared.from;
    best[k] = every(INFINITY);
  }
  uint32_t at = 0, length;
  for (struct range rest = shared; (length = range_piece(&rest, p->at, room, &at)) > 0;)
    values_piece(ring + at, length, p, n, best);
  const int32_t end = shared.from > shared.to ? shared.from - 1 : shared.to; /* of what is done */
  for (uint32_t k = 0; k < n; k++) {
    struct range before = { own[k].from, (own[k].to < shared.from ? own[k].to : shared.from - 1) };
    struct range after = { end + 1 > own[k].from ? end + 1 : own[k].from, own[k].to };
    while ((length = range_piece(&before, p->at, room, &at)) > 0)
      values_piece(ring + at, length, p + k, 1, best + k);
    while ((length = range_piece(&after, p->at, room, &at)) > 0)
      values_piece(ring + at, length, p + k, 1, best + k);
    p[k].nearest[HK_NOVELTY_VALUE] = least(&best[k]);
    p[k].has[HK_NOVELTY_VALUE] = own[k].from <= own[k].to;
  }
}

/* What there is besides the values with channels = value: nothing. */
static void values_alone(struct hk_novelty_point *p, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    p[k].nearest[HK_NOVELTY_CONTEXT] = p[k].nearest[HK_NOVELTY_SHAPE] = INFINITY;
    p[k].has[HK_NOVELTY_CONTEXT] = p[k].has[HK_NOVELTY_SHAPE] = false;
    p[k].lag = HK_NOVELTY_LAG_MIN;
  }
}

/* The squared distance of a point's means to the rows at a place. */
ALWAYS_INLINE vec rows_distance(const struct hk_novelty_view *v, const struct hk_novelty_point *p, uint32_t at)
{
  const vec a = (load(v->row[0] + at) - every(p->mean[0])) * every(p->weight[0]);
  const vec b = (load(v->row[1] + at) - every(p->mean[1])) * every(p->weight[1]);
  const vec c = (load(v->row[2] + at) - every(p->mean[2])) * every(p->weight[2]);
  return a * a + b * b + c * c;
}

ALWAYS_INLINE void rows_piece(const struct hk_novelty_view *v, uint32_t at, uint32_t n, struct hk_novelty_point *p,
                              uint32_t points, vec *best)
{
  uint32_t i = 0;
  for (; i + HK_LANES <= n; i += HK_LANES)
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], rows_distance(v, &p[k], at + i));
  for (; i < n; i++)
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], every(hk_novelty_row_distance(v, &p[k], at + i)));
}

ALWAYS_INLINE void rows_pass(const struct hk_novelty_view *v, struct hk_novelty_point *p, uint32_t n, vec *best)
{
  const uint32_t room = hk_novelty_rows_room(v->detector);
  struct range shared = { INT32_MIN, -1 }, own[HK_BATCH_PER_SENSOR];
  for (uint32_t k = 0; k < n; k++) {
    own[k].to = (int32_t)((p[k].row + room - p->row) % room) - 1;
    own[k].from = own[k].to + 1 - (int32_t)p[k].rows;
    shared.from = own[k].from > shared.from ? own[k].from : shared.from;
    best[k] = every(INFINITY);
  }
  uint32_t at = 0, length;
  for (struct range rest = shared; (length = range_piece(&rest, p->row, room, &at)) > 0;)
    rows_piece(v, at, length, p, n, best);
  const int32_t end = shared.from > shared.to ? shared.from - 1 : shared.to;
  for (uint32_t k = 0; k < n; k++) {
    struct range before = { own[k].from, (own[k].to < shared.from ? own[k].to : shared.from - 1) };
    struct range after = { end + 1 > own[k].from ? end + 1 : own[k].from, own[k].to };
    while ((length = range_piece(&before, p->row, room, &at)) > 0)
      rows_piece(v, at, length, p + k, 1, best + k);
    while ((length = range_piece(&after, p->row, room, &at)) > 0)
      rows_piece(v, at, length, p + k, 1, best + k);
    p[k].nearest[HK_NOVELTY_CONTEXT] = least(&best[k]);
    p[k].has[HK_NOVELTY_CONTEXT] = p[k].rows > 0;
  }
}

/* Least variance of each lane, and its place. */
struct found {
  vec variance;
  mask place;
};

/* Four vectors of lags from a place on, all of which every point brings along. line: the samples that the first point is held
 * against. masked: not all of them count for every point yet. */
ALWAYS_INLINE void lags_block(const struct hk_novelty_view *v, uint32_t place, const float *line,
                              const struct hk_novelty_point *p, uint32_t n, const int32_t *first, struct found *found,
                              bool masked)
{
  const vec keep_ = every(HK_NOVELTY_FORGET), weight = every((float)(1 - (double)HK_NOVELTY_FORGET));
  vec variance[4], mean[4];
  mask lane;
  for (int l = 0; l < HK_LANES; l++)
    lane[l] = l;
  UNROLL for (int u = 0; u < 4; u++)
  {
    variance[u] = load(v->variance + place + u * HK_LANES);
    mean[u] = load(v->mean + place + u * HK_LANES);
  }
  for (uint32_t k = 0; k < n; k++) {
    const vec x = every(p[k].value);
    struct found best = found[k];
    UNROLL for (int u = 0; u < 4; u++)
    {
      const vec away = x - load(line + k + u * HK_LANES) - mean[u], part = weight * away;
      const mask at = lane + ((int32_t)place + u * HK_LANES - (mask){ 0 });
      mean[u] += part;
      variance[u] = keep_ * (variance[u] + part * away);
      const vec counted = masked ? pick(at >= first[k] - (mask){ 0 }, variance[u], every(INFINITY)) : variance[u];
      const mask closer = counted <= best.variance; /* of equal ones the last: the shortest lag */
      best.variance = pick(closer, counted, best.variance);
      best.place = (mask)pick(closer, (vec)at, (vec)best.place);
    }
    found[k] = best;
  }
  UNROLL for (int u = 0; u < 4; u++)
  {
    *(loose *)(v->variance + place + u * HK_LANES) = variance[u];
    *(loose *)(v->mean + place + u * HK_LANES) = mean[u];
  }
}

/* Processes the lags of places from..to-1, one by one, for the points that reach them. */
static void lags_singly(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n, uint32_t from,
                        uint32_t to, const int32_t *first)
{
  const uint32_t room = hk_detector_span(v->detector), longest = hk_novelty_lag_max(v->detector);
  for (uint32_t place = from; place < to; place++) {
    const uint32_t lag = longest - place;
    for (uint32_t k = 0; k < n; k++) {
      if (lag > p[k].before)
        continue;
      const float variance = hk_novelty_lag_take(v, place, p[k].value - hk_novelty_sample(ring, room, &p[k], lag));
      if ((int32_t)place >= first[k] &&
          (variance < p[k].nearest[HK_NOVELTY_SHAPE] || (variance == p[k].nearest[HK_NOVELTY_SHAPE] && lag < p[k].lag))) {
        p[k].nearest[HK_NOVELTY_SHAPE] = variance;
        p[k].lag = lag;
      }
    }
  }
}

ALWAYS_INLINE void lags_pass(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n,
                             struct found *found)
{
  const uint32_t room = hk_detector_span(v->detector), lags = hk_novelty_lags(v->detector),
                 longest = hk_novelty_lag_max(v->detector);
  const uint32_t seen = hk_novelty_lags_seen(v->detector, p); /* by all */
  int32_t first[HK_BATCH_PER_SENSOR];                         /* place from which on lags count */
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t counted = hk_novelty_lags_counted(v->detector, &p[k]);
    first[k] = (int32_t)(lags - counted);
    p[k].has[HK_NOVELTY_SHAPE] = counted > 0;
    p[k].nearest[HK_NOVELTY_SHAPE] = INFINITY;
    p[k].lag = HK_NOVELTY_LAG_MIN;
    found[k] = (struct found){ every(INFINITY), (mask){ 0 } };
  }
  uint32_t place = lags - seen;
  const uint32_t singly = place;
  for (; place + BLOCK <= lags; place += BLOCK) {
    float copy[BLOCK + HK_BATCH_PER_SENSOR];
    const uint32_t at = (p->at + room - (longest - place)) % room, needed = BLOCK + n - 1;
    const float *line = ring + at;
    if (at + needed > room) {
      memcpy(copy, line, (room - at) * sizeof *copy);
      memcpy(copy + (room - at), ring, (needed - (room - at)) * sizeof *copy);
      line = copy;
    }
    if ((int32_t)place >= first[0])
      lags_block(v, place, line, p, n, first, found, false);
    else
      lags_block(v, place, line, p, n, first, found, true);
  }
  for (uint32_t k = 0; k < n; k++) {
    float variance[HK_LANES];
    int32_t places[HK_LANES];
    memcpy(variance, &found[k].variance, sizeof variance);
    memcpy(places, &found[k].place, sizeof places);
    for (uint32_t l = 0; l < HK_LANES && seen >= BLOCK; l++) {
      const uint32_t lag = longest - (uint32_t)places[l];
      if (variance[l] < p[k].nearest[HK_NOVELTY_SHAPE] || (variance[l] == p[k].nearest[HK_NOVELTY_SHAPE] && lag < p[k].lag)) {
        p[k].nearest[HK_NOVELTY_SHAPE] = variance[l];
        p[k].lag = lag;
      }
    }
  }
  const uint32_t reached = hk_novelty_lags_seen(v->detector, &p[n - 1]); /* by any; while a sensor is new, few of all lags */
  lags_singly(v, ring, p, n, lags - reached, singly, first);
  lags_singly(v, ring, p, n, place, lags, first);
}

ALWAYS_INLINE void pass(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  union {
    vec best[HK_BATCH_PER_SENSOR];
    struct found found[HK_BATCH_PER_SENSOR];
  } of;
  if (p->age == 0)
    hk_novelty_lags_reset(v);
  values_pass(v, ring, p, n, of.best);
  if (hk_novelty_value_alone(v->detector)) {
    values_alone(p, n);
    return;
  }
  rows_pass(v, p, n, of.best);
  lags_pass(v, ring, p, n, of.found);
}

void novelty_distances(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  if (n == 1)
    pass(v, ring, p, 1); /* the same for a single point, with its data in registers */
  else if (n > 1)
    pass(v, ring, p, n);
}
