/* The passes of novelty in float32: see distances.h, whose results they give bit for bit. Compiled once for each instruction set;
 * a product and a sum are one operation only where distances.h says so. Here lanes are values, rows or lags of one sensor.
 *
 * All points of a run go over a block of what is resident while it is in registers: V and M of a lag are read and written once a
 * run, and the values and rows that all of the run's points are compared with are read once (kernels_novelty_values.c and
 * kernels_novelty_rows.c). What only some of them are compared with, at either end, is done one by one.
 *
 * Of a block of lags a point takes the least variance; which lag has it is looked for only where it is the least so far. As a
 * point leaves most of a variance, a block whose variances are far above what the next points have found needs no look at all. */
#include "cpu/sst/kernels_novelty.h"

#define VECTORS 5 /* of lags in a block: with fewer, a point waits for the one before it; more do not fit into registers */
#define BLOCK (VECTORS * HK_LANES)
#define STEP 16  /* points for which a block of lags is looked at together, before the first of them */
#define AGAIN 32 /* blocks after which it is looked anew at which lags matter */

/* What there is besides the values with channels = value: nothing. */
static void values_alone(struct hk_novelty_point *p, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    p[k].nearest[HK_NOVELTY_CONTEXT] = p[k].nearest[HK_NOVELTY_SHAPE] = INFINITY;
    p[k].has[HK_NOVELTY_CONTEXT] = p[k].has[HK_NOVELTY_SHAPE] = false;
    p[k].lag = HK_NOVELTY_LAG_MIN;
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
  const float found = least(&low);
  uint32_t last = 0;
  for (uint32_t u = 0; u < VECTORS; u++) {
    const uint32_t lanes = lanes_of(variance[u] <= every(found));
    last = lanes > 0 ? u * HK_LANES + (31 - (uint32_t)__builtin_clz(lanes)) : last;
  }
  lag_note(p, found, lag - last);
}

/* VECTORS of lags. */
struct lags {
  float *variance, *mean;
  const float *line; /* the samples that the first point is held against */
  int32_t place;     /* of the first of them */
  uint32_t lag;      /* that stands there */
};

/* What is known of a run before a block of lags. */
struct lags_run {
  struct hk_novelty_point *point;
  uint32_t n;
  int32_t first[HK_BATCH_PER_SENSOR];        /* of each point: place from which on lags count */
  float matters[HK_BATCH_PER_SENSOR / STEP]; /* of STEP points: see lags_bound */
};

/* For each STEP points of a run: a lag with a greater variance before them is not the nearest of any of them. A point leaves at
 * least HK_NOVELTY_FORGET times the variance, or, as it is rounded, 0.979 of it. */
static void lags_bound(struct lags_run *r)
{
  for (uint32_t k = 0; k < r->n; k += STEP) {
    float most = 1e-30f, kept = 1; /* what is smaller may be rounded to less */
    for (uint32_t j = k; j < k + STEP && j < r->n; j++) {
      kept *= 0.979f;
      const float before = r->point[j].nearest[HK_NOVELTY_SHAPE] / kept;
      most = before > most ? before : most;
    }
    r->matters[k / STEP] = most;
  }
}

/* Brings a vector of lags along by a point, as hk_novelty_lag_step. */
ALWAYS_INLINE void lags_step(vec *variance, vec *mean, vec off)
{
  const vec away = off - *mean;
  *mean = fused(every((float)(1 - (double)HK_NOVELTY_FORGET)), away, *mean);
  *variance = fused(away, away, every(HK_NOVELTY_FORGET) * *variance);
}

/* Brings a block along by a point. */
ALWAYS_INLINE void lags_take(const float *line, float value, vec *variance, vec *mean)
{
  UNROLL for (int u = 0; u < VECTORS; u++) lags_step(&variance[u], &mean[u], every(value) - load(line + u * HK_LANES));
}

/* The least variance of each lane of a block, of the lags from place `first` on. */
ALWAYS_INLINE vec lags_least(const struct lags *lags, vec *variance, int32_t first, bool all)
{
  vec low = every(INFINITY);
  UNROLL for (int u = 0; u < VECTORS; u++)
  {
    if (!all) {
      int32_t place[HK_LANES]; /* with TSan gcc takes a vector that is set lane by lane for uninitialised */
      for (int l = 0; l < HK_LANES; l++)
        place[l] = lags->place + u * HK_LANES + l;
      mask at;
      memcpy(&at, place, sizeof at);
      variance[u] = pick(at >= first - (mask){ 0 }, variance[u], every(INFINITY));
    }
    low = u > 0 ? nearer(low, variance[u]) : variance[u];
  }
  return low;
}

/* Brings a block along by all points. all: all of its lags count for every point. again: a variance that is equal to the least so
 * far may be of a shorter lag. */
ALWAYS_INLINE void lags_block(const struct lags *lags, struct lags_run *r, uint32_t n, bool all, bool again)
{
  vec variance[VECTORS], mean[VECTORS];
  UNROLL for (int u = 0; u < VECTORS; u++)
  {
    variance[u] = load(lags->variance + u * HK_LANES);
    mean[u] = load(lags->mean + u * HK_LANES);
  }
  for (uint32_t k = 0; k < n;) {
    const uint32_t to = all && k + STEP < n ? k + STEP : n;
    if (all && n > 1 && !any(lags_least(lags, variance, 0, true) <= every(r->matters[k / STEP]))) {
      for (; k < to; k++)
        lags_take(lags->line + k, r->point[k].value, variance, mean);
      continue;
    }
    for (; k < to; k++) {
      struct hk_novelty_point *p = &r->point[k];
      lags_take(lags->line + k, p->value, variance, mean);
      vec counted[VECTORS];
      memcpy(counted, variance, sizeof counted);
      const vec low = lags_least(lags, counted, r->first[k], all), bound = every(p->nearest[HK_NOVELTY_SHAPE]);
      if (any(again ? low <= bound : low < bound)) {
        vec found[VECTORS]; /* so that `counted` need not be in memory */
        memcpy(found, counted, sizeof found);
        block_note(p, found, low, lags->lag);
      }
    }
  }
  UNROLL for (int u = 0; u < VECTORS; u++)
  {
    *(loose *)(lags->variance + u * HK_LANES) = variance[u];
    *(loose *)(lags->mean + u * HK_LANES) = mean[u];
  }
}

/* Brings BLOCK lags, or the last ones that are fewer, along. */
ALWAYS_INLINE void lags_bring(const struct hk_novelty_view *v, const float *ring, uint32_t place, struct lags_run *r, uint32_t n,
                              bool again)
{
  const struct hk_novelty_point *p = r->point;
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
  if ((int32_t)place < r->first[0])
    lags_block(&block, r, n, false, true);
  else if (again)
    lags_block(&block, r, n, true, true);
  else
    lags_block(&block, r, n, true, false);
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
  struct lags_run run;
  run.point = p;
  run.n = n;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t counted = hk_novelty_lags_counted(v->detector, &p[k]);
    run.first[k] = (int32_t)(lags - counted);
    p[k].has[HK_NOVELTY_SHAPE] = counted > 0;
    p[k].nearest[HK_NOVELTY_SHAPE] = INFINITY;
    p[k].lag = HK_NOVELTY_LAG_MIN;
  }
  const uint32_t hint = v->novelty->nearest, near = hint > begin && hint < lags ? hint - (hint - begin) % BLOCK : begin;
  for (uint32_t place = near; place < lags; place += BLOCK) {
    const uint32_t done = (place - near) / BLOCK;
    if (n > 1 && (done <= 1 || done % AGAIN == 0))
      lags_bound(&run);
    lags_bring(v, ring, place, &run, n, true);
  }
  if (n > 1)
    lags_bound(&run);
  for (uint32_t place = near; place > begin; place -= BLOCK)
    lags_bring(v, ring, place - BLOCK, &run, n, false);
  const uint32_t reached = hk_novelty_lags_seen(v->detector, &p[n - 1]); /* by any; while a sensor is new, few of all lags */
  lags_singly(v, ring, p, n, lags - reached, begin, run.first);
  v->novelty->nearest = longest - p[n - 1].lag;
}

void novelty_distances(const struct hk_novelty_view *v, const float *ring, struct hk_novelty_point *p, uint32_t n)
{
  if (n == 0)
    return;
  novelty_values(v, ring, p, n);
  if (hk_novelty_value_alone(v->detector)) {
    values_alone(p, n);
    return;
  }
  if (p->age == 0)
    hk_novelty_lags_reset(v);
  novelty_rows(v, p, n);
  if (n == 1)
    lags_pass(v, ring, p, 1); /* the same for a single point, with its data in registers */
  else
    lags_pass(v, ring, p, n);
}

void novelty_lags_bring(float *variance, float *mean, const float *others, uint32_t n, float sample)
{
  uint32_t i = 0;
  for (; i + HK_LANES <= n; i += HK_LANES) {
    vec v = load(variance + i), m = load(mean + i);
    lags_step(&v, &m, every(sample) - load(others + i));
    *(loose *)(variance + i) = v;
    *(loose *)(mean + i) = m;
  }
  hk_novelty_bring_plain(variance + i, mean + i, others + i, n - i, sample);
}
