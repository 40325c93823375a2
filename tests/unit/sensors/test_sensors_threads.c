/* What threads share of sensors: the registry, the memory of alerts, and maintenance windows. */
#include "daemon/sensors/alert_memory.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/detector_rules.h"
#include "daemon/sensors/maintenance.h"
#include "tests/unit/support/registry.h"
#include "tests/unit/support/together.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 400, NAMES = 24, ROOM = 16, SENSORS = 8 };

/* --- the registry: one shard's sensors come, get companions and go, and some find no room ------------------------------------
 */

struct shared {
  struct fixture *f;
  struct hk_registry *r;
  struct hk_sections *sections;
};

static size_t print_name(char out[16], uint32_t round)
{
  return (size_t)snprintf(out, 16, "pump %u", round % NAMES);
}

static void loop_takes(void *arg, uint32_t round)
{
  struct shared *s = arg;
  char name[16];
  uint32_t slot[2], refusals[2];
  const struct hk_string names[2] = { { name, (uint32_t)print_name(name, round) }, hk_string("fox") };
  (void)hk_registry_take(s->r, name, names[0].length, slot);
  hk_registry_take_all(s->r, 7, 2, names, slot, refusals);
}

/* A sensor of the shard, made if there is room. */
static bool shard_has(struct hk_registry *r, uint32_t round, uint32_t *slot)
{
  char name[16];
  return hk_registry_take(r, name, print_name(name, round), slot) == 0;
}

static void shard_changes(void *arg, uint32_t round)
{
  struct shared *s = arg;
  struct hk_detector detectors[HK_DETECTORS_MAX];
  uint32_t slot, added, ring[HK_ALGORITHMS], n = 0;
  (void)hk_registry_detectors(s->r, detectors);
  if (!(round % 4 == 0 ? hk_registry_series(s->r, 0, "press#3", 7, 1, &slot) == 0 : shard_has(s->r, round, &slot)))
    return;
  if (round % 4 == 1)
    (void)hk_registry_complete(s->r, slot, &added);
  ring[n++] = slot;
  for (uint32_t next = slot; n < HK_ALGORITHMS && (next = hk_registry_next_companion(s->r, next)) != slot;)
    ring[n++] = next;
  for (uint32_t i = 0; i < n; i++)
    hk_registry_retire(s->r, ring[i]);
  sched_yield(); /* others see them retired */
  for (uint32_t i = 0; i < n; i++)
    hk_registry_release(s->r, ring[i]);
}

static void publisher_reads(void *arg, uint32_t round)
{
  struct shared *s = arg;
  char name[16], full[HK_REGISTRY_FULL_MAX];
  uint32_t slot;
  hk_registry_read(s->r);
  if (hk_registry_find(s->r, name, print_name(name, round), &slot) == 0)
    (void)hk_registry_is(s->r, slot, name, strlen(name));
  hk_registry_read_end(s->r);
  (void)hk_registry_full(s->r, full);
}

static void main_reloads(void *arg, uint32_t round)
{
  struct shared *s = arg;
  if (round % 2 == 0)
    hk_registry_adopt(s->r, &s->f->config, s->sections);
  else
    (void)hk_registry_define(s->r, 9, &s->f->config.detectors[round % 4 / 2]);
}

static void sensors_come_and_go(void **state)
{
  struct shared s = { .f = *state };
  struct hk_device *device;
  s.r = accompanied(s.f, 1, ROOM, &device);
  assert_int_equal(hk_sections_new(&s.sections, &s.f->config), 0);
  together(&s, ROUNDS, 4, (together_step *const[]){ loop_takes, shard_changes, publisher_reads, main_reloads });
  hk_registry_free(s.r);
  hk_sections_release(s.sections);
  hk_device_close(device);
}

/* At a start the main thread restores sensors, while shards score the points of journals. */
static void main_restores(void *arg, uint32_t round)
{
  struct shared *s = arg;
  char name[16];
  const size_t length = print_name(name, round / 3);
  const uint32_t slot = round / 3 % (ROOM + 1); /* one is beyond the room */
  if (round % 3 == 0)
    (void)hk_registry_restore(s->r, slot, 1, (struct hk_string){ name, (uint32_t)length }, hk_string("pumps"));
  else if (round % 3 == 1)
    hk_registry_restore_owner(s->r, slot, 1, 7);
  else
    hk_registry_restored(s->r);
}

static void shard_makes_series(void *arg, uint32_t round)
{
  struct shared *s = arg;
  char name[16];
  uint32_t slot;
  snprintf(name, sizeof name, "press#%u", round % NAMES);
  (void)hk_registry_series(s->r, 0, name, strlen(name), 1, &slot);
}

static void sensors_are_restored(void **state)
{
  struct shared s = { .f = *state };
  struct hk_device *device;
  s.r = accompanied(s.f, 1, ROOM, &device);
  together(&s, ROUNDS, 3, (together_step *const[]){ main_restores, shard_makes_series, publisher_reads });
  hk_registry_free(s.r);
  hk_device_close(device);
}

/* --- alerts: the shard changes them, others show them
 * --------------------------------------------------------------------------- */

static void shard_alerts(void *arg, uint32_t round)
{
  const uint32_t slot = round % SENSORS;
  const struct hk_alerts_memory memory = { .number = round, .stands = true, .standing.event.number = round };
  struct hk_event e = { .slot = slot, .number = round + 1, .kind = HK_EVENT_RAISED, .channel = HK_CHANNEL_SCORE, .time = round };
  char before[HK_WHO_MAX + 1];
  switch (round / SENSORS % 6) { /* one change at a time: what the next one does must not order what this one did */
  case 0:
    (void)hk_alerts_note(arg, &e);
    break;
  case 1:
    e.kind = HK_EVENT_CORRECTED;
    (void)hk_alerts_note(arg, &e);
    break;
  case 2:
    hk_alerts_silent(arg, slot, round + 1);
    break;
  case 3:
    (void)hk_alerts_acknowledge(arg, slot, 0, hk_string("somebody"), 1, &e, before);
    break;
  case 4:
    hk_alerts_forget(arg, slot);
    break;
  default:
    (void)hk_alerts_set(arg, slot, &memory);
  }
}

static void other_shows(void *arg, uint32_t round)
{
  struct hk_standing out[SENSORS];
  struct hk_standing_key keys[SENSORS];
  struct hk_alerts_sum sum;
  (void)hk_alerts_show(arg, out, SENSORS, &sum);
  (void)hk_alerts_keys(arg, keys, SENSORS);
  (void)hk_alerts_copy(arg, round % SENSORS, out);
  (void)hk_alerts_changed(arg, round % SENSORS);
}

static void alerts_are_shown(void **state)
{
  struct hk_alerts *a;
  (void)state;
  assert_int_equal(hk_alerts_new(&a, SENSORS), 0);
  together(a, 40 * ROUNDS, 2, (together_step *const[]){ shard_alerts, other_shows });
  hk_alerts_free(a);
}

/* --- maintenance windows
 * ---------------------------------------------------------------------------------------------------------- */

struct windows {
  struct hk_maintenance *m;
  struct hk_config config;
  struct hk_log log;
};

static void client_asks(void *arg, uint32_t round)
{
  struct windows *w = arg;
  char glob[16];
  snprintf(glob, sizeof glob, "a%u*", round % 4);
  if (round / 4 % 3 == 0)
    (void)hk_maintenance_begin(w->m, hk_string(glob), 1, 1000, hk_string("somebody"));
  else if (round / 4 % 3 == 1)
    (void)hk_maintenance_end(w->m, hk_string(glob), 10);
  else if (round % 4 == 0)
    (void)hk_maintenance_save(w->m);
}

static void others_ask(void *arg, uint32_t round)
{
  struct windows *w = arg;
  struct hk_buffer out = { 0 };
  (void)hk_maintenance_covers(w->m, hk_string("a1 pump"), round);
  hk_maintenance_show(w->m, round % 20, &out);
  hk_buffer_free(&out);
  if (round % 16 == 0)
    hk_maintenance_mend(w->m, &w->log);
}

static void main_adopts(void *arg, uint32_t round)
{
  struct windows *w = arg;
  if (round % 16 == 0)
    (void)hk_maintenance_adopt(w->m, &w->config);
}

static void windows_open_and_end(void **state)
{
  static const struct hk_disk disk = { 0 };
  char path[] = "/dev/shm/hankel-windows-XXXXXX", command[64], error[256];
  struct hk_maintenance_rule rule = { .name = "one" };
  struct windows w = { .config = { .maintenance = &rule, .n_maintenance = 1 } };
  int folder;
  (void)state;
  assert_int_equal(hk_maintenance_key(&rule, "match", "b*", error, sizeof error), 0);
  assert_int_equal(hk_maintenance_key(&rule, "daily", "22:00-04:30", error, sizeof error), 0);
  assert_int_equal(hk_maintenance_finish(&rule, error, sizeof error), 0);
  hk_log_init(&w.log, HK_LOG_ERROR);
  assert_non_null(mkdtemp(path));
  assert_int_equal(hk_disk_folder(&disk, AT_FDCWD, path, &folder), 0);
  assert_int_equal(hk_maintenance_new(&w.m, &w.config), 0);
  hk_maintenance_open(w.m, &disk, folder, &w.log);
  together(&w, ROUNDS, 4, (together_step *const[]){ client_asks, client_asks, others_ask, main_adopts });
  hk_maintenance_free(w.m);
  close(folder);
  snprintf(command, sizeof command, "rm -r %s", path);
  assert_int_equal(system(command), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(sensors_come_and_go, setup, teardown),
    cmocka_unit_test_setup_teardown(sensors_are_restored, setup, teardown),
    cmocka_unit_test(alerts_are_shown),
    cmocka_unit_test(windows_open_and_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
