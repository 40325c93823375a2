/* Series for the conformance test: see signals.h. */
#include "tests/backend/signals.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t test_random(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double test_uniform(uint64_t *state)
{
  return (double)(test_random(state) >> 11) * 0x1p-53;
}

double test_normal(uint64_t *state)
{
  double sum = -6;
  for (int i = 0; i < 12; i++)
    sum += test_uniform(state);
  return sum;
}

/* Sample i of n of a well-behaved kind. *memory is 0 at the start of a series. */
static double sample(enum signal kind, uint64_t *random, uint32_t i, uint32_t n, double *memory)
{
  const bool changed = i > n / 2;
  const double noise = test_normal(random), wave = sin(6.283185307179586 * i / 23.7);
  switch (kind) {
  case SIGNAL_AR:
    return *memory = (changed ? -0.5 : 0.9) * *memory + noise;
  case SIGNAL_STEP:
    return changed + 0.3 * noise;
  case SIGNAL_FREQUENCY:
    *memory += changed ? 0.45 : 0.21;
    return sin(*memory) + 0.1 * noise;
  case SIGNAL_NOISE:
    return noise;
  case SIGNAL_OFFSET:
    return 1e6 + 0.1 * wave + 0.01 * noise;
  case SIGNAL_QUANTISED:
    return round(1.2 * wave + 0.2 * noise);
  case SIGNAL_RAMP:
    return 0.5 * i + wave + 0.1 * noise;
  case SIGNAL_UNDERTONE:
    return (changed ? 0 : 200 * wave) + sin(0.7 * i) + 0.01 * noise;
  case SIGNAL_PURE:
    return wave;
  case SIGNAL_CONSTANT:
    return 20;
  case SIGNAL_TINY:
    return (changed ? 1e-25 : 1e-35) * (wave + 0.2 * noise);
  case SIGNAL_DENORMAL:
    return 1e-40 * (wave + 0.2 * noise);
  case SIGNAL_HUGE:
    return test_random(random) % 50 == 0 ? 3e30 * wave : 1e29 * (wave + 0.2 * noise);
  default:
    return wave + 0.2 * noise;
  }
}

struct series series_new(enum signal kind, uint64_t seed, uint32_t n)
{
  static const double sick[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 1e300 };
  struct series s = { n, calloc(n + 1, sizeof *s.time), calloc(n + 1, sizeof *s.value) };
  if (!s.time || !s.value) {
    perror("series_new");
    exit(1);
  }
  uint64_t random = seed * 1000 + kind;
  int64_t time = 1700000000 * (int64_t)TEST_INTERVAL;
  double memory = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t lot = test_random(&random) % 1000;
    s.value[i] = sample(kind, &random, i, n, &memory);
    time += TEST_INTERVAL;
    s.time[i] = time;
    if (kind == SIGNAL_SICK && lot < 30) {
      s.value[i] = sick[lot % 4];
    } else if (kind == SIGNAL_HOLES && (lot < 40 || i == n / 2)) {
      time += (int64_t)(i == n / 2 ? 100 : 1 + lot % 3) * TEST_INTERVAL;
      s.time[i] = time;
    } else if (kind == SIGNAL_LATE && lot < 60 && i > 0) {
      s.time[i] = lot < 20 ? s.time[i - 1] : lot < 40 ? time - (int64_t)lot * TEST_INTERVAL : -5;
      time -= TEST_INTERVAL;
    } else if (kind == SIGNAL_LATE) {
      s.time[i] += (int64_t)(lot % 100) * 1000000; /* jitter of a tenth */
    }
  }
  return s;
}

void series_skip(struct series *s, uint32_t n)
{
  s->n -= n;
  memmove(s->time, s->time + n, s->n * sizeof *s->time);
  memmove(s->value, s->value + n, s->n * sizeof *s->value);
}

void series_free(struct series *s)
{
  free(s->time);
  free(s->value);
  *s = (struct series){ 0 };
}
