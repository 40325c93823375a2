/* hankel bench: how fast a backend scores. Points go through submit and reap like the daemon's: ticks of one new point for
 * every sensor, cut into batches, several in flight. Every sensor has a signal of its own: a sine with noise, about a
 * level.
 *
 * Windows are filled first, and a few ticks scored, before anything is timed. Then: several repeats of the peak of the
 * cores and of whole ticks, side by side; the middle one of each counts. Last, ticks one at a time: how long one takes
 * from submit to reap. */
#include "daemon/cli/choose.h"
#include "daemon/cli/options.h"
#include "daemon/cli/peak.h"
#include "daemon/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 4
#define BATCH_MAX (1u << 20)
#define REPEATS 5
#define LATENCIES 4096 /* kept, at most */
#define NOISE (1u << 16)
#define INTERVAL 1000000000 /* ns between two ticks, in the data */
#define SENSORS_CUDA 262144
#define SENSORS_MAX 100000000
#define HELPED -1

static const char help_text[] =
    "usage: hankel bench [OPTION...]\n\n"
    "Measures how fast a backend scores on this machine: whole ticks of one new point for every sensor.\n\n"
    "  --backend NAME     auto (default), cpu, cuda or reference\n"
    "  --algorithm NAME   ika (default) or svd\n"
    "  --window W         window (default 96)\n"
    "  --detector KEYS    other parameters, such as rank=3,krylov=10\n"
    "  --sensors N        default 4096 (cuda 262144, reference 64), a sixteenth for svd\n"
    "  --threads N        worker threads of the CPU backend (default one for each core)\n"
    "  --seconds S        how long to measure (default 3)\n"
    "  --json             one JSON object\n\n"
    "examples:\n"
    "  hankel bench\n"
    "  hankel bench --algorithm svd --window 320 --detector rank=12 --threads 1 --json\n";

struct settings {
  int choice;
  const char *algorithm, *window, *keys;
  uint64_t sensors, threads;
  double seconds;
  bool json;
};

/* One sensor's signal: a phasor turned by one tick at a time. */
struct source {
  float x, y, turn_x, turn_y, level, noise;
  uint32_t at; /* in the table of noise */
};

struct bench {
  char **argv;
  struct hk_backend *backend;
  struct hk_detector detector;
  struct hk_batch *batch[IN_FLIGHT], *free[IN_FLIGHT];
  uint32_t n_free, in_flight, sensors, capacity;
  struct source *source;
  float *noise;
  int64_t tick;
  uint64_t scores, points, events;
};

struct figures {
  double scores_per_second; /* of the clock on the wall */
  double scores_per_core;   /* a second of processor time */
  struct hk_peak peak;
  double p50, p99; /* us */
  uint64_t timed;
};

/* Noise of unit variance, near enough normal: a sum of 4 uniform numbers. */
static void make_noise(float *noise)
{
  for (uint32_t i = 0; i < NOISE; i++) {
    double sum = 0;
    for (uint32_t j = 0; j < 4; j++)
      sum += hk_random_element(4 * (uint64_t)i + j, 0);
    noise[i] = (float)(sum * sqrt(3.0 / 4.0));
  }
}

/* Period 10 to 60 ticks, amplitude 0.5 to 1.5, noise .05 to .35, level -50 to 50, all from the sensor's number. */
static struct source make_source(uint32_t sensor)
{
  const uint64_t seed = hk_seed((const char *)&sensor, sizeof sensor);
  const double turn = 2 * M_PI / (35 + 25 * hk_random_element(seed, 0)), phase = M_PI * hk_random_element(seed, 1);
  const double amplitude = 1 + 0.5 * hk_random_element(seed, 2);
  return (struct source){ (float)(amplitude * cos(phase)),
                          (float)(amplitude * sin(phase)),
                          (float)cos(turn),
                          (float)sin(turn),
                          (float)(50 * hk_random_element(seed, 3)),
                          (float)(0.2 + 0.15 * hk_random_element(seed, 4)),
                          (uint32_t)seed };
}

static double next_value(struct source *s, const float *noise)
{
  const float x = s->x * s->turn_x - s->y * s->turn_y;
  s->y = s->x * s->turn_y + s->y * s->turn_x;
  s->x = x;
  s->at += 0x9e3779b1u;
  return (double)(s->level + x + s->noise * noise[s->at >> 16]);
}

/* Waits for the oldest batch in flight. 0 or an exit code. */
static int take_back(struct bench *bench)
{
  bench->backend->ops->wait(bench->backend);
  struct hk_batch *batch = bench->backend->ops->reap(bench->backend);
  if (!batch || batch->status < 0)
    return hk_failed(bench->argv, "the %s backend failed: %s", bench->backend->ops->name,
                     batch ? strerror(-batch->status) : "a batch is lost");
  for (uint32_t i = 0; i < batch->n; i++)
    bench->scores += !isnan(batch->score[i]);
  bench->points += batch->n;
  bench->events += batch->n_events;
  bench->free[bench->n_free++] = batch;
  bench->in_flight--;
  return 0;
}

/* One new point for every sensor. 0 or an exit code. */
static int tick(struct bench *bench)
{
  const int64_t time = ++bench->tick * INTERVAL;
  for (uint32_t begin = 0; begin < bench->sensors; begin += bench->capacity) {
    const uint32_t left = bench->sensors - begin, n = left < bench->capacity ? left : bench->capacity;
    if (bench->n_free == 0) {
      const int code = take_back(bench);
      if (code != 0)
        return code;
    }
    struct hk_batch *batch = bench->free[--bench->n_free];
    for (uint32_t i = 0; i < n; i++) {
      batch->slot[i] = begin + i;
      batch->time[i] = time;
      batch->value[i] = next_value(&bench->source[begin + i], bench->noise);
    }
    batch->n = n;
    const int status = bench->backend->ops->submit(bench->backend, batch);
    if (status != 0)
      return hk_failed(bench->argv, "the %s backend refused a batch: %d", bench->backend->ops->name, status);
    bench->in_flight++;
  }
  return 0;
}

static int drain(struct bench *bench)
{
  int code = 0;
  while (code == 0 && bench->in_flight > 0)
    code = take_back(bench);
  return code;
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The middle of n numbers, which it sorts. */
static double middle(double *numbers, size_t n)
{
  qsort(numbers, n, sizeof *numbers, compare);
  return numbers[n / 2];
}

/* Fills the windows and scores a few ticks. */
static int warm_up(struct bench *bench)
{
  const uint32_t span = hk_detector_span(&bench->detector);
  struct hk_progress progress = hk_progress_start(false);
  int code = 0;
  for (uint32_t i = 0; i < span + 2 && code == 0; i++) {
    code = tick(bench);
    hk_progress_show(&progress, (double)i / (span + 2), bench->points);
  }
  hk_progress_end(&progress);
  return code == 0 ? drain(bench) : code;
}

/* Whole ticks, several in flight, next to the peak of the cores. */
static int measure_rate(struct bench *bench, const struct settings *settings, struct figures *figures)
{
  double rate[REPEATS], core[REPEATS], peak[REPEATS], peak_core[REPEATS];
  for (int i = 0; i < REPEATS; i++) {
    const struct hk_peak found = hk_peak_measure((uint32_t)settings->threads, settings->seconds / REPEATS / 8);
    const int64_t started = hk_clock(), until = started + (int64_t)(settings->seconds / REPEATS * 0.7e9);
    const int64_t used = hk_peak_process_time();
    const uint64_t before = bench->scores;
    int code = 0;
    do
      code = tick(bench);
    while (code == 0 && hk_clock() < until);
    if (code == 0)
      code = drain(bench);
    if (code != 0)
      return code;
    const double scores = (double)(bench->scores - before) * 1e9;
    rate[i] = scores / (double)(hk_clock() - started);
    core[i] = scores / (double)(hk_peak_process_time() - used);
    peak[i] = found.rate;
    peak_core[i] = found.core;
    figures->timed += bench->scores - before;
  }
  figures->scores_per_second = middle(rate, REPEATS);
  figures->scores_per_core = middle(core, REPEATS);
  figures->peak = (struct hk_peak){ middle(peak, REPEATS), middle(peak_core, REPEATS) };
  return 0;
}

/* One tick at a time: from the first submit to the last reap. */
static int measure_latency(struct bench *bench, const struct settings *settings, struct figures *figures)
{
  static const int enough = 20;
  double *took = malloc(LATENCIES * sizeof *took);
  const int64_t until = hk_clock() + (int64_t)(settings->seconds * 0.15e9);
  int n = 0, code = took ? 0 : hk_failed(bench->argv, "out of memory");
  while (code == 0 && n < LATENCIES && (n < enough || hk_clock() < until)) {
    const int64_t started = hk_clock();
    if ((code = tick(bench)) == 0)
      code = drain(bench);
    took[n++] = (double)(hk_clock() - started) / 1e3;
  }
  if (code == 0) {
    figures->p50 = middle(took, (size_t)n);
    figures->p99 = took[n * 99 / 100];
  }
  free(took);
  return code;
}

/* Hankel products of a score, w^2 multiply-adds each; 0 where their number is not fixed. */
static uint32_t products(const struct hk_detector *d)
{
  return d->algorithm == HK_ALGORITHM_IKA ? d->products + d->krylov * (d->operator_ == HK_OPERATOR_GRAM ? 2 : 1) : 0;
}

static void report(const struct bench *bench, const struct settings *settings, const struct figures *figures)
{
  const struct hk_detector *d = &bench->detector;
  const struct hk_batch *batch = bench->batch[0];
  const double each = (double)products(d) * d->window * d->window; /* multiply-adds of a score */
  const double up = sizeof *batch->slot + sizeof *batch->time + sizeof *batch->value;
  const double down = sizeof *batch->score + sizeof *batch->state +
                      (double)(bench->events * sizeof *batch->event) / (double)(bench->points ? bench->points : 1);
  const bool cpu = strcmp(bench->backend->ops->name, "cpu") == 0, fixed = products(d) > 0;
  char tflops[32] = "null", fraction[32] = "null", core_fraction[32] = "null";
  if (fixed)
    snprintf(tflops, sizeof tflops, "%.6g", 2 * each * figures->scores_per_second / 1e12);
  if (fixed && cpu && figures->peak.rate > 0) {
    snprintf(fraction, sizeof fraction, "%.4f", each * figures->scores_per_second / figures->peak.rate);
    snprintf(core_fraction, sizeof core_fraction, "%.4f", each * figures->scores_per_core / figures->peak.core);
  }
  if (settings->json) {
    printf("{\"backend\":\"%s\",\"algorithm\":\"%s\",\"window\":%u,\"gap\":%u,\"rank\":%u,\"krylov\":%u,\"products\":%u,"
           "\"hankel_products\":%u,\"sensors\":%u,\"threads\":%" PRIu64 ",\"scores_per_s\":%.6g,\"useful_tflops\":%s,",
           bench->backend->ops->name, hk_algorithm_name(d->algorithm), d->window, d->gap, d->rank, d->krylov, d->products,
           products(d), bench->sensors, settings->threads, figures->scores_per_second, tflops);
    printf("\"peak_fraction\":%s,\"peak_fraction_cpu_time\":%s,\"peak_tflops\":%.6g,\"bytes_up\":%.6g,\"bytes_down\":%.6g,\"p50_"
           "us\":%.6g,\"p99_us\":%.6g,"
           "\"scores\":%" PRIu64 ",\"memory_bytes\":%" PRIu64 ",\"version\":\"%s\"}\n",
           fraction, core_fraction, 2 * figures->peak.rate / 1e12, up, down, figures->p50, figures->p99, figures->timed,
           bench->backend->ops->need(bench->backend, 0, bench->sensors), HANKELD_VERSION);
    return;
  }
  printf("backend %s, %s, window %u, gap %u, rank %u, krylov %u, products %u, %u sensors", bench->backend->ops->name,
         hk_algorithm_name(d->algorithm), d->window, d->gap, d->rank, d->krylov, d->products, bench->sensors);
  if (cpu)
    printf(", %" PRIu64 " thread%s", settings->threads, settings->threads == 1 ? "" : "s");
  printf("\n%14.0f scores a second\n", figures->scores_per_second);
  if (fixed)
    printf("%14s TFLOP/s in %u Hankel products a score", tflops, products(d));
  if (fixed && cpu)
    printf(": %s of what the cores can do (%s by processor time)", fraction, core_fraction);
  printf("%s%14.0f us a tick of %u sensors, one at a time (99 %%: %.0f us)\n", fixed ? "\n" : "", figures->p50, bench->sensors,
         figures->p99);
  printf("%14.1f bytes a point to the backend, %.1f back\n", up, down);
}

/* Enough to keep the backend busy, few enough that a tick does not take long. */
static uint32_t sensors_for(const struct bench *bench)
{
  const char *name = bench->backend->ops->name;
  const uint32_t n = strcmp(name, "cuda") == 0 ? SENSORS_CUDA : strcmp(name, "reference") == 0 ? 64 : 4096;
  return bench->detector.algorithm == HK_ALGORITHM_SVD ? n / 16 : n;
}

static int start(struct bench *bench, const struct settings *settings)
{
  const struct hk_backend_config config = { .detectors = &bench->detector,
                                            .n_detectors = 1,
                                            .max_sensors = (uint32_t)(settings->sensors ? settings->sensors : SENSORS_CUDA),
                                            .threads = (uint32_t)settings->threads,
                                            .in_flight = IN_FLIGHT };
  char error[512];
  if (hk_choose_backend(&bench->backend, settings->choice, &config, error, sizeof error) < 0)
    return hk_failed(bench->argv, "%s", error);
  bench->sensors = settings->sensors ? (uint32_t)settings->sensors : sensors_for(bench);
  for (uint32_t i = 0; i < bench->sensors; i++)
    if (bench->backend->ops->add(bench->backend, i, 0, hk_seed((const char *)&i, sizeof i)) != 0)
      return hk_failed(bench->argv, "no memory for %u sensors: they need %" PRIu64 " bytes", bench->sensors,
                       bench->backend->ops->need(bench->backend, 0, bench->sensors));
  bench->capacity = bench->sensors < BATCH_MAX ? bench->sensors : BATCH_MAX;
  bench->source = calloc(bench->sensors, sizeof *bench->source);
  bench->noise = calloc(NOISE, sizeof *bench->noise);
  for (int i = 0; i < IN_FLIGHT; i++) {
    bench->batch[i] = hk_batch_new(bench->backend, bench->capacity);
    if (!bench->batch[i] || !bench->source || !bench->noise)
      return hk_failed(bench->argv, "out of memory");
    bench->free[bench->n_free++] = bench->batch[i];
  }
  make_noise(bench->noise);
  for (uint32_t i = 0; i < bench->sensors; i++)
    bench->source[i] = make_source(i);
  return 0;
}

static void stop(struct bench *bench)
{
  if (bench->backend) {
    if (bench->in_flight == 0) /* else something failed, and the batches are the backend's */
      for (int i = 0; i < IN_FLIGHT; i++)
        hk_batch_free(bench->batch[i]);
    bench->backend->ops->close(bench->backend);
  }
  free(bench->source);
  free(bench->noise);
}

/* --algorithm, --window and --detector are one text of keys; a key given twice is refused there. */
static int make_detector(char **argv, const struct settings *settings, struct hk_detector *detector)
{
  char keys[1024], error[512];
  snprintf(keys, sizeof keys, "algorithm=%s,window=%s%s%s", settings->algorithm, settings->window, *settings->keys ? "," : "",
           settings->keys);
  return hk_detector_parse(keys, detector, error, sizeof error) < 0 ? hk_usage(argv, "%s", error) : 0;
}

/* 0, HELPED, or HK_EXIT_USAGE. */
static int parse(int argc, char **argv, struct settings *settings)
{
  static const struct option options[] = {
    { "backend", required_argument, NULL, 'b' }, { "algorithm", required_argument, NULL, 'a' },
    { "window", required_argument, NULL, 'w' },  { "detector", required_argument, NULL, 'd' },
    { "sensors", required_argument, NULL, 'n' }, { "threads", required_argument, NULL, 't' },
    { "seconds", required_argument, NULL, 's' }, { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },          { 0 },
  };
  int option, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
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
      code = hk_option_whole(argv, "--sensors", optarg, 1, SENSORS_MAX, &settings->sensors);
      break;
    case 't':
      code = hk_option_whole(argv, "--threads", optarg, 1, 1024, &settings->threads);
      break;
    case 's':
      code = hk_option_real(argv, "--seconds", optarg, 0.01, 3600, &settings->seconds);
      break;
    case 'j':
      settings->json = true;
      break;
    case HK_OPTION_HELP:
      fputs(help_text, stdout);
      return HELPED;
    default:
      code = HK_EXIT_USAGE;
    }
    if (code != 0)
      return code;
  }
  return optind == argc ? 0 : hk_usage(argv, "%s: no argument is wanted", argv[optind]);
}

int hk_command_bench(int argc, char **argv)
{
  struct settings settings = { .algorithm = "ika", .window = "96", .keys = "", .seconds = 3 };
  struct bench bench = { .argv = argv };
  struct figures figures = { 0 };
  cpu_set_t cores;
  int code = parse(argc, argv, &settings);
  if (code == HELPED)
    return hk_finish_output(argv, HK_EXIT_DONE);
  if (code == 0)
    code = make_detector(argv, &settings, &bench.detector);
  if (code != 0)
    return code;
  if (settings.threads == 0)
    settings.threads = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint64_t)CPU_COUNT(&cores) : 1;
  code = start(&bench, &settings);
  if (code == 0)
    code = warm_up(&bench);
  if (code == 0)
    code = measure_rate(&bench, &settings, &figures);
  if (code == 0)
    code = measure_latency(&bench, &settings, &figures);
  if (code == 0)
    report(&bench, &settings, &figures);
  stop(&bench);
  return hk_finish_output(argv, code);
}
