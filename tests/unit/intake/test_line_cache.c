/* The cache of series alone, and with the lines that use it: sensors that are evicted and return in other slots, refused names,
 * and more names than it has room for. */
#include "daemon/intake/decode_lines.h"
#include "daemon/intake/line_cache.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/slots.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The marks of the points of a line. */
static uint32_t mark_line(const struct hk_line_cache *s, const char *text, struct hk_line_key *out)
{
  static struct hk_line line = { .unit = 1 };
  hk_line_parse(&line, text, strlen(text));
  assert_null(line.error);
  hk_line_cache_hash(s, &line, out);
  return line.n;
}

static uint32_t find(struct hk_line_cache *s, const char *text)
{
  struct hk_line_key m;
  uint32_t handle;
  assert_int_equal(mark_line(s, text, &m), 1);
  hk_line_cache_find(s, 1, &m, &handle);
  return handle;
}

static void put(struct hk_line_cache *s, const char *text, uint32_t handle)
{
  struct hk_line_key m;
  assert_int_equal(mark_line(s, text, &m), 1);
  hk_line_cache_put(s, &m, handle);
}

static void names_are_told_apart(void **state)
{
  (void)state;
  struct hk_line_cache *s;
  assert_int_equal(hk_line_cache_new(&s), 0);
  assert_int_equal(find(s, "m,t=a f=1"), HK_NO_HANDLE);
  static const char *const lines[] = { "m,t=a f=1", "m,t=a g=1",  "m,t=b f=1", "m f=1", "m value=1",
                                       "f m=1",     "m,t=a ff=1", "m\\ f f=1", "mf f=1" };
  for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    assert_int_equal(find(s, lines[i]), HK_NO_HANDLE);
    put(s, lines[i], i);
  }
  for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++)
    assert_int_equal(find(s, lines[i]), i);
  put(s, "m f=2", 77); /* another handle for the same name */
  assert_int_equal(find(s, "m f=3.5 12"), 77);
  struct hk_line_key three[3];
  uint32_t handle[3];
  assert_int_equal(mark_line(s, "m f=1,n=2,value=3", three), 3);
  hk_line_cache_find(s, 3, three, handle);
  assert_true(handle[0] == 77 && handle[1] == HK_NO_HANDLE && handle[2] == 4);
  hk_line_cache_clear(s);
  assert_int_equal(find(s, "m f=1"), HK_NO_HANDLE);
  hk_line_cache_free(s);
}

/* A peer cannot know which names share a bucket: the same names have other hashes in every cache. */
static void hashes_are_keyed(void **state)
{
  (void)state;
  struct hk_line_cache *a, *b;
  struct hk_line_key x, y;
  assert_int_equal(hk_line_cache_new(&a), 0);
  assert_int_equal(hk_line_cache_new(&b), 0);
  mark_line(a, "m f=1", &x);
  mark_line(b, "m f=1", &y);
  assert_true(x.place != y.place && x.check != y.check);
  hk_line_cache_free(a);
  hk_line_cache_free(b);
}

/* The number of names with which the cache grows, and how many of the latest are used. */
#ifdef HK_SANITIZED
enum { NAMES = 20000, LATE = 10000 };
#else
enum { NAMES = 200000, LATE = 100000 };
#endif

static void put_many(struct hk_line_cache *s, uint32_t first, uint32_t n)
{
  char text[64];
  for (uint32_t i = first; i < first + n; i++) {
    snprintf(text, sizeof text, "pump%u f=1", i);
    put(s, text, i);
  }
}

static void fields_of_one_key_are_told_apart(void **state)
{
  (void)state;
  struct hk_line_cache *s;
  struct hk_line_key mark[1000];
  uint32_t handle[1000], found = 0;
  char text[8192];
  size_t n = (size_t)snprintf(text, sizeof text, "m f=0");
  for (int i = 1; i < 1000; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, ",%x=0", i);
  assert_int_equal(hk_line_cache_new(&s), 0);
  mark_line(s, text, mark);
  for (uint32_t i = 0; i < 1000; i++)
    hk_line_cache_put(s, &mark[i], i);
  hk_line_cache_find(s, 1000, mark, handle);
  for (uint32_t i = 0; i < 1000; i++) {
    assert_true(handle[i] == i || handle[i] == HK_NO_HANDLE);
    found += handle[i] == i;
  }
  assert_in_range(found, 100, 1000); /* names that were added before it grew are forgotten */
  hk_line_cache_free(s);
}

/* The number of names that are found; checks that they are right. */
static uint32_t found_of(struct hk_line_cache *s, uint32_t first, uint32_t n)
{
  char text[64];
  uint32_t found = 0;
  for (uint32_t i = first; i < first + n; i++) {
    snprintf(text, sizeof text, "pump%u f=1", i);
    const uint32_t handle = find(s, text);
    assert_true(handle == i || handle == HK_NO_HANDLE);
    found += handle == i;
  }
  return found;
}

/* Random names: mixed numbers. */
static struct hk_line_key any_mark(uint64_t i)
{
  const uint64_t x = (i + 1) * 0x9e3779b97f4a7c15, y = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return (struct hk_line_key){ y ^ y >> 32, (x ^ y) | 1 };
}

/* As with peers' names: each is looked up, and added if it is not found. Returns the number of those found. */
static uint32_t come_round(struct hk_line_cache *s, uint32_t first, uint32_t behind)
{
  uint32_t found = 0;
  for (uint32_t i = first; i < behind; i++) {
    const struct hk_line_key m = any_mark(i);
    uint32_t handle;
    hk_line_cache_find(s, 1, &m, &handle);
    assert_true(handle == i || handle == HK_NO_HANDLE);
    found += handle == i;
    if (handle != i)
      hk_line_cache_put(s, &m, i);
  }
  return found;
}

/* The marks are always the same ones, because it depends on chance how many of some hundred names share a bucket, and in which
 * round the table grows. */
static void it_grows_with_its_names_and_forgets_few(void **state)
{
  (void)state;
  for (uint32_t n = 100; n <= NAMES; n = n * 5 / 3) {
    struct hk_line_cache *s;
    uint32_t found = 0;
    assert_int_equal(hk_line_cache_new(&s), 0);
    for (int round = 0; round < 20; round++)
      found = come_round(s, 0, n);
    if (found < n * 97ull / 100)
      fail_msg("%u of %u names are found, with room for %llu", found, n, (unsigned long long)hk_line_cache_room(s));
    assert_in_range(hk_line_cache_room(s), n * 3 / 2, 8 * n + 400);
    hk_line_cache_free(s);
  }
}

/* Names of lines, whose keys differ each time, are spread as evenly. There are so many that chance has no influence: in the third
 * round, with room for 163,840, 5 % find no place, and with twice the room 0.3 %. */
static void names_of_lines_spread_as_evenly(void **state)
{
  enum { N = 100000 };
  (void)state;
  struct hk_line_cache *s;
  uint32_t found = 0;
  assert_int_equal(hk_line_cache_new(&s), 0);
  for (int round = 0; round < 8; round++) {
    found = 0;
    for (uint32_t i = 0; i < N; i++) {
      const uint32_t known = found_of(s, i, 1);
      found += known;
      if (!known)
        put_many(s, i, 1);
    }
  }
  assert_in_range(found, N * 99ull / 100, N);
  assert_int_equal(hk_line_cache_room(s), 5u << 16);
  hk_line_cache_free(s);
}

static void it_is_bounded(void **state)
{
  (void)state;
  enum { MANY = 4000000 };
  struct hk_line_cache *s;
  struct hk_line_key m;
  uint32_t found = 0;
  assert_int_equal(hk_line_cache_new(&s), 0);
  for (uint32_t i = 0; i < MANY; i++) {
    m = any_mark(i);
    hk_line_cache_put(s, &m, i);
  }
  assert_int_equal(hk_line_cache_room(s), 5u << 19);
  for (int round = 0; round < 20; round++) /* names in use take the places of unused ones: all of them by the 15th */
    found = come_round(s, MANY - LATE, MANY);
  assert_in_range(found, LATE * 95 / 100, LATE);
  hk_line_cache_free(s);
}

/* --- with lines --- */

struct fixture {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_log log;
  struct hk_log_quota quota;
  struct hk_counters counters;
  struct hk_lane lane;
  struct hk_wake nobody;
  struct hk_chunk_pool pool;
  struct hk_intake intake;
  struct hk_lines *lines;
  struct hk_source *source;
};

static int setup(void **state)
{
  static struct hk_config_detector detector = { .name = "all", .match = "p*" };
  struct fixture *f = aligned_alloc(_Alignof(struct fixture), sizeof *f);
  char error[256];
  if (f)
    memset(f, 0, sizeof *f);
  if (!f || hk_detector_parse("window=8", &detector.detector, error, sizeof error) != 0)
    return -1;
  f->config = (struct hk_config){ .detectors = &detector, .n_detectors = 1, .max_sensors = 3, .threads = 1 };
  hk_log_init(&f->log, HK_LOG_ERROR);
  f->intake = (struct hk_intake){ .counters = &f->counters, .log = &f->log, .wall = 1 };
  *state = f;
  const struct hk_device_place place = { .of = 1 };
  f->lane.loop = f->lane.shard = &f->nobody;
  f->source = hk_source_new();
  if (hk_device_open(&f->device, &hk_backend_kinds[HK_BACKEND_REFERENCE], &f->config, 0, &place, error, sizeof error) != 0 ||
      hk_registry_new(&f->registry, &f->config, 1) != 0 || hk_lane_open(&f->lane, hk_chunk_pool_chunks(10000, 1)) != 0 ||
      hk_chunk_pool_open(&f->pool, &f->lane, 1, 1, 0, 10000) != 0 || !f->source)
    return -1;
  hk_registry_move(f->registry, 0, &f->device->binding, NULL, NULL);
  f->intake.registry = f->registry;
  f->intake.pool = &f->pool;
  return hk_lines_new(&f->lines, &f->intake, 3600000000000);
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  hk_lines_free(f->lines);
  hk_source_close(f->source);
  hk_chunk_pool_close(&f->pool);
  hk_lane_close(&f->lane);
  hk_registry_free(f->registry);
  hk_device_close(f->device);
  free(f);
  return 0;
}

/* Reads lines, that come in pieces. */
static void read_lines(struct fixture *f, const char *text, size_t piece)
{
  const struct hk_lines_from from = { .peer = "test", .quota = &f->quota, .unit = 1, .source = f->source };
  struct hk_splitter splitter = { .max_line = 1024 };
  for (size_t at = 0; at < strlen(text); at += piece) {
    const size_t n = piece < strlen(text) - at ? piece : strlen(text) - at;
    char *data = malloc(n + 1 + HK_LINE_BEHIND);
    size_t used = 0;
    memcpy(data, text + at, n);
    memset(data + n, 0, 1 + HK_LINE_BEHIND);
    while (hk_lines_read(f->lines, &from, &splitter, data, n, &used))
      ;
    hk_lines_flush(f->lines, f->source);
    free(data);
  }
  hk_lines_end(f->lines, &from, &splitter);
  hk_splitter_free(&splitter);
}

static void evict(struct hk_registry *r, uint32_t slot)
{
  hk_registry_retire(r, slot);
  hk_registry_release(r, slot);
}

static uint32_t slot_of(struct fixture *f, const char *name)
{
  uint32_t slot;
  return hk_registry_find(f->registry, name, strlen(name), &slot) == 0 ? slot : UINT32_MAX;
}

/* The points that were handed over since the last call, in order: "slot=value@time ...". */
static const char *handed_over(struct fixture *f)
{
  static char out[8192];
  size_t n = 0;
  struct hk_chunk *c = f->pool.filling.chunk[0];
  out[0] = 0;
  for (uint32_t i = 0; i < c->n; i++)
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%u=%g@%lld", i ? " " : "", c->slot[i], c->value[i], (long long)c->time[i]);
  hk_source_done(f->source, c->n);
  hk_chunk_clear(c);
  return out;
}

static void points_arrive_in_order_however_lines_are_cut(void **state)
{
  struct fixture *f = *state;
  static const char lines[] = "p,t=a f=1,g=2 1\np,t=b f=3 2\nbad\n\np,t=a g=4,s=\"x\",f=5 3\np,t=a f=-6\np,t=b f=7";
  static const char expected[] = "0=1@1 1=2@1 2=3@2 1=4@3 0=5@3 0=-6@%lld 2=7@%lld";
  char text[256];
  for (size_t piece = sizeof lines; piece > 0; piece--) {
    const long long wall = (long long)f->intake.wall + 1; /* the blank line has a time, too */
    read_lines(f, lines, piece);
    snprintf(text, sizeof text, expected, wall, wall + 1);
    assert_string_equal(handed_over(f), text);
    for (uint32_t slot = 3; slot-- > 0;) /* so that names are needed again */
      evict(f->registry, slot);
  }
  assert_int_equal(f->counters.lines, 6 * sizeof lines);
  assert_int_equal(f->counters.bad_lines, sizeof lines);
  assert_int_equal(f->counters.strings, sizeof lines);
  assert_int_equal(f->counters.in, 7 * sizeof lines);
}

static void a_sensor_that_was_evicted_is_a_new_one(void **state)
{
  struct fixture *f = *state;
  read_lines(f, "p1 value=1 1\n", 64);
  assert_int_equal(slot_of(f, "p1"), 0);
  evict(f->registry, 0);
  read_lines(f, "p2 value=2 2\n", 64); /* in its slot */
  assert_int_equal(slot_of(f, "p2"), 0);
  read_lines(f, "p1 value=3 3\np2 value=4 4\np1 value=5 5\n", 64);
  assert_int_equal(slot_of(f, "p1"), 1);
  assert_string_equal(handed_over(f), "0=1@1 0=2@2 1=3@3 0=4@4 1=5@5");
  evict(f->registry, 0);
  evict(f->registry, 1);
  read_lines(f, "p2 value=6 6\np1 value=7 7\n", 64); /* each in the other's slot */
  assert_string_equal(handed_over(f), "1=6@6 0=7@7");
}

/* After 256 sensors in its slot a handle is valid again. The cache must have forgotten the series by then. */
static void a_handle_that_comes_round_again_does_not_mislead(void **state)
{
  struct fixture *f = *state;
  char text[64];
  hk_lines_free(f->lines);
  assert_int_equal(hk_lines_new(&f->lines, &f->intake, 1), 0); /* after a nanosecond of silence they are evicted */
  read_lines(f, "p_first value=1 1\n", 64);
  for (int i = 0; i < 255; i++) {
    evict(f->registry, 0);
    snprintf(text, sizeof text, "p%d value=2 2\n", i % 9);
    read_lines(f, text, 64);
  }
  evict(f->registry, 0);
  read_lines(f, "p_last value=3 3\n", 64);
  assert_int_equal(slot_of(f, "p_last"), 0);
  read_lines(f, "p_first value=4 4\n", 64);
  assert_int_equal(slot_of(f, "p_first"), 1);
}

static void refused_names_leave_no_points(void **state)
{
  struct fixture *f = *state;
  read_lines(
      f, "p1 value=1 1\nx value=1 1\np2 value=2 2\np3 value=3 3\np4 value=4 4\np1 value=5 5\nx f=1,value=2\np4 value=6 6\n", 512);
  assert_string_equal(handed_over(f), "0=1@1 1=2@2 2=3@3 0=5@5");
  assert_int_equal(f->counters.in, 9);
  assert_int_equal(f->counters.no_detector, 3);
  assert_int_equal(f->counters.full, 2);
  evict(f->registry, 1);
  read_lines(f, "p4 value=7 7\n", 512); /* there is room now */
  assert_string_equal(handed_over(f), "1=7@7");
}

static void more_fields_than_are_gathered(void **state)
{
  struct fixture *f = *state;
  char text[8192];
  size_t n = (size_t)snprintf(text, sizeof text, "p1 value=0 1\np1 value=0");
  for (int i = 1; i < 300; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, ",value=%d", i);
  (void)snprintf(text + n, sizeof text - n, " 2\np1 value=300 3\n");
  struct hk_splitter splitter = { .max_line = sizeof text };
  const struct hk_lines_from from = { .peer = "test", .quota = &f->quota, .unit = 1, .source = f->source };
  char *data = calloc(1, sizeof text + 1 + HK_LINE_BEHIND);
  size_t used = 0;
  memcpy(data, text, strlen(text));
  assert_true(hk_lines_read(f->lines, &from, &splitter, data, strlen(text), &used)); /* two lines, then it is enough */
  assert_int_equal(f->counters.in, 301);
  assert_false(hk_lines_read(f->lines, &from, &splitter, data, strlen(text), &used));
  hk_lines_flush(f->lines, f->source);
  assert_int_equal(f->counters.in, 302);
  assert_int_equal(hk_source_pending(f->source), 302);
  free(data);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_told_apart),
    cmocka_unit_test(hashes_are_keyed),
    cmocka_unit_test(it_grows_with_its_names_and_forgets_few),
    cmocka_unit_test(names_of_lines_spread_as_evenly),
    cmocka_unit_test(fields_of_one_key_are_told_apart),
    cmocka_unit_test(it_is_bounded),
    cmocka_unit_test_setup_teardown(points_arrive_in_order_however_lines_are_cut, setup, teardown),
    cmocka_unit_test_setup_teardown(a_sensor_that_was_evicted_is_a_new_one, setup, teardown),
    cmocka_unit_test_setup_teardown(a_handle_that_comes_round_again_does_not_mislead, setup, teardown),
    cmocka_unit_test_setup_teardown(refused_names_leave_no_points, setup, teardown),
    cmocka_unit_test_setup_teardown(more_fields_than_are_gathered, setup, teardown),
  };
  return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
