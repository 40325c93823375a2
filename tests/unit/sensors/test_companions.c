/* The registry: companions, and the series of machines. */
#include "daemon/scoring/device.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/registry.h"
#include "daemon/sensors/slots.h"
#include "tests/unit/support/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t taken(struct hk_registry *r, const char *name)
{
  uint32_t slot;
  assert_int_equal(hk_registry_take(r, name, strlen(name), &slot), 0);
  return slot;
}

/* Whether a sensor has these companions and no others, on its own shard. */
static bool has_companions(struct hk_registry *r, uint32_t slot, uint32_t shards, const char *of, uint32_t n,
                           const char *const *suffixes)
{
  uint32_t found = 0;
  for (uint32_t companion = slot; (companion = hk_registry_next_companion(r, companion)) != slot; found++) {
    char name[32];
    bool known = false;
    for (uint32_t i = 0; i < n; i++) {
      snprintf(name, sizeof name, "%s%s", of, suffixes[i]);
      known |= strcmp(name, hk_registry_name(r, companion).data) == 0;
    }
    if (!known || companion % shards != slot % shards || !hk_registry_derived(r, companion) || !hk_registry_holds(r, companion))
      return false;
  }
  return found == n;
}

static const char *const both[] = { "#graph", "#shift" };

/* Whether a series counts as one of this sensor. */
static void check_shares(struct hk_registry *r, const char *name, const char *sensor)
{
  char room[HK_NAME_MAX];
  hk_registry_read(r);
  const struct hk_string got = hk_registry_shared_name_of(r, hk_string(name), room);
  assert_int_equal(got.length, strlen(sensor));
  assert_memory_equal(got.data, sensor, got.length);
  hk_registry_read_end(r);
}

static void test_companions(void **state)
{
  struct fixture *f = *state;
  struct hk_device *devices[3];
  struct hk_registry *r = accompanied(f, 3, 20, devices);
  uint32_t slot;
  for (uint32_t i = 0; i < 6; i++) { /* the shards have 7, 7 and 6 slots: two sensors each */
    char name[16];
    snprintf(name, sizeof name, "pump %u", i);
    slot = taken(r, name);
    assert_true(has_companions(r, slot, 3, name, 2, both));
  }
  assert_int_equal(hk_registry_count(r), 18);
  assert_int_equal(hk_registry_count_derived(r), 12);
  assert_int_equal(hk_registry_count_of(r, 1), 6);
  assert_int_equal(hk_registry_take(r, "pump 6", 6, &slot), HANKEL_FULL); /* two slots are left, on two shards */
  assert_int_equal(hk_registry_count(r), 18);
  assert_int_equal(hk_registry_find(r, "pump 6#graph", 12, &slot), HK_UNKNOWN);
  (void)taken(r, "fox");
  /* nobody feeds them */
  assert_int_equal(hk_registry_take(r, "pump 3#graph", 12, &slot), HANKEL_RESERVED);
  assert_int_equal(hk_registry_find(r, "pump 3#graph", 12, &slot), 0);
  const uint32_t handle = hk_registry_handle(r, slot);
  assert_int_equal(handle & 0xffffff, slot);
  assert_int_equal(hk_registry_handles(r)[slot], handle);
  assert_false(feedable(r, handle));
  assert_false(feedable(r, 0xfeffffff));
  /* one companion is evicted alone, and then the sensor gets it again */
  const uint32_t of = taken(r, "pump 3");
  evict(r, slot);
  assert_true(has_companions(r, of, 3, "pump 3", 1, both + 1));
  uint32_t added;
  assert_int_equal(hk_registry_complete(r, of, &added), 0);
  assert_int_equal(added, 1);
  assert_true(has_companions(r, of, 3, "pump 3", 2, both));
  /* all are evicted, and their slots are used again */
  while ((slot = hk_registry_next_companion(r, of)) != of)
    evict(r, slot);
  evict(r, of);
  assert_int_equal(hk_registry_count_derived(r), 10);
  assert_true(has_companions(r, taken(r, "pump new"), 3, "pump new", 2, both));
  check_shares(r, "pump new#graph", "pump new");
  check_shares(r, "pump of another machine#graph", "pump of another machine"); /* the configuration names it so */
  check_shares(r, "pump of another machine#ika", "pump of another machine#ika");
  check_shares(r, "x#graph", "x#graph");
  hk_registry_free(r);
  for (uint32_t i = 0; i < 3; i++)
    hk_device_close(devices[i]);
}

/* No peer can take a companion's name, even before its sensor exists. If the name is too long, or taken by a peer's series of a
 * state from before its algorithm was configured, the companion is not made; the sensor is. */
static void test_companions_that_cannot_be(void **state)
{
  struct fixture *f = *state;
  struct hk_device *device;
  struct hk_registry *r = accompanied(f, 1, 100, &device);
  char name[HK_NAME_MAX];
  const uint32_t theirs = 7;
  uint32_t slot, added;
  assert_int_equal(hk_registry_take(r, "pump#graph", 10, &slot), HANKEL_RESERVED);
  assert_int_equal(hk_registry_restore(r, theirs, 0, hk_string("pump#graph"), hk_string("pumps")), 0);
  hk_registry_restored(r);
  const uint32_t mine = taken(r, "pump");
  assert_false(hk_registry_derived(r, theirs));
  assert_int_equal(hk_registry_complete(r, theirs, &added), 0);
  assert_true(has_companions(r, theirs, 1, "pump#graph", 2, both));
  assert_true(has_companions(r, mine, 1, "pump", 1, both + 1));
  assert_int_equal(hk_registry_lacking(r), 1);
  memset(name, 'p', sizeof name);
  memcpy(name, "pump", 4);
  assert_int_equal(hk_registry_take(r, name, sizeof name - 5, &slot), 0);
  assert_int_equal(hk_registry_next_companion(r, slot), slot);
  assert_int_equal(hk_registry_lacking(r), 3);
  hk_registry_free(r);
  hk_device_close(device);
}

/* A machine's series is on its members' shard, exists once, is kept at a start, and has a reserved name and no companions. */
static void test_series_of_machines(void **state)
{
  struct fixture *f = *state;
  struct hk_device *devices[2];
  struct hk_registry *r = accompanied(f, 2, 100, devices);
  const struct hk_config_detector d = {
    .name = "#press", .match = "(*)", .detector = f->config.detectors[3].detector, .number = 3, .derived = true, .group = true
  };
  uint32_t slot, same, other;
  assert_int_equal(hk_registry_define(r, 3, &d), 0);
  const uint32_t members = taken(r, "pump"), before = hk_registry_count(r), derived = hk_registry_count_derived(r);
  for (uint32_t shard = 0; shard < 2; shard++) {
    char name[16];
    const int n = snprintf(name, sizeof name, "press#%u", shard);
    assert_int_equal(hk_registry_series(r, shard, name, (size_t)n, 3, &slot), 0);
    assert_int_equal(slot % 2, shard);
    assert_true(hk_registry_holds(r, slot) && hk_registry_derived(r, slot));
    assert_int_equal(hk_registry_next_companion(r, slot), slot);
    assert_int_equal(hk_registry_series(r, shard, name, (size_t)n, 3, &same), 0);
    assert_int_equal(same, slot);
    assert_int_equal(hk_registry_series(r, 1 - shard, name, (size_t)n, 3, &other), HANKEL_RESERVED);
    assert_int_equal(hk_registry_take(r, name, (size_t)n, &other), HANKEL_RESERVED);
  }
  assert_int_equal(hk_registry_series(r, members % 2, "pump", 4, 3, &other), HANKEL_RESERVED);
  assert_int_equal(hk_registry_count(r), before + 2);
  assert_int_equal(hk_registry_count_derived(r), derived + 2);
  hk_registry_part_companions(r);
  assert_true(hk_registry_holds(r, slot));
  hk_registry_retire(r, slot);
  hk_registry_release(r, slot);
  assert_int_equal(hk_registry_count_derived(r), derived + 1);
  assert_int_equal(hk_registry_series(r, 1, "press#1", 7, 3, &same), 0);
  hk_registry_free(r);
  hk_device_close(devices[0]);
  hk_device_close(devices[1]);
}

/* At a start companions come in any order, before and after their sensor; those that are no longer wanted are retired. */
static void test_companions_are_restored(void **state)
{
  struct fixture *f = *state;
  struct hk_device *devices[2];
  struct hk_registry *r = accompanied(f, 2, 100, devices);
  static const struct {
    uint32_t slot;
    const char *name, *detector;
    int refusal;
  } sensors[] = { { 6, "pump#shift", "pumps#shift", 0 },
                  { 2, "pump", "pumps", 0 },
                  { 4, "pump#graph", "pumps#graph", 0 },
                  { 3, "pump 2", "pumps", 0 },
                  { 8, "pump 2#graph", "pumps#graph", 0 },             /* on another shard than its sensor */
                  { 10, "pump 3#graph", "pumps#graph", 0 },            /* whose sensor is gone */
                  { 12, "pump#svd", "pumps#svd", HANKEL_NO_DETECTOR }, /* an algorithm that is gone */
                  { 14, "pump 4#graph", "pumps", 0 } };                /* a peer's own */
  for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++)
    assert_int_equal(hk_registry_restore(r, sensors[i].slot, 0, hk_string(sensors[i].name), hk_string(sensors[i].detector)),
                     sensors[i].refusal);
  assert_true(has_companions(r, 2, 2, "pump", 2, both));
  hk_registry_part_companions(r);
  uint8_t generation;
  assert_true(hk_registry_generation(r, 8, &generation) && !hk_registry_holds(r, 8)); /* retired: its alert is to end yet */
  hk_registry_restored(r);
  assert_false(hk_registry_holds(r, 8) || hk_registry_holds(r, 10) || hk_registry_holds(r, 12));
  assert_true(hk_registry_holds(r, 14) && !hk_registry_derived(r, 14));
  assert_true(has_companions(r, 2, 2, "pump", 2, both));
  assert_int_equal(hk_registry_next_companion(r, 3), 3);
  uint32_t added;
  assert_int_equal(hk_registry_complete(r, 3, &added), 0);
  assert_int_equal(added, 2);
  assert_true(has_companions(r, 3, 2, "pump 2", 2, both));
  bool used[40] = { [2] = true, [3] = true, [4] = true, [6] = true, [14] = true };
  for (uint32_t slot = 3, companion = slot; (companion = hk_registry_next_companion(r, companion)) != slot;)
    used[companion] = true;
  for (uint32_t i = 0; i < 10; i++) { /* every other slot is free once */
    char name[16];
    snprintf(name, sizeof name, "f%ux", i);
    const uint32_t slot = taken(r, name);
    assert_true(slot < 40 && !used[slot]);
    used[slot] = true;
  }
  hk_registry_free(r);
  hk_device_close(devices[0]);
  hk_device_close(devices[1]);
}

/* A device without room for all companions: none is made, and nothing remains of them. */
static void test_companions_without_room(void **state)
{
  struct fixture *f = *state;
  struct hk_device *device, *small;
  struct hk_registry *r = accompanied(f, 1, 100, &device);
  uint32_t slot, n = 0;
  assert_int_equal(device_open(f, &small, 2500000), 0);
  hk_registry_move(r, 0, &small->binding, NULL, NULL);
  for (char name[16]; n < 30; n++) {
    snprintf(name, sizeof name, "pump %u", n);
    if (hk_registry_take(r, name, strlen(name), &slot) != 0)
      break;
    assert_true(has_companions(r, slot, 1, name, 2, both));
  }
  if (n == 0 || n == 30)
    fail_msg("%u sensors: %s", n, full_of(r));
  assert_int_equal(hk_registry_count(r), 3 * n);
  assert_int_equal(hk_registry_slots(r), 3 * n);
  for (uint32_t i = 3 * n; i < 3 * n + 3; i++) /* nothing is bound there */
    assert_int_not_equal(small->backend->ops->add(small->backend, i, 0, 0), -EEXIST);
  hk_registry_free(r);
  hk_device_close(device);
  hk_device_close(small);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_companions, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_that_cannot_be, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_are_restored, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_series_of_machines, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_without_room, setup, teardown) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
