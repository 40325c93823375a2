/* Novelty: the passes of every instruction set give the bits of the plain one, however points are cut into runs; tails. */
#include "cpu/novelty/state.h"
#include "cpu/sst/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static double random_real(uint64_t *state)
{
  return (double)random_number(state) / (double)(1u << 31) - 0.5;
}

/* One sensor outside a backend. */
struct sensor {
  struct hk_window window;
  float *ring;
  struct hk_novelty_view view;
  struct hk_novelty_point point[HK_BATCH_PER_SENSOR];
  uint32_t n; /* points that were taken and not passed over */
};

static struct hk_detector detector(uint32_t resident)
{
  struct hk_detector d;
  char text[64], error[256];
  snprintf(text, sizeof text, "algorithm=novelty,resident=%u,interval=1s", resident);
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s", error);
  return d;
}

static struct sensor sensor_new(const struct hk_detector *d)
{
  struct sensor s = { .ring = calloc(hk_detector_span(d), sizeof(float)) };
  void *memory = malloc(hk_novelty_bytes(d, sizeof(float)));
  assert_true(s.ring && memory);
  memset(memory, 0x55, hk_novelty_bytes(d, sizeof(float))); /* memory that was not written must have no effect */
  s.view = hk_novelty_view(memory, d);
  return s;
}

static void sensor_free(struct sensor *s)
{
  free(s->ring);
  free(s->view.novelty);
}

static void sensor_take(struct sensor *s, int64_t second, double value)
{
  const struct hk_step step = hk_novelty_take(&s->view, &s->window, s->ring, second * 1000000000, value, 0, &s->point[s->n]);
  assert_true(step.state == HK_STATE_WARMING || step.state == HK_STATE_OK || step.state == HK_STATE_GAP);
  s->n++;
}

/* A series of many kinds of values: noise, exact repeats, a far level, constant, huge and tiny values, a wave whose points are
 * near each other and near few others, a long hole. */
static double series_value(uint32_t i, uint64_t *random)
{
  const double noise = random_real(random);
  switch (i / 700 % 7) {
  case 0:
    return noise;
  case 1:
    return i % 24;
  case 2:
    return 1e6 + noise;
  case 3:
    return 3;
  case 4:
    return noise * (i % 97 == 0 ? 1e25 : 1e-3);
  case 5:
    return 10 * sin(0.01 * i) + 0.01 * noise;
  default:
    return noise * 1e-42;
  }
}

#define KERNELS_MOST 4
#ifdef HK_SANITIZED
#define ROUNDS 1 /* of the ring */
#define MANY 2800
#define HISTORY 200000
#else
#define ROUNDS 2
#define MANY 4000 /* so many lags that it is looked anew at which of them matter, with the widest vectors, too */
#define HISTORY 2000000
#endif

/* The points of a run as kernels have them, against those of the plain pass. */
static void check_points(const char *kernels, const struct sensor *plain, const struct sensor *fast)
{
  for (uint32_t k = 0; k < plain->n; k++) {
    const struct hk_novelty_point *a = &plain->point[k], *b = &fast->point[k];
    for (int c = 0; c < HK_NOVELTY_CHANNELS; c++) {
      if (a->has[c] != b->has[c] || (a->has[c] && memcmp(&a->nearest[c], &b->nearest[c], sizeof a->nearest[c]) != 0))
        fail_msg("%s, resident %u, point %u of a run of %u, before it %u: channel %d is %d %.9g, and %d %.9g", kernels,
                 plain->view.detector->resident, k, plain->n, a->before, c, a->has[c], (double)a->nearest[c], b->has[c],
                 (double)b->nearest[c]);
    }
    if (a->has[HK_NOVELTY_SHAPE])
      assert_int_equal(a->lag, b->lag);
  }
  const size_t bytes = hk_novelty_lags(plain->view.detector) * sizeof(float);
  assert_memory_equal(plain->view.variance, fast->view.variance, bytes);
  assert_memory_equal(plain->view.mean, fast->view.mean, bytes);
}

/* Every instruction set at once: the plain pass, which takes longest, is made once for all. */
static void check_pass(uint32_t resident, uint32_t most)
{
  const struct hk_kernels *const *const kernels = hk_kernels_all();
  const struct hk_detector d = detector(resident);
  struct sensor s[1 + KERNELS_MOST]; /* the first by the plain pass */
  uint32_t sets = 0;
  for (s[0] = sensor_new(&d); kernels[sets] && sets < KERNELS_MOST;)
    s[++sets] = sensor_new(&d);
  assert_null(kernels[sets]);
  uint64_t random = resident + most, values = 1;
  int64_t second = 0;
  for (uint32_t i = 0; i < ROUNDS * resident + 1500;) {
    const uint32_t run = 1 + (uint32_t)random_number(&random) % most;
    const bool hole = i > 600 && random_number(&random) % 60 == 0, rare = hole && i % 2; /* as if holes were rare */
    for (uint32_t j = 0; j <= sets; j++) {
      s[j].n = 0;
      s[j].window.holes = rare ? 0 : s[j].window.holes;
    }
    for (uint32_t k = 0; k < run; k++, i++) {
      second += k == 0 && hole ? 300 : 1;
      const double value = series_value(i, &values);
      for (uint32_t j = 0; j <= sets; j++)
        sensor_take(&s[j], second, value);
    }
    hk_novelty_pass_plain(&s[0].view, s[0].ring, s[0].point, run);
    for (uint32_t j = 1; j <= sets; j++) {
      kernels[j - 1]->novelty_pass(&s[j].view, s[j].ring, s[j].point, run);
      check_points(kernels[j - 1]->name, &s[0], &s[j]);
    }
  }
  for (uint32_t j = 0; j <= sets; j++)
    sensor_free(&s[j]);
}

static void passes_give_the_plain_bits(void **state)
{
  (void)state;
  check_pass(1000, 1);
  check_pass(1000, HK_BATCH_PER_SENSOR);
  check_pass(1003, 7);
  check_pass(1279, 40); /* crowds of rows whose points differ in their weights */
  check_pass(2222, 33);
  check_pass(MANY, HK_BATCH_PER_SENSOR);
}

/* Rates a point as the lists define it, a channel after the other: nothing is kept from an earlier point. */
static struct hk_novelty_result plain_rate(struct hk_novelty *s, const struct hk_novelty_point *p)
{
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++) {
    if (!p->has[c])
      continue;
    const float q = hk_novelty_floored(p, c);
    struct hk_novelty_rating by[2];
    s->seen[c] = hk_novelty_next(s->seen[c]);
    for (uint32_t l = 0; l < 2; l++)
      by[l] = hk_novelty_tail_rate(&s->tail[c][l], c, l, s->seen[c], q, hk_novelty_quantum(p));
    hk_novelty_result_take(&best, c, by[0], by[1], q, hk_novelty_tail_usual(&s->tail[c][0]));
  }
  best.s = fmax(best.s, 0.0);
  return best;
}

static void runs_may_be_cut_anywhere(void **state)
{
  (void)state;
  const struct hk_detector d = detector(1000);
  struct sensor one = sensor_new(&d), many = sensor_new(&d);
  uint64_t values = 3, again = 3, grave = 0;
  for (uint32_t i = 0; i < 160 * HK_BATCH_PER_SENSOR;) {
    const uint32_t from = i;
    for (uint32_t k = many.n = 0; k < HK_BATCH_PER_SENSOR; k++, i++)
      sensor_take(&many, i, series_value(i, &values));
    hk_kernels()->novelty_pass(&many.view, many.ring, many.point, many.n);
    for (uint32_t k = 0; k < HK_BATCH_PER_SENSOR; k++) {
      one.n = 0;
      sensor_take(&one, from + k, series_value(from + k, &again));
      hk_kernels()->novelty_pass(&one.view, one.ring, one.point, 1);
      const struct hk_novelty_result a = plain_rate(one.view.novelty, one.point);
      const double from_s = k % 3 == 0 ? -INFINITY : 1; /* whether an alert stands */
      const struct hk_novelty_result b =
          hk_novelty_rate_from(many.view.novelty, &many.point[k], &many.view.novelty->memo, from_s);
      assert_memory_equal(&a.s, &b.s, sizeof a.s);
      assert_true(a.channel == b.channel && a.usual == b.usual);
      assert_true(a.s >= from_s ? a.severity == b.severity : b.severity == 0);
      grave += a.s >= 1 && a.severity > 0 && a.distance > a.usual;
    }
  }
  assert_true(grave > 20); /* beyond the usual, where the memo has its sums */
  assert_memory_equal(one.view.novelty, many.view.novelty, offsetof(struct hk_novelty, memo));
  sensor_free(&one);
  sensor_free(&many);
}

/* channels = value: the distances of values that all channels have, no others; a state that is its own, and shorter. */
static void value_alone(void **state)
{
  (void)state;
  const struct hk_detector every = detector(1000);
  struct hk_detector d = every;
  d.channels = HK_CHANNELS_VALUE;
  struct sensor all = sensor_new(&every), alone = sensor_new(&d), plain = sensor_new(&d), back = sensor_new(&d);
  uint64_t random = 5, values = 1;
  for (uint32_t i = 0; i < 3000;) {
    const uint32_t run = 1 + (uint32_t)random_number(&random) % HK_BATCH_PER_SENSOR;
    all.n = alone.n = plain.n = 0;
    for (uint32_t k = 0; k < run; k++, i++) {
      const double value = series_value(i, &values);
      sensor_take(&all, i, value);
      sensor_take(&alone, i, value);
      sensor_take(&plain, i, value);
    }
    hk_kernels()->novelty_pass(&all.view, all.ring, all.point, run);
    hk_kernels()->novelty_pass(&alone.view, alone.ring, alone.point, run);
    hk_novelty_pass_plain(&plain.view, plain.ring, plain.point, run);
    for (uint32_t k = 0; k < run; k++) {
      const struct hk_novelty_point *p = &alone.point[k];
      assert_memory_equal(&p->nearest[HK_NOVELTY_VALUE], &all.point[k].nearest[HK_NOVELTY_VALUE], sizeof *p->nearest);
      assert_memory_equal(p->has, plain.point[k].has, sizeof p->has);
      assert_int_equal(p->has[HK_NOVELTY_VALUE], all.point[k].has[HK_NOVELTY_VALUE]);
      assert_false(p->has[HK_NOVELTY_CONTEXT] || p->has[HK_NOVELTY_SHAPE]);
    }
  }
  static uint8_t bytes[1 << 15], again[1 << 15];
  struct hk_alert alert = { .mean = 3.25 }, taken;
  const int64_t n = hk_novelty_export(&alone.window, &alert, &alone.view, alone.ring, bytes, sizeof bytes);
  assert_in_range(n, 1, 4 * hk_detector_span(&d) + 4000);
  assert_int_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, (size_t)n), 0);
  assert_int_equal(hk_novelty_export(&back.window, &taken, &back.view, back.ring, again, sizeof again), n);
  assert_memory_equal(bytes, again, (size_t)n);
  assert_int_not_equal(hk_novelty_import(&all.window, &taken, &all.view, all.ring, bytes, (size_t)n), 0);
  const int64_t more = hk_novelty_export(&all.window, &alert, &all.view, all.ring, bytes, sizeof bytes);
  assert_in_range(more, n + 1, sizeof bytes);
  assert_int_not_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, (size_t)more), 0);
  sensor_free(&all);
  sensor_free(&alone);
  sensor_free(&plain);
  sensor_free(&back);
}

/* The numbers of a small case worked out by hand: 10 blocks with the maxima 1.1 .. 2.0, so k = 5 and u = 1.6. */
static void tails_by_hand(void **state)
{
  (void)state;
  struct hk_novelty_tail t = { .n = 0 };
  for (uint32_t block = 0; block < 10; block++)
    for (uint32_t i = 0; i < HK_NOVELTY_BLOCK; i++)
      hk_novelty_tail_take(&t, i == 17 ? 1.1f + 0.1f * (float)((block * 7) % 10) : 0.5f, HK_NOVELTY_BLOCK, 0);
  assert_int_equal(t.blocks, 10);
  assert_int_equal(t.n, 10);
  assert_true(fabs((double)t.top[0] - 2.0) < 1e-6 && fabs((double)t.top[9] - 1.1) < 1e-6);
  assert_true(fabs(hk_novelty_tail_usual(&t) - 1.6) < 1e-6);
  const double s0 = -log10(5 / 11.0);
  assert_true(fabs(hk_novelty_tail_score(&t, HK_NOVELTY_VALUE, 0.8, 0).s - s0 / 2) < 1e-6);
  const double hill = log(2.0 / 1.6) + log(1.9 / 1.6) + log(1.8 / 1.6) + log(1.7 / 1.6);
  const double s = s0 + 24 * log10(1 + log(4 / 1.6) / (hill + 4));
  assert_true(fabs(hk_novelty_tail_score(&t, HK_NOVELTY_VALUE, 4, 0).s - s) < 1e-5);
  const double severity = s0 + 9 * log10(1 + log(4 / 1.6) / (hill + 1.25));
  assert_true(fabs((double)hk_novelty_tail_score(&t, HK_NOVELTY_VALUE, 4, 0).severity - severity) < 1e-5);
  /* A quantum of 2 spreads on both sides: of the maxima, and of the values compared with them. */
  const double coarse = log(4.0 / 3.6) + log(3.9 / 3.6) + log(3.8 / 3.6) + log(3.7 / 3.6);
  const double counted = s0 + 9 * log10(1 + log(6 / 3.6) / (coarse + 1.75));
  assert_true(fabs((double)hk_novelty_tail_score(&t, HK_NOVELTY_SHAPE, 4, 2).severity - counted) < 1e-5);
  assert_true(fabs((double)hk_novelty_tail_score(&t, HK_NOVELTY_SHAPE, 0.8, 2).severity - s0 * 2.8 / 3.6) < 1e-5);
}

/* The mean of a channel's lists, the largest of the channels, whichever channel raises the alert; at most the evidence that there
 * is. */
static void severity_is_the_gravest_channels(void **state)
{
  (void)state;
  struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
  hk_novelty_result_take(&best, HK_NOVELTY_VALUE, (struct hk_novelty_rating){ 4, 1 }, (struct hk_novelty_rating){ 2, 2 }, 1, 1);
  hk_novelty_result_take(&best, HK_NOVELTY_SHAPE, (struct hk_novelty_rating){ 2, 3 }, (struct hk_novelty_rating){ 1, 2 }, 1, 1);
  assert_int_equal(best.channel, HK_NOVELTY_VALUE);
  assert_true(best.s == 3 && best.severity == 2.5f);
  hk_novelty_result_take(&best, HK_NOVELTY_CONTEXT, (struct hk_novelty_rating){ 1, 90 }, (struct hk_novelty_rating){ 1, 90 }, 1,
                         1);
  assert_true((double)best.severity == HK_SEVERITY_MAX);
}

/* The least step that was not 0, through a state and one of before there were steps. */
static void steps_are_learned_and_kept(void **state)
{
  (void)state;
  static const double values[] = { 5, 5, 9, 9, 7, 7.5, 7.5, 3 };
  static const double quanta[] = { 0, 0, 4, 4, 2, 0.5, 0.5, 0.5 };
  const struct hk_detector d = detector(1000);
  struct sensor one = sensor_new(&d), back = sensor_new(&d);
  uint8_t bytes[1 << 14];
  struct hk_alert alert = { .mean = 3.25 }, taken;
  for (uint32_t i = 0; i < 8; i++) {
    one.n = 0;
    sensor_take(&one, i + 1, values[i]);
    assert_true(one.point[0].quantum == quanta[i]);
  }
  assert_true(hk_novelty_quantum(&one.point[0]) == 0.5 * one.point[0].unit);
  const int64_t n = hk_novelty_export(&one.window, &alert, &one.view, one.ring, bytes, sizeof bytes);
  assert_true(n > 0 && n <= (int64_t)sizeof bytes);
  assert_int_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, (size_t)n), 0);
  assert_true(back.view.novelty->quantum == 0.5 && back.view.novelty->last == -2 && taken.mean == 3.25);
  const size_t before = (size_t)n - HK_NOVELTY_STATE_STEPS - HK_NOVELTY_STATE_FORM;
  hk_state_seal(bytes, bytes + before - HK_STATE_CHECKSUM);
  assert_int_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, before), 0);
  assert_true(back.view.novelty->quantum == 0 && back.view.novelty->last == -2);
  hk_state_seal(bytes, bytes + before - 4 - HK_STATE_CHECKSUM);
  assert_int_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, before - 4), -EINVAL);
  sensor_free(&one);
  sensor_free(&back);
}

static void tails_say_nothing_before_four_blocks(void **state)
{
  (void)state;
  struct hk_novelty_tail t = { .n = 0 };
  for (uint32_t i = 0; i < 4 * HK_NOVELTY_BLOCK; i++) {
    assert_true(hk_novelty_tail_score(&t, HK_NOVELTY_SHAPE, 1e4, 0).s == 0);
    hk_novelty_tail_take(&t, 1, HK_NOVELTY_BLOCK, 0);
  }
  assert_true(hk_novelty_tail_score(&t, HK_NOVELTY_SHAPE, 1e4, 0).s > 3);
}

/* Takes a block whose maximum is q. */
static void block_take(struct hk_novelty_tail *t, float q, uint32_t drop)
{
  for (uint32_t i = 0; i < HK_NOVELTY_BLOCK; i++)
    hk_novelty_tail_take(t, q, HK_NOVELTY_BLOCK, drop);
}

/* Of maxima 1, 2, ... the 60 largest before the last block are 1023 .. 964; every second of them is removed, and then the last
 * one is added. */
static void every_second_maximum_is_forgotten(void **state)
{
  (void)state;
  for (uint32_t drop = 0; drop < 2; drop++) {
    struct hk_novelty_tail t = { .n = 0 };
    for (uint32_t block = 1; block < HK_NOVELTY_BLOCKS_MOST; block++)
      block_take(&t, (float)block, drop);
    assert_int_equal(t.blocks, HK_NOVELTY_BLOCKS_MOST - 1);
    assert_int_equal(t.n, HK_NOVELTY_TOP);
    block_take(&t, HK_NOVELTY_BLOCKS_MOST, drop);
    assert_int_equal(t.blocks, HK_NOVELTY_BLOCKS_MOST / 2);
    assert_int_equal(t.n, HK_NOVELTY_TOP / 2 + 1);
    assert_true(t.top[0] == (float)HK_NOVELTY_BLOCKS_MOST);
    for (uint32_t i = 1; i < t.n; i++)
      assert_true(t.top[i] == (float)(HK_NOVELTY_BLOCKS_MOST - 2 * i + drop));
    for (uint32_t i = t.n; i < HK_NOVELTY_TOP; i++)
      assert_true(t.top[i] == 0);
  }
}

/* However long a sensor has been there, S of 2 comes in a hundredth of the blocks at most, of severity 2.5 and 3 in what these
 * promise: exponential distances, which have no upper end. */
static void a_long_history_promises_no_less(void **state)
{
  (void)state;
  const uint32_t n = HISTORY, least = n / 2000000; /* in a short one there may be none */
  struct hk_novelty_tail list[2] = { { .n = 0 }, { .n = 0 } };
  uint64_t random = 5;
  uint32_t rare = 0, grave[2] = { 0, 0 };
  for (uint32_t seen = 1; seen <= n; seen++) {
    const float q = (float)(0.2 - log(random_real(&random) + 0.5 + 1e-9));
    double s = 0, severity = 0;
    for (uint32_t i = 0; i < 2; i++) {
      const struct hk_novelty_rating r = hk_novelty_tail_rate(&list[i], HK_NOVELTY_CONTEXT, i, seen, q, 0);
      s += 0.5 * r.s;
      severity += 0.5 * (double)r.severity;
    }
    if (seen <= n / 2)
      continue;
    rare += s >= 2;
    grave[0] += severity >= 2.5;
    grave[1] += severity >= 3;
  }
  const double blocks = n / 2.0 / HK_NOVELTY_BLOCK;
  assert_in_range(rare, least, (uint32_t)(blocks * 1.5e-2));
  assert_in_range(grave[0], least, (uint32_t)(blocks * pow(10, -2.5) * 2));
  assert_in_range(grave[1], least, (uint32_t)(blocks * pow(10, -3) * 2));
}

/* A hundred blocks in which distances are fifty times as large: nothing is rare while they are remembered, and 60,000 points
 * later ten times the usual is. */
static void a_wild_time_is_forgotten(void **state)
{
  (void)state;
  struct hk_novelty_tail list[2] = { { .n = 0 }, { .n = 0 } };
  uint64_t random = 9;
  double rare[2] = { 0, 0 };
  for (uint32_t seen = 1; seen <= 100000; seen++) {
    const bool wild = seen > 8000 && seen <= 12000;
    const float q = (float)((1 + random_real(&random)) * (wild ? 50 : 1));
    for (uint32_t i = 0; i < 2; i++)
      hk_novelty_tail_rate(&list[i], HK_NOVELTY_SHAPE, i, seen, q, 0);
    for (uint32_t i = 0; i < 2 && (seen == 13000 || seen == 100000); i++)
      rare[seen == 100000] += 0.5 * hk_novelty_tail_score(&list[i], HK_NOVELTY_SHAPE, 15, 0).s;
  }
  assert_true(rare[0] < 1);
  assert_true(rare[1] > 3);
}

/* A list of an earlier version, without forgetting, has ever rarer blocks: it begins anew. */
static void lists_of_before_they_forgot_begin_anew(void **state)
{
  (void)state;
  const struct hk_detector d = detector(1000);
  struct sensor one = sensor_new(&d), back = sensor_new(&d);
  uint8_t bytes[1 << 14];
  struct hk_alert alert = { .mean = 0 }, taken;
  sensor_take(&one, 1, 7);
  struct hk_novelty_tail *t = one.view.novelty->tail[HK_NOVELTY_CONTEXT];
  for (uint32_t block = 0; block < 5; block++)
    for (uint32_t i = 0; i < 2; i++)
      block_take(&t[i], 1, 0);
  t[0].blocks = HK_NOVELTY_BLOCKS_MOST;
  t[1].blocks = HK_NOVELTY_BLOCKS_MOST - 1;
  const int64_t n = hk_novelty_export(&one.window, &alert, &one.view, one.ring, bytes, sizeof bytes);
  assert_true(n > 0 && n <= (int64_t)sizeof bytes);
  assert_int_equal(hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes, (size_t)n), 0);
  t = back.view.novelty->tail[HK_NOVELTY_CONTEXT];
  assert_true(t[0].n == 0 && t[0].blocks == 0 && t[0].top[0] == 0);
  assert_true(t[1].n == 5 && t[1].blocks == HK_NOVELTY_BLOCKS_MOST - 1);
  sensor_free(&one);
  sensor_free(&back);
}

/* Sensors of every age: states contain no memory that was not written yet, and if such memory holds NaN, the state is still
 * accepted. */
static void states_hold_only_what_was_written(void **state)
{
  (void)state;
  const struct hk_detector d = detector(1000);
  const size_t size = hk_novelty_bytes(&d, sizeof(float)), room = 1 << 16;
  struct sensor some[2] = { sensor_new(&d), sensor_new(&d) }, back = sensor_new(&d);
  uint8_t *bytes[2] = { malloc(room), malloc(room) };
  struct hk_alert alert;
  uint64_t random = 7;
  assert_true(bytes[0] && bytes[1]);
  memset(&alert, 0, sizeof alert);
  memset(some[0].view.novelty, 0xff, size); /* NaN */
  for (uint32_t points = 1; points <= 1200; points++) {
    const double value = random_real(&random);
    int64_t n[2];
    for (int k = 0; k < 2; k++) {
      some[k].n = 0;
      sensor_take(&some[k], points, value);
      hk_novelty_pass_plain(&some[k].view, some[k].ring, some[k].point, 1);
      (void)hk_novelty_rate(some[k].view.novelty, some[k].point);
      n[k] = hk_novelty_export(&some[k].window, &alert, &some[k].view, some[k].ring, bytes[k], room);
    }
    assert_true(n[0] > 0 && n[0] <= (int64_t)room);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], (size_t)n[0]);
    struct hk_alert taken;
    if (hk_novelty_import(&back.window, &taken, &back.view, back.ring, bytes[0], (size_t)n[0]) != 0)
      fail_msg("the state after %u points is refused", points);
  }
  for (int k = 0; k < 2; k++) {
    sensor_free(&some[k]);
    free(bytes[k]);
  }
  sensor_free(&back);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(passes_give_the_plain_bits),
    cmocka_unit_test(runs_may_be_cut_anywhere),
    cmocka_unit_test(value_alone),
    cmocka_unit_test(tails_by_hand),
    cmocka_unit_test(severity_is_the_gravest_channels),
    cmocka_unit_test(steps_are_learned_and_kept),
    cmocka_unit_test(tails_say_nothing_before_four_blocks),
    cmocka_unit_test(every_second_maximum_is_forgotten),
    cmocka_unit_test(a_long_history_promises_no_less),
    cmocka_unit_test(a_wild_time_is_forgotten),
    cmocka_unit_test(lists_of_before_they_forgot_begin_anew),
    cmocka_unit_test(states_hold_only_what_was_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
