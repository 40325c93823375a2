/* hankel bench: measures how fast a backend scores. Points go through submit and reap like the daemon's: ticks of one new point
 * for every sensor, cut into batches, several in flight; load.h says what is timed.
 *
 * First it fills the windows and scores a few ticks, untimed. Then it times several repeats of whole ticks, on the CPU backend
 * by turns with the peak of the cores; medians count. Last, it times single ticks from submit to reap. */
#include "cpu/monotonic.h"
#include "cpu/sst/kernels.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/bench_plan.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/format.h"
#include "daemon/cli/load.h"
#include "daemon/cli/machine_peak.h"
#include "daemon/cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS 5
#define LATENCIES 4096 /* kept, at most */
#define SENSORS_MAX 100000000
#define HELPED -1

static const char bench_help[] =
    "usage: hankel bench [OPTION...]\n\n"
    "Measures how fast a backend scores on this machine: whole ticks of one new point for every sensor.\n\n"
    "  -c, --config FILE  measure the detectors of a daemon's configuration, every algorithm of each\n"
    "  --backend NAME     auto (default), cpu, cuda or reference\n"
    "  --algorithm NAME   ika (default), svd, graph, shift or novelty\n"
    "  --window W         window (default 96; graph: found from the data)\n"
    "  --detector KEYS    other parameters, such as rank=3,krylov=10\n"
    "  --sensors N        default 4096 (cuda 262144, reference 64), a sixteenth for svd\n"
    "  --batch N          most points of a batch (default 1048576)\n"
    "  --points N         points of each sensor in a batch, as far as it has room (default 1)\n"
    "  --threads N        worker threads of the CPU backend (default one for each core)\n"
    "  --seconds S        how long to measure (default 3)\n"
    "  --json             one JSON object\n\n"
    "examples:\n"
    "  hankel bench\n"
    "  hankel bench -c /etc/hankeld.conf --sensors 10000\n"
    "  hankel bench --algorithm svd --window 320 --detector rank=12 --threads 1 --json\n";

struct settings {
  int choice;                                     /* -1: none was given */
  const char *config, *algorithm, *window, *keys; /* NULL: not given */
  uint64_t sensors, batch, points, threads;
  double seconds;
  bool json;
};

struct bench {
  char **argv;
  struct hk_bench_plan plan;
  struct hk_load load;
};

struct figures {
  double scores_per_second; /* of the clock on the wall */
  double points_per_second; /* of sensors, each of which has a series for every algorithm: the middle, the least and the most */
  double points_least, points_most;
  double scores_per_core; /* a second of processor time */
  struct hk_peak peak;
  double p50, p99; /* us */
  uint64_t timed;
};

/* Turns an error of the load into an exit code. */
static int bench_judge(const struct bench *bench, int status, const char *error)
{
  return status == 0 ? 0 : hk_failed(bench->argv, "%s", error);
}

/* Times whole ticks with several batches in flight, and the peak of the cores if these compute. */
static int measure_rate(struct bench *bench, const struct settings *settings, struct figures *figures)
{
  const bool cpu = strcmp(bench->load.backend->ops->name, "cpu") == 0;
  double rate[REPEATS], points[REPEATS], core[REPEATS], peak[REPEATS] = { 0 }, peak_core[REPEATS] = { 0 };
  const double sensors = hk_bench_plan_sensors(&bench->plan, bench->load.sensors);
  char error[512];
  for (int i = 0; i < REPEATS; i++) {
    struct hk_load_round sum;
    if (cpu) {
      const struct hk_peak found = hk_peak_measure((uint32_t)settings->threads, settings->seconds / REPEATS / 8);
      peak[i] = found.rate;
      peak_core[i] = found.core;
    }
    const int status = hk_load_run(&bench->load, settings->seconds / REPEATS * 0.7, &sum, error, sizeof error);
    if (status != 0)
      return bench_judge(bench, status, error);
    if (hk_bench_plan_scores_all(&bench->plan) && sum.scores != sum.points)
      return hk_failed(bench->argv, "of %" PRIu64 " points %" PRIu64 " were scored", sum.points, sum.scores);
    rate[i] = (double)sum.scores * 1e9 / (double)sum.wall;
    points[i] = (double)sum.points / bench->load.sensors * sensors * 1e9 / (double)sum.wall;
    core[i] = (double)sum.scores * 1e9 / (double)sum.processor;
    figures->timed += sum.scores;
  }
  figures->scores_per_second = hk_load_quantile(rate, REPEATS, 0.5);
  figures->points_per_second = hk_load_quantile(points, REPEATS, 0.5); /* sorts them */
  figures->points_least = points[0];
  figures->points_most = points[REPEATS - 1];
  figures->scores_per_core = hk_load_quantile(core, REPEATS, 0.5);
  figures->peak = (struct hk_peak){ hk_load_quantile(peak, REPEATS, 0.5), hk_load_quantile(peak_core, REPEATS, 0.5) };
  return 0;
}

/* Times single ticks, from the first submit to the last reap. */
static int measure_latency(struct bench *bench, const struct settings *settings, struct figures *figures)
{
  static const uint32_t enough = 5;
  double *took = malloc(LATENCIES * sizeof *took);
  const int64_t until = hk_monotonic() + (int64_t)(settings->seconds * 0.15e9);
  uint32_t n = 0;
  int code = took ? 0 : hk_failed(bench->argv, "out of memory");
  char error[512];
  while (code == 0 && n < LATENCIES && (n < enough || hk_monotonic() < until)) {
    code = bench_judge(bench, hk_load_latency(&bench->load, bench->load.sensors, 1, &took[n], error, sizeof error), error);
    n++;
  }
  if (code == 0) {
    figures->p50 = hk_load_quantile(took, n, 0.5);
    figures->p99 = hk_load_quantile(took, n, 0.99);
  }
  free(took);
  return code;
}

/* Bytes of a point on its way to the backend, and of its result. */
static void bench_bytes_of(const struct hk_load *load, double *up, double *down)
{
  const struct hk_batch *batch = &load->batch[0];
  *up = sizeof *batch->slot + sizeof *batch->time + sizeof *batch->value;
  *down = sizeof *batch->score + sizeof *batch->state +
          (double)(load->events * sizeof *batch->event) / (double)(load->points ? load->points : 1);
}

/* Of a configuration. A point of a sensor is one for each algorithm of its section. */
static void report_config(const struct bench *bench, const struct settings *settings, const struct figures *figures)
{
  const struct hk_bench_plan *plan = &bench->plan;
  const struct hk_load *load = &bench->load;
  const char *backend = load->backend->ops->name;
  double up, down;
  bench_bytes_of(load, &up, &down);
  if (settings->json) {
    printf("{\"config\":");
    hk_print_json_string(stdout, plan->path);
    printf(",\"backend\":\"%s\",\"sections\":%u,\"detectors\":%u,\"groups_left_out\":%u,\"sensors\":%u,\"series\":%u,"
           "\"points_together\":%u,\"threads\":%" PRIu64 ",",
           backend, plan->sections, plan->n, plan->config.n_groups, hk_bench_plan_sensors(plan, load->sensors), load->sensors,
           load->each, settings->threads);
    printf("\"points_per_s\":%.6g,\"points_per_s_least\":%.6g,\"points_per_s_most\":%.6g,\"scores_per_s\":%.6g,\"bytes_up\":%.6g,"
           "\"bytes_down\":%.6g,\"p50_us\":%.6g,\"p99_us\":%.6g,\"scores\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
           ",\"version\":\"%s\"}\n",
           figures->points_per_second, figures->points_least, figures->points_most, figures->scores_per_second, up, down,
           figures->p50, figures->p99, figures->timed, load->need, HANKELD_VERSION);
    return;
  }
  hk_bench_plan_print(plan, load);
  printf("backend %s", backend);
  if (strcmp(backend, "cpu") == 0)
    printf(", %" PRIu64 " thread%s", settings->threads, settings->threads == 1 ? "" : "s");
  printf("\n%14.0f points of sensors a second, each for all algorithms (of %d runs the middle; least %.0f, most %.0f)\n",
         figures->points_per_second, REPEATS, figures->points_least, figures->points_most);
  printf("%14.0f scores a second\n", figures->scores_per_second);
  if (load->each > 1)
    printf("%14u points of each sensor in a batch\n", load->each);
  printf("%14.0f us a tick of all sensors, one at a time (99 %%: %.0f us)\n", figures->p50, figures->p99);
  printf("%14.1f bytes a point of a series to the backend, %.1f back\n", up, down);
}

static void bench_report(const struct bench *bench, const struct settings *settings, const struct figures *figures)
{
  const struct hk_detector *d = &bench->plan.detectors[0];
  const struct hk_load *load = &bench->load;
  const double each = (double)hk_load_products(d) * d->window * d->window; /* multiply-adds of a score */
  double up, down;
  bench_bytes_of(load, &up, &down);
  const char *backend = load->backend->ops->name;
  const bool cpu = strcmp(backend, "cpu") == 0, fixed = hk_load_products(d) > 0;
  const struct hk_shape shape = hk_shape(d->window);
  const double made = (double)hk_shape_multiply_adds(&shape) / ((double)d->window * d->window); /* of those that are counted */
  char tflops[32] = "null", fraction[32] = "null", core_fraction[32] = "null", made_fraction[32] = "null";
  if (fixed)
    snprintf(tflops, sizeof tflops, "%.6g", 2 * each * figures->scores_per_second / 1e12);
  if (fixed && cpu && figures->peak.rate > 0) {
    snprintf(fraction, sizeof fraction, "%.4f", each * figures->scores_per_second / figures->peak.rate);
    snprintf(made_fraction, sizeof made_fraction, "%.4f", made * each * figures->scores_per_second / figures->peak.rate);
    snprintf(core_fraction, sizeof core_fraction, "%.4f", each * figures->scores_per_core / figures->peak.core);
  }
  if (settings->json) {
    printf("{\"backend\":\"%s\",\"algorithm\":\"%s\",\"window\":%u,\"gap\":%u,\"rank\":%u,\"krylov\":%u,\"products\":%u,"
           "\"hankel_products\":%u,\"sensors\":%u,\"points_together\":%u,\"threads\":%" PRIu64
           ",\"points_per_s\":%.6g,\"scores_per_s\":%.6g,\"useful_tflops\":%s,",
           backend, hk_algorithm_name(d->algorithm), d->window, d->gap, d->rank, d->krylov, d->products, hk_load_products(d),
           load->sensors, load->each, settings->threads, figures->points_per_second, figures->scores_per_second, tflops);
    printf("\"peak_fraction\":%s,\"peak_fraction_cpu_time\":%s,\"peak_fraction_made\":%s,\"peak_tflops\":%.6g,\"bytes_up\":%.6g,"
           "\"bytes_down\":%.6g,\"p50_"
           "us\":%.6g,\"p99_us\":%.6g,"
           "\"scores\":%" PRIu64 ",\"memory_bytes\":%" PRIu64 ",\"version\":\"%s\"}\n",
           fraction, core_fraction, made_fraction, 2 * figures->peak.rate / 1e12, up, down, figures->p50, figures->p99,
           figures->timed, load->backend->ops->need(load->backend, 0, load->sensors), HANKELD_VERSION);
    return;
  }
  printf("backend %s, %s, window %u, gap %u, rank %u, krylov %u, products %u, %u sensors", backend,
         hk_algorithm_name(d->algorithm), d->window, d->gap, d->rank, d->krylov, d->products, load->sensors);
  if (cpu)
    printf(", %" PRIu64 " thread%s", settings->threads, settings->threads == 1 ? "" : "s");
  printf("\n%14.0f scores a second\n", figures->scores_per_second);
  if (load->each > 1)
    printf("%14u points of each sensor in a batch\n", load->each);
  if (fixed)
    printf("%14s nominal TFLOP/s in %u Hankel products a score", tflops, hk_load_products(d));
  if (fixed && cpu)
    printf(": %s of what the cores can do (%s by processor time), %s by the multiply-adds that are made", fraction, core_fraction,
           made_fraction);
  printf("%s%14.0f us a tick of %u sensors, one at a time (99 %%: %.0f us)\n", fixed ? "\n" : "", figures->p50, load->sensors,
         figures->p99);
  printf("%14.1f bytes a point to the backend, %.1f back\n", up, down);
}

/* Opens the backend, fills the windows and scores a few ticks. */
static int bench_start(struct bench *bench, const struct settings *settings)
{
  char error[512];
  struct hk_load_config config = { .choice = settings->choice,
                                   .detectors = bench->plan.detectors,
                                   .n_detectors = bench->plan.n,
                                   .alike = bench->plan.n,
                                   .sensors = hk_bench_plan_series(&bench->plan, (uint32_t)settings->sensors),
                                   .batch = (uint32_t)settings->batch,
                                   .points = (uint32_t)settings->points,
                                   .threads = (uint32_t)settings->threads };
  int status = hk_load_open(&bench->load, &config, error, sizeof error);
  if (status == 0)
    status = hk_load_fill(&bench->load, error, sizeof error);
  return bench_judge(bench, status, error);
}

/* --algorithm, --window and --detector are one text of keys; a key given twice is refused there. A configuration stands for all
 * of them, and for the backend and the threads where no option says. 0, or an exit code after a message. */
static int bench_make_plan(char **argv, struct settings *settings, struct hk_bench_plan *plan)
{
  const char *given[] = { settings->algorithm, settings->window, settings->keys }, *names[] = { "algorithm=", "window=", "" };
  char keys[1024] = "";
  for (size_t i = 0, at = 0; i < sizeof given / sizeof *given; i++) {
    if (!given[i] || !*given[i])
      continue;
    if (settings->config)
      return hk_usage(argv, "--config says what is measured: --algorithm, --window and --detector do not go with it");
    at += (size_t)snprintf(keys + at, sizeof keys - at, "%s%s%s", at > 0 ? "," : "", names[i], given[i]);
    if (at >= sizeof keys)
      return hk_usage(argv, "--detector: longer than %zu bytes", sizeof keys);
  }
  if (!settings->config)
    return hk_bench_plan_parse(plan, argv, keys);
  const int code = hk_bench_plan_read(plan, argv, settings->config);
  if (code == 0 && settings->choice < 0)
    settings->choice = (int)plan->config.backend; /* hk_choices has the same order */
  if (code == 0 && settings->threads == 0)
    settings->threads = plan->config.threads;
  return code;
}

static int parse_number(char **argv, int option, struct settings *settings)
{
  switch (option) {
  case 'n':
    return hk_option_whole(argv, "--sensors", optarg, 1, SENSORS_MAX, &settings->sensors);
  case 'k':
    return hk_option_whole(argv, "--batch", optarg, 1, 1u << 24, &settings->batch);
  case 'p':
    return hk_option_whole(argv, "--points", optarg, 1, HK_BATCH_PER_SENSOR, &settings->points);
  default:
    return hk_option_whole(argv, "--threads", optarg, 1, 1024, &settings->threads);
  }
}

/* 0, HELPED, or HK_EXIT_USAGE. */
static int parse(int argc, char **argv, struct settings *settings)
{
  static const struct option options[] = {
    { "config", required_argument, NULL, 'c' },
    { "backend", required_argument, NULL, 'b' },
    { "algorithm", required_argument, NULL, 'a' },
    { "window", required_argument, NULL, 'w' },
    { "detector", required_argument, NULL, 'd' },
    { "sensors", required_argument, NULL, 'n' },
    { "batch", required_argument, NULL, 'k' },
    { "points", required_argument, NULL, 'p' },
    { "threads", required_argument, NULL, 't' },
    { "seconds", required_argument, NULL, 's' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  int option, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'c':
      settings->config = optarg;
      break;
    case 'b':
      code = hk_option_word(argv, "--backend", optarg, hk_choices, &settings->choice);
      break;
    case 'a':
      settings->algorithm = optarg;
      break;
    case 'w':
      settings->window = optarg;
      break;
    case 'd':
      settings->keys = optarg;
      break;
    case 'n':
    case 'k':
    case 'p':
    case 't':
      code = parse_number(argv, option, settings);
      break;
    case 's':
      code = hk_option_real(argv, "--seconds", optarg, 0.01, 3600, &settings->seconds);
      break;
    case 'j':
      settings->json = true;
      break;
    case HK_OPTION_HELP:
      fputs(bench_help, stdout);
      return HELPED;
    default:
      code = HK_EXIT_USAGE;
    }
    if (code != 0)
      return code;
  }
  return optind == argc ? 0 : hk_usage(argv, "%s: unexpected argument", argv[optind]);
}

int hk_command_bench(int argc, char **argv)
{
  struct settings settings = { .choice = -1, .seconds = 3 };
  struct bench bench = { .argv = argv };
  struct figures figures = { 0 };
  cpu_set_t cores;
  int code = parse(argc, argv, &settings);
  if (code == HELPED)
    return hk_finish_output(argv, HK_EXIT_DONE);
  if (code == 0)
    code = bench_make_plan(argv, &settings, &bench.plan);
  if (code != 0) {
    hk_bench_plan_free(&bench.plan);
    return code;
  }
  if (settings.choice < 0)
    settings.choice = HK_BACKEND_AUTO;
  if (settings.threads == 0)
    settings.threads = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint64_t)CPU_COUNT(&cores) : 1;
  code = bench_start(&bench, &settings);
  if (code == 0)
    code = measure_rate(&bench, &settings, &figures);
  if (code == 0)
    code = measure_latency(&bench, &settings, &figures);
  if (code == 0)
    (settings.config ? report_config : bench_report)(&bench, &settings, &figures);
  hk_load_close(&bench.load);
  hk_bench_plan_free(&bench.plan);
  return hk_finish_output(argv, code);
}
