/* The passes of novelty in float32: see distances.h, whose results they give bit for bit. Compiled once for each instruction set,
 * without contraction of products and sums; here lanes are values, rows or lags of one sensor.
 *
 * All points of a run go over a block of what is resident while it is in registers: V and M of a lag are read and written once a
 * run, and the values and rows that all of the run's points are compared with are read once. What only some of them are compared
 * with, at either end, is done one by one. Of a block of lags a point takes the least variance; which lag has it is looked for
 * only where it is the least so far. */
#include "cpu/novelty/distances.h"
#include "cpu/sst/lanes.h"

#include <string.h>

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

/* The distances of each point from n contiguous values. What is left after whole blocks is covered by vectors that overlap: a
 * minimum may count a number twice. */
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
  for (; i < n && n >= HK_LANES; i += HK_LANES) {
    const vec a = load(value + (i + HK_LANES <= n ? i : n - HK_LANES));
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], magnitude(a - every(p[k].value)));
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

/* A vector of rows. */
struct rows {
  vec mean[HK_NOVELTY_MEANS];
};

ALWAYS_INLINE struct rows rows_load(const struct hk_novelty_view *v, uint32_t at)
{
  return (struct rows){ { load(v->row[0] + at), load(v->row[1] + at), load(v->row[2] + at) } };
}

/* The squared distances of a point's means to rows. */
ALWAYS_INLINE vec rows_distance(const struct rows *row, const struct hk_novelty_point *p)
{
  const vec a = (row->mean[0] - every(p->mean[0])) * every(p->weight[0]);
  const vec b = (row->mean[1] - every(p->mean[1])) * every(p->weight[1]);
  const vec c = (row->mean[2] - every(p->mean[2])) * every(p->weight[2]);
  return a * a + b * b + c * c;
}

/* As values_piece, of rows. */
ALWAYS_INLINE void rows_piece(const struct hk_novelty_view *v, uint32_t at, uint32_t n, struct hk_novelty_point *p,
                              uint32_t points, vec *best)
{
  uint32_t i = 0;
  for (; i + 2 * HK_LANES <= n; i += 2 * HK_LANES) {
    const struct rows a = rows_load(v, at + i), b = rows_load(v, at + i + HK_LANES);
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], nearer(rows_distance(&a, &p[k]), rows_distance(&b, &p[k])));
  }
  for (; i < n && n >= HK_LANES; i += HK_LANES) {
    const struct rows a = rows_load(v, at + (i + HK_LANES <= n ? i : n - HK_LANES));
    for (uint32_t k = 0; k < points; k++)
      best[k] = nearer(best[k], rows_distance(&a, &p[k]));
  }
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

/* Takes a lag's variance for a point's nearest; of equal ones the shortest lag. */
ALWAYS_INLINE void lag_note(struct hk_novelty_point *p, float variance, uint32_t lag)
{
  if (variance < p->nearest[HK_NOVELTY_SHAPE] || (variance == p->nearest[HK_NOVELTY_SHAPE] && lag < p->lag)) {
    p->nearest[HK_NOVELTY_SHAPE] = variance;
    p->lag = lag;
  }
}

/* The same for a block, `low` being the least of each lane; lag: of its first place. Few blocks come here: most have nothing less
 * than what was found before. */
static __attribute__((noinline)) void block_note(struct hk_novelty_point *p, const vec *variance, vec low, uint32_t lag)
{
  float each[BLOCK];
  const float found = least(&low);
  memcpy(each, variance, sizeof each);
  uint32_t last = BLOCK - 1;
  while (last > 0 && !(each[last] <= found))
    last--;
  lag_note(p, found, lag - last);
}

/* Four vectors of lags. */
struct lags {
  float *variance, *mean;
  const float *line; /* the samples that the first point is held against */
  int32_t place;     /* of the first of them */
  uint32_t lag;      /* that stands there */
};

/* Brings them along by all points. all: all of them count for every point, otherwise those from place first[k] on. again: a
 * variance that is equal to the least so far may be of a shorter lag. */
ALWAYS_INLINE void lags_block(const struct lags *lags, struct hk_novelty_point *p, uint32_t n, const int32_t *first, bool all,
                              bool again)
{
  const vec keep_ = every(HK_NOVELTY_FORGET), weight = every((float)(1 - (double)HK_NOVELTY_FORGET));
  vec variance[4], mean[4];
  UNROLL for (int u = 0; u < 4; u++)
  {
    variance[u] = load(lags->variance + u * HK_LANES);
    mean[u] = load(lags->mean + u * HK_LANES);
  }
  for (uint32_t k = 0; k < n; k++) {
    const vec x = every(p[k].value);
    UNROLL for (int u = 0; u < 4; u++)
    {
      const vec away = x - load(lags->line + k + u * HK_LANES) - mean[u], part = weight * away;
      mean[u] += part;
      variance[u] = keep_ * (variance[u] + part * away);
    }
    vec counted[4];
    UNROLL for (int u = 0; u < 4; u++)
    {
      counted[u] = variance[u];
      if (!all) {
        int32_t place[HK_LANES]; /* with TSan gcc takes a vector that is set lane by lane for uninitialised */
        for (int l = 0; l < HK_LANES; l++)
          place[l] = lags->place + u * HK_LANES + l;
        mask at;
        memcpy(&at, place, sizeof at);
        counted[u] = pick(at >= first[k] - (mask){ 0 }, variance[u], every(INFINITY));
      }
    }
    const vec low = nearer(nearer(counted[0], counted[1]), nearer(counted[2], counted[3])),
              bound = every(p[k].nearest[HK_NOVELTY_SHAPE]);
    if (any(again ? low <= bound : low < bound))
      block_note(&p[k], counted, low, lags->lag);
  }
  UNROLL for (int u = 0; u < 4; u++)
  {
    *(loose *)(lags->variance + u * HK_LANES) = variance[u];
    *(loose *)(lags->mean + u * HK_LANES) = mean[u];
  }
}

/* Brings BLOCK lags, or the last ones that are fewer, along. */
ALWAYS_INLINE void lags_bring(const struct hk_novelty_view *v, const float *ring, uint32_t place, struct hk_novelty_point *p,
                              uint32_t n, const int32_t *first, bool again)
{
  const uint32_t room = hk_detector_span(v->detector), lags = hk_novelty_lags(v->detector);
  const uint32_t lag = hk_novelty_lag_max(v->detector) - place, at = p->at >= lag ? p->at - lag : p->at + room - lag;
  const uint32_t needed = BLOCK + n - 1, here = lags - place < BLOCK ? lags - place : BLOCK;
  float copy[BLOCK + HK_BATCH_PER_SENSOR], variance[BLOCK], mean[BLOCK];
  struct lags block = { v->variance + place, v->mean + place, ring + at, (int32_t)place, lag };
  if (at + needed > room) {
    memcpy(copy, ring + at, (room - at) * sizeof *copy);
    memcpy(copy + (room - at), ring, (needed - (room - at)) * sizeof *copy);
    block.line = copy;
  }
  if (here < BLOCK) { /* behind the last place stand no lags: their variance stays infinite */
    for (uint32_t i = 0; i < BLOCK; i++) {
      variance[i] = i < here ? block.variance[i] : INFINITY;
      mean[i] = i < here ? block.mean[i] : 0;
    }
    block.variance = variance;
    block.mean = mean;
  }
  if ((int32_t)place < first[0])
    lags_block(&block, p, n, first, false, true);
  else if (again)
    lags_block(&block, p, n, first, true, true);
  else
    lags_block(&block, p, n, first, true, false);
  if (here < BLOCK) {
    memcpy(v->variance + place, variance, here * sizeof *variance);
    memcpy(v->mean + place, mean, here * sizeof *mean);
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
      if ((int32_t)place >= first[k])
        lag_note(&p[k], variance, lag);
    }
  }
}

/* The block of the last point's nearest lag comes first, so that few others have anything less. */
ALWAYS_INLINE void lags_pass(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  const uint32_t lags = hk_novelty_lags(v->detector), longest = hk_novelty_lag_max(v->detector);
  const uint32_t begin = lags - hk_novelty_lags_seen(v->detector, p); /* by all */
  int32_t first[HK_BATCH_PER_SENSOR];                                 /* place from which on lags count */
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t counted = hk_novelty_lags_counted(v->detector, &p[k]);
    first[k] = (int32_t)(lags - counted);
    p[k].has[HK_NOVELTY_SHAPE] = counted > 0;
    p[k].nearest[HK_NOVELTY_SHAPE] = INFINITY;
    p[k].lag = HK_NOVELTY_LAG_MIN;
  }
  const uint32_t hint = v->novelty->nearest, near = hint > begin && hint < lags ? hint - (hint - begin) % BLOCK : begin;
  for (uint32_t place = near; place < lags; place += BLOCK)
    lags_bring(v, ring, place, p, n, first, true);
  for (uint32_t place = near; place > begin; place -= BLOCK)
    lags_bring(v, ring, place - BLOCK, p, n, first, false);
  const uint32_t reached = hk_novelty_lags_seen(v->detector, &p[n - 1]); /* by any; while a sensor is new, few of all lags */
  lags_singly(v, ring, p, n, lags - reached, begin, first);
  v->novelty->nearest = longest - p[n - 1].lag;
}

ALWAYS_INLINE void pass(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  vec best[HK_BATCH_PER_SENSOR];
  if (p->age == 0)
    hk_novelty_lags_reset(v);
  values_pass(v, ring, p, n, best);
  if (hk_novelty_value_alone(v->detector)) {
    values_alone(p, n);
    return;
  }
  rows_pass(v, p, n, best);
  lags_pass(v, ring, p, n);
}

void novelty_distances(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  if (n == 1)
    pass(v, ring, p, 1); /* the same for a single point, with its data in registers */
  else if (n > 1)
    pass(v, ring, p, n);
}
