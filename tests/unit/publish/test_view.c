/* Views: the results that they choose of batches, compared with a plain look at every name, while sensors come and go and views
 * are opened and closed. */
#include "daemon/base/glob.h"
#include "daemon/publish/view.h"
#include "daemon/publish/view_internal.h"
#include "daemon/publish/view_select.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENSORS = 20000, POINTS = 3000, EVENTS = 40, VIEWS = 60 };

struct fixture {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_views *views;
  uint32_t state; /* of the random numbers */

  uint32_t slot[POINTS];
  float score[POINTS];
  struct hk_event event[EVENTS];
  struct hk_batch batch;

  /* the arguments of `chosen` */
  struct hk_view *view[SENSORS];
  uint32_t n_views, order[POINTS + EVENTS];
  bool dropped;
};

static uint32_t number(struct fixture *f, uint32_t below)
{
  f->state = f->state * 1664525 + 1013904223;
  return (uint32_t)((uint64_t)f->state * below >> 32);
}

static int setup(void **state)
{
  static struct hk_config_detector detectors[1] = { { .name = "all", .match = "*" } };
  struct fixture *f = calloc(1, sizeof *f);
  char error[256];
  struct hk_detector parsed;
  if (!f || hk_detector_parse("window=4,rank=1", &parsed, error, sizeof error) != 0)
    return -1;
  detectors[0].detector = parsed;
  f->config = (struct hk_config){ .detectors = detectors, .n_detectors = 1, .max_sensors = SENSORS, .threads = 1 };
  f->state = 1;
  f->batch =
      (struct hk_batch){ .kind = HK_BATCH_POINTS, .capacity = POINTS, .slot = f->slot, .score = f->score, .event = f->event };
  *state = f;
  const struct hk_device_place place = { .of = 1 };
  if (hk_device_open(&f->device, &hk_backend_kinds[HK_BACKEND_REFERENCE], &f->config, 0, &place, error, sizeof error) != 0 ||
      hk_registry_new(&f->registry, &f->config, 1) != 0 || hk_views_new(&f->views, f->registry, 12000) != 0)
    return -1;
  hk_registry_move(f->registry, 0, &f->device->binding, NULL, NULL);
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  hk_views_free(f->views);
  hk_registry_free(f->registry);
  hk_device_close(f->device);
  free(f);
  return 0;
}

static uint32_t add(struct fixture *f, uint32_t i)
{
  char name[32];
  uint32_t slot;
  const int length = snprintf(name, sizeof name, "m%u", i);
  assert_int_equal(hk_registry_take(f->registry, name, (size_t)length, &slot), 0);
  return slot;
}

static void nobody(void *arg, struct hk_view *view)
{
  (void)arg;
  (void)view;
}

static void evict(struct fixture *f, uint32_t slot)
{
  hk_registry_retire(f->registry, slot);
  hk_views_forget(f->views, slot, nobody, NULL);
  hk_registry_release(f->registry, slot);
}

static struct hk_view *view(struct fixture *f, const char *glob, uint32_t what, float min_score)
{
  const struct hk_wanted wanted = { HK_PROTOCOL_BINARY, what, min_score, hk_string(glob), 0 };
  struct hk_view *v;
  assert_int_equal(hk_view_open(f->views, &wanted, &v), 0);
  return v;
}

static bool name_matches(struct fixture *f, const struct hk_view *v, uint32_t slot)
{
  struct hk_glob *glob;
  const struct hk_string name = hk_registry_name(f->registry, slot);
  assert_int_equal(hk_glob_new(&glob, v->pattern, v->wanted.glob.length), 0);
  const bool matches = hk_glob_match(glob, name.data, name.length);
  hk_glob_free(glob);
  return matches;
}

/* The results that the view should get, by looking at all names; returns their number. */
static uint32_t plainly(struct fixture *f, const struct hk_view *v, uint32_t *results, uint32_t *events, uint32_t *n_events)
{
  static uint8_t match[SENSORS]; /* of this view: 0 not looked at, 1 no, 2 yes */
  memset(match, 0, sizeof match);
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->batch.n; i++) {
    const uint32_t slot = f->slot[i];
    const float z = f->score[i];
    const bool scored = v->wanted.what & HANKEL_SCORES, unscored = v->wanted.what & HANKEL_UNSCORED;
    if (!match[slot])
      match[slot] = (uint8_t)(1 + name_matches(f, v, slot));
    if (match[slot] == 2 && (f->dropped ? scored || unscored : isnan(z) ? unscored : scored && z >= v->wanted.min_score))
      results[n++] = i;
  }
  *n_events = 0;
  for (uint32_t i = 0; !f->dropped && i < f->batch.n_events; i++) {
    const bool notice = f->event[i].kind >= HK_EVENT_STALE;
    if (v->wanted.what & (notice ? HANKEL_NOTICES : HANKEL_EVENTS) && name_matches(f, v, f->event[i].slot))
      events[(*n_events)++] = i;
  }
  return n;
}

static void compare(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  struct fixture *f = arg;
  static uint32_t wanted[POINTS], wanted_events[EVENTS];
  uint32_t n_events;
  const uint32_t n = plainly(f, v, wanted, wanted_events, &n_events);
  assert_int_equal(results->n, n);
  for (uint32_t i = 0; i < n; i++)
    assert_int_equal(hk_choice_at(results, i), wanted[i]);
  assert_int_equal(events->n, n_events);
  assert_memory_equal(events->index, wanted_events, n_events * sizeof *wanted_events);
  for (uint32_t i = 0; i < f->n_views; i++)
    assert_ptr_not_equal(f->view[i], v);
  f->view[f->n_views++] = v;
}

static void check(struct fixture *f, struct hk_view **open, uint32_t n_open, bool dropped)
{
  static uint32_t results[POINTS], events[EVENTS];
  uint32_t want_any = 0;
  f->n_views = 0;
  f->dropped = dropped;
  assert_int_equal(hk_views_choose(f->views, &f->batch, dropped, compare, f), 0);
  for (uint32_t i = 0; i < n_open; i++) {
    uint32_t n_events;
    bool again = false;
    for (uint32_t k = 0; k < i; k++)
      again |= open[k] == open[i];
    want_any += !again && plainly(f, open[i], results, events, &n_events) + n_events > 0;
  }
  assert_int_equal(f->n_views, want_any);
}

/* Closes view i, unless another of the open ones is the same. */
static void close_one(struct fixture *f, struct hk_view *const *open, uint32_t n_open, uint32_t i)
{
  bool shared = false;
  for (uint32_t k = 0; k < n_open; k++)
    shared |= k != i && open[k] == open[i];
  if (!shared)
    hk_view_close(f->views, open[i]);
}

/* Points and events of random sensors, or a sweep with events alone. */
static void random_batch(struct fixture *f)
{
  const uint32_t slots = hk_registry_slots(f->registry), rare = number(f, 200);
  f->batch.n = number(f, POINTS + 1);
  f->batch.n_events = number(f, EVENTS + 1);
  f->batch.kind = number(f, 10) ? HK_BATCH_POINTS : HK_BATCH_SWEEP;
  if (f->batch.kind == HK_BATCH_SWEEP)
    f->batch.n = 0;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < f->batch.n; i++) {
    do
      slot = number(f, 10) ? (slot + 1) % slots : number(f, slots);
    while (!hk_registry_holds(f->registry, slot));
    f->slot[i] = slot;
    f->score[i] = number(f, 200) < rare ? NAN : number(f, 200) < rare ? 0.995f : (float)number(f, 1000) / 1000;
  }
  for (uint32_t i = 0; i < f->batch.n_events; i++) {
    do
      slot = number(f, slots);
    while (!hk_registry_holds(f->registry, slot));
    f->event[i] = (struct hk_event){ .slot = slot, .kind = (uint8_t)(HK_EVENT_RAISED + number(f, 5)) };
  }
}

static void chosen_as_by_looking_at_everything(void **state)
{
  struct fixture *f = *state;
  static const char *const globs[] = { "",  "*",  "**", "m*",  "m1*",  "m?7", "m42",   "m7",  "m1",        "nothing",
                                       "?", "m?", "*9", "*1*", "m19?", "m2*", "other", "m??", "m1234567*", "m199*" };
  static const float least[] = { 0, 0.5f, 0.9f, 0.99f, 1 };
  struct hk_view *open[VIEWS];
  uint32_t n_open = 0, sensors = 0;
#ifdef HK_SANITIZED
  const int rounds = 150;
#else
  const int rounds = 300;
#endif
  for (int round = 0; round < rounds; round++) {
    /* Views are opened and closed; sensors come and are evicted, and others take their slots. */
    if (n_open < VIEWS && number(f, 3) == 0)
      open[n_open++] = view(f, globs[number(f, 20)], 1 + number(f, 31), least[number(f, 5)]);
    if (n_open > 0 && number(f, 6) == 0) {
      const uint32_t i = number(f, n_open);
      close_one(f, open, n_open, i);
      open[i] = open[--n_open];
    }
    for (uint32_t more = number(f, round < 100 ? 3 : 60); more > 0 && sensors < 4000; more--)
      add(f, sensors++);
    for (uint32_t less = number(f, 10) ? 0 : 8; less > 0 && sensors > 10; less--) {
      const uint32_t slot = number(f, hk_registry_slots(f->registry));
      if (hk_registry_holds(f->registry, slot)) {
        evict(f, slot);
        if (number(f, 2))
          add(f, number(f, 2) ? number(f, 100) : 100000 + number(f, 1000));
      }
    }
    if (hk_registry_count(f->registry) == 0)
      continue;
    random_batch(f);
    check(f, open, n_open, f->batch.kind == HK_BATCH_POINTS && number(f, 8) == 0);
    if (number(f, 2))
      hk_views_tend(f->views);
  }
  while (n_open > 0) {
    close_one(f, open, n_open, n_open - 1);
    n_open--;
  }
  assert_int_equal(hk_views_count(f->views), 0);
}

static void count_hit(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  struct fixture *f = arg;
  assert_int_equal(events->n, 0);
  assert_int_equal(results->n, 1);
  const struct hk_string name = hk_registry_name(f->registry, f->slot[results->index[0]]);
  assert_true(name.length == v->wanted.glob.length && memcmp(name.data, v->pattern, name.length) == 0);
  f->n_views++;
}

static void ten_thousand_views_of_one_sensor(void **state)
{
  struct fixture *f = *state;
  enum { MANY = 10000 };
  static struct hk_view *open[MANY];
  char name[32];
  /* Half of the sensors exist before the view is opened, half come later, and the same number match no view. */
  for (uint32_t i = 0; i < MANY / 2; i++)
    add(f, i);
  for (uint32_t i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "m%u", i);
    open[i] = view(f, name, HANKEL_SCORES, 0);
    assert_int_equal(open[i]->kind, HK_VIEW_NARROW);
  }
  for (uint32_t i = MANY / 2; i < SENSORS; i++)
    add(f, i);
  f->batch.kind = HK_BATCH_POINTS;
  for (int round = 0; round < 3; round++) {
    uint32_t hits = 0;
    for (uint32_t i = 0; i < MANY && round == 2; i++) { /* now that every sensor has been looked at */
      hk_view_close(f->views, open[i]);
      snprintf(name, sizeof name, "m%u", i);
      open[i] = view(f, name, HANKEL_SCORES, 0);
    }
    for (uint32_t at = 0; at < SENSORS; at += f->batch.n) {
      f->batch.n = SENSORS - at < POINTS ? SENSORS - at : POINTS;
      f->batch.n_events = 0;
      for (uint32_t i = 0; i < f->batch.n; i++) {
        f->slot[i] = at + i;
        f->score[i] = 0.5f;
      }
      f->n_views = 0;
      assert_int_equal(hk_views_choose(f->views, &f->batch, false, count_hit, f), 0);
      hits += f->n_views;
    }
    assert_int_equal(hits, MANY);
  }
  for (uint32_t i = 0; i < MANY; i++)
    hk_view_close(f->views, open[i]);
  assert_int_equal(hk_views_count(f->views), 0);
}

static void few_and_many(void **state)
{
  struct fixture *f = *state;
  for (uint32_t i = 0; i < 10000; i++)
    add(f, i);
  struct hk_view *few = view(f, "m123?", HANKEL_SCORES, 0), *many = view(f, "m1*", HANKEL_SCORES, 0.5f);
  assert_int_equal(few->kind, HK_VIEW_WIDE);
  for (int i = 0; i < 200; i++)
    hk_views_tend(f->views);
  assert_int_equal(few->kind, HK_VIEW_NARROW);
  assert_int_equal(many->kind, HK_VIEW_WIDE);
  /* Every second sensor, all with good scores: code that examines blocks must examine slots, too. */
  f->batch.kind = HK_BATCH_POINTS;
  f->batch.n = 3000;
  for (uint32_t i = 0; i < f->batch.n; i++) {
    f->slot[i] = 2 * i;
    f->score[i] = i < 1500 ? 0.75f : (float)number(f, 1000) / 1000;
  }
  struct hk_view *two[] = { few, many };
  check(f, two, 2, false);
  /* matches no sensor at first, then very many */
  struct hk_view *grows = view(f, "n*", HANKEL_SCORES, 0);
  for (int i = 0; i < 200; i++)
    hk_views_tend(f->views);
  assert_int_equal(grows->kind, HK_VIEW_NARROW);
  char name[32];
  for (uint32_t i = 0; i < 3000; i++) {
    snprintf(name, sizeof name, "n%u", i);
    assert_int_equal(hk_registry_take(f->registry, name, strlen(name), &f->slot[i]), 0);
    f->score[i] = 1;
  }
  struct hk_view *open[] = { few, many, grows };
  check(f, open, 3, false);
  hk_views_tend(f->views);
  assert_int_equal(grows->kind, HK_VIEW_WIDE);
  check(f, open, 3, false);
  for (int i = 0; i < 200; i++)
    hk_views_tend(f->views);
  check(f, open, 3, false);
  assert_int_equal(grows->kind, HK_VIEW_WIDE);
  for (int i = 0; i < 3; i++)
    hk_view_close(f->views, open[i]);
}

static void limits(void **state)
{
  struct fixture *f = *state;
  struct hk_views *two;
  struct hk_view *a, *b, *c;
  struct hk_wanted wanted = { HK_PROTOCOL_BINARY, HANKEL_SCORES, 0, hk_string("a"), 0 };
  assert_int_equal(hk_views_new(&two, f->registry, 2), 0);
  assert_int_equal(hk_view_open(two, &wanted, &a), 0);
  assert_int_equal(hk_view_open(two, &wanted, &b), 0);
  assert_ptr_equal(a, b);
  wanted.min_score = 0.5f;
  assert_int_equal(hk_view_open(two, &wanted, &b), 0);
  assert_ptr_not_equal(a, b);
  wanted.format = HK_PROTOCOL_TEXT;
  assert_int_equal(hk_view_open(two, &wanted, &c), -ENOSPC);
  hk_view_close(two, b);
  char glob[HK_GLOB_MAX + 2];
  memset(glob, 'a', sizeof glob);
  glob[sizeof glob - 1] = 0;
  wanted.glob = hk_string(glob);
  assert_int_equal(hk_view_open(two, &wanted, &c), -EINVAL);
  glob[3] = '*';
  assert_int_equal(hk_view_open(two, &wanted, &c), -EINVAL);
  assert_int_equal(hk_views_count(two), 1);
  hk_view_close(two, a);
  hk_views_free(two);
}

/* If memory runs out between the two arrays that hk_views_grow enlarges, a sensor can still be evicted. */
static void a_sensor_goes_while_there_is_no_memory(void **state)
{
  struct fixture *f = *state;
  uint32_t slot = 0;
  assert_int_equal(hk_slot_bits_grow(&f->views->watched, SENSORS), 0);
  assert_null(f->views->first);
  for (uint32_t i = 0; i < 100; i++)
    slot = add(f, i);
  evict(f, slot);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(chosen_as_by_looking_at_everything, setup, teardown),
    cmocka_unit_test_setup_teardown(ten_thousand_views_of_one_sensor, setup, teardown),
    cmocka_unit_test_setup_teardown(few_and_many, setup, teardown),
    cmocka_unit_test_setup_teardown(limits, setup, teardown),
    cmocka_unit_test_setup_teardown(a_sensor_goes_while_there_is_no_memory, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
