/* Measures the speed of focus on the GPU, compared with one thread of the host: one long line, and many lines at once, with
 * and without copies of the rows, one row and several at a time.
 *
 * bench_focus [LINES [SENSORS [host]]]: by default 100 lines of 10,000 sensors, 5 m apart, with a row every ms and changes that
 * travel outward at 1,000 m/s, seen by the 65 sensors within 160 m. `host`: only the host. Times are medians of some runs, with
 * the least and the greatest. Without a GPU the program reports that and exits with 77. */
#include "gpu/cuda.h"
#include "gpu/field/focus_gpu.h"
#include "tests/bench/programs/bench.h"
#include "tests/unit/support/noise.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define RUNS 7u
#define STEPS 64u /* rows of a run; x repeats after that many */

/* ---- lines ---- */

static struct hk_focus_line *line_of(uint32_t sensors, double uneven)
{
  const struct hk_focus_rule rule = {
    .keys = { .speed = { 1000 }, .speeds = 1, .reach = 160, .threshold = 7, .block = 8, .places = 1 },
    .interval = 0.001,
    .forget = 0.999f
  };
  struct hk_focus_line *line;
  char error[256];
  double *position = malloc(sensors * sizeof *position);
  check("memory", position ? 0 : -1);
  for (uint32_t j = 0; j < sensors; j++)
    position[j] = 5 * (j + uneven * uniform());
  check("hk_focus_new", hk_focus_new(&line, &rule, sensors, position, error, sizeof error));
  free(position);
  return line;
}

static double *values(uint32_t sensors)
{
  double *x = malloc((size_t)STEPS * sensors * sizeof *x);
  check("memory", x ? 0 : -1);
  for (size_t i = 0; i < (size_t)STEPS * sensors; i++)
    x[i] = uniform() + uniform() + uniform();
  return x;
}

/* The bytes and additions of a sensor's row if everything is read and written once: the value; the ring of samples, 2 block read
 * and one written; d and strength, written; the lags, and as many d as the place has sensors; c, its count and the peak, read and
 * written; strength, aim, top and its place, written and read; value and blamed. */
static void tell_floor(const struct hk_focus_line *line)
{
  const double view = (double)line->lags / line->f.n;
  const double bytes = 8 + 8 * (2 * line->f.block + 1) + 8 + 4 * view + 2 * view + 16 + 48 + 32 + 8;
  printf("a row of a sensor: %.1f sensors of a view, greatest lag %u rows; %.0f bytes at least, %.0f adds\n", view, line->f.keep,
         bytes, view + 2 * line->f.block);
}

/* ---- the host ---- */

static double host_us(struct hk_focus_line *line, const double *x)
{
  double t[RUNS];
  for (uint32_t k = 0; k < 8; k++) /* takes as long whether or not it has learned from the device's rows */
    hk_focus_row(line, line->f.any ? line->f.row + 1 : 0, x);
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < 4; k++)
      hk_focus_row(line, line->f.row + 1, x + (size_t)(4 * run + k) * line->f.n);
    t[run] = (now_us() - begin) / 4;
  }
  qsort(t, RUNS, sizeof *t, by_value);
  printf("  one thread of the host %.0f us (%.0f to %.0f), %.2f M points/s\n", t[RUNS / 2], t[0], t[RUNS - 1],
         line->f.n / t[RUNS / 2]);
  return t[RUNS / 2];
}

/* ---- the device ---- */

struct lines {
  struct hk_focus_gpu **g;
  uint32_t n;
  int64_t row;
};

/* Computes STEPS rows of all lines, `rows` at a time. Returns the us of a row of all lines. */
static double run_us(struct lines *l, const double *x, uint32_t sensors, uint32_t rows, uint64_t *found)
{
  struct hk_focus_gpu_row row;
  const double begin = now_us();
  for (uint32_t step = 0; step < STEPS; step += rows, l->row += rows) {
    for (uint32_t i = 0; i < l->n; i++) {
      if (x)
        check("wait", hk_focus_gpu_wait(l->g[i]));
      for (uint32_t k = 0; x && step > 0 && k < rows; k++) {
        check("row", hk_focus_gpu_row(l->g[i], k, &row));
        *found += row.find.sensor != HK_FOCUS_NONE;
      }
      check("begin", hk_focus_gpu_begin(l->g[i], l->row, x ? x + (size_t)step * sensors : NULL, rows));
    }
  }
  for (uint32_t i = 0; i < l->n; i++)
    check("wait", hk_focus_gpu_wait(l->g[i]));
  return (now_us() - begin) / STEPS;
}

/* x NULL: rows are resident; otherwise they are copied to the device, and results back. */
static void time_lines(struct lines *l, const char *how, const double *x, uint32_t sensors, double host)
{
  static const uint32_t at_once[] = { 1, 4, HK_FOCUS_AT_ONCE };
  for (size_t k = 0; k < sizeof at_once / sizeof *at_once; k++) {
    double t[RUNS];
    uint64_t found = 0;
    for (uint32_t run = 0; run < RUNS; run++)
      t[run] = run_us(l, x, sensors, at_once[k], &found);
    qsort(t, RUNS, sizeof *t, by_value);
    const double us = t[RUNS / 2], points = (double)l->n * sensors;
    printf("  %s, %2u rows at once: %.1f us a row of all (%.1f to %.1f), %.2f G points/s, %.1f kHz, %.0f times one thread\n", how,
           at_once[k], us, t[0], t[RUNS - 1], points / us * 1e-3, 1e3 / us, l->n * host / us);
    fflush(stdout);
  }
}

/* Works as a field of the daemon does: one row at a time, with results in the columns of the host. */
static void field_us(struct hk_focus_gpu *g, struct hk_focus_line *line, int64_t row, const double *x, double host)
{
  double t[RUNS];
  char error[256];
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < STEPS; k++)
      check("row", hk_cuda_focus.row(g, line, row++, x + (size_t)k * line->f.n, NULL, error, sizeof error));
    t[run] = (now_us() - begin) / STEPS;
  }
  qsort(t, RUNS, sizeof *t, by_value);
  printf("  as a field has it, one line: %.1f us a row (%.1f to %.1f), %.0f times one thread\n", t[RUNS / 2], t[0], t[RUNS - 1],
         host / t[RUNS / 2]);
}

static void compare(uint32_t n, uint32_t sensors, double uneven, bool only_host)
{
  struct hk_focus_line *line = line_of(sensors, uneven);
  struct lines l = { .n = n };
  double *x = values(sensors);
  char error[256];
  printf("%u lines of %u sensors, %s\n", n, sensors, uneven > 0 ? "unevenly apart" : "evenly apart");
  tell_floor(line);
  const double host = host_us(line, x);
  l.g = calloc(n, sizeof *l.g);
  check("memory", l.g ? 0 : -1);
  for (uint32_t i = 0; i < n && !only_host; i++)
    if (hk_focus_gpu_open(&l.g[i], line, 0, error, sizeof error) != 0) {
      printf("skipped: %s\n", error);
      exit(SKIPPED);
    }
  l.row = line->f.row + 1;
  if (!only_host) {
    uint64_t found = 0;
    printf("  %.2f GB on the device\n", (double)n * (double)hk_focus_gpu_bytes(line) * 1e-9);
    for (uint32_t k = 0; k < 4; k++) /* until all sensors are settled */
      (void)run_us(&l, x, sensors, HK_FOCUS_AT_ONCE, &found);
    field_us(l.g[0], line, l.row, x, host);
    l.row += (int64_t)RUNS * STEPS;
    time_lines(&l, "resident", NULL, sensors, host);
    time_lines(&l, "with copies", x, sensors, host);
    check("cudaHostRegister", (int)cudaHostRegister(x, (size_t)STEPS * sensors * sizeof *x, cudaHostRegisterDefault));
    time_lines(&l, "with copies from page-locked memory", x, sensors, host);
    check("cudaHostUnregister", (int)cudaHostUnregister(x));
  }
  fflush(stdout);
  for (uint32_t i = 0; i < n; i++)
    hk_focus_gpu_close(l.g[i]);
  free(l.g);
  free(x);
  hk_focus_free(line);
}

int main(int n_args, char **args)
{
  seed = 1;
  const uint32_t n = n_args > 1 ? (uint32_t)strtoul(args[1], NULL, 10) : 100;
  const uint32_t sensors = n_args > 2 ? (uint32_t)strtoul(args[2], NULL, 10) : 10000;
  const bool only_host = n_args > 3 && strcmp(args[3], "host") == 0;
  if (n < 1 || sensors < HK_FOCUS_LEAST || n_args > 4 || (n_args == 4 && !only_host)) {
    fprintf(stderr, "usage: bench_focus [LINES [SENSORS [host]]], at least 1 and 3\n");
    return 2;
  }
  compare(n, sensors, 0, only_host);
  compare(n, sensors, 0.9, only_host);
  return 0;
}
