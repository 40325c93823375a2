/* The order of writes and reads, wherever a crash at the wrong moment would reveal a wrong one: the test forces each order by a
 * file call that does something meanwhile, or by holding a lock. */
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/journal_segments.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SHARDS 2u
#define PATIENCE 20000 /* ms */

struct world {
  char path[64];
  struct hk_config config;
  struct hk_config_detector detector;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_wake wake[SHARDS];
  struct hk_log log;
  struct hk_durable durable;
  bool (*during)(struct world *w, enum hk_disk_call call); /* asked at each call; true: it fails */
  atomic_bool failed, wrong, held;
};

static int fault(void *arg, enum hk_disk_call call)
{
  struct world *w = arg;
  return w->during && w->during(w, call) ? EIO : 0;
}

/* The state folder is open, and nothing is committed yet. */
static void open_folder(struct world *w)
{
  char error[512] = "";
  const struct hk_device_place place = { .of = 1 };
  *w = (struct world){ .path = "/tmp/test-durable-XXXXXX" };
  assert_non_null(mkdtemp(w->path));
  w->detector = (struct hk_config_detector){ .name = "all", .match = "*" };
  assert_int_equal(hk_detector_parse("window=8", &w->detector.detector, error, sizeof error), 0);
  w->config = (struct hk_config){ .detectors = &w->detector,
                                  .n_detectors = 1,
                                  .max_sensors = 100,
                                  .threads = 1,
                                  .durability = HK_DURABILITY_JOURNAL,
                                  .event_log = HK_EVENTLOG_LEAST,
                                  .journal_segment = 1, /* one for each commit */
                                  .journal_wait = 3600000000000 };
  snprintf(w->config.state, sizeof w->config.state, "%s", w->path);
  assert_int_equal(
      hk_device_open(&w->device, &hk_backend_kinds[HK_BACKEND_REFERENCE], &w->config, 0, &place, error, sizeof error), 0);
  assert_int_equal(hk_registry_new(&w->registry, &w->config, SHARDS), 0);
  for (uint32_t i = 0; i < SHARDS; i++)
    hk_registry_move(w->registry, i, &w->device->binding, NULL, NULL);
  hk_log_init(&w->log, HK_LOG_ERROR);
  w->log.level = 0; /* failures here are intended */
  w->durable.disk = (struct hk_disk){ fault, w };
  for (uint32_t i = 0; i < SHARDS; i++)
    w->durable.wake[i] = &w->wake[i];
  if (hk_durable_open(&w->durable, &w->config, SHARDS, &w->log, error, sizeof error) != 0)
    fail_msg("%s", error);
}

static void go_on(struct world *w)
{
  char error[512] = "";
  assert_int_equal(hk_durable_begin(&w->durable, (const uint64_t[SHARDS]){ 0 }, w->registry, error, sizeof error), 0);
}

static void begin(struct world *w, bool (*during)(struct world *w, enum hk_disk_call call))
{
  open_folder(w);
  go_on(w);
  w->during = during;
}

static void end(struct world *w)
{
  char command[128];
  assert_true(hk_durable_stop(&w->durable));
  hk_durable_close(&w->durable);
  hk_registry_free(w->registry);
  hk_device_close(w->device);
  snprintf(command, sizeof command, "rm -r %s", w->path);
  assert_int_equal(system(command), 0);
}

static void rest(void)
{
  (void)nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* A point of a shard goes to its journal. */
static void point(struct world *w, uint32_t shard)
{
  void *payload = hk_journal_begin(w->durable.journal[shard], 7, 8);
  assert_non_null(payload);
  memset(payload, 0, 8);
  (void)hk_journal_end(w->durable.journal[shard], 1);
  hk_durable_nudge(&w->durable);
}

static void await_committed(struct world *w, uint32_t shard, uint64_t position)
{
  for (int i = 0; i < PATIENCE && hk_journal_committed(w->durable.journal[shard]) < position; i++)
    rest();
  assert_true(hk_journal_committed(w->durable.journal[shard]) >= position);
}

/* The first sync fails. By then there are a second point and its event, which the repeated round must not write: it has the first
 * point only, and a crash after it would leave an event without its point. */
static bool second_point_and_event(struct world *w, enum hk_disk_call call)
{
  struct hk_durable *d = &w->durable;
  const struct hk_event event = { .number = 1, .kind = HK_EVENT_RAISED };
  if (hk_eventlog_shown(d->events) > 0 && hk_journal_committed(d->journal[0]) < 2)
    w->wrong = true;
  if (call != HK_DISK_SYNC || w->failed)
    return false;
  w->failed = true;
  point(w, 0);
  if (hk_eventlog_append(d->events, 7, hk_string("a"), 1, &event, hk_string(""), 0) != 1)
    w->wrong = true;
  return true;
}

static void test_an_event_comes_behind_its_point(void **state)
{
  static struct world w; /* a test that fails leaves a thread with it */
  (void)state;
  begin(&w, second_point_and_event);
  point(&w, 0);
  await_committed(&w, 0, 2);
  for (int i = 0; i < PATIENCE && hk_eventlog_shown(w.durable.events) == 0; i++)
    rest();
  assert_int_equal(hk_eventlog_shown(w.durable.events), 1);
  point(&w, 0); /* one of its calls detects anything that is published too early */
  await_committed(&w, 0, 3);
  assert_true(w.failed);
  assert_false(w.wrong);
  end(&w);
}

struct reader {
  struct world *world;
  uint64_t order;
  atomic_bool done;
};

static void *read_order(void *arg)
{
  struct reader *r = arg;
  r->order = hk_durable_order(&r->world->durable, r->world->registry);
  r->done = true;
  return NULL;
}

static void *take_name(void *arg)
{
  struct world *w = arg;
  uint32_t slot;
  return hk_registry_take(w->registry, "a", 1, &slot) == 0 ? w : NULL;
}

/* A change of a sensor has its number and is not done yet, because its journal cannot be written now. A snapshot that asks for
 * the number waits until it is done: otherwise it would claim to have a sensor that it does not have. */
static void test_an_order_is_of_what_is_done(void **state)
{
  static struct world w; /* a test that fails leaves a thread with it */
  struct reader reader = { .world = &w };
  pthread_t taking, reading;
  void *taken;
  (void)state;
  begin(&w, NULL);
  void *payload = hk_journal_begin(w.durable.journal[0], 7, 8); /* which is locked by that */
  assert_non_null(payload);
  memset(payload, 0, 8);
  assert_int_equal(pthread_create(&taking, NULL, take_name, &w), 0);
  for (int i = 0; i < PATIENCE && w.durable.order == 0; i++)
    rest();
  assert_int_equal(w.durable.order, 1);
  assert_int_equal(pthread_create(&reading, NULL, read_order, &reader), 0);
  for (int i = 0; i < 100 && !reader.done; i++)
    rest();
  const bool early = reader.done;
  (void)hk_journal_end(w.durable.journal[0], 1);
  assert_int_equal(pthread_join(taking, &taken), 0);
  assert_int_equal(pthread_join(reading, NULL), 0);
  assert_false(early);
  assert_ptr_equal(taken, &w);
  assert_int_equal(reader.order, 1);
  end(&w);
}

/* A snapshot that was begun before the disk came back lacks sensors that were registered between its begin and that moment, and
 * that no journal has either: it does not end the recovery, whatever its position. */
static void test_a_snapshot_begun_too_early(void **state)
{
  static struct world w; /* a test that fails leaves a thread with it */
  (void)state;
  begin(&w, NULL);
  struct hk_durable *d = &w.durable;
  const int64_t begun = hk_now();
  hk_durable_give_up(d, "a test");
  assert_int_equal(hk_durable_condition(d).state, HK_DURABLE_DEGRADED);
  rest();
  hk_condition_works(d);
  for (uint32_t i = 0; i < SHARDS; i++)
    (void)hk_durable_snapshot_done(d, i, hk_journal_position(d->journal[i]), begun, 0, 0);
  assert_int_equal(hk_durable_condition(d).state, HK_DURABLE_RECOVERING);
  rest();
  for (uint32_t i = 0; i < SHARDS; i++) {
    assert_int_equal(hk_durable_condition(d).state, HK_DURABLE_RECOVERING);
    (void)hk_durable_snapshot_done(d, i, hk_journal_position(d->journal[i]), hk_now(), 0, 0);
  }
  assert_int_equal(hk_durable_condition(d).state, HK_DURABLE_OK);
  end(&w);
}

static bool syncs_while_held(struct world *w, enum hk_disk_call call)
{
  for (int i = 0; i < PATIENCE && call == HK_DISK_SYNC && w->held; i++)
    rest();
  return false;
}

static void await_time(int64_t time)
{
  while (hk_now() < time)
    rest();
}

/* Records that a replay appends wait for the end of the replay, which may take long; only then they wait for the disk. */
static void test_a_replay_is_no_slow_disk(void **state)
{
  static struct world w; /* a test that fails leaves a thread with it */
  const struct hk_event event = { .number = 1, .kind = HK_EVENT_RAISED };
  const int64_t wait = 300000000;
  bool told = false;
  (void)state;
  for (int i = 0; i < 100 && !told; i++) { /* repeated until the machine is quick enough for the case */
    open_folder(&w);
    struct hk_durable *d = &w.durable;
    d->journal_wait = wait;
    assert_int_equal(hk_eventlog_append(d->events, 7, hk_string("a"), 1, &event, hk_string(""), 0), 1);
    await_time(hk_now() + wait);
    w.held = true;
    w.during = syncs_while_held;
    const int64_t begun = hk_now();
    go_on(&w);
    hk_durable_watch(d);
    const enum hk_durable_state found = hk_durable_condition(d).state;
    told = hk_now() - begun < wait;
    assert_true(!told || found == HK_DURABLE_OK);
    await_time(hk_now() + wait);
    hk_durable_watch(d);
    assert_int_not_equal(hk_durable_condition(d).state, HK_DURABLE_OK);
    w.held = false;
    end(&w);
  }
  assert_true(told);
}

/* Until every shard has a snapshot of this run, only those of the previous run are complete: nothing that they need is
 * removed. */
static void test_files_of_the_run_before(void **state)
{
  static struct world w; /* a test that fails leaves a thread with it */
  (void)state;
  begin(&w, NULL);
  struct hk_durable *d = &w.durable;
  for (uint64_t i = 1; i <= 6; i++) {
    point(&w, 0);
    await_committed(&w, 0, i);
  }
  assert_int_equal(hk_journal_begins(d->journal[0]), 0);
  assert_false(hk_durable_snapshot_done(d, 0, 5, hk_now(), 4, 0));
  assert_false(hk_durable_snapshot_done(d, 0, 6, hk_now(), 5, 0));
  assert_int_equal(hk_journal_begins(d->journal[0]), 0);
  assert_true(hk_durable_snapshot_done(d, 1, 0, hk_now(), 0, 0));
  assert_true(hk_durable_snapshot_done(d, 0, 6, hk_now(), 5, 0));
  assert_in_range(hk_journal_begins(d->journal[0]), 1, 5);
  end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_an_event_comes_behind_its_point), cmocka_unit_test(test_an_order_is_of_what_is_done),
    cmocka_unit_test(test_a_snapshot_begun_too_early),      cmocka_unit_test(test_a_replay_is_no_slow_disk),
    cmocka_unit_test(test_files_of_the_run_before),
  };
  return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
