/* The rules of algorithm = limit, one sensor at a time. test_limit_recordings.py compares whole recordings with an independent
 * program. */
#include "cpu/backend/state_size.h"
#include "cpu/limit/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <xxhash.h>

#define SECOND ((int64_t)1000000000)
#define BLOCK (60 * SECOND) /* of a window of 24 minutes */
#define EVENTS 64

/* One sensor outside a backend, with the last point's step and the events so far. */
struct sensor {
  struct hk_detector detector;
  struct hk_window window;
  struct hk_alert alert;
  struct hk_limit_view view;
  struct hk_limit_check check;
  struct hk_step step;
  struct hk_event event[EVENTS];
  uint32_t n;
  float ring[HK_LIMIT_RING];
};

static struct hk_detector parsed(const char *keys)
{
  struct hk_detector d;
  char text[256], error[256];
  snprintf(text, sizeof text, "algorithm=limit,%s", keys);
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s: %s", text, error);
  return d;
}

static struct sensor *sensor_new(const char *keys)
{
  struct sensor *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->detector = parsed(keys);
  void *memory = malloc(hk_limit_bytes(sizeof(float)));
  assert_non_null(memory);
  memset(memory, 0x55, hk_limit_bytes(sizeof(float))); /* memory that was not written must have no effect */
  s->view = hk_limit_view(memory, &s->detector);
  return s;
}

static void sensor_free(struct sensor *s)
{
  free(s->view.limit);
  free(s);
}

static void take(struct sensor *s, int64_t time, double value)
{
  struct hk_event e;
  s->step = hk_limit_take(&s->view, &s->window, s->ring, time, value, 0, s->alert.raised, &s->check);
  if (s->step.state == HK_STATE_LATE || s->step.state == HK_STATE_REJECTED)
    return;
  if (hk_limit_decide(&s->alert, &s->view, &s->window, s->step, &s->check, &e)) {
    assert_true(s->n < EVENTS);
    s->event[s->n++] = e;
  }
}

static double noise(uint32_t i)
{
  uint32_t x = i * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x / 4294967296.0 - 0.5;
}

#define KEYS "limit=100,lower=-100,window=24m,horizon=30m,interval=5s"

/* Points every 5 s of a line with a slope a minute, from minute to minute. */
static void line(struct sensor *s, uint32_t from, uint32_t to, double begin, double slope, double spread)
{
  for (uint32_t i = from * 12; i < to * 12; i++)
    take(s, i * 5 * SECOND, begin + slope * (i / 12.0 - from) + spread * noise(i));
}

static bool near(int64_t time, double minutes, double within)
{
  return fabs((double)time / (double)BLOCK - minutes) <= within;
}

/* A line that reaches 100 in minute 100: the alert comes at the third check within the horizon, with that time, exact to a
 * second. */
static void a_line_reaches_its_limit(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 99, 0, 1, 0);
  assert_int_equal(s->n, 1);
  const struct hk_event *e = &s->event[0];
  assert_int_equal(e->kind, HK_EVENT_RAISED);
  assert_int_equal(e->channel, HK_CHANNEL_LIMIT);
  assert_int_equal(e->number, 1);
  assert_int_equal(e->limit.kind, HK_NOTE_LIMIT);
  assert_int_equal(e->limit.blocks, 24);
  assert_true(e->limit.limit == 100);
  assert_true(near(e->time, 73, 0)); /* 71 is the first check from which minute 100 is less than 30 off */
  assert_true(near(e->limit.reached, 100, 0.05));
  assert_true(near(e->limit.earliest, 100, 0.05) && near(e->limit.latest, 100, 0.05));
  assert_true(fabs(e->before - 49) < 0.1 && fabs(e->after - 73) < 0.1 && e->spread_after < 1e-4f);
  assert_true(near(e->from, 49, 0) && e->instant == e->time);
  assert_true(fabs((double)e->limit.slope - 1 / 60.0) < 1e-6);
  assert_true(e->severity >= 2.5f && e->severity < 2.52f && e->margin > 1 && e->score > 0.5f);
  assert_true(s->alert.raised);
  assert_true(s->step.state == HK_STATE_OK);
  sensor_free(s);
}

/* The same downwards; with an upper limit alone, a falling series raises no alert. */
static void a_line_falls_to_its_limit(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS), *other = sensor_new("limit=100,window=24m,horizon=30m,interval=5s");
  line(s, 0, 99, 0, -1, 0);
  line(other, 0, 99, 0, -1, 0);
  assert_int_equal(s->n, 1);
  assert_true(s->event[0].limit.limit == -100 && s->event[0].limit.slope < 0 && near(s->event[0].limit.reached, 100, 0.05));
  assert_int_equal(other->n, 0);
  sensor_free(s);
  sensor_free(other);
}

/* At a limit nothing grows any more: the alert stands, until the level has been back for three checks. */
static void what_is_full_stays_told(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 100, 0, 1, 0);
  line(s, 100, 180, 100, 0, 0);
  assert_int_equal(s->n, 1);
  assert_true(s->alert.raised && s->alert.peak == 1 && s->alert.margin == 100);
  line(s, 180, 190, 99, 0, 0);
  assert_int_equal(s->n, 2);
  assert_int_equal(s->event[1].kind, HK_EVENT_CLEARED);
  assert_true(near(s->event[1].time, 183, 0));
  assert_true(fabs((double)s->event[1].severity - 3) < 1e-6);
  sensor_free(s);
}

/* A disk that is cleaned up: the alert is cleared at once, and the trend is computed from the values since then, after 18 blocks.
 */
static void what_fell_begins_anew(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 90, 0, 1, 0.2);
  assert_int_equal(s->n, 1);
  line(s, 90, 92, 60, 1, 0.2);
  assert_int_equal(s->n, 2);
  assert_int_equal(s->event[1].kind, HK_EVENT_CLEARED);
  assert_true(near(s->event[1].time, 91, 0));
  assert_int_equal(s->step.state, HK_STATE_WARMING);
  line(s, 92, 108, 62, 1, 0.2);
  assert_int_equal(s->step.state, HK_STATE_WARMING);
  line(s, 108, 112, 78, 1, 0.2);
  assert_int_equal(s->step.state, HK_STATE_OK);
  assert_int_equal(s->n, 3);
  assert_int_equal(s->event[2].number, 2);
  assert_int_equal(s->event[2].limit.blocks, 20);
  assert_true(near(s->event[2].limit.reached, 130, 0.5));
  sensor_free(s);
}

/* Falling back by less than half of what has grown is noise. */
static void what_falls_a_little_goes_on(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 60, 0, 1, 0);
  line(s, 60, 61, 50, 0, 0); /* 24 blocks have grown by 24 */
  line(s, 61, 62, 62, 0, 0);
  assert_int_equal(s->step.state, HK_STATE_OK);
  assert_int_equal(s->view.limit->there, 24);
  line(s, 62, 63, 40, 0, 0);
  line(s, 63, 64, 62, 0, 0);
  assert_int_equal(s->step.state, HK_STATE_WARMING);
  sensor_free(s);
}

static void noise_says_nothing(void **state)
{
  (void)state;
  for (uint32_t seed = 0; seed < 20; seed++) {
    struct sensor *s = sensor_new("limit=1,lower=-1,window=24m,horizon=480m,interval=5s");
    for (uint32_t i = 0; i < 12 * 500; i++)
      take(s, i * 5 * SECOND, noise(i + 1000000 * seed));
    assert_int_equal(s->n, 0);
    sensor_free(s);
  }
}

/* Blocks with under a quarter of their samples are missing; with under 18 of 24 there is no score. */
static void holes(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 60, 0, 1, 0);
  assert_int_equal(s->step.state, HK_STATE_OK);
  for (uint32_t minute = 60; minute < 66; minute++) /* 3 of 12 samples are enough */
    for (uint32_t i = 0; i < 3; i++)
      take(s, minute * BLOCK + i * 5 * SECOND, minute);
  line(s, 66, 67, 66, 1, 0);
  assert_int_equal(s->view.limit->there, 24);
  for (uint32_t minute = 67; minute < 73; minute++) /* and 2 are not */
    for (uint32_t i = 0; i < 2; i++)
      take(s, minute * BLOCK + i * 5 * SECOND, minute);
  line(s, 73, 74, 73, 1, 0);
  assert_int_equal(s->view.limit->there, 18);
  assert_int_equal(s->step.state, HK_STATE_OK);
  take(s, 76 * BLOCK, 76); /* two blocks without any, and the one before */
  assert_int_equal(s->step.state, HK_STATE_GAP);
  assert_false(s->step.score);
  take(s, 500 * BLOCK, 0);
  assert_int_equal(s->view.limit->there, 0);
  assert_int_equal(s->view.limit->present, 0);
  sensor_free(s);
}

/* An alert does not outlive its evidence: three checks with too few blocks end it, too. */
static void holes_end_an_alert(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  line(s, 0, 75, 0, 1, 0);
  assert_true(s->alert.raised);
  for (uint32_t i = 0; i < 4; i++)
    take(s, (90 + i) * BLOCK, 75);
  assert_false(s->alert.raised);
  assert_int_equal(s->n, 2);
  sensor_free(s);
}

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of many samples is that of every 2nd, 4th ... of them; of up to 32 of all. */
static void medians_of_blocks(void **state)
{
  (void)state;
  for (uint32_t n = 1; n < 700; n += n < 40 ? 1 : 13) {
    struct sensor *s = sensor_new("limit=1000,window=24m,interval=1s");
    double kept[700];
    uint32_t every = 1, m = 0;
    while ((n + every - 1) / every > 32)
      every *= 2;
    take(s, 0, 0); /* the reference */
    for (uint32_t i = 0; i < n; i++) {
      const double x = (double)(float)noise(i);
      take(s, BLOCK + (i + 1) * (BLOCK / 701), x);
      if (i % every == 0)
        kept[m++] = x;
    }
    double median;
    s->detector.interval = BLOCK; /* that one is enough */
    (void)hk_limit_close(&s->view, &s->window, 2, &median);
    qsort(kept, m, sizeof *kept, by_size);
    const double want = (kept[(m - 1) / 2] + kept[m / 2]) / 2;
    if (fabs(median - want) > 1e-12)
      fail_msg("%u samples: %.9g, not %.9g", n, median, want);
    sensor_free(s);
  }
}

/* Values worked out by hand: z of five ascending values is 9 / sqrt(5 * 4 * 15 / 18); ties reduce the variance. */
static void z_of_a_few(void **state)
{
  (void)state;
  const double rising[] = { 1, 2, 3, 4, 5 }, falling[] = { 5, 4, 3, 2, 1 }, tied[] = { 1, 2, 2, 3, 3 }, same[] = { 7, 7, 7 };
  assert_true(fabs(hk_limit_z(rising, 5) - 9 / sqrt(300 / 18.0)) < 1e-12);
  assert_true(fabs(hk_limit_z(falling, 5) + 9 / sqrt(300 / 18.0)) < 1e-12);
  assert_true(fabs(hk_limit_z(tied, 5) - 7 / sqrt((300 - 18 - 18) / 18.0)) < 1e-12);
  assert_true(hk_limit_z(same, 3) == 0);
}

static void sorting(void **state)
{
  (void)state;
  double x[HK_LIMIT_SLOPES], y[HK_LIMIT_SLOPES];
  for (uint32_t n = 0; n <= HK_LIMIT_SLOPES; n++) {
    for (uint32_t i = 0; i < n; i++)
      x[i] = y[i] = floor(20 * noise(i + 1000 * n));
    hk_limit_sort(x, n);
    qsort(y, n, sizeof *y, by_size);
    assert_memory_equal(x, y, n * sizeof *x);
  }
}

static void points_that_are_not_taken(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS);
  take(s, -1, 0);
  assert_int_equal(s->step.state, HK_STATE_REJECTED);
  take(s, 0, NAN);
  assert_int_equal(s->step.state, HK_STATE_REJECTED);
  take(s, 0, INFINITY);
  assert_int_equal(s->step.state, HK_STATE_REJECTED);
  take(s, SECOND, 1);
  assert_int_equal(s->step.state, HK_STATE_WARMING);
  take(s, SECOND, 2);
  assert_int_equal(s->step.state, HK_STATE_LATE);
  take(s, 2 * SECOND, 2e30);
  assert_int_equal(s->step.state, HK_STATE_REJECTED);
  assert_int_equal(s->view.limit->came, 1);
  take(s, INT64_MAX, 5); /* the end of all times */
  assert_int_equal(s->step.state, HK_STATE_GAP);
  sensor_free(s);
}

/* A limit so far away that its time cannot be represented. */
static void a_limit_beyond_all_times(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("limit=1e30,window=24m,interval=5s");
  line(s, 0, 60, 0, 1e-20, 0);
  take(s, 60 * BLOCK, 60e-20);
  assert_true(s->step.score && s->check.trend.z > 6);
  assert_int_equal(s->n, 0);
  assert_true(s->check.outlook.eta == INFINITY && s->check.outlook.reached == INT64_MAX);
  sensor_free(s);
}

static void alerts_that_are_off(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS ",alert=off");
  line(s, 0, 120, 0, 1, 0);
  assert_int_equal(s->n, 0);
  sensor_free(s);
}

/* A state goes back and forth at any point, bit for bit; changed bytes are refused, or do no harm. */
static void states(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS), *t = sensor_new(KEYS), *u = sensor_new("limit=1,window=48m,interval=5s");
  uint8_t bytes[2][2048];
  float ring[HK_LIMIT_RING];
  hk_limit_reset(&s->view);
  for (uint32_t i = 0; i < 12 * 170; i++) { /* an alert, which ends because the trend does, and a fall */
    const double value = i < 12 * 90 ? i / 12.0 + noise(i) : i < 12 * 150 ? 88 + noise(i) : 30;
    const int64_t size = hk_limit_export(&s->window, &s->alert, &s->view, s->ring, bytes[0], sizeof bytes[0]);
    assert_in_range(size, 1, hk_state_most(&s->detector));
    assert_int_equal(hk_limit_import(&t->window, &t->alert, &t->view, ring, bytes[0], (size_t)size), 0);
    memcpy(t->ring, ring, sizeof ring);
    assert_int_equal(hk_limit_export(&t->window, &t->alert, &t->view, t->ring, bytes[1], sizeof bytes[1]), size);
    assert_memory_equal(bytes[0], bytes[1], (size_t)size);
    assert_int_equal(hk_limit_import(&u->window, &u->alert, &u->view, ring, bytes[0], (size_t)size), -EINVAL);
    assert_int_equal(hk_limit_import(&t->window, &t->alert, &t->view, ring, bytes[0], (size_t)size - 1), -EINVAL);
    take(s, i * 5 * SECOND, value);
    t->n = 0;
    take(t, i * 5 * SECOND, value);
    assert_int_equal(s->step.state, t->step.state);
    assert_memory_equal(&s->alert, &t->alert, sizeof s->alert);
  }
  uint32_t ended = 0;
  for (uint32_t i = 0; i < s->n; i++)
    ended += s->event[i].kind == HK_EVENT_CLEARED && s->event[i].time < 150 * BLOCK;
  assert_true(ended >= 1);
  sensor_free(s);
  sensor_free(t);
  sensor_free(u);
}

static void states_that_were_tampered_with(void **state)
{
  (void)state;
  struct sensor *s = sensor_new(KEYS), *t = sensor_new(KEYS);
  uint8_t good[2048], bad[2048];
  float ring[HK_LIMIT_RING];
  line(s, 0, 80, 0, 1, 0.5);
  take(s, 80 * BLOCK + 1, 80);
  const int64_t size = hk_limit_export(&s->window, &s->alert, &s->view, s->ring, good, sizeof good);
  uint32_t refused = 0;
  for (int64_t at = 16; at < size - 8; at++) {
    for (int bit = 0; bit < 8; bit += 7) {
      memcpy(bad, good, (size_t)size);
      bad[at] ^= (uint8_t)(1 << bit);
      const uint64_t checksum = XXH64(bad, (size_t)size - 8, 0);
      hk_state_put(bad + size - 8, &checksum, 8);
      t->n = 0;
      if (hk_limit_import(&t->window, &t->alert, &t->view, ring, bad, (size_t)size) != 0) {
        refused++;
        continue;
      }
      memcpy(t->ring, ring, sizeof ring);
      for (uint32_t i = 1; i < 40; i++)
        take(t, t->window.last_time < INT64_MAX - 40 * BLOCK ? t->window.last_time + BLOCK / 3 : INT64_MAX, 80 + i);
    }
  }
  print_message("# %u of %lld changed states were refused\n", refused, 2 * (long long)(size - 24));
  assert_true(refused > 50);
  sensor_free(s);
  sensor_free(t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_reaches_its_limit),
    cmocka_unit_test(a_line_falls_to_its_limit),
    cmocka_unit_test(what_is_full_stays_told),
    cmocka_unit_test(what_fell_begins_anew),
    cmocka_unit_test(what_falls_a_little_goes_on),
    cmocka_unit_test(noise_says_nothing),
    cmocka_unit_test(holes),
    cmocka_unit_test(holes_end_an_alert),
    cmocka_unit_test(medians_of_blocks),
    cmocka_unit_test(z_of_a_few),
    cmocka_unit_test(sorting),
    cmocka_unit_test(points_that_are_not_taken),
    cmocka_unit_test(a_limit_beyond_all_times),
    cmocka_unit_test(alerts_that_are_off),
    cmocka_unit_test(states),
    cmocka_unit_test(states_that_were_tampered_with),
  };
  return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
