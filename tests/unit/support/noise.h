/* Random numbers, the same ones for the same seed. */
#ifndef HK_TESTS_NOISE_H
#define HK_TESTS_NOISE_H

#include <math.h>
#include <stdint.h>

static uint64_t seed; /* each test begins with one of its own */

/* Above 0 and below 1. */
static inline double uniform(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

/* Of the standard normal distribution. */
static inline double noise(void)
{
  return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

#endif
