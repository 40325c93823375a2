/* Model files from arbitrary bytes. An accepted model is examined, found by name, and its line is advanced by a few steps. There
 * are files of matrices with the names a.mtx, m.mtx, b.mtx and h.mtx. */
#include "cpu/model/model_plan.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(good)                                                                                                              \
  do                                                                                                                             \
    if (!(good))                                                                                                                 \
      abort(); /* of this very line */                                                                                           \
  while (0)

static void look_at_line(const struct hk_model_plan *p, uint32_t i)
{
  const struct hk_model_line *l = &p->line[i];
  check(l->pipes > 0 && l->cells >= l->pipes && l->cells <= p->longest);
  check(l->pipe == (i == 0 ? 0 : l[-1].pipe + l[-1].pipes) && l->cell == (i == 0 ? 0 : l[-1].cell + l[-1].cells));
  check(l->transit > 0 && l->shortest > 0 && l->shortest <= l->transit && l->loss >= 0 && isfinite(l->impedance));
  check(!p->sensor[l->boundary[0]].flow || !p->sensor[l->boundary[1]].flow);
}

static void look_at_network(const struct hk_model_plan *p)
{
  const struct hk_network_shape *n = p->network;
  check(p->lines == 1 && p->nodes > 1 && n->points >= p->nodes && n->cells == p->cells && n->drives == p->boundaries);
  check(p->line->transit >= 0 && p->line->shortest > 0 && isfinite(p->line->impedance) && p->sensors > p->boundaries &&
        p->mark != 0);
  for (uint32_t i = 0; i < p->cells; i++)
    check(n->end[i][0] < n->points && n->end[i][1] < n->points && n->end[i][0] != n->end[i][1]);
  for (uint32_t i = 0; i < n->drives; i++)
    check(n->drive[i].point < p->nodes && p->sensor[p->line->boundary[i]].boundary &&
          p->sensor[p->line->boundary[i]].point == n->drive[i].point);
  for (uint32_t i = 0; i < p->sensors; i++)
    check(p->sensor[i].point < p->nodes && hk_model_plan_find(p, p->sensor[i].name.text, p->sensor[i].name.length) == i &&
          p->place[i].at < (p->place[i].what >= HK_NETWORK_FROM ? p->cells : p->nodes));
}

/* A network is steady, goes a few steps, and has derivatives. */
static void go_network(const struct hk_model_plan *p)
{
  double by[64 + 2 * 64], is[64];
  struct hk_network w;
  if (p->cells > 64 || p->boundaries > 64)
    return;
  for (uint32_t i = 0; i < p->boundaries; i++)
    is[i] = p->network->drive[i].flow ? 0.01 : 1e6;
  check(hk_network_open(&w, p->network, p->line->impedance, NULL) == 0);
  if (hk_network_steady(&w, is, 1) == 0)
    for (uint32_t k = 0; k < 4; k++)
      if (hk_network_step(&w, is, NULL, 1, 1) == 0)
        check(w.error <= HK_BAND_ERROR && isfinite(w.state[0]));
  if (hk_network_linearise(&w, 1) == 0 && hk_network_by_point(&w, &p->place[p->sensors - 1], by) == 0)
    check(isfinite(by[0]));
  hk_network_close(&w);
}

static void look(const struct hk_model_plan *p)
{
  check(p->lines > 0 && p->pipes >= p->lines && p->sensors > 2 && p->cells >= p->pipes && p->mark != 0);
  for (uint32_t i = 0; i < p->lines; i++)
    look_at_line(p, i);
  for (uint32_t i = 0; i < p->sensors; i++) {
    const struct hk_model_sensor *s = &p->sensor[i];
    const struct hk_model_line *l = &p->line[s->line];
    check(s->line < p->lines && s->point <= l->cells && s->loss >= 0 && s->loss <= l->loss);
    check(s->boundary == (i == l->boundary[0] || i == l->boundary[1]));
    check(hk_model_plan_find(p, s->name.text, s->name.length) == i);
    check(hk_model_plan_pipe(p, s->line, s->point)->first <= s->point);
  }
}

static void go(const struct hk_model_plan *p, const struct hk_model_line *l)
{
  struct hk_pipeline line;
  struct hk_pipeline_end end[2];
  if (p->cells > 64)
    return;
  for (uint32_t k = 0; k < 2; k++) {
    const struct hk_model_sensor *s = &p->sensor[l->boundary[k]];
    end[k] = (struct hk_pipeline_end){ !s->flow, s->flow, 0, s->flow ? 1 : 1e6 - 1e5 * k };
  }
  check(hk_pipeline_open(&line, p->cell + l->cell, l->cells, l->impedance) == 0);
  if (hk_pipeline_steady(&line, end, 1) == 0)
    for (uint32_t k = 0; k < 4; k++)
      if (hk_pipeline_step(&line, end, NULL, 1, 1) == 0)
        check(line.error <= HK_BAND_ERROR && isfinite(hk_pipeline_flow(&line, l->cells)));
  hk_pipeline_close(&line);
}

static void go_warm(const struct hk_model_plan *p, const struct hk_model_line *l)
{
  const uint32_t points = hk_model_points(l);
  const struct hk_band_shape shape = hk_heat_shape(points);
  struct hk_band_work work;
  if (p->cells > 64)
    return;
  check(hk_band_open(&work, &shape) == 0);
  double *numbers = calloc((2 + HK_HEAT_MEMORY) * (size_t)points, sizeof *numbers);
  struct hk_heat_line line = { p->heat + l->cell, points, p->ground, numbers, numbers + 2 * (size_t)points, &work };
  check(numbers);
  if (hk_heat_steady(&line, p->ground + 50, 0.01, 1) == 0)
    for (uint32_t k = 0; k < 4; k++)
      if (hk_heat_step(&line, p->ground + 60, 0.01 * k, NULL, 1, 1) == 0)
        check(isfinite(numbers[2 * (size_t)l->cells]));
  free(numbers);
  hk_band_close(&work);
}

/* --- matrices ----------------------------------------------------------------------------------------------------------- */

#define HEAD "%%MatrixMarket matrix coordinate real general\n"

static const char *const matrix[][2] = { { "a.mtx", HEAD
                                           "4 4 9\n1 1 2\n1 2 -1\n2 1 -1\n2 2 2\n2 3 -1\n3 2 -1.5\n3 3 2.5\n4 3 -1\n4 4 1\n" },
                                         { "m.mtx", HEAD "4 4 3\n1 1 1\n2 2 1\n3 3 1\n" },
                                         { "b.mtx", HEAD "4 2 2\n2 1 1\n4 2 1\n" },
                                         { "h.mtx", HEAD "2 4 3\n1 2 1\n2 2 0.5\n2 3 0.5\n" } };
static char folder[32];

static void remove_folder(void)
{
  char path[64];
  for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, matrix[i][0]);
    (void)remove(path);
  }
  (void)rmdir(folder);
}

static void make_folder(void)
{
  char path[64];
  memcpy(folder, "/tmp/fuzz_model.XXXXXX", sizeof "/tmp/fuzz_model.XXXXXX");
  check(mkdtemp(folder) && atexit(remove_folder) == 0);
  for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, matrix[i][0]);
    FILE *f = fopen(path, "w");
    check(f && fputs(matrix[i][1], f) >= 0 && fclose(f) == 0);
  }
}

static void go_matrix(const struct hk_model_plan *p)
{
  const struct hk_matrix_shape *s = p->matrix;
  struct hk_matrix w;
  char error[160];
  double is[16], value[16];
  check(s->drives == p->boundaries && p->boundaries > 0 && p->sensors > p->boundaries && p->lines == 1 && p->mark != 0);
  for (uint32_t i = 0; i < p->sensors; i++)
    check(hk_model_plan_find(p, p->sensor[i].name.text, p->sensor[i].name.length) == i);
  if (p->sensors > 16)
    return;
  for (uint32_t i = 0; i < 16; i++)
    is[i] = i;
  check(hk_matrix_open(&w, s, NULL, 0, error, sizeof error) == 0);
  if (hk_matrix_steady(&w, is, 1) == 0)
    for (uint32_t k = 0; k < 3; k++)
      check(hk_matrix_step(&w, is, NULL, 1, 1) != 0 || w.error <= HK_BAND_ERROR);
  hk_matrix_read(&w, p->where, p->sensors, value);
  for (uint32_t i = 0; i < p->sensors; i++)
    check(isnan(value[i]) == (p->where[i].what == HK_MATRIX_INPUT));
  hk_matrix_close(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct hk_model_plan *plan;
  char error[256] = "";
  if (!folder[0])
    make_folder();
  if (hk_model_plan_parse_in(&plan, (const char *)data, size, folder, error, sizeof error) != 0) {
    check(error[0] != 0);
    return 0;
  }
  if (plan->matrix) {
    go_matrix(plan);
  } else if (plan->network) {
    look_at_network(plan);
    go_network(plan);
  } else {
    look(plan);
  }
  for (uint32_t i = 0; i < plan->lines && hk_model_is_along(plan); i++)
    (plan->heat ? go_warm : go)(plan, &plan->line[i]);
  hk_model_plan_release(plan);
  return 0;
}
