/* Shared by the benches: clocks, medians, and errors that end the program with a message. */
#ifndef HK_TESTS_BENCH_H
#define HK_TESTS_BENCH_H

#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program unless a call returned 0. */
static inline void check(const char *what, int code)
{
  if (code != 0)
    error(1, 0, "%s: %d", what, code);
}

/* Ends the program with a message, and with errno's if it is set. */
static inline void require(bool good, const char *what)
{
  if (!good)
    error(1, errno, "%s", what);
}

/* Seconds of a clock: CLOCK_MONOTONIC, or the processor time of the process or thread. */
static inline double seconds(clockid_t clock)
{
  struct timespec t;
  check("clock_gettime", clock_gettime(clock, &t));
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now_s(void)
{
  return seconds(CLOCK_MONOTONIC);
}

static inline double now_ms(void)
{
  return seconds(CLOCK_MONOTONIC) * 1e3;
}

static inline double now_us(void)
{
  return seconds(CLOCK_MONOTONIC) * 1e6;
}

/* Compares numbers for qsort, in ascending order. */
static inline int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of n numbers, which it sorts. */
static inline double median(double *t, size_t n)
{
  qsort(t, n, sizeof *t, by_value);
  return t[n / 2];
}

#endif
