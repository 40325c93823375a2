/* A registry with a real backend, for its tests. */
#ifndef HK_TESTS_REGISTRY_H
#define HK_TESTS_REGISTRY_H

#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/registry.h"
#include "daemon/sensors/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
};

static inline int device_open(struct fixture *f, struct hk_device **out, uint64_t memory)
{
  char error[256];
  const struct hk_device_place place = { .of = 1 };
  return hk_device_open(out, &hk_backend_kinds[HK_BACKEND_REFERENCE], &f->config, memory, &place, error, sizeof error);
}

static inline int setup(void **state)
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

/* Whether peers may feed the sensor of a handle. */
static inline bool feedable(const struct hk_registry *r, uint32_t handle)
{
  const struct hk_handles handles = hk_registry_lookup(r);
  return hk_handle_good(&handles, handle);
}

static inline void evict(struct hk_registry *r, uint32_t slot)
{
  hk_registry_retire(r, slot);
  hk_registry_release(r, slot);
}

static inline const char *full_of(struct hk_registry *r)
{
  static char why[HK_REGISTRY_FULL_MAX];
  return hk_registry_full(r, why);
}

static inline const char *full(struct fixture *f)
{
  return full_of(f->registry);
}

static inline int teardown(void **state)
{
  struct fixture *f = *state;
  hk_registry_free(f->registry);
  hk_device_close(f->device);
  free(f);
  return 0;
}

static inline int take(struct fixture *f, const char *name, uint32_t *slot)
{
  return hk_registry_take(f->registry, name, strlen(name), slot);
}

/* A registry of `shards` shards whose first section has two further algorithms. */
static inline struct hk_registry *accompanied(struct fixture *f, uint32_t shards, uint32_t max_sensors,
                                              struct hk_device *devices[])
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

#endif
