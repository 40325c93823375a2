/* algorithm = limit as the CUDA kernel computes it: cpu/limit as C++, a lane to a sensor, against the cpu backend, bit for bit.
 * The kernel (gpu/limit/limit.cu) adds nothing to these calls; what a device makes of them only a device shows. */
#include "cpu/backend.h"
#include "cpu/limit/alert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include <cmocka.h>
}

#define SECOND 1000000000ll
#define POINTS 6000u
#define KINDS 6u

static double noise(uint32_t i)
{
  uint32_t x = i * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x / 4294967296.0 - 0.5;
}

/* Stairs, slopes that fall back, noise, constants, steps of a counter, a wave. */
static double value(uint32_t kind, uint32_t i)
{
  switch (kind) {
  case 0:
    return i % 1500 / 100.0 + noise(i);
  case 1:
    return -(i % 1100 / 60.0) + 0.2 * noise(i);
  case 2:
    return noise(i);
  case 3:
    return 5;
  case 4:
    return floor(i / 250.0);
  default:
    return 10 * sin(i / 600.0);
  }
}

/* What a lane does with a point. */
struct lane {
  struct hk_window window;
  struct hk_alert alert;
  float ring[HK_LIMIT_RING];
  alignas(16) unsigned char own[1024];
};

static int tick(struct lane *lane, const struct hk_detector *d, int64_t time, double x, uint8_t *state, float *score,
                struct hk_event *e)
{
  const struct hk_limit_view v = hk_limit_view(lane->own, d);
  struct hk_limit_check check;
  const struct hk_step step = hk_limit_take(&v, &lane->window, lane->ring, time, x, 0, lane->alert.raised, &check);
  *state = step.state;
  *score = step.score ? (float)hk_limit_score(d, &check.outlook) : NAN;
  return step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
         hk_limit_decide(&lane->alert, &v, &lane->window, step, &check, e);
}

static void the_same_as_the_cpu_backend(void **)
{
  struct hk_detector d;
  char error[256];
  assert_int_equal(
      hk_detector_parse("algorithm=limit,limit=12,lower=-12,window=5m,horizon=10m,hold=2,confidence=3", &d, error, sizeof error),
      0);
  struct hk_backend_config config = {};
  config.detectors = &d;
  config.n_detectors = 1;
  config.max_sensors = KINDS;
  config.threads = 1;
  struct hk_backend *b;
  assert_int_equal(hk_cpu_open(&b, &config, error, sizeof error), 0);
  struct lane *lanes = (struct lane *)calloc(KINDS, sizeof *lanes);
  for (uint32_t k = 0; k < KINDS; k++) {
    memset(lanes[k].own, 0x55, sizeof lanes[k].own); /* nobody has written there before the first point */
    assert_int_equal(b->ops->add(b, k, 0, k), 0);
  }
  struct hk_batch *batch = hk_batch_new(b, KINDS);
  uint32_t events = 0, scores = 0;
  for (uint32_t i = 0; i < POINTS; i++) {
    batch->n = KINDS;
    for (uint32_t k = 0; k < KINDS; k++) {
      batch->slot[k] = k;
      batch->time[k] =
          i * SECOND + (i % 5 == 0 ? 0 : (int64_t)(1e8 * noise(i + k)) + SECOND / 10) + (i > 4000 ? 200 * SECOND : 0);
      batch->value[k] = value(k, i);
    }
    assert_int_equal(b->ops->submit(b, batch), 0);
    b->ops->wait(b);
    assert_ptr_equal(b->ops->reap(b), batch);
    for (uint32_t k = 0, event = 0; k < KINDS; k++) {
      uint8_t state;
      float score;
      struct hk_event e;
      const int raised = tick(&lanes[k], &d, batch->time[k], batch->value[k], &state, &score, &e);
      assert_int_equal(state, batch->state[k]);
      assert_true(isnan(score) ? isnan(batch->score[k]) : memcmp(&score, &batch->score[k], sizeof score) == 0);
      scores += !isnan(score);
      if (!raised)
        continue;
      events++;
      e.index = e.slot = k;
      assert_true(event < batch->n_events);
      assert_memory_equal(&e, &batch->event[event++], sizeof e);
    }
  }
  print_message("# %u scores and %u events\n", scores, events);
  assert_true(scores > 1000 && events > 20);
  hk_batch_free(batch);
  b->ops->close(b);
  free(lanes);
}

int main()
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_as_the_cpu_backend) };
  return cmocka_run_group_tests_name("limit rules", tests, NULL, NULL);
}
