/* A backend under load: see load.h. */
#include "daemon/cli/load.h"
#include "cpu/backend/warmup.h"
#include "cpu/monotonic.h"
#include "cpu/rules/window.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/machine_peak.h"
#include "daemon/cli/progress.h"
#include "gpu/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAVE_BITS 12
#define NOISE_BITS 16
#define MAKERS_MAX 64
#define MAKE_ALONE 32768 /* fewer points than this are made by one thread */
#define BATCH (1u << 20)
#define SENSORS_CUDA 262144
#define ROOM_MOST (1u << 25) /* maximum and minimum number of points made ahead; between these, ROOM_TICKS ticks */
#define ROOM_LEAST (1u << 20)
#define ROOM_TICKS 16

/* ---- signals ---- */

static int load_make_tables(struct hk_load *load)
{
  load->wave = malloc(sizeof(float) << WAVE_BITS);
  load->noise = malloc(sizeof(float) << NOISE_BITS);
  if (!load->wave || !load->noise)
    return -ENOMEM;
  for (uint32_t i = 0; i < 1u << WAVE_BITS; i++)
    load->wave[i] = (float)sin(2 * M_PI / (1 << WAVE_BITS) * i);
  for (uint32_t i = 0; i < 1u << NOISE_BITS; i++) {
    double sum = 0; /* sum of 4 uniform numbers: nearly normal */
    for (uint32_t j = 0; j < 4; j++)
      sum += hk_random_element(4 * (uint64_t)i + j, 0);
    load->noise[i] = (float)(0.2 * sum * sqrt(3.0 / 4.0));
  }
  return 0;
}

static uint64_t load_mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A sensor's value at a tick: a sine of amplitude 1 about the sensor's level (-50 to 50), whose period varies between 25 and
 * 40 ticks at the sensor's own rate, and noise of standard deviation 0.2. An angle is a fraction of 2^32. */
static double value_at(const struct hk_load *load, uint32_t sensor, uint32_t tick)
{
  const uint64_t own = load_mix(sensor + 0x9e3779b97f4a7c15u), more = load_mix(own);
  const float level = (float)(int32_t)more * 0x1p-31f * 50;
  const float sway = 400 + (float)(uint32_t)(more >> 32) * 0x1p-32f * 400; /* its period, ticks */
  const uint32_t slow = (uint32_t)own + tick * (uint32_t)(4294967296.f / sway);
  /* frequency 0.0325 +- 0.0075: the sway's amplitude is 0.0075 sway / 2 pi turns */
  const float ahead = load->wave[slow >> (32 - WAVE_BITS)] * (0.0011937f * sway);
  const uint32_t angle = (uint32_t)(own >> 32) + tick * 139586437u + (uint32_t)(int64_t)(ahead * 4294967296.f);
  uint32_t lot = sensor * 0x9e3779b1u ^ tick * 0x85ebca6bu;
  lot = (lot ^ lot >> 15) * 0x2c1b3c6du;
  lot = (lot ^ lot >> 12) * 0x297a2d39u;
  return (double)(level + load->wave[angle >> (32 - WAVE_BITS)] + load->noise[lot >> (32 - NOISE_BITS)]);
}

/* Points to make: `ticks` ticks, from load->tick + 1 on, of `n` sensors: number (first + i * step) % load->sensors, where first
 * and step are below load->sensors (or 1). They go to load->made from `at` on. */
struct block {
  const struct hk_load *load;
  uint32_t first, step, n, ticks, at;
};

struct share {
  const struct block *block;
  uint32_t from, to; /* points of the block */
  pthread_t thread;
};

static void *make_share(void *arg)
{
  const struct share *share = arg;
  const struct block *b = share->block;
  const struct hk_load *load = b->load;
  uint32_t *slot = load->made.slot + b->at;
  int64_t *time = load->made.time + b->at;
  double *value = load->made.value + b->at;
  uint32_t tick = load->tick + 1 + share->from / b->n, i = share->from % b->n;
  uint64_t sensor = (b->first + (uint64_t)i * b->step) % load->sensors;
  for (uint32_t p = share->from; p < share->to; p++) {
    slot[p] = (uint32_t)sensor;
    time[p] = (int64_t)tick * HK_LOAD_STEP;
    value[p] = value_at(load, (uint32_t)sensor / load->alike, tick);
    sensor += b->step;
    if (sensor >= load->sensors)
      sensor -= load->sensors;
    if (++i == b->n) {
      i = 0;
      tick++;
      sensor = b->first;
    }
  }
  return NULL;
}

/* Makes a block of points, on all cores if it is large. If a thread cannot be created, this one does its share. */
static void load_make(const struct block *b)
{
  struct share shares[MAKERS_MAX];
  const uint32_t points = b->n * b->ticks, makers = points < MAKE_ALONE ? 1 : b->load->makers;
  bool running[MAKERS_MAX] = { false };
  for (uint32_t i = 0; i < makers; i++) {
    shares[i] =
        (struct share){ b, (uint32_t)((uint64_t)points * i / makers), (uint32_t)((uint64_t)points * (i + 1) / makers), 0 };
    running[i] = i + 1 < makers && pthread_create(&shares[i].thread, NULL, make_share, &shares[i]) == 0;
    if (!running[i])
      make_share(&shares[i]);
  }
  for (uint32_t i = 0; i < makers; i++)
    if (running[i])
      pthread_join(shares[i].thread, NULL);
}

/* ---- to the backend and back ---- */

static const char *failure(struct hk_backend *b, int status)
{
  const char *words = strcmp(b->ops->name, "cuda") == 0 ? hk_cuda_failure(b) : "";
  return words[0] ? words : strerror(-status);
}

/* Waits for the oldest batch in flight. */
static int load_take_back(struct hk_load *load, char *error, size_t size)
{
  struct hk_backend *b = load->backend;
  b->ops->wait(b);
  struct hk_batch *batch = b->ops->reap(b);
  if (!batch || batch->status < 0) {
    snprintf(error, size, "the %s backend failed: %s", b->ops->name, batch ? failure(b, batch->status) : "a batch is lost");
    return batch ? batch->status : -EIO;
  }
  uint32_t scores = 0;
  for (uint32_t i = 0; i < batch->n; i++)
    scores += !isnan(batch->score[i]);
  load->scores += scores;
  load->points += batch->n;
  load->events += batch->n_events;
  load->free[load->n_free++] = batch;
  load->in_flight--;
  return 0;
}

static int load_drain(struct hk_load *load, char *error, size_t size)
{
  int status = 0;
  while (status == 0 && load->in_flight > 0)
    status = load_take_back(load, error, size);
  return status;
}

/* Submits the points at .. at + n - 1, n <= capacity, once a batch is free. */
static int load_hand_over(struct hk_load *load, uint32_t at, uint32_t n, char *error, size_t size)
{
  int status = load->n_free == 0 ? load_take_back(load, error, size) : 0;
  if (status != 0)
    return status;
  struct hk_batch *batch = load->free[--load->n_free];
  batch->slot = load->made.slot + at;
  batch->time = load->made.time + at;
  batch->value = load->made.value + at;
  batch->n = n;
  batch->arrival = hk_monotonic();
  status = load->backend->ops->submit(load->backend, batch);
  if (status == 0) {
    load->in_flight++;
    return 0;
  }
  load->free[load->n_free++] = batch;
  snprintf(error, size, "the %s backend refused a batch: %s", load->backend->ops->name, strerror(abs(status)));
  return status < 0 ? status : -EIO;
}

/* Submits n points in as few batches as possible. */
static int hand_over_all(struct hk_load *load, uint32_t at, uint32_t n, char *error, size_t size)
{
  int status = 0;
  for (uint32_t done = 0; done < n && status == 0; done += load->capacity)
    status = load_hand_over(load, at + done, n - done < load->capacity ? n - done : load->capacity, error, size);
  return status;
}

/* The number of points that fill all that a detector's sensor keeps, and that precede its first score. */
static uint32_t fill_of(const struct hk_load *load, uint32_t detector)
{
  const struct hk_detector *d = &load->detectors[detector];
  const uint32_t span = hk_detector_span(d), first = hk_warmup(d).most;
  return (span > first ? span : first) + 2;
}

/* Sensors of a detector. */
static uint32_t sensors_of(const struct hk_load *load, uint32_t detector)
{
  return load->sensors / load->n_detectors + (detector < load->sensors % load->n_detectors);
}

/* Gives the sensors of a detector their first points, the last of them at tick `last`. */
static int fill_sensors(struct hk_load *load, uint32_t detector, uint32_t last, struct hk_progress_line *progress, char *error,
                        size_t size)
{
  const uint32_t all = sensors_of(load, detector);
  const uint32_t regions = load->room / load->capacity < HK_LOAD_IN_FLIGHT ? load->room / load->capacity : HK_LOAD_IN_FLIGHT;
  uint32_t left = fill_of(load, detector), region = 0;
  int status = load_drain(load, error, size);
  while (left > 0 && status == 0) {
    const uint32_t most = left < HK_BATCH_PER_SENSOR ? left : HK_BATCH_PER_SENSOR;
    const uint32_t ticks = most < load->capacity ? most : load->capacity, sensors = load->capacity / ticks;
    load->tick = last - left;
    for (uint32_t first = 0; first < all && status == 0; first += sensors) {
      const uint32_t n = all - first < sensors ? all - first : sensors;
      if (load->in_flight == regions && (status = load_take_back(load, error, size)) != 0)
        break;
      const struct block block = { load,  detector + first * load->n_detectors, load->n_detectors, n,
                                   ticks, region++ % regions * load->capacity };
      load_make(&block);
      status = load_hand_over(load, block.at, n * ticks, error, size);
      hk_progress_show(progress, ((double)detector + (double)(last - left) / last) / load->n_detectors, load->points);
    }
    left -= ticks;
  }
  return status;
}

int hk_load_fill(struct hk_load *load, char *error, size_t size)
{
  struct hk_progress_line progress = hk_progress_start(false);
  uint32_t last = 0;
  int status = 0;
  for (uint32_t i = 0; i < load->n_detectors; i++)
    last = fill_of(load, i) > last ? fill_of(load, i) : last;
  for (uint32_t i = 0; i < load->n_detectors && i < load->sensors && status == 0; i++)
    status = fill_sensors(load, i, last, &progress, error, size);
  load->tick = last;
  if (status == 0)
    status = load_drain(load, error, size);
  hk_progress_end(&progress);
  return status;
}

int hk_load_round(struct hk_load *load, uint32_t ticks, struct hk_load_round *round, char *error, size_t size)
{
  const struct block block = { load, 0, 1, load->sensors, ticks, 0 };
  const uint64_t scores = load->scores, points = load->points;
  load_make(&block);
  if (load->together)
    (void)pthread_barrier_wait(load->together);
  const int64_t started = hk_monotonic(), used = hk_peak_process_time();
  int status = 0;
  for (uint32_t i = 0; i < ticks && status == 0; i += load->each)
    status =
        hand_over_all(load, i * load->sensors, load->sensors * (ticks - i < load->each ? ticks - i : load->each), error, size);
  if (status == 0)
    status = load_drain(load, error, size);
  *round = (struct hk_load_round){ load->scores - scores, load->points - points, hk_monotonic() - started,
                                   hk_peak_process_time() - used };
  load->tick += ticks;
  return status;
}

int hk_load_run(struct hk_load *load, double seconds, struct hk_load_round *sum, char *error, size_t size)
{
  const uint32_t most = load->room / load->sensors;
  uint32_t ticks = 1;
  *sum = (struct hk_load_round){ 0 };
  for (double left = seconds; left > 0.1 * seconds; left = seconds - (double)sum->wall / 1e9) {
    struct hk_load_round round;
    const int status = hk_load_round(load, ticks, &round, error, size);
    if (status != 0)
      return status;
    const double fitting = left * 1e9 / ((double)round.wall / ticks);
    if (ticks > 1 || fitting < 2 || most == 1) { /* otherwise start and end dominated: this only shows how many to time */
      sum->scores += round.scores;
      sum->points += round.points;
      sum->wall += round.wall;
      sum->processor += round.processor;
    }
    ticks = fitting > most ? most : fitting < 1 ? 1 : (uint32_t)fitting;
    ticks -= ticks > load->each ? ticks % load->each : 0; /* so that all batches are alike */
  }
  return 0;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
  while (b != 0) {
    const uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int hk_load_latency(struct hk_load *load, uint32_t ready, uint32_t times, double *took, char *error, size_t size)
{
  uint32_t step = (uint32_t)(0.618 * load->sensors) | 1;
  while (common_divisor(step, load->sensors) != 1) /* so that the first `sensors` steps meet each once */
    step += 2;
  if (ready == load->sensors || load->sensors < 3)
    step = 1;
  int status = 0;
  for (uint32_t i = 0; i < times && status == 0; i++) {
    const struct block block = { load, (uint32_t)(load_mix(load->tick) % load->sensors), step, ready, 1, 0 };
    load_make(&block);
    const int64_t started = hk_monotonic();
    if ((status = hand_over_all(load, 0, ready, error, size)) == 0)
      status = load_drain(load, error, size);
    took[i] = (double)(hk_monotonic() - started) / 1e3;
    load->tick++;
  }
  return status;
}

/* ---- opening ---- */

/* Free memory of this machine, bytes; 0 if unknown. */
static uint64_t load_free_memory(void)
{
  FILE *file = fopen("/proc/meminfo", "r");
  char line[128];
  uint64_t kilobytes = 0;
  while (file && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) != 1)
    ;
  if (file)
    fclose(file);
  return kilobytes * 1024;
}

static uint64_t load_need_of(const struct hk_load *load)
{
  uint64_t need = 0;
  for (uint32_t i = 0; i < load->n_detectors; i++)
    need += load->backend->ops->need(load->backend, i, sensors_of(load, i));
  return need;
}

/* Enough to keep the backend busy, few enough that a tick does not take long. */
static uint32_t sensors_for(const struct hk_load *load, const struct hk_detector *d)
{
  const char *name = load->backend->ops->name;
  const uint32_t n = strcmp(name, "cuda") == 0 ? SENSORS_CUDA : strcmp(name, "reference") == 0 ? 64 : 4096;
  return d->algorithm == HK_ALGORITHM_SVD ? n / 16 : n;
}

/* Allocates columns for the points made ahead, and the batches for their results. */
static int load_make_room(struct hk_load *load, const struct hk_load_config *config)
{
  struct hk_backend *b = load->backend;
  const uint32_t most = config->batch ? config->batch : BATCH;
  const uint64_t some = (uint64_t)ROOM_TICKS * load->sensors;
  const uint32_t room = some > ROOM_MOST ? ROOM_MOST : some < ROOM_LEAST ? ROOM_LEAST : (uint32_t)some;
  load->capacity = most;
  if (most > HK_BATCH_PER_SENSOR && load->sensors < most / HK_BATCH_PER_SENSOR)
    load->capacity = load->sensors * HK_BATCH_PER_SENSOR; /* what hk_load_fill can use */
  if (load->each > load->capacity / load->sensors)
    load->each = load->capacity < load->sensors ? 1 : load->capacity / load->sensors;
  load->room = load->sensors > room ? load->sensors : room / load->sensors * load->sensors;
  if (load->room < HK_LOAD_IN_FLIGHT * load->capacity)
    load->room = HK_LOAD_IN_FLIGHT * load->capacity;
  load->made.time = b->ops->alloc(b, load->room * (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t)));
  if (!load->made.time || load_make_tables(load) != 0)
    return -ENOMEM;
  load->made.value = (double *)(load->made.time + load->room);
  load->made.slot = (uint32_t *)(load->made.value + load->room);
  for (uint32_t i = 0; i < HK_LOAD_IN_FLIGHT; i++) {
    load->memory[i] = hk_batch_new(b, load->capacity);
    if (!load->memory[i])
      return -ENOMEM;
    load->batch[i] = *load->memory[i];
    load->free[load->n_free++] = &load->batch[i];
  }
  return 0;
}

int hk_load_open(struct hk_load *load, const struct hk_load_config *config, char *error, size_t size)
{
  cpu_set_t cores;
  const uint32_t n_cores = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint32_t)CPU_COUNT(&cores) : 1;
  *load = (struct hk_load){ .makers = n_cores < MAKERS_MAX ? n_cores : MAKERS_MAX,
                            .detectors = config->detectors,
                            .n_detectors = config->n_detectors,
                            .alike = config->alike ? config->alike : 1,
                            .each = config->points ? config->points : 1,
                            .together = config->together };
  const struct hk_backend_config backend = { .detectors = config->detectors,
                                             .n_detectors = config->n_detectors,
                                             .max_sensors = config->sensors ? config->sensors : SENSORS_CUDA,
                                             .threads = config->threads,
                                             .in_flight = HK_LOAD_IN_FLIGHT,
                                             .device = config->device };
  int status = hk_choose_backend(&load->backend, config->choice, &backend, error, size);
  if (status < 0)
    return status;
  struct hk_backend *b = load->backend;
  const bool device = strcmp(b->ops->name, "cuda") == 0;
  load->sensors = config->sensors ? config->sensors : sensors_for(load, &config->detectors[0]) / load->alike * load->alike;
  load->need = load_need_of(load);
  const uint64_t available = device ? 0 : load_free_memory();
  if (available > 0 && load->need > available) {
    snprintf(error, size, "no memory for %u sensors: they need %" PRIu64 " bytes, %" PRIu64 " are free", load->sensors,
             load->need, available);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < load->sensors && status == 0; i++)
    status = b->ops->add(b, i, i % config->n_detectors, hk_seed((const char *)&i, sizeof i));
  if (status != 0) {
    snprintf(error, size, "no memory for %u sensors: they need %" PRIu64 " bytes (%s)", load->sensors, load->need,
             status < 0 || device ? failure(b, status) : "the machine has less");
    return -ENOMEM;
  }
  status = load_make_room(load, config);
  if (status != 0)
    snprintf(error, size, "no memory for the batches of %u sensors", config->sensors);
  return status;
}

void hk_load_close(struct hk_load *load)
{
  struct hk_backend *b = load->backend;
  if (b) {
    if (load->in_flight == 0) { /* otherwise something failed: the backend owns the memory until it closes; it is lost */
      for (uint32_t i = 0; i < HK_LOAD_IN_FLIGHT; i++)
        hk_batch_free(load->memory[i]);
      if (load->made.time)
        b->ops->free(b, load->made.time);
    }
    b->ops->close(b);
  }
  free(load->wave);
  free(load->noise);
}

/* ---- figures ---- */

static int load_compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double hk_load_quantile(double *numbers, uint32_t n, double share)
{
  qsort(numbers, n, sizeof *numbers, load_compare);
  const uint32_t i = (uint32_t)(share * n);
  return numbers[i < n ? i : n - 1];
}

uint32_t hk_load_products(const struct hk_detector *d)
{
  return d->algorithm == HK_ALGORITHM_IKA ? d->products + d->krylov * (d->operator_ == HK_OPERATOR_GRAM ? 2 : 1) : 0;
}
