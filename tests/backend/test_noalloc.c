/* Memory: the cpu backend allocates none between add and close, for any number of points; and if memory is refused,
 * opening and adding fail cleanly. All allocations of the program are counted, libraries included: the functions below
 * replace those of libc, which they call. */
#include "tests/backend/harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

/* Prototypes are those of stdlib.h and malloc.h. */
void *memalign(size_t alignment, size_t size);

static _Atomic long calls;            /* of any function below, since the last reset */
static _Atomic long fail_at = -1;     /* number of calls from now until allocations fail; negative = never */
static _Atomic long live;             /* blocks in use */
static _Thread_local bool refuse_now; /* only the thread that asked is refused */

static bool refused(void)
{
  const long call = atomic_fetch_add(&calls, 1), limit = atomic_load(&fail_at);
  return refuse_now && limit >= 0 && call >= limit;
}

static void *count(void *memory)
{
  if (memory)
    atomic_fetch_add(&live, 1);
  else
    errno = ENOMEM;
  return memory;
}

void *malloc(size_t size)
{
  return count(refused() ? NULL : __libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
  return count(refused() ? NULL : __libc_calloc(n, size));
}

void *realloc(void *memory, size_t size)
{
  if (refused())
    return NULL;
  if (memory)
    return __libc_realloc(memory, size);
  return count(__libc_realloc(NULL, size));
}

void *memalign(size_t alignment, size_t size)
{
  return count(refused() ? NULL : __libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
  return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
  return (*out = memalign(alignment, size)) ? 0 : ENOMEM;
}

void free(void *memory)
{
  if (memory)
    atomic_fetch_sub(&live, 1);
  __libc_free(memory);
}

static const char *const detector_texts[] = {
  "window=96,alert=0.3,interval=1s",  "window=33,alert=adaptive",
  "window=48,preset=paper",           "window=64,operator=gram,scale=window",
  "window=16,algorithm=svd",          "window=100,algorithm=svd",
  "window=130,algorithm=svd,rank=12", "algorithm=limit,limit=2,window=1m,interval=1s",
};
#define DETECTORS (sizeof detector_texts / sizeof *detector_texts)
#define SENSORS (4 * DETECTORS)
#define POINTS 64 /* of each sensor in each batch */

static struct hk_detector detectors[DETECTORS];

static int parse(void **state)
{
  (void)state;
  char error[256];
  for (size_t i = 0; i < DETECTORS; i++) {
    if (hk_detector_parse(detector_texts[i], &detectors[i], error, sizeof error) != 0)
      fail_msg("%s: %s", detector_texts[i], error);
  }
  return 0;
}

static void the_road_takes_no_memory(void **state)
{
  (void)state;
  const struct backend_kind kind = { "cpu", hk_cpu_open, 2, 0 };
  struct hk_backend *b = backend_open(&kind, detectors, DETECTORS, SENSORS);
  for (uint32_t i = 0; i < SENSORS; i++)
    sensor_add(b, i, i % DETECTORS, i);
  struct hk_batch *batch[2] = { hk_batch_new(b, SENSORS * POINTS), hk_batch_new(b, SENSORS * POINTS) },
                  *sweep = hk_batch_new(b, SENSORS);
  sweep->kind = HK_BATCH_SWEEP;
  uint32_t scored = 0, events = 0;
  uint64_t random = 1;
  atomic_store(&calls, 0);
  for (int64_t round = 0; round < 12; round++) {
    struct hk_batch *now = batch[round % 2];
    now->n = SENSORS * POINTS;
    for (uint32_t i = 0; i < now->n; i++) {
      const int64_t t = round * POINTS + i / SENSORS;
      now->slot[i] = i % SENSORS;
      now->time[i] = (t + (round == 9) * 1000) * TEST_INTERVAL; /* a long hole, then late ones */
      now->value[i] = sin((double)t * (t > 450 ? 0.6 : 0.3)) + 0.1 * test_uniform(&random);
    }
    assert_int_equal(b->ops->submit(b, now), 0);
    assert_int_equal(b->ops->submit(b, sweep), 0);
    for (int k = 0; k < 2; k++) {
      b->ops->wait(b);
      assert_non_null(b->ops->reap(b));
    }
    for (uint32_t i = 0; i < now->n; i++)
      scored += !isnan(now->score[i]);
    events += now->n_events;
  }
  assert_int_equal(atomic_load(&calls), 0);
  assert_true(scored > 1000 && events > 10);
  hk_batch_free(batch[0]);
  batch[0] = hk_batch_new(b, 1); /* the counter counts */
  assert_int_equal(atomic_load(&calls), 2);
  hk_batch_free(batch[0]);
  hk_batch_free(batch[1]);
  hk_batch_free(sweep);
  b->ops->close(b);
}

/* Opens, adds and makes a batch with every allocation refused from the n-th on. Returns whether all went well. */
static bool open_and_add(int (*open)(struct hk_backend **, const struct hk_backend_config *, char *, size_t), long n)
{
  const struct hk_backend_config config = { .detectors = detectors, .n_detectors = DETECTORS, .max_sensors = 100, .threads = 2 };
  char error[256] = "";
  struct hk_backend *b;
  atomic_store(&calls, 0);
  atomic_store(&fail_at, n);
  refuse_now = true;
  int status = open(&b, &config, error, sizeof error);
  const bool opened = status == 0;
  struct hk_batch *batch = NULL;
  for (uint32_t i = 0; i < DETECTORS && status == 0; i++)
    status = b->ops->add(b, i, i, i);
  if (status == 0 && !(batch = hk_batch_new(b, 100)))
    status = -ENOMEM;
  refuse_now = false;
  atomic_store(&fail_at, -1);
  assert_true(status == 0 || status == -ENOMEM || status == -EAGAIN);
  assert_true(opened || error[0]);
  hk_batch_free(batch);
  if (opened)
    b->ops->close(b);
  return status == 0;
}

static void refused_memory_is_an_error(void **state)
{
  (void)state;
  int (*const opens[])(struct hk_backend **, const struct hk_backend_config *, char *, size_t) = { hk_cpu_open,
                                                                                                   hk_reference_open };
  for (size_t i = 0; i < 2; i++) {
    open_and_add(opens[i], -1); /* memory that libraries allocate once and keep */
    const long before = atomic_load(&live);
    long n = 0;
    while (!open_and_add(opens[i], n))
      n++;
    assert_in_range(n, 10, 1000);
    assert_int_equal(atomic_load(&live), before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(the_road_takes_no_memory), cmocka_unit_test(refused_memory_is_an_error) };
  return cmocka_run_group_tests_name("noalloc", tests, parse, NULL);
}
