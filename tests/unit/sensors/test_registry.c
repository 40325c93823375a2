/* The registry with a real backend: slots, handles and their generations, capacity, detectors by glob. */
#include "daemon/scoring/device.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/registry.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct fixture {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
};

static int device_open(struct fixture *f, struct hk_device **out, uint64_t memory)
{
  char error[256];
  const struct hk_device_place place = { .of = 1 };
  return hk_device_open(out, &hk_backend_kinds[HK_BACKEND_REFERENCE], &f->config, memory, &place, error, sizeof error);
}

static int setup(void **state)
{
  static struct hk_config_detector detectors[2] = { { .name = "pumps", .match = "pump*" },
                                                    { .name = "rest", .match = "?*x", .number = 1 } };
  struct fixture *f = calloc(1, sizeof *f);
  char error[256];
  struct hk_detector parsed[2];
  if (!f || hk_detector_parse("window=8", &parsed[0], error, sizeof error) != 0 ||
      hk_detector_parse("window=12", &parsed[1], error, sizeof error) != 0)
    return -1;
  detectors[0].detector = parsed[0];
  detectors[1].detector = parsed[1];
  f->config = (struct hk_config){ .detectors = detectors, .n_detectors = 2, .max_sensors = 3000, .threads = 1 };
  *state = f;
  if (device_open(f, &f->device, 0) != 0 || hk_registry_new(&f->registry, &f->config, 1) != 0)
    return -1;
  hk_registry_move(f->registry, 0, &f->device->binding, NULL, NULL);
  return 0;
}

static void evict(struct hk_registry *r, uint32_t slot)
{
  hk_registry_retire(r, slot);
  hk_registry_release(r, slot);
}

static const char *full_of(struct hk_registry *r)
{
  static char why[HK_REGISTRY_FULL_MAX];
  return hk_registry_full(r, why);
}

static const char *full(struct fixture *f)
{
  return full_of(f->registry);
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  hk_registry_free(f->registry);
  hk_device_close(f->device);
  free(f);
  return 0;
}

static int take(struct fixture *f, const char *name, uint32_t *slot)
{
  return hk_registry_take(f->registry, name, strlen(name), slot);
}

static void test_names_and_detectors(void **state)
{
  struct fixture *f = *state;
  uint32_t a, b, again, resolved;
  assert_int_equal(take(f, "pump 1", &a), 0);
  assert_int_equal(take(f, "pump 2", &b), 0);
  assert_int_equal(take(f, "pump 1", &again), 0);
  assert_int_equal(a, again);
  assert_int_not_equal(a, b);
  assert_string_equal(hk_registry_name(f->registry, b).data, "pump 2");
  assert_int_equal(hk_registry_resolve(f->registry, hk_registry_handle(f->registry, b), &resolved), 0);
  assert_int_equal(resolved, b);
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
  uint32_t slot, other, resolved;
  assert_int_equal(hk_registry_resolve(f->registry, 0, &resolved), HK_UNKNOWN);
  assert_int_equal(take(f, "pump", &slot), 0);
  const uint32_t old = hk_registry_handle(f->registry, slot);
  assert_int_equal(hk_registry_resolve(f->registry, HK_NO_HANDLE, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_resolve(f->registry, old + 1, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_resolve(f->registry, old | 1u << 24, &resolved), HK_UNKNOWN);
  evict(f->registry, slot);
  assert_int_equal(hk_registry_resolve(f->registry, old, &resolved), HK_UNKNOWN);
  assert_int_equal(take(f, "pump other", &other), 0);
  assert_int_equal(other, slot); /* the slot is used again, the handle is not */
  assert_int_not_equal(hk_registry_handle(f->registry, other), old);
  assert_int_equal(hk_registry_resolve(f->registry, old, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_count(f->registry), 1);
}

/* A retired sensor is found by nobody, but its slot is its own until it is released. */
static void test_retired(void **state)
{
  struct fixture *f = *state;
  uint32_t slot, other, again, resolved;
  assert_int_equal(take(f, "pump", &slot), 0);
  const uint32_t old = hk_registry_handle(f->registry, slot);
  hk_registry_retire(f->registry, slot);
  assert_int_equal(hk_registry_count(f->registry), 0);
  assert_false(hk_registry_holds(f->registry, slot));
  assert_int_equal(hk_registry_resolve(f->registry, old, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_handles(f->registry)[slot], old); /* what is still published of it has its handle and its name */
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
  /* sensors come and go: tombstones must not pile up, and every name that is there is found */
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

/* Another device takes over what it has room for, the first ones; handles hold, and so does the detector. */
enum { MANY = 1000 };

/* Names of every kind among each other, some twice: as if they had been taken one by one. */
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

/* Thread's time, ns, that it takes to register names: 32 characters, of which the second eight are numbers. */
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

/* Fault matrix row 13. Where two strings of eight differ from the key in the second only, XXH3 multiplies by 0: under a key of
 * nothing but k these names would all meet in one place. Nobody outside knows the key, so they cost what any others do. */
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
  uint32_t slot, resolved, handles[1000];
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
  assert_int_equal(take(f, "pump 7", &slot), 0); /* known names are found all the same */
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
    const bool there = hk_registry_resolve(f->registry, handles[i], &resolved) == 0;
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

/* One owner has so many sensors, whatever others have; who is forgotten makes room. */
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
  assert_int_equal(take_for(f, 1, "pump 9", &slot), 0); /* names that are there are found */
  assert_int_equal(take_for(f, 2, "pump 10", &slot), 0);
  assert_int_equal(take_for(f, 2, "pump 1", &slot), 0); /* and stay whose they were */
  for (uint32_t i = 0; i < 10; i++) {
    char name[16];
    snprintf(name, sizeof name, "pump free %u", i);
    assert_int_equal(take_for(f, 0, name, &slot), 0); /* nobody has no quota */
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

/* At a start sensors get their slots and handles again, in whatever order they are told of. */
static void test_restore(void **state)
{
  struct fixture *f = *state;
  struct hk_registry *r = f->registry;
  uint8_t generation;
  uint32_t slot;
  assert_int_equal(restore(f, 5, 3, "pump 5", "pumps"), 0);
  assert_int_equal(restore(f, 2, 0, "pump 2", "rest"), 0); /* the detector that it had, whatever its name says */
  assert_int_equal(hk_registry_detector(r, 2), 1);
  assert_int_equal(restore(f, 2, 0, "pump 2", "rest"), 0); /* may be told twice */
  assert_int_equal(hk_registry_count(r), 2);
  assert_int_equal(hk_registry_handle(r, 5), 5 | 3u << 24);
  assert_int_equal(restore(f, 0, 0, "foxx", "gone"), 0); /* that detector is gone: the one that it would get now */
  assert_int_equal(hk_registry_detector(r, 0), 1);
  assert_int_equal(restore(f, 1, 0, "dog", "gone"), HANKEL_NO_DETECTOR);
  assert_int_equal(restore(f, 3000, 0, "pump", "pumps"), HANKEL_FULL);
  assert_int_equal(restore(f, 1, 0, "", "pumps"), HANKEL_BAD_NAME);
  assert_int_equal(restore(f, 5, 4, "pump later", "pumps"), 0); /* takes the slot from the one before */
  assert_int_equal(hk_registry_find(r, "pump 5", 6, &slot), HK_UNKNOWN);
  assert_int_equal(restore(f, 7, 0, "pump later", "pumps"), 0); /* the name has gone to another slot */
  assert_false(hk_registry_holds(r, 5));
  assert_true(hk_registry_generation(r, 7, &generation));
  assert_false(hk_registry_generation(r, 5, &generation));
  hk_registry_retire(r, 2); /* and not released: a crash came between */
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

/* A registry of `shards` shards whose first section has two further algorithms. */
static struct hk_registry *accompanied(struct fixture *f, uint32_t shards, uint32_t max_sensors, struct hk_device *devices[])
{
  static struct hk_config_detector detectors[4] = { { .name = "pumps", .match = "pump*" },
                                                    { .name = "pumps#graph", .match = "pump*", .number = 1, .derived = true },
                                                    { .name = "pumps#shift", .match = "pump*", .number = 2, .derived = true },
                                                    { .name = "rest", .match = "?*x", .number = 3 } };
  struct hk_detector parsed[HK_ALGORITHMS];
  struct hk_registry *r;
  char error[256];
  assert_int_equal(hk_detectors_parse("algorithm=ika,graph,shift,window=8", parsed, error, sizeof error), 3);
  for (uint32_t i = 0; i < 4; i++)
    detectors[i].detector = parsed[i % 3];
  f->config = (struct hk_config){ .detectors = detectors, .n_detectors = 4, .max_sensors = max_sensors, .threads = 1 };
  assert_int_equal(hk_registry_new(&r, &f->config, shards), 0);
  for (uint32_t i = 0; i < shards; i++) {
    assert_int_equal(device_open(f, &devices[i], 0), 0);
    hk_registry_move(r, i, &devices[i]->binding, NULL, NULL);
  }
  return r;
}

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

static void test_companions(void **state)
{
  struct fixture *f = *state;
  struct hk_device *devices[3];
  struct hk_registry *r = accompanied(f, 3, 20, devices);
  uint32_t slot, resolved;
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
  assert_int_equal(hk_registry_resolve(r, handle, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_resolve(r, 0xfeffffff, &resolved), HK_UNKNOWN);
  /* one goes alone, and then the sensor is completed again */
  const uint32_t of = taken(r, "pump 3");
  evict(r, slot);
  assert_true(has_companions(r, of, 3, "pump 3", 1, both + 1));
  uint32_t added;
  assert_int_equal(hk_registry_complete(r, of, &added), 0);
  assert_int_equal(added, 1);
  assert_true(has_companions(r, of, 3, "pump 3", 2, both));
  /* all go, and the slots are used again */
  while ((slot = hk_registry_next_companion(r, of)) != of)
    evict(r, slot);
  evict(r, of);
  assert_int_equal(hk_registry_count_derived(r), 10);
  assert_true(has_companions(r, taken(r, "pump new"), 3, "pump new", 2, both));
  hk_registry_free(r);
  for (uint32_t i = 0; i < 3; i++)
    hk_device_close(devices[i]);
}

/* A companion whose name is taken, or too long, is not made; the sensor is. */
static void test_companions_that_cannot_be(void **state)
{
  struct fixture *f = *state;
  struct hk_device *device;
  struct hk_registry *r = accompanied(f, 1, 100, &device);
  char name[HK_NAME_MAX];
  const uint32_t theirs = taken(r, "pump#graph"), mine = taken(r, "pump");
  assert_false(hk_registry_derived(r, theirs));
  assert_true(has_companions(r, theirs, 1, "pump#graph", 2, both));
  assert_true(has_companions(r, mine, 1, "pump", 1, both + 1));
  assert_int_equal(hk_registry_lacking(r), 1);
  memset(name, 'p', sizeof name);
  memcpy(name, "pump", 4);
  uint32_t slot;
  assert_int_equal(hk_registry_take(r, name, sizeof name - 5, &slot), 0);
  assert_int_equal(hk_registry_next_companion(r, slot), slot);
  assert_int_equal(hk_registry_lacking(r), 3);
  hk_registry_free(r);
  hk_device_close(device);
}

/* A machine's series: on its members' shard, once, kept at a start and without companions; nobody else's name. */
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

/* At a start companions come in any order, before and behind their sensor; those with no business any more are retired. */
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

/* A device without room for all of them: none of them is made, and nothing is left behind. */
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
  const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_names_and_detectors, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_handles, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_retired, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_capacity_and_churn, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_names_that_collide_under_a_known_key, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_move, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_quota, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_owners_are_restored, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_restore, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_that_cannot_be, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_are_restored, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_series_of_machines, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_companions_without_room, setup, teardown) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
