/* Measures the speed of choosing neighbours by correlation on the GPU and on one thread of the host, and compares their
 * answers.
 *
 * bench_correlate [MEMBERS...]: each member chooses 8 of all others, from 512 rows. On the host 64 members choose, and
 * their time is scaled to all members. Without a GPU the program reports that and exits with 77. */
#include "cpu/field/residual.h"
#include "gpu/field/correlate_gpu.h"
#include "tests/bench/programs/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define Q 8u
#define HOST 64u /* members that choose on the host */
#define RUNS 3u

static uint64_t seed = 1;

static float uniform(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (float)(seed >> 40) / 16777216.0f;
}

static void compare(uint32_t n)
{
  float *ring = malloc((size_t)HK_FIELD_RESIDENT * n * sizeof *ring);
  uint32_t *due = malloc(n * sizeof *due), *found = malloc((size_t)n * Q * sizeof *found),
           *want = malloc((size_t)HOST * Q * sizeof *want);
  char error[256];
  double host[2], best = 1e9, most = 0;
  if (!ring || !due || !found || !want)
    exit(1);
  for (size_t row = 0; row < HK_FIELD_RESIDENT; row++) {
    float front[16];
    for (uint32_t k = 0; k < 16; k++)
      front[k] = uniform() - 0.5f;
    for (uint32_t i = 0; i < n; i++)
      ring[row * n + i] = front[i % 16] + 2 * uniform();
  }
  for (uint32_t i = 0; i < n; i++)
    due[i] = i;
  struct hk_correlate_task task = { ring, n, HK_FIELD_RESIDENT, n, Q, due, n, found };
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_s();
    if (hk_correlate_gpu(&task, 0, error, sizeof error) != 0) {
      printf("skipped: %s\n", error);
      exit(SKIPPED);
    }
    const double took = now_s() - begin;
    best = took < best ? took : best;
    most = took > most ? took : most;
  }
  for (uint32_t k = 0; k < 2; k++) { /* one member, whose time is nearly that of the preparation, and HOST members */
    task.found = want;
    task.n_due = k == 0 ? 1 : HOST;
    const double begin = now_s();
    if (hk_correlate(&task) != 0)
      exit(1);
    host[k] = now_s() - begin;
  }
  const double all = host[0] + (host[1] - host[0]) / (HOST - 1) * (n - 1);
  printf("%u members: GPU %.3f s with all copies (to %.3f), %.2f TFLOP/s; one thread of the host %.1f s, of which %.2f s once: "
         "%.0f times; "
         "answers %s\n",
         n, best, most, 2.0 * HK_FIELD_RESIDENT * n * n / best * 1e-12, all, host[0], all / best,
         memcmp(found, want, (size_t)HOST * Q * sizeof *want) == 0 ? "are the same" : "DIFFER");
  fflush(stdout);
  free(ring);
  free(due);
  free(found);
  free(want);
}

int main(int n_args, char **args)
{
  if (n_args == 1) {
    compare(4096);
    compare(65536);
  }
  for (int k = 1; k < n_args; k++) {
    const uint32_t n = (uint32_t)strtoul(args[k], NULL, 10);
    if (n < 2 * HOST) {
      fprintf(stderr, "usage: bench_correlate [MEMBERS...], at least %u\n", 2 * HOST);
      return 2;
    }
    compare(n);
  }
  return 0;
}
