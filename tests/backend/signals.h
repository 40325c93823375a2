/* Series that the conformance test feeds: the kinds of readings that sensors give, and those that go wrong.
 *
 * Everything follows from the kind and the seed, so that every run and every backend sees the same points. */
#ifndef HK_TEST_SIGNALS_H
#define HK_TEST_SIGNALS_H

#include <stdint.h>

#define TEST_INTERVAL 1000000000 /* ns between samples */

enum signal {
  SIGNAL_SINE, /* with noise */
  SIGNAL_AR,   /* AR(1) that turns from 0.9 to -0.5 in the middle */
  SIGNAL_STEP,
  SIGNAL_FREQUENCY, /* a sine that changes its period in the middle */
  SIGNAL_NOISE,
  SIGNAL_OFFSET,    /* 1e6 +- 0.1 */
  SIGNAL_QUANTISED, /* three levels */
  SIGNAL_RAMP,      /* wanders off its reference, so that the ring is moved */
  SIGNAL_UNDERTONE, /* a weak sine under one 200 times as strong, which ends in the middle */
  SIGNAL_PURE,      /* a sine with no noise: both matrices have rank 2 */
  SIGNAL_CONSTANT,
  SIGNAL_TINY,     /* 1e-35, which counts as constant, then 1e-25 */
  SIGNAL_DENORMAL, /* 1e-40 */
  SIGNAL_HUGE,     /* 1e29, and points beyond what is accepted */
  SIGNAL_SICK,     /* NaN, infinities and 1e300 strewn in */
  SIGNAL_HOLES,    /* holes of 1 to 3 samples, and a long one in the middle */
  SIGNAL_LATE,     /* late and repeated points strewn in, times before 1970 too */
  SIGNALS,
};

/* One sensor's points, in the order in which they arrive. Owner: the caller. */
struct series {
  uint32_t n;
  int64_t *time;
  double *value;
};

/* Splitmix64: the next of a reproducible sequence. */
uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state); /* [0, 1) */
double test_normal(uint64_t *state);  /* mean 0, variance about 1 */

/* n points (with SIGNAL_HOLES and SIGNAL_LATE they stand for a few less samples). Ends the program when there is no memory. */
struct series series_new(enum signal kind, uint64_t seed, uint32_t n);
/* Leaves the first n points out. */
void series_skip(struct series *s, uint32_t n);
void series_free(struct series *s);

#endif
