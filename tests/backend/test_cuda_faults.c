/* The CUDA backend on a device that fails, hangs, or has no memory left; on a real one, which a kernel of
 * sabotage.cu harms. Argument: illegal, hang or memory, each in its own process, because the first two leave the process without
 * a GPU. */
#include "gpu/cuda.h"
#include "tests/backend/harness.h"
#include "tests/backend/sabotage.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND 1000000000ll
#define IN_FLIGHT 4

static struct hk_detector detector;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int try_open(struct hk_backend **b, uint32_t sensors, char *error, size_t size)
{
  const struct hk_backend_config config = {
    .detectors = &detector, .n_detectors = 1, .max_sensors = sensors, .in_flight = IN_FLIGHT
  };
  return hk_cuda_open(b, &config, error, size);
}

static struct hk_backend *open_one(uint32_t sensors)
{
  char error[256];
  struct hk_backend *b;
  if (try_open(&b, sensors, error, sizeof error) != 0)
    fail_msg("%s", error);
  return b;
}

/* n points of slots 0, 1, ... at `second`. */
static void fill(struct hk_batch *batch, uint32_t n, int64_t second)
{
  batch->kind = HK_BATCH_POINTS;
  batch->arrival = second * SECOND;
  batch->n = n;
  for (uint32_t i = 0; i < n; i++) {
    batch->slot[i] = i;
    batch->time[i] = second * SECOND;
    batch->value[i] = sin((double)(second + i));
  }
}

/* The status with which a batch comes back. */
static int run(struct hk_backend *b, struct hk_batch *batch)
{
  assert_int_equal(b->ops->submit(b, batch), 0);
  b->ops->wait(b);
  assert_ptr_equal(b->ops->reap(b), batch);
  return batch->status;
}

/* A kernel wrote where it may not while batches were in flight: all come back, each later one at once and with words, and
 * everything else answers. */
static void a_lost_device_is_a_status(void **state)
{
  (void)state;
  char error[256] = "", bytes[64];
  struct hk_backend *b = open_one(20000), *again;
  struct hk_batch *batch[IN_FLIGHT];
  for (uint32_t i = 0; i < 20000; i++)
    sensor_add(b, i, 0, i);
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    assert_non_null(batch[i] = hk_batch_new(b, 20000));
    fill(batch[i], i % 2 ? 20000 : 10, i + 2);
  }
  fill(batch[0], 10, 1);
  assert_int_equal(run(b, batch[0]), 0);
  assert_string_equal(hk_cuda_failure(b), "");
  fill(batch[0], 10, 2);
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    assert_int_equal(b->ops->submit(b, batch[i]), 0);
    if (i == 1)
      assert_int_equal(sabotage_illegal(), 0);
  }
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    b->ops->wait(b);
    assert_ptr_equal(b->ops->reap(b), batch[i]);
    assert_true(batch[i]->status == 0 || batch[i]->status == -EIO); /* the first may have been done by then */
  }
  for (int i = 0; i < 50 && run(b, batch[0]) == 0; i++)
    fill(batch[0], 10, 10 + i);
  for (uint32_t i = 0; i < 2 * IN_FLIGHT; i++) {
    const double start = now();
    assert_int_equal(run(b, batch[i % IN_FLIGHT]), -EIO);
    assert_true(now() - start < 0.1);
    assert_non_null(strstr(hk_cuda_failure(b), "illegal"));
  }
  batch[0]->kind = HK_BATCH_SWEEP;
  assert_int_equal(run(b, batch[0]), -EIO);
  print_message("# %s\n", hk_cuda_failure(b));
  assert_int_equal(b->ops->export_(b, 0, bytes, sizeof bytes), -EIO);
  assert_null(b->ops->alloc(b, 1000));
  assert_non_null(strstr(hk_cuda_failure(b), "1000 bytes of pinned memory"));
  b->ops->remove(b, 0);
  (void)b->ops->add(b, 0, 0, 1);
  for (uint32_t i = 0; i < IN_FLIGHT; i++)
    hk_batch_free(batch[i]);
  const double start = now();
  b->ops->close(b);
  assert_true(now() - start < 5);
  assert_true(try_open(&again, 10, error, sizeof error) < 0);
  print_message("# %s\n", error);
  assert_true(strlen(error) > 10);
}

/* No kernel gets a turn any more. Nothing blocks but close, and that not for ever. */
static void a_hung_device_holds_nobody(void **state)
{
  (void)state;
  struct hk_backend *b = open_one(20000);
  struct hk_batch *batch[IN_FLIGHT + 1];
  for (uint32_t i = 0; i < 20000; i++)
    sensor_add(b, i, 0, i);
  for (uint32_t i = 0; i <= IN_FLIGHT; i++)
    assert_non_null(batch[i] = hk_batch_new(b, 20000));
  fill(batch[0], 20000, 1);
  assert_int_equal(run(b, batch[0]), 0);
  assert_int_equal(sabotage_hang(), 0);
  double start = now();
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    fill(batch[i], i % 2 ? 20000 : 10, i + 2);
    b->ops->remove(b, 19999);
    sensor_add(b, 19999, 0, 1);
    assert_int_equal(b->ops->submit(b, batch[i]), 0);
  }
  assert_int_equal(b->ops->submit(b, batch[IN_FLIGHT]), HK_AGAIN);
  while (now() - start < 1)
    assert_null(b->ops->reap(b));
  assert_true(now() - start < 2);
  start = now();
  for (uint32_t i = 0; i <= IN_FLIGHT; i++)
    hk_batch_free(batch[i]);
  b->ops->close(b);
  print_message("# batches freed and backend closed in %.1f s\n", now() - start);
  assert_true(now() - start < 20);
  sabotage_release(); /* the device finishes the work that it was given */
  const struct timespec pause = { 1, 0 };
  nanosleep(&pause, NULL);
}

/* Device memory runs out in add, in submit, and in open; earlier sensors continue. */
static void memory_that_is_short_is_told(void **state)
{
  (void)state;
  char error[256] = "";
  struct hk_backend *b = open_one(4000000), *other;
  for (uint32_t i = 0; i < 100; i++)
    sensor_add(b, i, 0, i);
  struct hk_batch *batch = hk_batch_new(b, 100), *large = hk_batch_new(b, 8000000);
  assert_non_null(batch);
  assert_non_null(large);
  assert_null(b->ops->alloc(b, (size_t)1 << 46));
  assert_non_null(strstr(hk_cuda_failure(b), "70368744177664 bytes of pinned memory"));
  fill(batch, 100, 1);
  assert_int_equal(run(b, batch), 0);

  assert_int_equal(sabotage_take((size_t)300 << 20), 0);
  uint32_t added = 100;
  int status = 0;
  while (added < 4000000 && (status = b->ops->add(b, added, 0, added)) == 0)
    added++;
  assert_int_equal(status, HK_FULL);
  assert_non_null(strstr(hk_cuda_failure(b), "on the device are free"));
  print_message("# after %u sensors: %s\n", added, hk_cuda_failure(b));
  fill(large, 100, 2);
  assert_int_equal(run(b, large), -ENOMEM);
  assert_non_null(strstr(hk_cuda_failure(b), "8000000 points"));
  print_message("# %s\n", hk_cuda_failure(b));
  fill(batch, 100, 2);
  assert_int_equal(run(b, batch), 0);
  for (uint32_t i = 0; i < 100; i++)
    assert_int_equal(batch->state[i], HK_STATE_WARMING);

  assert_int_equal(sabotage_take(0), 0);
  assert_int_equal(try_open(&other, 16000000, error, sizeof error), -ENOMEM);
  print_message("# %s\n", error);
  fill(batch, 100, 3);
  if (run(b, batch) != 0)
    fail_msg("with no memory left on the device: %s", hk_cuda_failure(b));
  sabotage_give();
  fill(large, 100, 4);
  assert_int_equal(run(b, large), 0);
  hk_batch_free(batch);
  hk_batch_free(large);
  b->ops->close(b);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    struct CMUnitTest test;
  } all[] = {
    { "illegal", cmocka_unit_test(a_lost_device_is_a_status) },
    { "hang", cmocka_unit_test(a_hung_device_holds_nobody) },
    { "memory", cmocka_unit_test(memory_that_is_short_is_told) },
  };
  char error[256] = "";
  if (hk_detector_parse("window=16", &detector, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++) {
    if (strcmp(argv[1], all[i].name) != 0)
      continue;
    if (!backend_present(backend_kind("cuda")))
      return 0;
    const struct CMUnitTest test[] = { all[i].test };
    return cmocka_run_group_tests_name(argv[1], test, NULL, NULL);
  }
  fprintf(stderr, "usage: %s illegal|hang|memory\n", argv[0]);
  return 2;
}
