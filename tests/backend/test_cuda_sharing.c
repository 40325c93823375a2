/* Behaviour of the CUDA backend alone: sensors that are scored together, by detector, warp and kernel, do not change each other's
 * scores; sensors move to and from the host. With the argument `sanitize`, for sanitizers that slow every launch down a thousand
 * times: fewer sensors, and windows that the CPU backend has filled, so that few scores follow each other. */
#include "cpu/rules/state.h"
#include "gpu/backend/device_types.h"
#include "gpu/cuda.h"
#include "tests/backend/cuda_alone.h"
#include "tests/backend/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Feeds points from..to-1, having moved all sensors over from another backend. */
static struct hk_backend *go_on(const struct backend_kind *kind, const struct hk_detector *detectors, uint32_t n,
                                struct hk_backend *before, const struct points *p, uint32_t from, uint32_t to,
                                struct results *out)
{
  struct hk_backend *b = backend_open(kind, detectors, n, p->slots);
  for (uint32_t i = 0; i < p->slots; i++) {
    sensor_add(b, i, i % n, i);
    if (before)
      sensor_copy(before, i, b, i);
  }
  if (before)
    before->ops->close(before);
  feed(b, p, from, to, sanitize ? 5000 : 1000, 0, out);
  return b;
}

/* Sensors move from the host to the device and back: the results are those of sensors that stay. */
static void sensors_move_to_the_host_and_back(void **state)
{
  (void)state;
  enum { most = 60, each = 400 };
  const uint32_t sensors = sanitize ? 12 : most;
  struct hk_detector detectors[2] = { detector_parsed("window=16"), detector_parsed("window=16") };
  detectors[0].window = detectors[0].gap = 48;
  detectors[1].window = detectors[1].gap = 33;
  struct series series[most];
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = series_new(SIGNAL_FREQUENCY, i, each);
  struct points p = points_of(series, sensors, 3);
  const struct backend_kind *cpu = backend_kind("cpu"), *cuda = backend_kind("cuda");
  struct results stayed = results_new(p.n), moved = results_new(p.n);
  struct hk_backend *b = go_on(cpu, detectors, 2, NULL, &p, 0, p.n, &stayed);
  b->ops->close(b);
  const uint32_t back = p.n / 2 + p.n / (sanitize ? 100 : 4);
  b = go_on(cpu, detectors, 2, NULL, &p, 0, p.n / 2, &moved);
  b = go_on(cuda, detectors, 2, b, &p, p.n / 2, back, &moved);
  b = go_on(cpu, detectors, 2, b, &p, back, p.n, &moved);
  b->ops->close(b);
  double apart = 0;
  uint32_t scores = 0;
  for (uint32_t i = 0; i < p.n; i++) {
    assert_int_equal(stayed.state[i], moved.state[i]);
    assert_int_equal(isnan(stayed.score[i]), isnan(moved.score[i]));
    if (!isnan(stayed.score[i])) {
      apart = fmax(apart, fabs((double)stayed.score[i] - (double)moved.score[i]));
      scores++;
    }
  }
  print_message("# %u scores, %.2g apart at most\n", scores, apart);
  assert_true(scores > p.n / 4 && apart < 2e-4);
  results_free(&stayed);
  results_free(&moved);
  points_free(&p);
}

/* Changes a state so that its window cannot be scored: sums over it are infinite or NaN. */
static void poison(const struct hk_detector *d, void *state, size_t size)
{
  static float ring[HK_SPAN_MAX], feedback[HK_WINDOW_MAX];
  struct hk_window w = { 0 };
  struct hk_alert a = { 0 };
  assert_int_equal(hk_state_read(state, size, d, &w, &a, ring, feedback), 0);
  for (uint32_t i = 0; i < w.count; i++)
    ring[i] = hk_sample_tag(i % 3 ? 3e38f : -3e38f, false);
  w.filled = 0;
  hk_state_write(state, d, &w, &a, ring, feedback);
}

/* Detectors that one kernel serves, a wide one planned before a narrow one: both are scored. */
static void detectors_share_a_kernel(void **state)
{
  (void)state;
  enum { sensors = 8, each = 260, kinds = 4 };
  static const char *const texts[] = { "window=60,algorithm=svd,interval=1s", "window=50,algorithm=svd,interval=1s",
                                       "window=48,preset=precise,interval=1s", "window=40,interval=1s" };
  struct hk_detector detectors[kinds];
  uint32_t due[kinds];
  for (uint32_t i = 0; i < kinds; i++) {
    detectors[i] = detector_parsed(texts[i]);
    due[i] = sanitize ? 2 : each - hk_detector_span(&detectors[i]) + 1;
  }
  struct series series[sensors];
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = series_new(SIGNAL_SINE, i, hk_detector_span(&detectors[i % kinds]) - 1 + due[i % kinds]);
  struct points p = points_of(series, sensors, 5);
  struct results out = results_new(p.n);
  struct hk_backend *b = go_on(backend_kind("cuda"), detectors, kinds, NULL, &p, 0, p.n, &out);
  uint32_t scores[kinds] = { 0 };
  for (uint32_t i = 0; i < p.n; i++)
    scores[p.slot[i] % kinds] += !isnan(out.score[i]);
  for (uint32_t i = 0; i < kinds; i++)
    assert_int_equal(scores[i], sensors / kinds * due[i]);
  b->ops->close(b);
  results_free(&out);
  points_free(&p);
}

/* Keeps the results of a batch, and returns the number of its scores; or compares them with those that were kept, and returns 0.
 */
static uint32_t keep_or_compare(const struct hk_batch *batch, bool keep, float *score, uint8_t *states)
{
  uint32_t scored = 0;
  if (!keep) {
    assert_memory_equal(batch->score, score, batch->n * sizeof *score);
    assert_memory_equal(batch->state, states, batch->n);
    return 0;
  }
  memcpy(score, batch->score, batch->n * sizeof *score);
  memcpy(states, batch->state, batch->n);
  for (uint32_t i = 0; i < batch->n; i++)
    scored += !isnan(batch->score[i]);
  return scored;
}

/* More detectors than lanes on few kernels, of both algorithms, in every tick: they are distributed among warps. Neither the
 * host's grouping, nor the device's, nor the size of a batch changes a bit. */
static void many_detectors_share_a_tick(void **state)
{
  (void)state;
  enum { detectors = 130, ticks = 288, ways = 4 };
  const uint32_t sensors = sanitize ? 2 * detectors + 5 : 400, points = sensors * ticks;
  const uint32_t pieces[ways] = { sensors * HK_BATCH_PER_SENSOR, HK_CUDA_SMALL_BATCH - 3, 1003, 17000 };
  const uint32_t start = sanitize ? points - sensors : 0; /* the host fills the windows up to there */
  struct hk_detector all[detectors];
  char text[64];
  uint32_t due = 0, scored = 0;
  for (uint32_t i = 0; i < detectors; i++) {
    snprintf(text, sizeof text, "window=%u,gap=%u,interval=1s%s", 6 + i * 7 % 75, 1 + i, i % 9 == 4 ? ",algorithm=svd" : "");
    all[i] = detector_parsed(text);
  }
  for (uint32_t i = 0; i < sensors; i++) {
    const uint32_t last = ticks - hk_detector_span(&all[i % detectors]) + 1, fed = ticks - start / sensors;
    due += last < fed ? last : fed;
  }
  const struct hk_backend_config config = { .detectors = all, .n_detectors = detectors, .max_sensors = sensors };
  struct hk_backend *host = backend_open(backend_kind("cpu"), all, detectors, sensors);
  struct hk_batch *part = hk_batch_new(host, pieces[0]);
  assert_non_null(part);
  for (uint32_t i = 0; i < sensors; i++)
    sensor_add(host, i, i % detectors, i);
  for (uint32_t first = 0; first < start; first += part->n) {
    fill_noise(part, first, start - first < pieces[0] ? start - first : pieces[0], sensors);
    assert_int_equal(run(host, part), 0);
  }
  float *score = test_calloc(points, sizeof *score);
  uint8_t *states = test_calloc(points, sizeof *states);
  for (uint32_t way = 0; way < (sanitize ? 2 : ways); way++) {
    struct hk_backend *b = open_with(&config);
    struct hk_batch *batch = hk_batch_new(b, pieces[way]);
    assert_non_null(batch);
    for (uint32_t i = 0; i < sensors; i++) {
      sensor_add(b, i, i % detectors, i);
      sensor_copy(host, i, b, i);
    }
    for (uint32_t first = start; first < points; first += batch->n) {
      fill_noise(batch, first, points - first < pieces[way] ? points - first : pieces[way], sensors);
      assert_int_equal(run(b, batch), 0);
      scored += keep_or_compare(batch, way == 0, score + first, states + first);
    }
    hk_batch_free(batch);
    b->ops->close(b);
  }
  assert_int_equal(scored, due);
  hk_batch_free(part);
  host->ops->close(host);
  test_free(score);
  test_free(states);
}

/* A damaged sensor does not affect those that are scored with it. */
static void a_poisoned_window_harms_one_sensor(void **state)
{
  (void)state;
  enum { most = 150, each = 260 };
  const uint32_t sensors = sanitize ? 42 : most, before = sanitize ? 256 : 220;
  static const char *const texts[] = { "window=48,interval=1s", "window=33,interval=1s", "window=20,algorithm=svd,interval=1s" };
  struct hk_detector detectors[3];
  for (uint32_t i = 0; i < 3; i++)
    detectors[i] = detector_parsed(texts[i]);
  struct series series[most];
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = series_new(SIGNAL_SINE, i, each);
  struct points p = points_of(series, sensors, 3);
  const uint32_t middle = (uint32_t)((uint64_t)p.n * before / each);
  const struct backend_kind *cuda = backend_kind("cuda");
  struct results well = results_new(p.n), ill = results_new(p.n);
  struct hk_backend *b = go_on(sanitize ? backend_kind("cpu") : cuda, detectors, 3, NULL, &p, 0, middle, &well),
                    *other = backend_open(cuda, detectors, 3, sensors);
  if (sanitize)
    b = go_on(cuda, detectors, 3, b, &p, middle, middle, &well);
  for (uint32_t i = 0; i < sensors; i++) {
    uint8_t bytes[4000];
    const int64_t size = b->ops->export_(b, i, bytes, sizeof bytes);
    assert_in_range(size, 1, sizeof bytes);
    if (i % 7 == 0)
      poison(&detectors[i % 3], bytes, (size_t)size);
    sensor_add(other, i, i % 3, i);
    assert_int_equal(other->ops->import_(other, i, bytes, (size_t)size), 0);
  }
  feed(b, &p, middle, p.n, sanitize ? 5000 : 1000, 0, &well);
  feed(other, &p, middle, p.n, sanitize ? 5000 : 1000, 0, &ill);
  uint32_t harmed = 0, scores = 0;
  for (uint32_t i = middle; i < p.n; i++) {
    const bool same = well.state[i] == ill.state[i] && memcmp(&well.score[i], &ill.score[i], sizeof(float)) == 0;
    harmed += !same;
    scores += !isnan(well.score[i]);
    if (!same && p.slot[i] % 7 > 0)
      fail_msg("point %u of slot %u: score %.9g, and next to a poisoned window %.9g", i, p.slot[i], (double)well.score[i],
               (double)ill.score[i]);
  }
  assert_true(harmed > (sanitize ? 5 : 10) && scores > (sanitize ? 100 : 1000));
  b->ops->close(b);
  other->ops->close(other);
  results_free(&well);
  results_free(&ill);
  points_free(&p);
}

int main(int argc, char **argv)
{
  sanitize = argc > 1 && strcmp(argv[1], "sanitize") == 0;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sensors_move_to_the_host_and_back),
    cmocka_unit_test(detectors_share_a_kernel),
    cmocka_unit_test(many_detectors_share_a_tick),
    cmocka_unit_test(a_poisoned_window_harms_one_sensor),
  };
  const struct hk_detector detector = detector_parsed("window=16");
  if (!cuda_present(&detector))
    return printf("1..0 # SKIP no device for cuda\n") < 0;
  return cmocka_run_group_tests_name("cuda, sharing", tests, NULL, NULL);
}
