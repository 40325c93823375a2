/* Measures algorithm = graph through submit and reap: ticks a second with N points of each sensor in a batch, and their share
 * of the rate at which the GPU's memory could read and write the graphs without any other work. That rate is the bytes a
 * second of a copy within the device in the same run, divided by the bytes of a graph that a tick reads and writes.
 *
 *   bench_graph [--backend NAME] [--sensors N] [--detector KEYS] [--points N,N...] [--crowd N:POINTS]
 *
 * --crowd: N sensors more, each of which has so many points in each batch. Every sensor has its own wave and noise. Graphs are
 * full before timing begins. */
#include "cpu/graph/graph.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/options.h"
#include "tests/bench/programs/bench.h"

#ifdef HK_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 4
#define ROUNDS 15     /* 60 batches: with one point a sensor they are whole cycles of scores at strides 2, 5 and 12; */
#define ROUNDS_LONG 5 /* for long batches */
#define LONG 8        /* points a sensor */
#define TABLE 65536u
#define INTERVAL 1000000000ll
#define ROW 8 /* --points, most */

struct bench {
  struct hk_backend *backend;
  struct hk_detector detector;
  struct hk_batch *batch[IN_FLIGHT];
  uint32_t sensors;
  uint32_t crowd, crowd_points; /* sensors more, the highest slots; their points in each batch */
  uint32_t tick, crowd_tick;    /* so far */
  float wave[TABLE], noise[TABLE];
};

static void die(const char *what)
{
  fprintf(stderr, "bench_graph: %s\n", what);
  exit(1);
}

/* Adds the next `points` points of n sensors to a batch; *tick: how many they have had. */
static void add_points(const struct bench *b, struct hk_batch *batch, uint32_t first, uint32_t n, uint32_t points, uint32_t *tick)
{
  uint32_t i = batch->n;
  for (uint32_t p = 0; p < points; p++, (*tick)++) {
    for (uint32_t s = first; s < first + n; s++, i++) {
      const uint32_t random = (*tick * 2654435761u) ^ (s * 40503u);
      batch->slot[i] = s;
      batch->time[i] = (int64_t)(*tick + 1) * INTERVAL;
      batch->value[i] = (double)(b->wave[(*tick * 1311u + s * 77u) % TABLE] + b->noise[(random ^ random >> 15) % TABLE]);
    }
  }
  batch->n = i;
}

/* The next `points` points of every sensor, and those of the crowd. */
static void fill(struct bench *b, struct hk_batch *batch, uint32_t points)
{
  batch->n = 0;
  batch->arrival = (int64_t)b->tick * INTERVAL;
  add_points(b, batch, 0, b->sensors, points, &b->tick);
  add_points(b, batch, b->sensors, b->crowd, b->crowd_points, &b->crowd_tick);
}

/* Submits batches of `points` points a sensor, as many as may be in flight. Returns the seconds that they took. */
static double turn(struct bench *b, uint32_t points, uint64_t *scores, uint64_t *events)
{
  for (int i = 0; i < IN_FLIGHT; i++)
    fill(b, b->batch[i], points);
  const double start = now_s();
  for (int i = 0; i < IN_FLIGHT; i++)
    if (b->backend->ops->submit(b->backend, b->batch[i]) != 0)
      die("a batch was refused");
  for (int i = 0; i < IN_FLIGHT;) {
    struct hk_batch *batch = b->backend->ops->reap(b->backend);
    if (!batch) {
      b->backend->ops->wait(b->backend);
      continue;
    }
    if (batch->status != 0)
      die("a batch failed");
    *events += batch->n_events;
    i++;
  }
  const double took = now_s() - start;
  for (int i = 0; i < IN_FLIGHT; i++)
    for (uint32_t p = 0; p < b->batch[i]->n; p++)
      *scores += !isnan(b->batch[i]->score[p]);
  return took;
}

/* Bytes a second that a copy within the device reads and writes together; 0 without a device. */
static double bandwidth(void)
{
#ifdef HK_HAVE_CUDA
  const size_t bytes = (size_t)2 << 30;
  void *from = NULL, *to = NULL;
  double best = 0;
  if (!cudaMalloc(&from, bytes) && !cudaMalloc(&to, bytes))
    for (int i = 0; i < ROUNDS_LONG; i++) {
      const double start = now_s();
      if (cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice) || cudaDeviceSynchronize())
        break;
      best = fmax(best, 2 * (double)bytes / (now_s() - start));
    }
  cudaFree(from);
  cudaFree(to);
  return best;
#else
  return 0;
#endif
}

static void measure(struct bench *b, double copied, bool device, const uint32_t *each, uint32_t n)
{
  const struct hk_detector *d = &b->detector;
  const double nodes = d->resident - d->window,
               moved = nodes * (6 + (d->level > 0) + 1) * 4; /* numbers of a node: read; written */
  if (b->crowd)
    printf("in each batch %u sensors more, with %u points each\n", b->crowd, b->crowd_points);
  printf("%6s %14s %10s %8s %16s %10s\n", "points", "M ticks/s", "us/batch", "scores", "memory, M ticks/s", "share");
  for (uint32_t i = 0; i < n; i++) {
    const int rounds = each[i] < LONG ? ROUNDS : ROUNDS_LONG;
    const double ticks = ((double)b->sensors * each[i] + (double)b->crowd * b->crowd_points) * IN_FLIGHT * rounds;
    double took = 0;
    uint64_t scores = 0, events = 0;
    for (int round = 0; round < rounds; round++)
      took += turn(b, each[i], &scores, &events);
    printf("%6u %14.3f %10.0f %8.3f", each[i], ticks / took / 1e6, took / (IN_FLIGHT * rounds) * 1e6, (double)scores / ticks);
    if (device && copied > 0)
      printf(" %16.1f %10.3f", copied / moved / 1e6, ticks / took * moved / copied);
    printf("   %llu events\n", (unsigned long long)events);
    fflush(stdout);
  }
}

static void make_signals(struct bench *b)
{
  for (uint32_t i = 0; i < TABLE; i++) {
    b->wave[i] = sinf(6.2831853f * (float)i / TABLE);
    float sum = 0;
    for (int k = 0; k < 12; k++)
      sum += (float)rand() / (float)RAND_MAX;
    b->noise[i] = 0.2f * (sum - 6);
  }
}

int main(int argc, char **argv)
{
  static struct bench b;
  const char *keys = "algorithm=graph,window=20,resident=1500,interval=1s", *name = "cuda";
  char error[512];
  int choice = 0;
  uint32_t each[ROW] = { 1, 2, 3, 4, 8, 16, 32, 64 }, n_each = ROW;
  b.sensors = 65536;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--backend") == 0)
      name = argv[i + 1];
    else if (strcmp(argv[i], "--sensors") == 0)
      b.sensors = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--detector") == 0)
      keys = argv[i + 1];
    else if (strcmp(argv[i], "--points") == 0) {
      char *at = argv[i + 1];
      for (n_each = 0; n_each < ROW && *at; at += *at == ',')
        if ((each[n_each++] = (uint32_t)strtoul(at, &at, 10)) - 1 >= HK_BATCH_PER_SENSOR)
          die("bad arguments");
    } else if (strcmp(argv[i], "--crowd") == 0) {
      char *at = argv[i + 1];
      b.crowd = (uint32_t)strtoul(at, &at, 10);
      if (*at != ':' || (b.crowd_points = (uint32_t)strtoul(at + 1, NULL, 10)) - 1 >= HK_BATCH_PER_SENSOR)
        die("bad arguments");
    }
  }
  if (hk_option_word(argv, "--backend", name, hk_choices, &choice) != 0 ||
      hk_detector_parse(keys, &b.detector, error, sizeof error) != 0)
    die("bad arguments");
  const struct hk_backend_config config = {
    .detectors = &b.detector, .n_detectors = 1, .max_sensors = b.sensors + b.crowd, .in_flight = IN_FLIGHT
  };
  if (hk_choose_backend(&b.backend, choice, &config, error, sizeof error) < 0) {
    printf("%s\n", error);
    return 77;
  }
  make_signals(&b);
  for (uint32_t s = 0; s < b.sensors + b.crowd; s++)
    if (b.backend->ops->add(b.backend, s, 0, s) != 0)
      die("no memory for so many sensors");
  for (int i = 0; i < IN_FLIGHT; i++)
    if (!(b.batch[i] = hk_batch_new(b.backend, (b.sensors + b.crowd) * HK_BATCH_PER_SENSOR)))
      die("no memory for batches");
  const bool device = strcmp(b.backend->ops->name, "cuda") == 0 && b.detector.algorithm == HK_ALGORITHM_GRAPH;
  const double copied = device ? bandwidth() : 0;
  uint64_t scores = 0, events = 0;
  while (b.tick < b.detector.resident + 100 || (b.crowd && b.crowd_tick < b.detector.resident + 100))
    (void)turn(&b, HK_BATCH_PER_SENSOR, &scores, &events);
  printf("backend %s, %s: %u sensors", b.backend->ops->name, keys, b.sensors);
  if (device)
    printf(", %.1f KiB of graph each; a copy within the device reads and writes %.0f GB/s",
           (double)hk_graph_bytes(&b.detector, 4) / 1024, copied / 1e9);
  printf("\n");
  measure(&b, copied, device, each, n_each);
  for (int i = 0; i < IN_FLIGHT; i++)
    hk_batch_free(b.batch[i]);
  b.backend->ops->close(b.backend);
  return 0;
}
