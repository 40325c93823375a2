/* The rate of false alarms on 560 stationary sensors of fourteen kinds: it must be within a factor of 3 of the rate that the
 * adaptive threshold promises, and windows of pure noise must stay below the threshold. Seeded; every score is computed. */
#include "cpu/rules/alert.h"
#include "cpu/sst/score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SENSORS 560
#define SCORES 2000
#define SECOND INT64_C(1000000000)
#define PERIOD_MAX 300

enum kind {
  WHITE,
  UNIFORM,
  HEAVY,
  QUANTISED,
  AR_HALF,
  AR_NINE,
  AR_NEAR_WALK,
  RESONANCE,
  SINE,
  TWO_SINES,
  SINE_IN_AR,
  UNSTEADY_SINE,
  TELEGRAPH,
  DAILY,
  KINDS
};

static const char *const kind_names[KINDS] = { "white",     "uniform",       "heavy tails", "quantised", "AR .5",
                                               "AR .9",     "AR .99",        "AR(2)",       "sine",      "two sines",
                                               "sine + AR", "unsteady sine", "telegraph",   "daily" };

/* A stationary signal. */
struct signal {
  enum kind kind;
  uint64_t seed;
  double scale, offset;
  double frequency[2], amplitude[2], phase[2];
  double recursion[2], state[2]; /* of an AR process */
  double jump[2];                /* chance of leaving each state of a telegraph */
  uint32_t period, t;
  double shape[PERIOD_MAX];
};

static double uniform(struct signal *s)
{
  return 0.5 + 0.5 * hk_random_element(0x5eed + s->seed, s->t++);
}

static double normal(struct signal *s)
{
  const double u = uniform(s), v = uniform(s);
  return sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
}

/* Between a and b, evenly in the logarithm. */
static double spread(struct signal *s, double a, double b)
{
  return a * pow(b / a, uniform(s));
}

static double autoregression(struct signal *s)
{
  const double x = s->recursion[0] * s->state[0] + s->recursion[1] * s->state[1] + normal(s);
  s->state[1] = s->state[0];
  s->state[0] = x;
  return x;
}

static double sine(struct signal *s, int i)
{
  s->phase[i] += s->frequency[i];
  return s->amplitude[i] * sin(s->phase[i]);
}

static double next(struct signal *s)
{
  switch (s->kind) {
  case WHITE:
    return normal(s);
  case UNIFORM:
    return uniform(s);
  case HEAVY: { /* Student's t, 3 degrees of freedom */
    const double x = normal(s), a = normal(s), b = normal(s), c = normal(s);
    return x / sqrt((a * a + b * b + c * c) / 3);
  }
  case QUANTISED:
    return floor(normal(s) * s->amplitude[0]) / s->amplitude[0];
  case AR_HALF:
  case AR_NINE:
  case AR_NEAR_WALK:
  case RESONANCE:
    return autoregression(s);
  case SINE:
    return sine(s, 0) + normal(s);
  case TWO_SINES:
    return sine(s, 0) + sine(s, 1) + normal(s);
  case SINE_IN_AR:
    return 2.3 * sine(s, 0) + autoregression(s);
  case UNSTEADY_SINE: /* frequency and amplitude wander */
    s->phase[1] += s->frequency[0] * (1 + 0.05 * normal(s));
    s->state[1] = 0.98 * s->state[1] + 0.05 * normal(s);
    return (1 + 0.5 * tanh(s->state[1])) * sin(s->phase[1]) + 0.2 * normal(s);
  case TELEGRAPH:
    if (uniform(s) < s->jump[s->state[0] > 0])
      s->state[0] = !(s->state[0] > 0);
    return s->state[0] + s->amplitude[0] * 0.1 * normal(s);
  case DAILY:
    s->period = s->period + 1 == (uint32_t)s->phase[1] ? 0 : s->period + 1;
    return s->shape[s->period] + normal(s) / s->amplitude[0];
  case KINDS:
    break;
  }
  return 0;
}

static void signal_init(struct signal *s, enum kind kind, uint64_t seed)
{
  *s = (struct signal){ .kind = kind, .seed = seed * 1000003 };
  s->scale = spread(s, 0.01, 100);
  s->offset = 10 * normal(s) * s->scale;
  for (int i = 0; i < 2; i++) {
    s->frequency[i] = 2 * M_PI / spread(s, 5, 150);
    s->amplitude[i] = sqrt(2 * spread(s, 0.1, 100)); /* signal to noise from 0.1 to 100 */
    s->phase[i] = 2 * M_PI * uniform(s);
    s->jump[i] = 1 / spread(s, 10, 200);
  }
  const double radius = 1 - spread(s, 0.01, 0.2);
  s->recursion[0] = kind == AR_HALF        ? 0.5
                    : kind == AR_NEAR_WALK ? 0.99
                    : kind == RESONANCE    ? 2 * radius * cos(s->frequency[0])
                                           : 0.9;
  s->recursion[1] = kind == RESONANCE ? -radius * radius : 0;
  if (kind == DAILY) { /* five harmonics with the sensor's own phases */
    const double length = floor(48 + (PERIOD_MAX - 48) * uniform(s));
    for (int k = 1; k <= 5; k++) {
      const double phase = 2 * M_PI * uniform(s);
      for (uint32_t i = 0; i < (uint32_t)length; i++)
        s->shape[i] += cos(2 * M_PI * k * i / length + phase) / k;
    }
    s->phase[1] = length;
    s->amplitude[0] = fmax(1, s->amplitude[0]);
  }
  for (int i = 0; i < 500; i++)
    (void)next(s);
}

enum { RATES = 2 };
static const char *const detectors[RATES] = { "window=48,interval=1s,false_alarms=50", "window=48,interval=1s,false_alarms=500" };

/* Alerts of each kind of sensor at each rate. Every score is made once and decided upon at every rate. */
static void count_alerts(const struct hk_detector *d, uint32_t alerts[RATES][KINDS], uint32_t noise[KINDS])
{
  struct hk_scorer *scorer;
  assert_int_equal(hk_scorer_new(&scorer, d, 1), 0);
  const uint32_t span = hk_detector_span(d);
  struct signal *signals = calloc(HK_GROUP, sizeof *signals);
  float *rings = calloc((size_t)HK_GROUP * span, sizeof *rings),
        *feedbacks = calloc((size_t)HK_GROUP * d->window, sizeof *feedbacks);
  assert_true(signals && rings && feedbacks);
  for (uint32_t first = 0; first < SENSORS; first += HK_GROUP) {
    struct hk_window windows[HK_GROUP];
    struct hk_alert states[RATES][HK_GROUP];
    struct hk_task tasks[HK_GROUP];
    memset(windows, 0, sizeof windows);
    memset(states, 0, sizeof states);
    for (uint32_t i = 0; i < HK_GROUP; i++) {
      signal_init(&signals[i], (first + i) % KINDS, first + i);
      windows[i].seed = first + i;
      tasks[i] = (struct hk_task){ .window = &windows[i], .ring = rings + i * span, .feedback = feedbacks + i * d->window };
      hk_feedback_reset(tasks[i].feedback, windows[i].seed, d->window);
    }
    for (uint32_t t = 0; t < span - 1 + SCORES; t++) {
      struct hk_step step = { 0 };
      for (uint32_t i = 0; i < HK_GROUP; i++) {
        const double value = signals[i].offset + signals[i].scale * next(&signals[i]);
        step = hk_window_take(&windows[i], rings + i * span, d, (t + 1) * SECOND, value, 0, false);
      }
      if (!step.score)
        continue;
      hk_score(scorer, d, tasks, HK_GROUP);
      for (uint32_t i = 0; i < HK_GROUP; i++) {
        const enum kind kind = (first + i) % KINDS;
        noise[kind] += tasks[i].share >= (1 - tasks[i].share) * hk_alert_signal(d);
        for (int r = 0; r < RATES; r++) {
          struct hk_event e;
          alerts[r][kind] += hk_alert_decide(&states[r][i], &windows[i], tasks[i].ring, &d[r], step, (double)tasks[i].z,
                                             (double)tasks[i].share, &e) &&
                             e.kind == HK_EVENT_RAISED;
        }
      }
    }
  }
  free(signals);
  free(rings);
  free(feedbacks);
  hk_scorer_free(scorer);
}

static void test_stated_rate(void **state)
{
  (void)state;
  struct hk_detector d[RATES];
  uint32_t alerts[RATES][KINDS] = { { 0 } }, over_noise[KINDS] = { 0 };
  char error[256];
  for (int r = 0; r < RATES; r++)
    assert_int_equal(hk_detector_parse(detectors[r], &d[r], error, sizeof error), 0);
  count_alerts(d, alerts, over_noise);
  const double each = (double)SENSORS / KINDS * SCORES / 1e6; /* million scores of a kind */
  for (int r = 0; r < RATES; r++) {
    double sum = 0;
    for (int k = 0; k < KINDS; k++) {
      printf("# stated %g: %s: %.0f a million scores\n", (double)d[r].false_alarms, kind_names[k], alerts[r][k] / each);
      sum += alerts[r][k];
    }
    const double ratio = sum / (each * KINDS) / (double)d[r].false_alarms;
    printf("# stated %g: %.2f times as many in all\n", (double)d[r].false_alarms, ratio);
    assert_true(ratio > 1.0 / 3 && ratio < 3);
  }
  for (int k = WHITE; k <= QUANTISED; k++) { /* windows of noise are recognised as noise */
    printf("# %s: %.3f %% of windows hold a signal\n", kind_names[k], over_noise[k] / each / 1e4);
    assert_true(over_noise[k] / each < 0.03 * 1e6);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_stated_rate) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
