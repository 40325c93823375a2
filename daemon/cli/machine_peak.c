/* Float32 multiply-add peak. Each loop keeps 12 independent sums in registers: enough to hide the latency of the
 * multiply-add on two ports, few enough for 16 registers. The compiler fuses a * b + c where the target has it. */
#include "daemon/cli/machine_peak.h"
#include "cpu/monotonic.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

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
      /* prevents the compiler from computing the loop in advance, or from making fewer, wider steps of it */                    \
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
  int64_t until;           /* ns, hk_monotonic */
  double made;             /* out: multiply-adds */
  int64_t wall, processor; /* out: ns that they took */
  float sink;              /* out: makes the sums necessary */
};

static int64_t processor_time(clockid_t clock)
{
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *machine_peak_run(void *arg)
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
  const int64_t started = hk_monotonic(), used = processor_time(CLOCK_THREAD_CPUTIME_ID);
  do { /* at least once, even if the thread begins late */
    runner->sink += work(0.999f);
    rounds += ROUNDS;
    runner->wall = hk_monotonic() - started;
  } while (started + runner->wall < runner->until);
  runner->processor = processor_time(CLOCK_THREAD_CPUTIME_ID) - used;
  runner->made = rounds * SUMS * lanes;
  return NULL;
}

int64_t hk_peak_process_time(void)
{
  return processor_time(CLOCK_PROCESS_CPUTIME_ID);
}

struct hk_peak hk_peak_measure(uint32_t threads, double seconds)
{
  struct runner *runners = calloc(threads < THREADS_MAX ? threads : THREADS_MAX, sizeof *runners);
  const int64_t until = hk_monotonic() + (int64_t)(seconds * 1e9);
  struct hk_peak peak = { 0, 0 };
  double made = 0, processor = 0;
  uint32_t n = 0;
  if (!runners)
    return peak;
  for (; n < threads && n < THREADS_MAX; n++) {
    runners[n].until = until;
    if (pthread_create(&runners[n].thread, NULL, machine_peak_run, &runners[n]) != 0)
      break;
  }
  for (uint32_t i = 0; i < n; i++) {
    pthread_join(runners[i].thread, NULL);
    if (runners[i].wall > 0)
      peak.rate += runners[i].made * 1e9 / (double)runners[i].wall;
    made += runners[i].made;
    processor += (double)runners[i].processor;
  }
  if (processor > 0)
    peak.core = made * 1e9 / processor;
  free(runners);
  return peak;
}
