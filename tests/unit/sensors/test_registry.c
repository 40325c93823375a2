/* The registry with a real backend: slots, handles and their generations, capacity, owners, detectors by glob. */
#include "daemon/scoring/device.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/registry.h"
#include "daemon/sensors/slots.h"
#include "tests/unit/support/registry.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_names_and_detectors(void **state)
{
  struct fixture *f = *state;
  uint32_t a, b, again;
  assert_int_equal(take(f, "pump 1", &a), 0);
  assert_int_equal(take(f, "pump 2", &b), 0);
  assert_int_equal(take(f, "pump 1", &again), 0);
  assert_int_equal(a, again);
  assert_int_not_equal(a, b);
  assert_string_equal(hk_registry_name(f->registry, b).data, "pump 2");
  assert_true(feedable(f->registry, hk_registry_handle(f->registry, b)));
  assert_int_equal(hk_registry_handle(f->registry, b) & 0xffffff, b);
  assert_int_equal(take(f, "pumpx", &a), 0); /* both match: the first section wins */
  assert_int_equal(hk_registry_count_of(f->registry, 0), 3);
  assert_int_equal(take(f, "fox", &a), 0);
  assert_int_equal(hk_registry_count_of(f->registry, 1), 1);
  assert_int_equal(take(f, "dog", &a), HANKEL_NO_DETECTOR);
  assert_int_equal(take(f, "", &a), HANKEL_BAD_NAME);
  assert_int_equal(take(f, "pump\n", &a), HANKEL_BAD_NAME);
  assert_int_equal(take(f, "pump\xff", &a), HANKEL_BAD_NAME);
  assert_int_equal(hk_registry_count(f->registry), 4);
}

static void test_handles(void **state)
{
  struct fixture *f = *state;
  uint32_t slot, other;
  assert_false(feedable(f->registry, 0));
  assert_int_equal(take(f, "pump", &slot), 0);
  const uint32_t old = hk_registry_handle(f->registry, slot);
  assert_false(feedable(f->registry, HK_NO_HANDLE));
  assert_false(feedable(f->registry, old + 1));
  assert_false(feedable(f->registry, old | 1u << 24));
  evict(f->registry, slot);
  assert_false(feedable(f->registry, old));
  assert_int_equal(take(f, "pump other", &other), 0);
  assert_int_equal(other, slot); /* the slot is used again, the handle is not */
  assert_int_not_equal(hk_registry_handle(f->registry, other), old);
  assert_false(feedable(f->registry, old));
  assert_int_equal(hk_registry_count(f->registry), 1);
}

/* A retired sensor is not found, but it keeps its slot until it is released. */
static void test_retired(void **state)
{
  struct fixture *f = *state;
  uint32_t slot, other, again;
  assert_int_equal(take(f, "pump", &slot), 0);
  const uint32_t old = hk_registry_handle(f->registry, slot);
  assert_true(hk_registry_is(f->registry, slot, "pump", 4));
  assert_false(hk_registry_is(f->registry, slot, "pumx", 4));
  assert_false(hk_registry_is(f->registry, slot, "pum", 3));
  assert_false(hk_registry_is(f->registry, slot + 1, "pump", 4));
  hk_registry_retire(f->registry, slot);
  assert_int_equal(hk_registry_count(f->registry), 0);
  assert_false(hk_registry_holds(f->registry, slot));
  assert_false(hk_registry_is(f->registry, slot, "pump", 4));
  assert_false(feedable(f->registry, old));
  assert_int_equal(hk_registry_handles(f->registry)[slot], old); /* its last results are published with its handle and name */
  assert_string_equal(hk_registry_name(f->registry, slot).data, "pump");
  assert_int_equal(take(f, "pump", &other), 0); /* a new sensor */
  assert_int_not_equal(other, slot);
  hk_registry_release(f->registry, slot);
  assert_int_equal(take(f, "pump 2", &again), 0);
  assert_int_equal(again, slot);
  assert_int_not_equal(hk_registry_handle(f->registry, slot), old);
  assert_int_equal(hk_registry_count(f->registry), 2);
}

static void test_capacity_and_churn(void **state)
{
  struct fixture *f = *state;
  uint32_t slot;
  char name[32];
  for (int i = 0; i < 3000; i++) {
    snprintf(name, sizeof name, "pump %d", i);
    assert_int_equal(take(f, name, &slot), 0);
  }
  assert_int_equal(take(f, "pump one too many", &slot), HANKEL_FULL);
  assert_string_equal(full(f), "max_sensors = 3000 are there; raise it, or set evict");
  assert_int_equal(take(f, "pump 77", &slot), 0);
  /* sensors come and go: tombstones must not pile up, and every existing name is found */
  for (int i = 0; i < 20000; i++) {
    snprintf(name, sizeof name, "pump %d", i);
    assert_int_equal(take(f, name, &slot), 0);
    evict(f->registry, slot);
    snprintf(name, sizeof name, "pump %d", i + 3000);
    assert_int_equal(take(f, name, &slot), 0);
    assert_string_equal(hk_registry_name(f->registry, slot).data, name);
  }
  assert_int_equal(hk_registry_count(f->registry), 3000);
  assert_int_equal(hk_registry_slots(f->registry), 3000);
}

struct refusals {
  uint32_t n, slots[3000];
};

static void note(void *arg, uint32_t slot)
{
  struct refusals *r = arg;
  r->slots[r->n++] = slot;
}

/* Another device takes over the first sensors, as many as it has room for; handles and detectors stay the same. */
enum { MANY = 1000 };

/* Names of all kinds in one call, some of them twice: the result is as if they had been registered one by one. */
static void *take_many(void *arg)
{
  struct fixture *f = arg;
  static const uint32_t expected[] = { 0, 0, HANKEL_NO_DETECTOR, HANKEL_BAD_NAME };
  char text[MANY][16];
  struct hk_string names[MANY];
  uint32_t slots[MANY], refusals[MANY], bad = 0, slot;
  for (uint32_t i = 0; i < MANY; i++) {
    static const char *const forms[] = { "pump %u", "%ux", "%uy", "%u\n" };
    snprintf(text[i], sizeof text[i], forms[i % 4], i % 400);
    names[i] = hk_string(text[i]);
  }
  hk_registry_take_all(f->registry, 0, MANY, names, slots, refusals);
  for (uint32_t i = 0; i < MANY; i++) {
    bad += refusals[i] != expected[i % 4];
    bad += refusals[i] == 0 && (take(f, text[i], &slot) != 0 || slot != slots[i]);
  }
  return bad == 0 ? arg : NULL;
}

static void test_many_at_once(void **state)
{
  struct fixture *f = *state;
  pthread_t others[3];
  void *good[3];
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&others[i], NULL, take_many, f), 0);
  assert_non_null(take_many(f));
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(pthread_join(others[i], &good[i]), 0);
  for (unsigned i = 0; i < 3; i++)
    assert_non_null(good[i]);
  assert_int_equal(hk_registry_count(f->registry), 200);
}

/* The thread's time, ns, for registering names: 32 characters, of which the second eight are numbers. */
static double time_of_names(struct fixture *f, uint32_t n, const char *front, const char *back)
{
  struct timespec before, after;
  char name[40];
  uint32_t slot;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (uint32_t i = 0; i < n; i++) {
    snprintf(name, sizeof name, "%s%08u%s", front, i, back);
    assert_int_equal(take(f, name, &slot), 0);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
}

/* Fault matrix row 13. If the second of two strings of eight equals the key, XXH3 multiplies by 0: under a key of nothing but k
 * these names would all collide. No peer knows the key, so they cost as much as any others. */
static void test_names_that_collide_under_a_known_key(void **state)
{
  struct fixture *f = *state;
  (void)time_of_names(f, 200, "pumpwarm", "xxxxxxxxxxxxxxxx");
  const double plain = time_of_names(f, 1200, "pumpless", "xxxxxxxxxxxxxxxx");
  const double colliding = time_of_names(f, 1200, "kkkkkkkk", "xxxxxxxxxxxxxxxx");
  assert_true(colliding < 5 * plain);
}

static void test_move(void **state)
{
  struct fixture *f = *state;
  uint32_t slot, handles[1000];
  char name[32];
  for (unsigned i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, i % 2 ? "pump %u" : "fo%ux", i);
    assert_int_equal(take(f, name, &slot), 0);
    assert_int_equal(slot, i);
    handles[i] = hk_registry_handle(f->registry, slot);
  }
  evict(f->registry, 5);
  static struct refusals refusals;
  refusals.n = 0;
  hk_registry_move(f->registry, 0, NULL, note, &refusals);
  assert_int_equal(take(f, "pump new", &slot), HANKEL_FULL);
  assert_non_null(strstr(full(f), "lost"));
  assert_int_equal(take(f, "pump 7", &slot), 0); /* known names are still found */
  evict(f->registry, 7);

  struct hk_device *other, *first = f->device;
  const uint64_t memory = first->backend->ops->need(first->backend, 0, 1) + first->backend->ops->need(first->backend, 1, 1);
  assert_int_equal(device_open(f, &other, memory), 0);
  hk_registry_move(f->registry, 0, &other->binding, note, &refusals);
  for (uint32_t i = 0; i < refusals.n; i++)
    evict(f->registry, refusals.slots[i]);
  f->device = other;
  hk_device_close(first);
  assert_true(refusals.n > 0);
  assert_true(refusals.slots[0] > 100);
  assert_int_equal(hk_registry_count(f->registry), 998 - refusals.n);
  for (unsigned i = 0; i < 1000; i++) {
    const bool there = feedable(f->registry, handles[i]);
    assert_int_equal(there, hk_registry_holds(f->registry, i));
    assert_true(there || i == 5 || i == 7 || i >= refusals.slots[0]);
    if (there) {
      assert_int_equal(hk_registry_detector(f->registry, i), i % 2 ? 0 : 1);
      assert_int_equal(other->backend->ops->add(other->backend, i, 0, 0), -EEXIST); /* it is bound there */
    }
  }
  assert_non_null(strstr(full(f), "raise memory"));
}

static int take_for(struct fixture *f, uint64_t owner, const char *name, uint32_t *slot)
{
  return hk_registry_take_valid(f->registry, owner, name, strlen(name), slot);
}

/* An owner may have its quota of sensors, whatever others have; a forgotten sensor makes room. */
static void test_quota(void **state)
{
  struct fixture *f = *state;
  struct hk_registry *r = f->registry;
  static const char *const texts[] = { "pump 1", "pump 9", "nothing", "pump 10" };
  struct hk_string names[4];
  uint32_t slots[4], refusals[4], slot, first;
  f->config.max_sensors_per_peer = 3;
  assert_int_equal(take_for(f, 1, "pump 1", &first), 0);
  assert_int_equal(take_for(f, 1, "pump 2", &slot), 0);
  for (uint32_t i = 0; i < 4; i++)
    names[i] = hk_string(texts[i]);
  hk_registry_take_all(r, 1, 4, names, slots, refusals);
  assert_true(refusals[0] == 0 && refusals[1] == 0 && refusals[2] == HANKEL_NO_DETECTOR && refusals[3] == HANKEL_QUOTA);
  assert_int_equal(take_for(f, 1, "pump 10", &slot), HANKEL_QUOTA);
  assert_int_equal(take_for(f, 1, "nothing", &slot), HANKEL_NO_DETECTOR);
  assert_int_equal(take_for(f, 1, "pump 9", &slot), 0); /* existing names are found */
  assert_int_equal(take_for(f, 2, "pump 10", &slot), 0);
  assert_int_equal(take_for(f, 2, "pump 1", &slot), 0); /* and keep their owners */
  for (uint32_t i = 0; i < 10; i++) {
    char name[16];
    snprintf(name, sizeof name, "pump free %u", i);
    assert_int_equal(take_for(f, 0, name, &slot), 0); /* sensors without an owner have no quota */
  }
  assert_int_equal(hk_registry_owner(r, first), 1);
  hk_registry_retire(r, first);
  assert_int_equal(take_for(f, 1, "pump 11", &slot), 0);
  assert_int_equal(take_for(f, 1, "pump 12", &slot), HANKEL_QUOTA);
  hk_registry_release(r, first);
  assert_int_equal(take_for(f, 1, "pump 12", &slot), HANKEL_QUOTA); /* it made room once */
  f->config.max_sensors_per_peer = 4;
  assert_int_equal(take_for(f, 1, "pump 12", &slot), 0);
  f->config.max_sensors_per_peer = 0;
  assert_int_equal(take_for(f, 1, "pump 13", &slot), 0);
}

static int restore(struct fixture *f, uint32_t slot, uint8_t generation, const char *name, const char *detector)
{
  return hk_registry_restore(f->registry, slot, generation, hk_string(name), hk_string(detector));
}

static void test_owners_are_restored(void **state)
{
  struct fixture *f = *state;
  struct hk_registry *r = f->registry;
  uint32_t slot;
  f->config.max_sensors_per_peer = 2;
  assert_int_equal(restore(f, 5, 3, "pump 5", "pumps"), 0);
  assert_int_equal(restore(f, 6, 0, "pump 6", "pumps"), 0);
  hk_registry_restore_owner(r, 5, 3, 9);
  hk_registry_restore_owner(r, 5, 3, 9); /* may be told twice */
  hk_registry_restore_owner(r, 5, 3, 8); /* it is somebody's */
  hk_registry_restore_owner(r, 6, 1, 9); /* of another generation */
  hk_registry_restore_owner(r, 6, 0, 0);
  hk_registry_restore_owner(r, 7, 0, 9);
  hk_registry_restore_owner(r, UINT32_MAX, 0, 9);
  assert_true(hk_registry_owner(r, 5) == 9 && hk_registry_owner(r, 6) == 0);
  hk_registry_restored(r);
  assert_int_equal(take_for(f, 9, "pump 7", &slot), 0);
  assert_int_equal(take_for(f, 9, "pump 8", &slot), HANKEL_QUOTA);
  evict(r, 5);
  assert_int_equal(take_for(f, 9, "pump 8", &slot), 0);
}

/* At a start sensors get their slots and handles again, in whatever order their records come. */
static void test_restore(void **state)
{
  struct fixture *f = *state;
  struct hk_registry *r = f->registry;
  uint8_t generation;
  uint32_t slot;
  assert_int_equal(restore(f, 5, 3, "pump 5", "pumps"), 0);
  assert_int_equal(restore(f, 2, 0, "pump 2", "rest"), 0); /* its previous detector, whatever its name matches */
  assert_int_equal(hk_registry_detector(r, 2), 1);
  assert_int_equal(restore(f, 2, 0, "pump 2", "rest"), 0); /* may be told twice */
  assert_int_equal(hk_registry_count(r), 2);
  assert_int_equal(hk_registry_handle(r, 5), 5 | 3u << 24);
  assert_int_equal(restore(f, 0, 0, "foxx", "gone"), 0); /* that detector no longer exists: the one that it would get now */
  assert_int_equal(hk_registry_detector(r, 0), 1);
  assert_int_equal(restore(f, 1, 0, "dog", "gone"), HANKEL_NO_DETECTOR);
  assert_int_equal(restore(f, 3000, 0, "pump", "pumps"), HANKEL_FULL);
  assert_int_equal(restore(f, 1, 0, "", "pumps"), HANKEL_BAD_NAME);
  assert_int_equal(restore(f, 5, 4, "pump later", "pumps"), 0); /* takes the slot from the previous sensor */
  assert_int_equal(hk_registry_find(r, "pump 5", 6, &slot), HK_UNKNOWN);
  assert_int_equal(restore(f, 7, 0, "pump later", "pumps"), 0); /* the name has gone to another slot */
  assert_false(hk_registry_holds(r, 5));
  assert_true(hk_registry_generation(r, 7, &generation));
  assert_false(hk_registry_generation(r, 5, &generation));
  hk_registry_retire(r, 2); /* and not released because of a crash */
  assert_true(hk_registry_generation(r, 2, &generation));
  hk_registry_restored(r);
  assert_false(hk_registry_generation(r, 2, &generation));
  assert_int_equal(hk_registry_count(r), 2); /* foxx, pump later */
  assert_int_equal(hk_registry_slots(r), 8);
  bool used[8] = { [0] = true, [7] = true };
  for (uint32_t i = 0; i < 6; i++) { /* all slots between them are free, each once */
    char name[16];
    snprintf(name, sizeof name, "pump n%u", i);
    assert_int_equal(take(f, name, &slot), 0);
    assert_true(slot < 8 && !used[slot]);
    used[slot] = true;
    if (slot == 5)
      assert_int_equal(hk_registry_handle(r, slot) >> 24, 5);
  }
  assert_int_equal(take(f, "pump 8", &slot), 0);
  assert_int_equal(slot, 8);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_names_and_detectors, setup, teardown),
    cmocka_unit_test_setup_teardown(test_handles, setup, teardown),
    cmocka_unit_test_setup_teardown(test_retired, setup, teardown),
    cmocka_unit_test_setup_teardown(test_capacity_and_churn, setup, teardown),
    cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(test_names_that_collide_under_a_known_key, setup, teardown),
    cmocka_unit_test_setup_teardown(test_move, setup, teardown),
    cmocka_unit_test_setup_teardown(test_quota, setup, teardown),
    cmocka_unit_test_setup_teardown(test_owners_are_restored, setup, teardown),
    cmocka_unit_test_setup_teardown(test_restore, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
