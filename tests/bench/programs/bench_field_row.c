/* Measures the steps of a row of a large field, in milliseconds: taking its points one by one (put), closing it (close, which
 * includes the operator's computation), and writing the output as columns of a batch (make). Other benches measure the rest of
 * the road: bench_road batches and scores, bench_receive points from a socket.
 *
 * bench_field_row [MEMBERS]: 1,000,000 by default. Operators: residual with 8 and 16 neighbours on GPU 0,
 * despike and median on one thread of the host. Prints medians of ROWS rows, with their range. Without a GPU it
 * measures the host only. */
#include "cpu/field/field.h"
#include "gpu/cuda.h"
#include "tests/bench/programs/bench.h"
#include "tests/unit/support/noise.h"

#include <stdio.h>
#include <stdlib.h>

#define SETTLING 230u /* rows before, so that every member has weights */
#define ROWS 9u
#define INTERVAL ((int64_t)1000000000)

struct columns {
  uint32_t *slot;
  int64_t *time;
  double *value, *x;
};

static char why_not[256]; /* "" if the GPU computes the field */

static void told(void *arg, const char *why)
{
  (void)arg;
  snprintf(why_not, sizeof why_not, "%s", why ? why : "");
}

/* The times of one row of a field, in ms. */
struct spent {
  double put, close, make;
};

static struct spent take_row(struct hk_field *f, uint32_t n, int64_t row, const struct columns *c)
{
  struct hk_field_row out = { .n = 0 };
  struct spent t;
  uint32_t made = 0;
  const double front = 4 * uniform();
  for (uint32_t i = 0; i < n; i++)
    c->x[i] = front * (1 + i % 7) + uniform();
  const double begin = now_ms();
  for (uint32_t i = 0; i + 1 < n; i++) {
    hk_field_put(f, i, row * INTERVAL, c->x[i]);
    require(!hk_field_next(f, &out), "a row was closed early");
  }
  const double closing = now_ms();
  hk_field_put(f, n - 1, row * INTERVAL, c->x[n - 1]);
  const bool closed = hk_field_next(f, &out);
  const double making = now_ms();
  for (uint32_t i = 0; i < out.n; i++) {
    if (isnan(out.value[i]))
      continue;
    c->slot[made] = i;
    c->time[made] = out.time[i];
    c->value[made++] = out.value[i];
  }
  t = (struct spent){ closing - begin, making - closing, now_ms() - making };
  require(closed || row < 8, "a row was not closed");
  return t;
}

static void print(const char *step, double *t)
{
  const double middle = median(t, ROWS);
  printf("  %s %7.2f ms (%.2f to %.2f)", step, middle, t[0], t[ROWS - 1]);
}

static void measure(const char *keys, uint32_t n, uint32_t settling, const struct hk_offload_kind *kind, const struct columns *c)
{
  const struct hk_field_kinds kinds = { .residual = kind };
  const struct hk_field_place place = { kind ? &kinds : NULL, 0, 1, told, NULL };
  struct hk_field_rule rule;
  struct hk_field *f;
  char error[256];
  double t[3][ROWS];
  uint32_t number;
  if (hk_field_parse(keys, &rule, error, sizeof error) != 0)
    printf("%s\n", error);
  rule.members = n;
  check("hk_field_new", hk_field_new(&f, &rule));
  for (uint32_t i = 0; i < n; i++)
    check("hk_field_join", hk_field_join(f, &number));
  for (uint32_t i = 0; i < n && rule.kind == HK_FIELD_RESIDUAL; i++)
    for (uint32_t k = 0; k < rule.q; k++)
      hk_field_bind(f, i, k, (i + 1 + k) % n);
  hk_field_compute_at(f, &place);
  why_not[0] = 0;
  for (uint32_t row = 0; row < settling + ROWS && !why_not[0]; row++) {
    const struct spent spent = take_row(f, n, row, c);
    if (row < settling)
      continue;
    t[0][row - settling] = spent.put;
    t[1][row - settling] = spent.close;
    t[2][row - settling] = spent.make;
  }
  printf("%s, %u members, %s:", keys, n, kind ? "GPU" : "host");
  if (why_not[0]) {
    printf(" %s\n", why_not);
  } else {
    print("put", t[0]);
    print("close", t[1]);
    print("make", t[2]);
    printf("\n");
  }
  fflush(stdout);
  hk_field_free(f);
}

int main(int n_args, char **args)
{
  const uint32_t n = n_args > 1 ? (uint32_t)strtoul(args[1], NULL, 10) : 1000000;
  if (n < 64 || n > HK_FIELD_MEMBERS_MAX) {
    fprintf(stderr, "usage: bench_field_row [MEMBERS], from 64 to %d\n", HK_FIELD_MEMBERS_MAX);
    return 2;
  }
  const struct columns c = { malloc(n * sizeof *c.slot), malloc(n * sizeof *c.time), malloc(n * sizeof *c.value),
                             malloc(n * sizeof *c.x) };
  require(c.slot && c.time && c.value && c.x, "memory");
  seed = 1;
  measure("operator=residual,neighbours=graph,q=8", n, SETTLING, &hk_cuda_residual, &c);
  measure("operator=residual,neighbours=graph,q=16", n, SETTLING, &hk_cuda_residual, &c);
  measure("operator=despike", n, 40, NULL, &c);
  measure("operator=median", n, 40, NULL, &c);
  return 0;
}
