/* Measures whole ticks on a GPU through submit and reap (load.h says what is timed), in cases that are hard to do fast:
 *
 *   widths    scores a second for windows from 16 to 1024
 *   latency   one tick at a time of 1, 100, 10,000 and all of a million sensors
 *   resident  10 million sensors on one card: memory a sensor, and a tick of all of them
 *   mixed     32 detectors of different widths that share ticks, compared with one detector of equal work
 *   devices   a backend on each of 1, 2, 4.. GPUs, each with a thread of one process
 *   speedup   IKA-SST compared with one core of this host, for the windows of K. Ueno and T. Suzumura's paper
 *
 * Prints a table for each and, after --json FILE, appends a line with the figures of each row to FILE. --backend takes another
 * backend and --fewer N so many times fewer sensors, to try it out. Exits with 77 if there is no GPU. */
#include "daemon/cli/backend_option.h"
#include "daemon/cli/load.h"
#include "gpu/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define REPEATS 5
#define DETECTORS 32
#define MOST_DEVICES 8
#define MANY 1000000u
#define BATCH_LEAST 4096u
#define BATCH_MOST (1u << 20)
/* In the data, ticks are 1 ms apart: with such an interval a sensor may miss many ticks without a hole. */
#define PATIENT "interval=1d"

static int choice = 2; /* index into hk_choices: cuda */
static uint32_t fewer = 1;
static FILE *json;

static void die(const char *what)
{
  fprintf(stderr, "bench_ticks: %s\n", what);
  exit(1);
}

static void __attribute__((format(printf, 1, 2))) keep(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (json && (vfprintf(json, format, arguments) < 0 || fputc('\n', json) == EOF || fflush(json) != 0))
    die("cannot write the JSON lines");
  va_end(arguments);
}

static uint32_t count(uint32_t sensors)
{
  return sensors / fewer > 0 ? sensors / fewer : 1;
}

static struct hk_detector __attribute__((format(printf, 1, 2))) detector(const char *format, ...)
{
  char text[256], error[256];
  struct hk_detector d;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    die(error);
  return d;
}

static void open_filled(struct hk_load *load, const struct hk_load_config *config)
{
  char error[512];
  if (hk_load_open(load, config, error, sizeof error) != 0 || hk_load_fill(load, error, sizeof error) != 0)
    die(error);
}

/* A backend with all windows full; a tick is one batch, or several of a million points. */
static void filled(struct hk_load *load, int backend, const struct hk_detector *detectors, uint32_t n, uint32_t sensors)
{
  const struct hk_load_config config = { .choice = backend,
                                         .detectors = detectors,
                                         .n_detectors = n,
                                         .sensors = sensors,
                                         .batch = sensors < BATCH_LEAST  ? BATCH_LEAST
                                                  : sensors < BATCH_MOST ? sensors
                                                                         : BATCH_MOST,
                                         .threads = 1 };
  open_filled(load, &config);
}

/* Scores a second of whole ticks, the median of REPEATS. */
static double rate(struct hk_load *load, double seconds)
{
  double rates[REPEATS];
  char error[512];
  for (int i = 0; i < REPEATS; i++) {
    struct hk_load_round sum;
    if (hk_load_run(load, seconds / REPEATS, &sum, error, sizeof error) != 0)
      die(error);
    if (sum.scores != sum.points)
      die("not every point was scored");
    rates[i] = (double)sum.scores * 1e9 / (double)sum.wall;
  }
  return hk_load_quantile(rates, REPEATS, 0.5);
}

static double rate_of(int backend, const struct hk_detector *detectors, uint32_t n, uint32_t sensors, double seconds)
{
  struct hk_load load;
  filled(&load, backend, detectors, n, sensors);
  const double found = rate(&load, seconds);
  hk_load_close(&load);
  return found;
}

/* Useful operations of a score: 2 w^2 for a Hankel product, however it is computed. */
static double useful(const struct hk_detector *d)
{
  return 2.0 * hk_load_products(d) * d->window * d->window;
}

static void widths(void)
{
  static const uint32_t all[] = { 16,  20,  24,  32,  40,  48,  50,  64,  77,  96,  100, 112, 128,
                                  150, 192, 200, 256, 300, 320, 384, 400, 448, 500, 512, 700, 1024 };
  printf("\nIKA-SST, 16 Hankel products a score, whole ticks\n%6s %10s %16s %16s\n", "w", "sensors", "M scores/s",
         "useful TFLOP/s");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const uint32_t w = all[i], sensors = count(w <= 128 ? 1 << 20 : w <= 320 ? 1 << 19 : w <= 512 ? 1 << 18 : 1 << 17);
    const struct hk_detector d = detector("window=%u", w);
    const double found = rate_of(choice, &d, 1, sensors, 0.3);
    printf("%6u %10u %16.2f %16.2f\n", w, sensors, found / 1e6, found * useful(&d) / 1e12);
    keep("{\"measure\":\"widths\",\"window\":%u,\"sensors\":%u,\"scores_per_s\":%.6g,\"useful_tflops\":%.4g}", w, sensors, found,
         found * useful(&d) / 1e12);
  }
}

static void latency(void)
{
  static const struct {
    uint32_t ready, times;
  } ticks[] = { { 1, 2000 }, { 100, 2000 }, { 10000, 500 }, { MANY, 30 } };
  printf("\nOne tick at a time, from submit to reaped, of %u sensors\n%6s %10s %12s %12s\n", count(MANY), "w", "ready", "p50, us",
         "p99, us");
  for (uint32_t w = 96; w <= 320; w += 224) {
    const struct hk_detector d = detector("window=%u," PATIENT, w);
    struct hk_load load;
    filled(&load, choice, &d, 1, count(MANY));
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
      const uint32_t ready = ticks[i].ready < load.sensors ? ticks[i].ready : load.sensors, times = ticks[i].times;
      double took[2000];
      char error[512];
      if (hk_load_latency(&load, ready, times / 10, took, error, sizeof error) != 0 || /* not counted */
          hk_load_latency(&load, ready, times, took, error, sizeof error) != 0)
        die(error);
      const double p50 = hk_load_quantile(took, times, 0.5), p99 = hk_load_quantile(took, times, 0.99);
      printf("%6u %10u %12.1f %12.1f\n", w, ready, p50, p99);
      keep("{\"measure\":\"latency\",\"window\":%u,\"sensors\":%u,\"ready\":%u,\"p50_us\":%.5g,\"p99_us\":%.5g}", w, load.sensors,
           ready, p50, p99);
    }
    hk_load_close(&load);
  }
}

/* Bytes of device memory in use, by the driver; 0 if there is no device. */
static uint64_t device_memory(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*info)(size_t *, size_t *) = NULL;
  size_t left = 0, total = 0;
  if (driver)
    *(void **)&info = dlsym(driver, "cuMemGetInfo_v2");
  if (info && info(&left, &total) != 0)
    die("the driver does not tell how much memory is in use");
  return total - left;
}

static void resident(void)
{
  const struct hk_detector d = detector("window=96");
  struct hk_load small;
  filled(&small, choice, &d, 1, 1); /* the memory that the device needs for any number of sensors */
  const uint64_t before = device_memory(), pieces = small.need;
  hk_load_close(&small);
  struct hk_load load;
  filled(&load, choice, &d, 1, count(10 * MANY));
  const uint64_t after = device_memory();
  const double all = (double)load.need / load.sensors, taken = ((double)after - (double)before + (double)pieces) / load.sensors;
  const double found = rate(&load, 0.5), allowed = 4.0 * (hk_detector_span(&d) + d.window) + 256;
  double took[10];
  char error[512];
  if (hk_load_latency(&load, load.sensors, 10, took, error, sizeof error) != 0)
    die(error);
  const double p50 = hk_load_quantile(took, 10, 0.5);
  printf("\n%u sensors resident, w = %u: %.1f bytes a sensor by `need`, 4 (span + w) + 256 = %.0f\n", load.sensors, d.window, all,
         allowed);
  if (after > 0)
    printf("%12.1f bytes a sensor more in use on the device, its part of the batches in flight included\n", taken);
  printf("%12.3f ms a tick of all, alone\n%12.2f M scores/s, ticks in a row\n", p50 / 1e3, found / 1e6);
  keep("{\"measure\":\"resident\",\"window\":%u,\"sensors\":%u,\"bytes_need\":%.6g,\"bytes_driver\":%.6g,\"bytes_allowed\":%.6g,"
       "\"tick_ms\":%.5g,\"scores_per_s\":%.6g}",
       d.window, load.sensors, all, taken, allowed, p50 / 1e3, found);
  hk_load_close(&load);
}

/* Useful operations a second of ticks that all detectors share. */
static double work(const struct hk_detector *detectors, uint32_t n, uint32_t sensors, double *rate_out)
{
  double each = 0;
  for (uint32_t i = 0; i < n; i++)
    each += useful(&detectors[i]) / n;
  *rate_out = rate_of(choice, detectors, n, sensors, 0.5);
  return *rate_out * each;
}

static void mixed(void)
{
  struct hk_detector different[DETECTORS], same[DETECTORS];
  double squares = 0;
  for (uint32_t i = 0; i < DETECTORS; i++) {
    different[i] = detector("window=%u", 64 + 8 * i);
    squares += (double)different[i].window * different[i].window / DETECTORS;
  }
  const uint32_t middle = (uint32_t)lround(sqrt(squares));
  for (uint32_t i = 0; i < DETECTORS; i++)
    same[i] = detector("window=%u", middle);
  printf("\nTicks shared by %u detectors of windows %u to %u, and by ones of window %u\n%10s %26s %14s %16s %22s\n", DETECTORS,
         different[0].window, different[DETECTORS - 1].window, middle, "sensors", "detectors", "M scores/s", "useful TFLOP/s",
         "time for equal work");
  static const uint32_t sizes[] = { 1 << 12, 1 << 17, 1 << 19 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const uint32_t sensors = count(sizes[i]);
    double one_rate, same_rate, different_rate;
    const double one = work(same, 1, sensors, &one_rate);
    const double alike = work(same, DETECTORS, sensors, &same_rate),
                 unlike = work(different, DETECTORS, sensors, &different_rate);
    printf("%10u %26s %14.2f %16.2f %22.3f\n", sensors, "1", one_rate / 1e6, one / 1e12, 1.0);
    printf("%10u %26s %14.2f %16.2f %22.3f\n", sensors, "32 of one width", same_rate / 1e6, alike / 1e12, one / alike);
    printf("%10u %26s %14.2f %16.2f %22.3f\n", sensors, "32 of different widths", different_rate / 1e6, unlike / 1e12,
           one / unlike);
    keep("{\"measure\":\"mixed\",\"sensors\":%u,\"detectors\":%u,\"tflops_one\":%.4g,\"tflops_same\":%.4g,\"tflops_different\":%."
         "4g,"
         "\"time_same\":%.4g,\"time_different\":%.4g}",
         sensors, DETECTORS, one / 1e12, alike / 1e12, unlike / 1e12, one / alike, one / unlike);
  }
}

/* One of several backends that work at the same time. */
struct one {
  struct hk_load_config config;
  struct hk_load_round rounds[REPEATS];
  pthread_t thread;
};

static void *drive(void *arg)
{
  struct one *one = arg;
  struct hk_load load;
  char error[512];
  open_filled(&load, &one->config);
  for (int i = -1; i < REPEATS; i++) { /* the first does not count */
    struct hk_load_round round;
    if (hk_load_round(&load, load.room / load.sensors < 8 ? load.room / load.sensors : 8, &round, error, sizeof error) != 0)
      die(error);
    if (round.scores != round.points)
      die("not every point was scored");
    one->rounds[i < 0 ? 0 : i] = round;
  }
  hk_load_close(&load);
  return NULL;
}

/* Scores a second of n backends together: the scores of all in a round, divided by the time of the slowest; the median of
 * REPEATS. */
static double together(const struct hk_detector *d, uint32_t n, uint32_t sensors)
{
  struct one all[MOST_DEVICES];
  double rates[REPEATS];
  pthread_barrier_t barrier;
  if (pthread_barrier_init(&barrier, NULL, n) != 0)
    die("no barrier");
  for (uint32_t i = 0; i < n; i++) {
    all[i].config = (struct hk_load_config){ .choice = choice,
                                             .detectors = d,
                                             .n_detectors = 1,
                                             .sensors = sensors,
                                             .batch = sensors,
                                             .threads = 1,
                                             .device = i,
                                             .together = &barrier };
    if (pthread_create(&all[i].thread, NULL, drive, &all[i]) != 0)
      die("no thread");
  }
  for (uint32_t i = 0; i < n; i++)
    pthread_join(all[i].thread, NULL);
  pthread_barrier_destroy(&barrier);
  for (int r = 0; r < REPEATS; r++) {
    int64_t wall = 0;
    uint64_t scores = 0;
    for (uint32_t i = 0; i < n; i++) {
      scores += all[i].rounds[r].scores;
      wall = all[i].rounds[r].wall > wall ? all[i].rounds[r].wall : wall;
    }
    rates[r] = (double)scores * 1e9 / (double)wall;
  }
  return hk_load_quantile(rates, REPEATS, 0.5);
}

static void devices(void)
{
  const uint32_t present = strcmp(hk_choices[choice], "cuda") == 0 ? hk_cuda_devices() : 2, sensors = count(1 << 19);
  printf("\nBackends that work at the same time, one a device, a thread each, %u sensors each\n%6s %10s %14s %14s\n", sensors,
         "w", "devices", "M scores/s", "times one");
  for (uint32_t w = 96; w <= 320; w += 224) {
    const struct hk_detector d = detector("window=%u", w);
    double one = 0;
    for (uint32_t n = 1; n <= present && n <= MOST_DEVICES; n *= 2) {
      const double found = together(&d, n, sensors);
      one = n == 1 ? found : one;
      printf("%6u %10u %14.2f %14.3f\n", w, n, found / 1e6, found / one);
      keep("{\"measure\":\"devices\",\"window\":%u,\"devices\":%u,\"sensors\":%u,\"scores_per_s\":%.6g,\"times_one\":%.4g}", w, n,
           sensors, found, found / one);
    }
  }
}

static void speedup(void)
{
  static const uint32_t all[] = { 20, 30, 40, 50, 60, 80, 90, 100, 150, 200, 300, 400, 500 };
  static const char *const presets[] = { "default", "paper" };
  printf("\nIKA-SST, r = 3, g = 2w + 7: times one core of this host (the CPU backend with one thread, in the same run)\n%6s %26s "
         "%26s %18s\n",
         "w", "default: M scores/s, times", "paper: M scores/s, times", "the paper, C1060");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const uint32_t w = all[i], sensors = count(w <= 100 ? 1 << 18 : 1 << 17);
    printf("%6u", w);
    for (size_t j = 0; j < sizeof presets / sizeof *presets; j++) {
      const struct hk_detector d = detector("window=%u,gap=%u,rank=3,preset=%s", w, 2 * w + 7, presets[j]);
      const double found = rate_of(choice, &d, 1, sensors, 0.2), core = rate_of(1, &d, 1, count(1024), 0.2);
      printf(" %15.2f %10.0f", found / 1e6, found / core);
      keep("{\"measure\":\"speedup\",\"preset\":\"%s\",\"window\":%u,\"sensors\":%u,\"scores_per_s\":%.6g,\"times_one_core\":%."
           "5g}",
           presets[j], w, sensors, found, found / core);
    }
    printf(" %18s\n", w == 60 ? "76" : w >= 90 ? "21 to 26" : "");
  }
}

static bool have_backend(void)
{
  const struct hk_detector d = detector("window=16");
  const struct hk_backend_config config = { .detectors = &d, .n_detectors = 1, .max_sensors = 1 };
  struct hk_backend *b;
  char error[512];
  const int status = hk_choose_backend(&b, choice, &config, error, sizeof error);
  if (status == 0)
    b->ops->close(b);
  else
    fprintf(stderr, "bench_ticks: %s\n", error);
  return status == 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } measures[] = {
    { "widths", widths }, { "latency", latency }, { "resident", resident },
    { "mixed", mixed },   { "devices", devices }, { "speedup", speedup },
  };
  const size_t n = sizeof measures / sizeof *measures;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (strcmp(argv[at], "--json") == 0 && !(json = fopen(argv[at + 1], "a")))
      die("cannot open the file of JSON lines");
    if (strcmp(argv[at], "--fewer") == 0)
      fewer = (uint32_t)strtoul(argv[at + 1], NULL, 10);
    for (int i = 0; strcmp(argv[at], "--backend") == 0 && hk_choices[i]; i++)
      choice = strcmp(hk_choices[i], argv[at + 1]) == 0 ? i : choice;
  }
  if (fewer == 0 || at == argc) {
    fprintf(stderr,
            "usage: bench_ticks [--json FILE] [--backend NAME] [--fewer N] widths|latency|resident|mixed|devices|speedup...\n");
    return 2;
  }
  if (!have_backend())
    return SKIPPED;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (; at < argc; at++) {
    size_t i = 0;
    while (i < n && strcmp(measures[i].name, argv[at]) != 0)
      i++;
    if (i == n)
      die("no such measure");
    measures[i].run();
  }
  return json && fclose(json) != 0;
}
