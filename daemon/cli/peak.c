/* Float32 multiply-add peak. Each loop keeps 12 independent sums in registers: enough to hide the latency of the
 * multiply-add on two ports, few enough for 16 registers. The compiler fuses a * b + c where the target has it. */
#include "daemon/cli/peak.h"
#include "daemon/cli/progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SUMS 12
#define ROUNDS 20000 /* between two looks at the clock */
#define THREADS_MAX 1024

/* Defines a function that makes ROUNDS * SUMS multiply-adds of `lanes` lanes and returns something that depends on all. */
#define MULTIPLY_ADD(name, lanes, attributes)                                                                                    \
  attributes static float name(float factor)                                                                                     \
  {                                                                                                                              \
    typedef float vector __attribute__((vector_size(4 * (lanes))));                                                              \
    const vector a = { 0 }, b = a + factor, c = a + (1 - factor);                                                                \
    vector s0 = a, s1 = a + 1, s2 = a + 2, s3 = a + 3, s4 = a + 4, s5 = a + 5, s6 = a + 6, s7 = a + 7, s8 = a + 8, s9 = a + 9,   \
           s10 = a + 10, s11 = a + 11;                                                                                           \
    for (int i = 0; i < ROUNDS; i++) {                                                                                           \
      s0 = s0 * b + c;                                                                                                           \
      s1 = s1 * b + c;                                                                                                           \
      s2 = s2 * b + c;                                                                                                           \
      s3 = s3 * b + c;                                                                                                           \
      s4 = s4 * b + c;                                                                                                           \
      s5 = s5 * b + c;                                                                                                           \
      s6 = s6 * b + c;                                                                                                           \
      s7 = s7 * b + c;                                                                                                           \
      s8 = s8 * b + c;                                                                                                           \
      s9 = s9 * b + c;                                                                                                           \
      s10 = s10 * b + c;                                                                                                         \
      s11 = s11 * b + c;                                                                                                         \
      /* keeps the loop from being solved ahead or turned into fewer, wider steps */                                             \
      __asm__ volatile("" ::: "memory");                                                                                         \
    }                                                                                                                            \
    const vector sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11;                                              \
    float all = 0;                                                                                                               \
    for (int i = 0; i < (lanes); i++)                                                                                            \
      all += sum[i];                                                                                                             \
    return all;                                                                                                                  \
  }

MULTIPLY_ADD(portable, 4, )
#if defined(__x86_64__)
MULTIPLY_ADD(avx2, 8, __attribute__((target("avx2,fma"))))
MULTIPLY_ADD(avx512, 16, __attribute__((target("avx512f"))))
#endif

struct runner {
  pthread_t thread;
  int64_t until; /* ns, hk_clock */
  double rate;   /* out: multiply-adds a second */
  float sink;    /* out: so that the sums are wanted */
};

static void *run(void *arg)
{
  struct runner *runner = arg;
  float (*work)(float) = portable;
  double lanes = 4, rounds = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    work = avx512;
    lanes = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    work = avx2;
    lanes = 8;
  }
#endif
  const int64_t started = hk_clock();
  int64_t now = started;
  for (; now < runner->until; now = hk_clock()) {
    runner->sink += work(0.999f);
    rounds += ROUNDS;
  }
  runner->rate = now > started ? rounds * SUMS * lanes * 1e9 / (double)(now - started) : 0;
  return NULL;
}

double hk_peak_measure(uint32_t threads, double seconds)
{
  struct runner *runners = calloc(threads < THREADS_MAX ? threads : THREADS_MAX, sizeof *runners);
  const int64_t until = hk_clock() + (int64_t)(seconds * 1e9);
  uint32_t n = 0;
  double rate = 0;
  if (!runners)
    return 0;
  for (; n < threads && n < THREADS_MAX; n++) {
    runners[n].until = until;
    if (pthread_create(&runners[n].thread, NULL, run, &runners[n]) != 0)
      break;
  }
  for (uint32_t i = 0; i < n; i++) {
    pthread_join(runners[i].thread, NULL);
    rate += runners[i].rate;
  }
  free(runners);
  return rate;
}
