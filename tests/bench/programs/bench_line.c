/* Measures the speed of the line protocol on one core, from the bytes of a read to staged points: lines a second, and their
 * ratio to a bare search for the ends of lines and to copying the bytes, in the same run.
 *
 *   bench_line [SHAPE [SERIES]]     all shapes, or one; SERIES instead of 1,000, 100,000 and 1 M series
 *   bench_line count SHAPE SERIES   the whole road once, for a tool that counts instructions
 *
 * Bytes are first copied to where a read would put them, in pieces as large as a loop's buffer; this is not timed, nor
 * is anything after staging. Prints the best processor time of several rounds. */
#include "daemon/intake/decode_lines.h"
#include "daemon/intake/line_cache.h"
#include "daemon/net/loop.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/slots.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"
#include "tests/bench/programs/bench.h"
#include "tests/unit/support/line_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, BACKLOG = 1 << 20, TURN = BACKLOG / 2, SAMPLE = 200000 };

/* --- lines --- */

struct shape {
  const char *name;
  int (*write)(char *out, size_t size, uint32_t series, uint32_t tick);
  uint32_t points; /* in a line */
};

static double number(uint32_t series, uint32_t tick)
{
  return 1000 + (double)((series * 7919ull + tick * 104729ull) % 900000) / 100;
}

static int write_short(char *out, size_t size, uint32_t series, uint32_t tick)
{
  return snprintf(out, size, "sensor%06u,s=a v=%.2f 17%017llu\n", series, number(series, tick), 1000000000ull * tick);
}

static int write_untimed(char *out, size_t size, uint32_t series, uint32_t tick)
{
  return snprintf(out, size, "sensor%06u,s=a v=%.2f\n", series, number(series, tick));
}

static int write_digits(char *out, size_t size, uint32_t series, uint32_t tick)
{
  return snprintf(out, size, "sensor%06u,s=a v=%.17g 17%017llu\n", series, number(series, tick) / 7, 1000000000ull * tick);
}

static int write_agent(char *out, size_t size, uint32_t series, uint32_t tick)
{
  const double x = number(series, tick) / 100;
  return snprintf(out, size,
                  "cpu,cpu=cpu%u,host=db-%u.example.org,rack=r12,region=eu-west,role=primary "
                  "usage_guest=0,usage_idle=%.12g,usage_iowait=%.3f,usage_irq=0,usage_nice=0,usage_softirq=%.4f,"
                  "usage_system=%.8g,ticks=%ui 17%017llu\n",
                  series % 32, series / 32, 100 - x, x / 10, x / 7, x / 3, series + tick, 1000000000ull * tick);
}

static int write_escapes(char *out, size_t size, uint32_t series, uint32_t tick)
{
  return snprintf(out, size, "disk,host=srv%u,path=C:\\\\Program\\ Files\\,\\ old,fs=ntfs free\\ space=%.2f,used=%ui 17%017llu\n",
                  series, number(series, tick), series + tick, 1000000000ull * tick);
}

static int write_strings(char *out, size_t size, uint32_t series, uint32_t tick)
{
  return snprintf(out, size, "system,host=srv%u load1=%.2f,uptime_format=\"12 days, 5:%02u\",n_users=%ui,up=true 17%017llu\n",
                  series, number(series, tick) / 1000, tick % 60, tick, 1000000000ull * tick);
}

static const struct shape shapes[] = {
  { "short", write_short, 1 },     /* 47 bytes */
  { "untimed", write_untimed, 1 }, /* no time */
  { "digits", write_digits, 1 },   /* 17 digits */
  { "agent", write_agent, 8 },     /* 5 tags, 8 fields */
  { "escapes", write_escapes, 2 }, /* in names */
  { "strings", write_strings, 3 }, /* a string, an integer and a boolean besides a number */
};

/* --- the way of the points --- */

struct road {
  struct hk_config config;
  struct hk_config_detector detector;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_lane lane;
  struct hk_wake nobody;
  struct hk_chunk_pool pool;
  struct hk_counters counters;
  struct hk_log log;
  struct hk_log_quota quota;
  struct hk_intake intake;
  struct hk_lines *lines;
  struct hk_source *source;
};

static void road_open(struct road *r, uint32_t sensors)
{
  char error[256];
  *r = (struct road){ .detector = { .name = "all", .match = "*" } };
  require(hk_detector_parse("window=8", &r->detector.detector, error, sizeof error) == 0, "no detector");
  r->config = (struct hk_config){ .detectors = &r->detector, .n_detectors = 1, .max_sensors = sensors, .threads = 1 };
  hk_log_init(&r->log, HK_LOG_ERROR);
  const struct hk_device_place place = { .of = 1 };
  require(hk_device_open(&r->device, &hk_backend_kinds[HK_BACKEND_CPU], &r->config, 0, &place, error, sizeof error) == 0, error);
  r->lane.loop = r->lane.shard = &r->nobody;
  r->source = hk_source_new();
  require(r->source && hk_registry_new(&r->registry, &r->config, 1) == 0 &&
              hk_lane_open(&r->lane, hk_chunk_pool_chunks(BACKLOG, 1)) == 0 &&
              hk_chunk_pool_open(&r->pool, &r->lane, 1, 1, 0, BACKLOG) == 0,
          "no memory");
  hk_registry_move(r->registry, 0, &r->device->binding, NULL, NULL);
  r->intake =
      (struct hk_intake){ .registry = r->registry, .pool = &r->pool, .counters = &r->counters, .log = &r->log, .wall = 1 };
  require(hk_lines_new(&r->lines, &r->intake, 0) == 0, "no memory");
}

static void road_close(struct road *r)
{
  hk_lines_free(r->lines);
  hk_source_close(r->source);
  hk_chunk_pool_close(&r->pool);
  hk_lane_close(&r->lane);
  hk_registry_free(r->registry);
  hk_device_close(r->device);
}

static void road_empty(struct road *r)
{
  struct hk_chunk *c;
  (void)hk_chunk_pool_seal(&r->pool);
  while ((c = hk_ring_take(&r->lane.sealed)) != NULL) {
    hk_source_done(r->source, c->n);
    hk_chunk_clear(c);
    (void)hk_ring_put(&r->lane.emptied, c);
  }
}

/* --- steps: each takes the n bytes at data, which may continue in the next piece --- */

struct run {
  struct road road;
  struct hk_splitter splitter;
  struct hk_line line;
  struct hk_line_cache *cache;
  uint64_t sum; /* so that nothing is left out */
};

static void step_copy(struct run *run, char *data, size_t n)
{
  static char to[HK_LOOP_BUFFER];
  memcpy(to, data, n);
  run->sum += (uint8_t)to[n / 2];
}

static void step_ends(struct run *run, char *data, size_t n)
{
  for (const char *p = data, *end = data + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
    run->sum++;
}

static void step_plain(struct run *run, char *data, size_t n)
{
  const char *line;
  size_t used = 0, length;
  while (hk_splitter_next(&run->splitter, data, n, &used, &line, &length) == HK_LINE_WHOLE) {
    hk_line_parse(&run->line, line, length);
    run->sum += run->line.n + (uint64_t)run->line.time;
  }
}

static void step_parse(struct run *run, char *data, size_t n)
{
  size_t used = 0;
  while (hk_splitter_parse(&run->splitter, &run->line, data, n, &used) == HK_LINE_WHOLE)
    run->sum += run->line.n + (uint64_t)run->line.time;
}

static void step_hash(struct run *run, char *data, size_t n)
{
  static struct hk_line_key name[HK_LINE_FIELDS];
  size_t used = 0;
  while (hk_splitter_parse(&run->splitter, &run->line, data, n, &used) == HK_LINE_WHOLE) {
    hk_line_cache_hash(run->cache, &run->line, name);
    run->sum += name[0].check + (uint64_t)run->line.time;
  }
}

/* Puts the names together and looks them up in the registry, without the cache. */
static void step_names(struct run *run, char *data, size_t n)
{
  char buffer[HK_NAME_MAX];
  uint32_t length, slot;
  size_t used = 0;
  while (hk_splitter_parse(&run->splitter, &run->line, data, n, &used) == HK_LINE_WHOLE) {
    for (uint32_t i = 0; i < run->line.n; i++) {
      const char *name = line_name(&run->line, i, buffer, &length);
      require(hk_intake_find(&run->road.intake, 0, name, length, &slot) == 0, "a name is refused");
      hk_intake_slots(&run->road.intake, run->road.source, 1,
                      &(struct hk_columns){ &slot, &run->line.time, &run->line.points[i].value });
    }
  }
}

static void step_whole(struct run *run, char *data, size_t n)
{
  const struct hk_lines_from from = { .peer = "bench", .quota = &run->road.quota, .unit = 1, .source = run->road.source };
  size_t used = 0;
  while (hk_lines_read(run->road.lines, &from, &run->splitter, data, n, &used))
    ;
  hk_lines_flush(run->road.lines, run->road.source);
}

static const struct step {
  const char *name;
  void (*take)(struct run *run, char *data, size_t n);
} steps[] = {
  { "bytes copied", step_copy },
  { "ends of lines (memchr)", step_ends },
  { "parsed, plain reader", step_plain },
  { "parsed", step_parse },
  { "parsed, names hashed", step_hash },
  { "parsed, looked up by name, staged", step_names },
  { "the whole way: parsed, cached, staged", step_whole },
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Seconds for all of the text. */
static double take_all(struct run *run, const struct step *step, const char *text, size_t size, char *buffer)
{
  double took = 0;
  size_t since = 0;
  for (size_t at = 0; at < size; at += HK_LOOP_BUFFER) {
    const size_t n = size - at < HK_LOOP_BUFFER ? size - at : HK_LOOP_BUFFER;
    memcpy(buffer, text + at, n);
    const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    step->take(run, buffer, n);
    took += seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    since += n;
    if (since > TURN) { /* at least 2 bytes a point */
      road_empty(&run->road);
      since = 0;
    }
  }
  return took;
}

/* `count`: only the last step, once. */
static void bench(const struct shape *shape, uint32_t series, bool count)
{
  /* as many ticks as make a sample; series by turns, as an agent sends them */
  const uint32_t ticks = series < SAMPLE ? SAMPLE / series : 1;
  const size_t lines = (size_t)ticks * series, most = lines * 400;
  char *text = malloc(most), *buffer = calloc(1, HK_LOOP_BUFFER + 1 + HK_LINE_BEHIND);
  struct run *run = calloc(1, sizeof *run);
  require(text && buffer && run, "no memory");
  size_t size = 0;
  for (uint32_t tick = 0; tick < ticks; tick++)
    for (uint32_t i = 0; i < series; i++)
      size += (size_t)shape->write(text + size, most - size, i, tick);
  road_open(&run->road, series * shape->points);
  run->splitter.max_line = HK_LINE_MAX;
  run->line.unit = 1;
  require(hk_line_cache_new(&run->cache) == 0, "no memory");
  const struct step *whole = &steps[STEPS - 1];
  for (int i = 0; i < 3; i++) /* registers all, and fills the cache */
    (void)take_all(run, whole, text, size, buffer);
  require(hk_registry_count(run->road.registry) == series * shape->points && run->road.counters.bad_lines == 0,
          "sensors are missing");
  double best[STEPS];
  for (int k = 0; k < STEPS; k++)
    best[k] = 1e9;
  for (int round = 0; round < (count ? 0 : ROUNDS); round++) {
    for (int k = 0; k < STEPS; k++) {
      const double took = take_all(run, &steps[k], text, size, buffer);
      best[k] = took < best[k] ? took : best[k];
    }
  }
  if (!count) {
    printf("%s, %u series: %.0f bytes and %u point%s a line\n", shape->name, series, (double)size / (double)lines, shape->points,
           shape->points == 1 ? "" : "s");
    printf("  %-38s %10s %12s %12s\n", "", "M lines/s", "of memchr", "of memcpy");
    for (int k = 0; k < STEPS; k++)
      printf("  %-38s %10.2f %12.3f %12.4f\n", steps[k].name, 1e-6 * (double)lines / best[k], best[1] / best[k],
             best[0] / best[k]);
    printf("  (sum %llu)\n", (unsigned long long)run->sum);
  } else {
    printf("%zu lines\n", lines);
  }
  fflush(stdout);
  hk_line_cache_free(run->cache);
  hk_splitter_free(&run->splitter);
  road_close(&run->road);
  free(run);
  free(buffer);
  free(text);
}

int main(int argc, char **argv)
{
  static const uint32_t many[] = { 1000, 100000, 1000000 };
  const bool count = argc > 1 && strcmp(argv[1], "count") == 0;
  const char *name = argc > 1 + count ? argv[1 + count] : NULL;
  const uint32_t series = argc > 2 + count ? (uint32_t)atoi(argv[2 + count]) : 0;
  bool known = !name;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (name && strcmp(name, shapes[i].name) != 0)
      continue;
    known = true;
    for (size_t k = 0; k < sizeof many / sizeof *many && series == 0; k++) {
      if (k < 2 || shapes[i].points == 1)
        bench(&shapes[i], many[k], count);
    }
    if (series > 0)
      bench(&shapes[i], series, count);
  }
  require(known, "no such shape: short, untimed, digits, agent, escapes, strings");
  return 0;
}
