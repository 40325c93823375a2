/* Measures the cost of a backend's functions with full windows: adding sensors, import and export of states; single ticks,
 * in submit alone and from submit to reap; and ticks with several in flight. Arguments: BACKEND [KEYS [SENSORS...]], for
 * instance: bench_road cuda window=96 1 100 10000 1000000. */
#include "cpu/backend.h"
#include "cpu/rules/window.h"
#include "gpu/cuda.h"
#include "tests/bench/programs/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 4
#define SECOND 1000000000ll
#define TICKS 2000  /* at most, one at a time, */
#define LONGEST 1.0 /* and seconds that they may take */

struct bench {
  struct hk_backend *b;
  struct hk_detector detector;
  uint32_t sensors;
  struct hk_batch *batch[IN_FLIGHT];
  int64_t tick;
};

static void stop(const char *what)
{
  fprintf(stderr, "bench_road: %s\n", what);
  exit(1);
}

static void fill(struct hk_batch *batch, uint32_t n, int64_t tick)
{
  batch->n = n;
  batch->arrival = tick * SECOND;
  for (uint32_t i = 0; i < n; i++) {
    batch->slot[i] = i;
    batch->time[i] = tick * SECOND;
    batch->value[i] = sin((double)tick * (0.2 + 1e-3 * (i % 97))) + 0.1 * hk_random_element(i, (uint32_t)tick);
  }
}

static void take(struct bench *bench)
{
  bench->b->ops->wait(bench->b);
  const struct hk_batch *batch = bench->b->ops->reap(bench->b);
  if (!batch || batch->status != 0)
    stop("a batch failed");
}

static void send(struct bench *bench, struct hk_batch *batch)
{
  if (bench->b->ops->submit(bench->b, batch) != 0)
    stop("a batch was refused");
}

/* Fills the window of sensor 0, and imports its state into all sensors. */
static void states(struct bench *bench)
{
  const struct hk_backend_ops *ops = bench->b->ops;
  for (uint32_t i = 0; i < hk_detector_span(&bench->detector) + 2; i++) {
    fill(bench->batch[0], 1, ++bench->tick);
    send(bench, bench->batch[0]);
    take(bench);
  }
  const int64_t size = ops->export_(bench->b, 0, NULL, 0);
  void *state = size > 0 ? malloc((size_t)size) : NULL;
  if (!state || ops->export_(bench->b, 0, state, (size_t)size) != size)
    stop("no state");
  double start = now_s();
  for (uint32_t i = 1; i < bench->sensors; i++) {
    if (ops->import_(bench->b, i, state, (size_t)size) != 0)
      stop("a state was refused");
  }
  printf("import  %u states of %lld bytes: %.3f s\n", bench->sensors, (long long)size, now_s() - start);
  start = now_s();
  for (uint32_t i = 0; i < bench->sensors; i++) {
    if (ops->export_(bench->b, i, state, (size_t)size) != size)
      stop("no state");
  }
  printf("export  %u states: %.3f s\n", bench->sensors, now_s() - start);
  free(state);
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void told(const char *what, double *took, uint32_t n)
{
  qsort(took, n, sizeof *took, compare);
  printf("  %s p50 %.1f us, p99 %.1f us", what, took[n / 2] * 1e6, took[(uint64_t)n * 99 / 100] * 1e6);
}

static void ticks(struct bench *bench, uint32_t n)
{
  static double submit[TICKS], all[TICKS];
  uint32_t done = 0;
  uint64_t scored = 0;
  for (const double end = now_s() + LONGEST; done < TICKS && (done < 8 || now_s() < end); done++) {
    fill(bench->batch[0], n, ++bench->tick);
    const double start = now_s();
    send(bench, bench->batch[0]);
    submit[done] = now_s() - start;
    take(bench);
    all[done] = now_s() - start;
    for (uint32_t i = 0; i < n; i++)
      scored += !isnan(bench->batch[0]->score[i]);
  }
  printf("ticks of %u, %.0f %% scored:", n, 100 * (double)scored / ((double)done * n));
  told("submit", submit, done);
  told("submit to reaped", all, done);
  printf(", %u ticks\n", done);
}

/* Ticks of all sensors with several in flight; points are made beforehand. */
static void stream(struct bench *bench)
{
  uint32_t sent = 0, taken = 0;
  for (int i = 0; i < IN_FLIGHT; i++)
    fill(bench->batch[i], bench->sensors, ++bench->tick);
  const double start = now_s();
  while (taken < sent || sent < 8 || now_s() < start + LONGEST) {
    const bool more = sent < 8 || now_s() < start + LONGEST;
    if (more && sent - taken < IN_FLIGHT) {
      struct hk_batch *batch = bench->batch[sent % IN_FLIGHT];
      for (uint32_t i = 0; sent >= IN_FLIGHT && i < batch->n; i++)
        batch->time[i] += IN_FLIGHT * SECOND;
      send(bench, batch);
      sent++;
    } else {
      take(bench);
      taken++;
    }
  }
  bench->tick += sent - IN_FLIGHT;
  printf("ticks of %u, %d in flight: %.1f us each\n", bench->sensors, IN_FLIGHT, (now_s() - start) / sent * 1e6);
}

static int larger_first(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x < y) - (x > y);
}

int main(int argc, char **argv)
{
  struct bench bench = { 0 };
  char error[256] = "";
  uint32_t sizes[16] = { 1, 100, 10000 }, n = argc > 3 ? 0 : 3;
  for (int i = 3; i < argc && n < 16; i++)
    sizes[n++] = (uint32_t)strtoul(argv[i], NULL, 10);
  qsort(sizes, n, sizeof *sizes, larger_first); /* so that no sensor of a tick has missed an earlier one */
  bench.sensors = n > 0 ? sizes[0] : 0;
  if (argc < 2 || bench.sensors == 0)
    stop("usage: bench_road cpu|cuda [KEYS [SENSORS...]]");
  if (hk_detector_parse(argc > 2 ? argv[2] : "", &bench.detector, error, sizeof error) != 0)
    stop(error);
  const struct hk_backend_config config = {
    .detectors = &bench.detector, .n_detectors = 1, .max_sensors = bench.sensors, .in_flight = IN_FLIGHT
  };
  const bool cuda = strcmp(argv[1], "cuda") == 0;
  if ((cuda ? hk_cuda_open : hk_cpu_open)(&bench.b, &config, error, sizeof error) != 0)
    stop(error);
  double start = now_s();
  for (uint32_t i = 0; i < bench.sensors; i++) {
    if (bench.b->ops->add(bench.b, i, 0, i) != 0)
      stop(cuda ? hk_cuda_failure(bench.b) : "no room for sensors");
  }
  printf("%s, %s\nadd     %u sensors: %.3f s, %llu bytes\n", argv[1], argc > 2 ? argv[2] : "", bench.sensors, now_s() - start,
         (unsigned long long)bench.b->ops->need(bench.b, 0, bench.sensors));
  start = now_s();
  for (int i = 0; i < IN_FLIGHT; i++) {
    if (!(bench.batch[i] = hk_batch_new(bench.b, bench.sensors)))
      stop("no memory for batches");
  }
  printf("batches of %u: %.3f s\n", bench.sensors, now_s() - start);
  states(&bench);
  stream(&bench);
  for (uint32_t i = 0; i < n; i++)
    ticks(&bench, sizes[i]);
  for (int i = 0; i < IN_FLIGHT; i++)
    hk_batch_free(bench.batch[i]);
  bench.b->ops->close(bench.b);
  return 0;
}
