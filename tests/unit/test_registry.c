/* The registry with a real backend: slots, handles and their generations, capacity, detectors by glob. */
#include "daemon/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
  struct hk_config config;
  struct hk_backend *backend;
  struct hk_registry *registry;
};

static int setup(void **state)
{
  static struct hk_config_detector detectors[2] = { { .name = "pumps", .match = "pump*" }, { .name = "rest", .match = "?*x" } };
  struct fixture *f = calloc(1, sizeof *f);
  char error[256];
  struct hk_detector parsed[2];
  if (!f || hk_detector_parse("window=8", &parsed[0], error, sizeof error) != 0 ||
      hk_detector_parse("window=12", &parsed[1], error, sizeof error) != 0)
    return -1;
  detectors[0].detector = parsed[0];
  detectors[1].detector = parsed[1];
  f->config = (struct hk_config){ .detectors = detectors, .n_detectors = 2, .max_sensors = 3000 };
  const struct hk_backend_config c = { .detectors = parsed, .n_detectors = 2, .max_sensors = 3000, .threads = 1 };
  *state = f;
  return hk_reference_open(&f->backend, &c, error, sizeof error) != 0 ||
         hk_registry_new(&f->registry, &f->config, f->backend) != 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  hk_registry_free(f->registry);
  f->backend->ops->close(f->backend);
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
  hk_registry_evict(f->registry, slot);
  assert_int_equal(hk_registry_resolve(f->registry, old, &resolved), HK_UNKNOWN);
  assert_int_equal(take(f, "pump other", &other), 0);
  assert_int_equal(other, slot); /* the slot is used again, the handle is not */
  assert_int_not_equal(hk_registry_handle(f->registry, other), old);
  assert_int_equal(hk_registry_resolve(f->registry, old, &resolved), HK_UNKNOWN);
  assert_int_equal(hk_registry_count(f->registry), 1);
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
  assert_int_equal(take(f, "pump 77", &slot), 0);
  /* sensors come and go: tombstones must not pile up, and every name that is there is found */
  for (int i = 0; i < 20000; i++) {
    snprintf(name, sizeof name, "pump %d", i);
    assert_int_equal(take(f, name, &slot), 0);
    hk_registry_evict(f->registry, slot);
    snprintf(name, sizeof name, "pump %d", i + 3000);
    assert_int_equal(take(f, name, &slot), 0);
    assert_string_equal(hk_registry_name(f->registry, slot).data, name);
  }
  assert_int_equal(hk_registry_count(f->registry), 3000);
  assert_int_equal(hk_registry_slots(f->registry), 3000);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_names_and_detectors, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_handles, setup, teardown),
                                      cmocka_unit_test_setup_teardown(test_capacity_and_churn, setup, teardown) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
