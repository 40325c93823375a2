/* The reported number of points before the first score, compared with a backend. */
#include "cpu/backend.h"
#include "cpu/backend/warmup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000000)
#define PATIENCE 20000u /* points */

typedef double signal_of(uint32_t point);

static double noise(uint32_t i)
{
  uint32_t x = i * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x / 4294967296.0 - 0.5;
}

static double slow(uint32_t i) /* pulses; their distance is twice the widest window that is found with the default `resident` */
{
  return i % 198 < 4;
}

static double quick(uint32_t i)
{
  return sin(6.283185307179586 * i / 60) + 0.1 * noise(i);
}

static void parse(const char *keys, struct hk_detector *d)
{
  char error[256];
  assert_int_equal(hk_detector_parse(keys, d, error, sizeof error), 0);
}

/* Number of the first point with a score; 0: none of PATIENCE has one. */
static uint32_t first_scored(const struct hk_detector *d, signal_of *signal)
{
  const struct hk_backend_config config = { .detectors = d, .n_detectors = 1, .max_sensors = 1, .threads = 1 };
  struct hk_backend *b;
  char error[256];
  uint32_t found = 0;
  assert_int_equal(hk_cpu_open(&b, &config, error, sizeof error), 0);
  assert_int_equal(b->ops->add(b, 0, 0, 1), 0);
  struct hk_batch *batch = hk_batch_new(b, HK_BATCH_PER_SENSOR);
  assert_non_null(batch);
  for (uint32_t i = 0; i < PATIENCE && found == 0;) {
    for (batch->n = 0; batch->n < HK_BATCH_PER_SENSOR; batch->n++, i++) {
      batch->slot[batch->n] = 0;
      batch->time[batch->n] = i * SECOND;
      batch->value[batch->n] = signal(i);
    }
    assert_int_equal(b->ops->submit(b, batch), 0);
    b->ops->wait(b);
    assert_ptr_equal(b->ops->reap(b), batch);
    assert_int_equal(batch->status, 0);
    for (uint32_t k = 0; k < batch->n && found == 0; k++)
      found = isnan(batch->score[k]) ? 0 : i - batch->n + k + 1;
  }
  hk_batch_free(batch);
  b->ops->close(b);
  return found;
}

static void is_what_backends_do(void **state)
{
  static const char *const keys[] = {
    "",
    "window=4",
    "window=20,gap=7,stride=5",
    "algorithm=svd,window=16",
    "algorithm=shift",
    "algorithm=novelty",
    "algorithm=novelty,resident=1000",
    "algorithm=shift,window=9,stride=4",
    "algorithm=shift,window=10,stride=1,max_fill=0",
    "algorithm=graph,window=8",
    "algorithm=graph,window=14,shortest=5",
    "algorithm=graph,window=21,shortest=2,stride=1",
    "algorithm=graph,window=10,stride=999",
  };
  (void)state;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    struct hk_detector d;
    parse(keys[i], &d);
    const struct hk_warmup told = hk_warmup(&d);
    assert_int_equal(told.least, told.most);
    const uint32_t found = first_scored(&d, noise);
    if (found != told.least)
      fail_msg("%s: point %u, and told is %u", keys[i], found, told.least);
  }
}

/* If the window is learned, both limits are reached, and none is exceeded. */
static void where_the_window_is_found(void **state)
{
  static const struct {
    const char *keys;
    signal_of *signal;
    bool least, most; /* it is that end */
  } cases[] = {
    { "algorithm=graph", noise, true, false },
    { "algorithm=graph", slow, false, true },
    { "algorithm=graph,shortest=2", quick, true, false },
    { "algorithm=graph,stride=700", noise, false, false },
    { "algorithm=graph,resident=88", noise, true, true },
    { "algorithm=graph,resident=88,stride=700", noise, true, true },
    { "algorithm=graph,resident=300,stride=1", quick, false, false },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_detector d;
    parse(cases[i].keys, &d);
    const struct hk_warmup told = hk_warmup(&d);
    const uint32_t found = first_scored(&d, cases[i].signal);
    print_message("# %s: point %u, told %u to %u\n", cases[i].keys, found, told.least, told.most);
    assert_in_range(found, told.least, told.most);
    assert_true(!cases[i].least || found == told.least);
    assert_true(!cases[i].most || found == told.most);
  }
}

/* Blocks begin by the clock, so a window is full at one of as many points as a block has. */
static void where_time_counts(void **state)
{
  (void)state;
  struct hk_detector d;
  for (uint32_t minutes = 1; minutes < 30; minutes += 7) {
    char keys[80];
    snprintf(keys, sizeof keys, "algorithm=limit,limit=1,window=%um,interval=1s", minutes);
    parse(keys, &d);
    const struct hk_warmup told = hk_warmup(&d);
    assert_int_equal(told.time, minutes * 60 * SECOND);
    assert_in_range(first_scored(&d, noise), told.least, told.most);
  }
  parse("algorithm=limit,limit=1", &d);
  const struct hk_warmup unknown = hk_warmup(&d);
  assert_true(unknown.least == 0 && unknown.most == 0);
  char text[HK_WARMUP_TEXT_MAX];
  hk_warmup_text(unknown, text);
  assert_string_equal(text, "the first point a window, 12 hours, behind the first, where 18 of 24 blocks are there");
}

static void in_words(void **state)
{
  char text[HK_WARMUP_TEXT_MAX];
  (void)state;
  hk_warmup_text((struct hk_warmup){ 19, 19, 0 }, text);
  assert_string_equal(text, "point 19");
  hk_warmup_text((struct hk_warmup){ UINT32_MAX - 1, UINT32_MAX, 0 }, text);
  assert_string_equal(text, "one of the points 4294967294 to 4294967295, depending on the window that is found");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_what_backends_do),
    cmocka_unit_test(where_the_window_is_found),
    cmocka_unit_test(where_time_counts),
    cmocka_unit_test(in_words),
  };
  return cmocka_run_group_tests_name("warmup", tests, NULL, NULL);
}
