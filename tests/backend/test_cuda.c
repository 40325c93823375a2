/* Behaviour of the CUDA backend alone: its errors when it cannot open, and when the device refuses something; large and small
 * batches, which use different kernels; slots that change hands. Tests that need a GPU are left out without one. With the
 * argument `large`: a batch that takes gigabytes, alone; with `sanitize`, for sanitizers that slow every launch down a thousand
 * times: fewer sensors.
 */
#include "cpu/rules/state.h"
#include "gpu/backend/device_types.h"
#include "gpu/cuda.h"
#include "tests/backend/cuda_alone.h"
#include "tests/backend/harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hk_detector detector;

static void setups_that_make_no_sense_are_refused(void **state)
{
  (void)state;
  char error[256] = "";
  struct hk_backend *b = (struct hk_backend *)&detector;
  assert_true(hk_cuda_open(&b, &(struct hk_backend_config){ .detectors = &detector, .max_sensors = 1 }, error, sizeof error) < 0);
  assert_null(b);
  assert_true(strlen(error) > 10);
}

/* One program for hosts with a GPU and without: the latter is an answer, not a failure. */
static void a_missing_gpu_is_said(void **state)
{
  (void)state;
  char error[256] = "";
  struct hk_backend *b = (struct hk_backend *)&detector;
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = 10 };
  assert_int_equal(hk_cuda_open(&b, &config, error, sizeof error), -ENODEV);
  assert_null(b);
  assert_non_null(strstr(error, "GPU"));
}

static void refusals_have_figures(void **state)
{
  (void)state;
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = 10, .memory = 1000 };
  struct hk_backend *b = open_with(&config);
  assert_string_equal(hk_cuda_failure(b), "");
  assert_int_equal(b->ops->add(b, 0, 0, 1), HK_FULL);
  assert_non_null(strstr(hk_cuda_failure(b), "of 1000 are taken"));
  assert_int_equal(b->ops->add(b, 10, 0, 1), HK_FULL);
  assert_non_null(strstr(hk_cuda_failure(b), "10 sensors"));
  b->ops->close(b);
}

static void a_device_that_is_not_there_is_refused(void **state)
{
  (void)state;
  char error[256] = "";
  struct hk_backend *b = (struct hk_backend *)&detector;
  const uint32_t devices = hk_cuda_devices();
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = 1, .device = devices };
  assert_true(devices > 0);
  assert_int_equal(hk_cuda_open(&b, &config, error, sizeof error), -ENODEV);
  assert_null(b);
  assert_non_null(strstr(error, "GPU number"));
}

/* The device writes into a batch's columns, so they must be of its own memory. */
static void batches_of_other_backends_are_refused(void **state)
{
  (void)state;
  char error[256] = "";
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = 10, .threads = 1 };
  struct hk_backend *cuda = open_with(&config), *reference;
  assert_int_equal(hk_reference_open(&reference, &config, error, sizeof error), 0);
  struct hk_batch *batch = hk_batch_new(reference, 1);
  assert_non_null(batch);
  batch->n = 0;
  assert_int_equal(cuda->ops->submit(cuda, batch), -EINVAL);
  hk_batch_free(batch);
  reference->ops->close(reference);
  cuda->ops->close(cuda);
}

/* n points of `sensors` slots in turn, those of a sensor a second apart. */
static void fill(struct hk_batch *batch, uint32_t n, uint32_t sensors, int64_t second)
{
  batch->n = n;
  for (uint32_t i = 0; i < n; i++) {
    batch->slot[i] = i % sensors;
    batch->time[i] = (second + i / sensors) * SECOND;
    batch->value[i] = sin((double)(second + i / sensors) * 0.9 + i % sensors);
  }
}

/* Two backends at once, called in turn by one thread, give the same bits; on two GPUs where there are two. */
static void backends_share_nothing(void **state)
{
  (void)state;
  const uint32_t sensors = sanitize ? 30 : 300, rounds = sanitize ? 3 : 4, points = sensors * (sanitize ? 24 : 30);
  struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = sensors };
  struct hk_backend *one = open_with(&config), *other;
  config.device = hk_cuda_devices() - 1;
  other = open_with(&config);
  struct hk_batch *first = hk_batch_new(one, points), *second = hk_batch_new(other, points);
  assert_non_null(first);
  assert_non_null(second);
  for (uint32_t i = 0; i < sensors; i++) {
    sensor_add(one, i, 0, i);
    sensor_add(other, i, 0, i);
  }
  uint32_t scored = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    fill(first, points, sensors, 1 + round * (points / sensors));
    fill(second, points, sensors, 1 + round * (points / sensors));
    assert_int_equal(one->ops->submit(one, first), 0);
    assert_int_equal(other->ops->submit(other, second), 0);
    one->ops->wait(one);
    assert_ptr_equal(one->ops->reap(one), first);
    other->ops->wait(other);
    assert_ptr_equal(other->ops->reap(other), second);
    assert_int_equal(first->status, 0);
    assert_int_equal(second->status, 0);
    assert_memory_equal(first->score, second->score, points * sizeof *first->score);
    assert_memory_equal(first->state, second->state, points);
    for (uint32_t i = 0; i < points; i++)
      scored += !isnan(first->score[i]);
  }
  assert_true(scored > 0);
  hk_batch_free(first);
  hk_batch_free(second);
  one->ops->close(one);
  other->ops->close(other);
}

/* A bad point in a batch of any size, at any place: nothing of the batch is scored, and the next good batch is scored as if the
 * bad one had not come. */
static void bad_batches_leave_no_trace(void **state)
{
  (void)state;
  enum { sensors = 2000, points = 20000 };
  static const uint32_t sizes[] = { 1, 31, 33, 4095, 4096, 4097, points };
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = sensors + 1 };
  struct hk_backend *bad = open_with(&config), *good = open_with(&config);
  struct hk_batch *batch = hk_batch_new(bad, points), *same = hk_batch_new(good, points);
  for (uint32_t i = 0; i < sensors; i++) {
    sensor_add(bad, i, 0, i);
    sensor_add(good, i, 0, i);
  }
  int64_t second = 1;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, second += 100) {
    const uint32_t n = sizes[i];
    for (uint32_t k = 0; k < 3; k++) {
      fill(batch, n, sensors, second);
      batch->slot[k * (n - 1) / 2] = k == 1 ? sensors : UINT32_MAX - k;
      assert_int_equal(run(bad, batch), -EINVAL);
      assert_non_null(strstr(hk_cuda_failure(bad), "not bound"));
    }
    if (n > HK_BATCH_PER_SENSOR) {
      fill(batch, n, sensors, second);
      for (uint32_t k = 0; k <= HK_BATCH_PER_SENSOR; k++)
        batch->slot[n - 1 - k * (n / 66)] = 7;
      assert_int_equal(run(bad, batch), -EINVAL);
      assert_non_null(strstr(hk_cuda_failure(bad), "too many points"));
    }
    fill(batch, n, sensors, second);
    fill(same, n, sensors, second);
    assert_int_equal(run(bad, batch), 0);
    assert_int_equal(run(good, same), 0);
    assert_memory_equal(batch->score, same->score, n * sizeof *batch->score);
    assert_memory_equal(batch->state, same->state, n);
  }
  hk_batch_free(batch);
  hk_batch_free(same);
  bad->ops->close(bad);
  good->ops->close(good);
}

/* Slots change hands between batches, several times over: the same operations on the host's backend and the device's lead to the
 * same states. */
static void slots_change_hands(void **state)
{
  (void)state;
  enum { slots_most = 6000 };
  const uint32_t slots = sanitize ? 1500 : slots_most;
  const int64_t rounds = sanitize ? 30 : 80;
  struct hk_detector detectors[3] = { detector, detector, detector };
  detectors[1].window = detectors[1].gap = 20;
  detectors[2].window = detectors[2].gap = 5;
  struct hk_backend *b[2] = { backend_open(backend_kind("cpu"), detectors, 3, slots),
                              backend_open(backend_kind("cuda"), detectors, 3, slots) };
  struct hk_batch *batch[2] = { hk_batch_new(b[0], slots), hk_batch_new(b[1], slots) };
  static bool bound[slots_most];
  uint64_t random = 5;
  uint32_t scored = 0;
  for (int64_t round = 1; round <= rounds; round++) {
    for (uint32_t k = 0; k < (round % 8 ? 100 : slots); k++) {
      const uint32_t slot = (uint32_t)(test_random(&random) % slots), turn = (uint32_t)(test_random(&random) % 8);
      for (int i = 0; i < 2; i++) {
        if (turn > 0)
          b[i]->ops->remove(b[i], slot);
        if (turn > 1 || !bound[slot])
          sensor_add(b[i], slot, turn % 3, slot);
      }
      bound[slot] = turn != 1 || !bound[slot];
    }
    for (int i = 0; i < 2; i++) {
      batch[i]->n = 0;
      for (uint32_t slot = 0; slot < slots; slot++) {
        if (bound[slot] && (slot + round) % 9 > 0) {
          batch[i]->slot[batch[i]->n] = slot;
          batch[i]->time[batch[i]->n] = (slot + round) % 31 ? round * SECOND : SECOND;
          batch[i]->value[batch[i]->n++] = sin((double)round * (1 + slot % 7)) + slot;
        }
      }
      assert_int_equal(run(b[i], batch[i]), 0);
    }
    for (uint32_t i = 0; i < batch[0]->n; i++) {
      if (batch[0]->state[i] != batch[1]->state[i])
        fail_msg("round %d, slot %u: state %u on the host, %u on the device", (int)round, batch[0]->slot[i], batch[0]->state[i],
                 batch[1]->state[i]);
      scored += !isnan(batch[1]->score[i]);
    }
  }
  assert_true(scored > (sanitize ? 200 : 10000));
  for (int i = 0; i < 2; i++) {
    hk_batch_free(batch[i]);
    b[i]->ops->close(b[i]);
  }
}

/* 16 million points, 64 of each sensor, in one batch and in 16. */
static void a_batch_may_be_large(void **state)
{
  (void)state;
  enum { points = 1 << 24, sensors = points / HK_BATCH_PER_SENSOR, pieces = 16, piece = points / pieces };
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = sensors };
  struct hk_backend *whole = open_with(&config), *cut = open_with(&config);
  struct hk_batch *batch = hk_batch_new(whole, points), *part = hk_batch_new(cut, piece);
  assert_non_null(batch);
  assert_non_null(part);
  for (uint32_t i = 0; i < sensors; i++) {
    sensor_add(whole, i, 0, i);
    sensor_add(cut, i, 0, i);
  }
  fill_noise(batch, 0, points, sensors);
  assert_int_equal(run(whole, batch), 0);
  uint32_t scored = 0;
  for (uint32_t i = 0; i < pieces; i++) {
    fill_noise(part, i * piece, piece, sensors);
    assert_int_equal(run(cut, part), 0);
    assert_memory_equal(part->score, batch->score + i * piece, piece * sizeof *part->score);
    assert_memory_equal(part->state, batch->state + i * piece, piece);
    for (uint32_t k = 0; k < piece; k++)
      scored += !isnan(part->score[k]);
  }
  assert_int_equal(scored, sensors * (HK_BATCH_PER_SENSOR - hk_detector_span(&detector) + 1));
  hk_batch_free(batch);
  hk_batch_free(part);
  whole->ops->close(whole);
  cut->ops->close(cut);
}

int main(int argc, char **argv)
{
  const bool large = argc > 1 && strcmp(argv[1], "large") == 0;
  sanitize = argc > 1 && strcmp(argv[1], "sanitize") == 0;
  char error[256] = "";
  if (hk_detector_parse("window=16", &detector, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  const struct CMUnitTest anywhere[] = {
    cmocka_unit_test(setups_that_make_no_sense_are_refused),
    cmocka_unit_test(a_missing_gpu_is_said),
  };
  const struct CMUnitTest with_gpu[] = {
    cmocka_unit_test(setups_that_make_no_sense_are_refused),
    cmocka_unit_test(a_device_that_is_not_there_is_refused),
    cmocka_unit_test(refusals_have_figures),
    cmocka_unit_test(batches_of_other_backends_are_refused),
    cmocka_unit_test(backends_share_nothing),
    cmocka_unit_test(bad_batches_leave_no_trace),
    cmocka_unit_test(slots_change_hands),
  };
  const struct CMUnitTest with_much_memory[] = { cmocka_unit_test(a_batch_may_be_large) };
  const bool present = cuda_present(&detector);
  if (large && !present)
    return printf("1..0 # SKIP no device for cuda\n") < 0;
  if (large)
    return cmocka_run_group_tests_name("cuda, large", with_much_memory, NULL, NULL);
  if (!present)
    return cmocka_run_group_tests_name("cuda, without a GPU", anywhere, NULL, NULL);
  return cmocka_run_group_tests_name("cuda", with_gpu, NULL, NULL);
}
