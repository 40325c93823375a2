/* Feeding backends: see harness.h. */
#include "tests/backend/harness.h"
#include "cpu/sst/kernels.h"
#include "cpu/sst/score.h"
#include "gpu/cuda.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define IN_FLIGHT 3

static void *zeroed(size_t n, size_t size)
{
  void *memory = calloc(n ? n : 1, size);
  if (!memory) {
    perror("harness");
    exit(1);
  }
  return memory;
}

struct points points_mix(const struct series *series, uint32_t n, uint64_t seed)
{
  struct points p = { .slots = n };
  uint32_t *at = zeroed(n, sizeof *at), total = 0;
  for (uint32_t i = 0; i < n; i++)
    total += series[i].n;
  p.slot = zeroed(total, sizeof *p.slot);
  p.time = zeroed(total, sizeof *p.time);
  p.value = zeroed(total, sizeof *p.value);
  while (p.n < total) {
    /* a burst of one sensor, mostly of a single point */
    const uint32_t slot = (uint32_t)(test_random(&seed) % n), longest = test_random(&seed) % 20 == 0 ? 80 : 1;
    for (uint32_t i = 0; i < longest && at[slot] < series[slot].n; i++, at[slot]++, p.n++) {
      p.slot[p.n] = slot;
      p.time[p.n] = series[slot].time[at[slot]];
      p.value[p.n] = series[slot].value[at[slot]];
    }
  }
  free(at);
  return p;
}

struct points points_of(struct series *series, uint32_t n, uint64_t seed)
{
  const struct points p = points_mix(series, n, seed);
  for (uint32_t i = 0; i < n; i++)
    series_free(&series[i]);
  return p;
}

struct hk_detector detector_parsed(const char *text)
{
  struct hk_detector d;
  char error[256];
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s: %s", text, error);
  return d;
}

void points_free(struct points *p)
{
  free(p->slot);
  free(p->time);
  free(p->value);
}

struct results results_new(uint32_t n)
{
  return (struct results){ zeroed(n, sizeof(float)), zeroed(n, 1), zeroed(n, sizeof(struct hk_event)), 0 };
}

void results_free(struct results *r)
{
  free(r->score);
  free(r->state);
  free(r->event);
}

const struct backend_kind *backend_kind(const char *name)
{
  static const struct backend_kind kinds[] = {
    { "cpu", hk_cpu_open, 2, 0 },
    { "cuda", hk_cuda_open, 1, 0 },
    { "reference", hk_reference_open, 1, 0 },
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(name, kinds[i].name) == 0)
      return &kinds[i];
  }
  return NULL;
}

static int open_kind(const struct backend_kind *kind, const struct hk_detector *detectors, uint32_t n, uint32_t sensors,
                     struct hk_backend **out)
{
  char error[256] = "";
  const struct hk_backend_config config = { .detectors = detectors,
                                            .n_detectors = n,
                                            .max_sensors = sensors,
                                            .threads = kind->threads,
                                            .in_flight = IN_FLIGHT,
                                            .blocks = kind->blocks };
  const int status = kind->open(out, &config, error, sizeof error);
  if (status != 0)
    fprintf(stderr, "%s: %s\n", kind->name, error);
  return status;
}

bool backend_present(const struct backend_kind *kind)
{
  const char *kernels = getenv("HANKELD_KERNELS");
  if (kernels && strcmp(kernels, hk_kernels_name()) != 0) {
    printf("1..0 # SKIP this machine has no %s, the best is %s\n", kernels, hk_kernels_name());
    return false;
  }
  struct hk_detector d;
  struct hk_backend *b;
  char error[256];
  if (hk_detector_parse("", &d, error, sizeof error) != 0)
    return true;
  const int status = open_kind(kind, &d, 1, 1, &b);
  if (status == 0)
    b->ops->close(b);
  if (status == -ENODEV)
    printf("1..0 # SKIP no device for %s\n", kind->name);
  return status != -ENODEV;
}

const struct backend_kind *backend_asked(int argc, char **argv, enum form *form, int *code)
{
  static const char *const forms[] = { [BRIEF] = "brief", [SANITIZE] = "sanitize" };
  const struct backend_kind *kind = argc >= 2 ? backend_kind(argv[1]) : NULL;
  bool good = kind && argc == 2;
  for (int i = BRIEF; kind && form && argc == 3 && i <= SANITIZE; i++)
    if (strcmp(argv[2], forms[i]) == 0) {
      *form = (enum form)i;
      good = true;
    }
  *code = good ? 0 : 2;
  if (!good)
    fprintf(stderr, "usage: %s cpu|cuda|reference%s\n", argv[0], form ? " [brief|sanitize]" : "");
  return good && backend_present(kind) ? kind : NULL;
}

struct hk_backend *backend_open(const struct backend_kind *kind, const struct hk_detector *detectors, uint32_t n,
                                uint32_t sensors)
{
  struct hk_backend *b;
  assert_int_equal(open_kind(kind, detectors, n, sensors, &b), 0);
  return b;
}

uint64_t sensor_seed(uint64_t seed)
{
  char name[32];
  return hk_seed(name, (size_t)snprintf(name, sizeof name, "s%llu", (unsigned long long)seed));
}

void sensor_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  assert_int_equal(b->ops->add(b, slot, detector, sensor_seed(seed)), 0);
}

void sensor_copy(struct hk_backend *from, uint32_t slot, struct hk_backend *to, uint32_t to_slot)
{
  const int64_t size = from->ops->export_(from, slot, NULL, 0);
  assert_true(size > 0);
  void *bytes = zeroed((size_t)size, 1);
  assert_int_equal(from->ops->export_(from, slot, bytes, (size_t)size), size);
  assert_int_equal(to->ops->import_(to, to_slot, bytes, (size_t)size), 0);
  free(bytes);
}

/* Takes the oldest batch back and puts its results where they belong. */
static struct hk_batch *collect(struct hk_backend *b, uint32_t *expected, struct results *out)
{
  struct hk_batch *batch;
  while (!(batch = b->ops->reap(b)))
    b->ops->wait(b);
  const uint32_t first = (uint32_t)(uintptr_t)batch->owner;
  assert_int_equal(batch->status, 0);
  assert_int_equal(first, *expected);
  *expected = first + batch->n;
  memcpy(out->score + first, batch->score, batch->n * sizeof *out->score);
  memcpy(out->state + first, batch->state, batch->n);
  for (uint32_t i = 0; i < batch->n_events; i++) {
    struct hk_event *event = &out->event[out->n_events++];
    *event = batch->event[i];
    assert_true(event->index < batch->n && batch->slot[event->index] == event->slot);
    assert_true(i == 0 || batch->event[i - 1].index < event->index);
    event->index += first;
  }
  return batch;
}

/* Fills a batch with points from `from` on; returns how many. */
static uint32_t fill(struct hk_batch *batch, const struct points *p, uint32_t from, uint32_t most, uint32_t *count)
{
  memset(count, 0, p->slots * sizeof *count);
  batch->n = 0;
  while (batch->n < most && count[p->slot[from + batch->n]]++ < HK_BATCH_PER_SENSOR) {
    const uint32_t i = from + batch->n;
    batch->slot[batch->n] = p->slot[i];
    batch->time[batch->n] = p->time[i];
    batch->value[batch->n] = p->value[i];
    batch->n++;
  }
  return batch->n;
}

void feed(struct hk_backend *b, const struct points *p, uint32_t from, uint32_t to, uint32_t cut, uint64_t random,
          struct results *out)
{
  struct hk_batch *spare[IN_FLIGHT];
  uint32_t spares = IN_FLIGHT, expected = from, *count = zeroed(p->slots, sizeof *count);
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    spare[i] = hk_batch_new(b, cut);
    assert_non_null(spare[i]);
  }
  while (from < to) {
    if (spares == 0)
      spare[spares++] = collect(b, &expected, out);
    struct hk_batch *batch = spare[--spares];
    const uint32_t most = random ? 1 + (uint32_t)(test_random(&random) % cut) : cut;
    batch->owner = (void *)(uintptr_t)from;
    from += fill(batch, p, from, to - from < most ? to - from : most, count);
    assert_int_equal(b->ops->submit(b, batch), 0);
  }
  while (spares < IN_FLIGHT)
    spare[spares++] = collect(b, &expected, out);
  assert_int_equal(expected, to);
  for (uint32_t i = 0; i < IN_FLIGHT; i++)
    hk_batch_free(spare[i]);
  free(count);
}

struct hk_backend *backend_filled(const struct hk_detector *detectors, uint32_t n, struct series *series, uint32_t sensors,
                                  uint32_t rest)
{
  struct hk_backend *b = backend_open(backend_kind("cpu"), detectors, n, sensors);
  struct series *first = zeroed(sensors, sizeof *first);
  for (uint32_t i = 0; i < sensors; i++) {
    sensor_add(b, i, i % n, i);
    first[i] = series[i];
    first[i].n = series[i].n > rest ? series[i].n - rest : 0;
  }
  struct points p = points_mix(first, sensors, 3);
  struct results ignored = results_new(p.n);
  feed(b, &p, 0, p.n, 5000, 0, &ignored);
  for (uint32_t i = 0; i < sensors; i++)
    series_skip(&series[i], first[i].n);
  results_free(&ignored);
  points_free(&p);
  free(first);
  return b;
}

bool event_same(const struct hk_event *a, const struct hk_event *b)
{
  return a->number == b->number && a->kind == b->kind && a->channel == b->channel && a->time == b->time && a->from == b->from &&
         a->instant == b->instant && memcmp(&a->score, &b->score, sizeof a->score) == 0 &&
         memcmp(&a->margin, &b->margin, sizeof a->margin) == 0 && memcmp(&a->before, &b->before, sizeof a->before) == 0 &&
         memcmp(&a->after, &b->after, sizeof a->after) == 0 &&
         memcmp(&a->spread_before, &b->spread_before, sizeof a->spread_before) == 0 &&
         memcmp(&a->spread_after, &b->spread_after, sizeof a->spread_after) == 0 &&
         memcmp(&a->sketch_before, &b->sketch_before, sizeof a->sketch_before) == 0 &&
         memcmp(&a->sketch_after, &b->sketch_after, sizeof a->sketch_after) == 0;
}

void results_same(const struct results *a, const struct results *b, const struct points *p, const char *what)
{
  for (uint32_t i = 0; i < p->n; i++) {
    if (a->state[i] != b->state[i] || memcmp(&a->score[i], &b->score[i], sizeof(float)) != 0)
      fail_msg("%s: point %u of slot %u: state %u score %.9g, and state %u score %.9g", what, i, p->slot[i], a->state[i],
               (double)a->score[i], b->state[i], (double)b->score[i]);
  }
  assert_int_equal(a->n_events, b->n_events);
  for (uint32_t i = 0; i < a->n_events; i++) {
    const struct hk_event *x = &a->event[i], *y = &b->event[i];
    if (x->index != y->index || x->slot != y->slot || !event_same(x, y))
      fail_msg("%s: event %u differs: point %u kind %u and point %u kind %u", what, i, x->index, x->kind, y->index, y->kind);
  }
}

struct hk_backend *conformance_open(const struct conformance *c, const struct backend_kind *kind, uint32_t last)
{
  struct hk_backend *b = backend_open(kind, c->detector, c->detectors, c->sensors);
  for (uint32_t i = 0; i < c->sensors; i++) {
    const uint32_t slot = last ? last - i : i;
    sensor_add(b, slot, i % c->detectors, i);
    if (c->filled)
      sensor_copy(c->filled, i, b, slot);
  }
  return b;
}

struct results conformance_run(const struct conformance *c, const struct backend_kind *kind, const struct points *p, uint32_t cut,
                               uint64_t random)
{
  struct hk_backend *b = conformance_open(c, kind, 0);
  struct results results = results_new(p->n);
  feed(b, p, 0, p->n, cut, random, &results);
  b->ops->close(b);
  return results;
}

void conformance_same(const struct conformance *c, const struct backend_kind *kind, uint32_t cut, uint64_t random,
                      const char *what)
{
  struct results got = conformance_run(c, kind, &c->points, cut, random);
  results_same(&c->expected, &got, &c->points, what);
  results_free(&got);
}

void conformance_free(struct conformance *c)
{
  points_free(&c->points);
  results_free(&c->expected);
  if (c->filled)
    c->filled->ops->close(c->filled);
}
