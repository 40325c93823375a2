/* What only the CUDA backend has: it says why it cannot open, and what the device refused. Tests that need a
 * GPU are left out where there is none. */
#include "cpu/backend.h"
#include "gpu/cuda.h"

#include <errno.h>
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

static struct hk_backend *open_with(const struct hk_backend_config *config)
{
  char error[256] = "";
  struct hk_backend *b;
  if (hk_cuda_open(&b, config, error, sizeof error) != 0)
    fail_msg("%s", error);
  return b;
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

int main(void)
{
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
    cmocka_unit_test(refusals_have_figures),
    cmocka_unit_test(batches_of_other_backends_are_refused),
  };
  struct hk_backend *b;
  const struct hk_backend_config config = { .detectors = &detector, .n_detectors = 1, .max_sensors = 1 };
  if (hk_cuda_open(&b, &config, error, sizeof error) != 0)
    return cmocka_run_group_tests_name("cuda, without a GPU", anywhere, NULL, NULL);
  b->ops->close(b);
  return cmocka_run_group_tests_name("cuda", with_gpu, NULL, NULL);
}
