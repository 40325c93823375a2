/* Focus on the GPU compared with the host: every strength, the sensors to blame, the changes found, and every column, bit by bit,
 * over many shapes of lines and numbers of rows at once; lines that move from one to the other while they run; and fields as in
 * the daemon (cpu/field/field.h). Skips without a GPU. */
#include "cpu/field/count.h"
#include "gpu/cuda.h"
#include "gpu/field/focus_gpu.h"
#include "tests/unit/support/field.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 480u

struct shape {
  uint32_t sensors;
  struct hk_focus_keys keys;
  double uneven, scale, missing; /* of distances between sensors, which are 100; of values; share of values that are missing */
  uint32_t skips;                /* an empty row after each of that many rows; 0: none */
  uint32_t changes;              /* found, at least */
};

static const struct shape shapes[] = {
  { 3, { .speed = { 100 }, .speeds = 1, .reach = 1000, .threshold = 3, .block = 4, .places = 1 }, 0, 1, 0, 0, 0 },
  { 24, { .speed = { 200 }, .speeds = 1, .reach = 1000, .threshold = 6, .block = 8, .places = 3 }, 0.3, 1, 0, 0, 1 },
  { 33,
    { .speed = { 200, 400 }, .speeds = 2, .flow = 60, .reach = 900, .threshold = 6, .block = 8, .places = 5 },
    0.9,
    1e-3,
    0.1,
    0,
    1 },
  { 128,
    { .speed = { 150 }, .speeds = 1, .travel = HK_FOCUS_ONWARD, .reach = 1500, .threshold = 6, .block = 5, .places = 2 },
    0,
    1e9,
    0,
    13,
    1 },
  { 129, { .speed = { 1e6 }, .speeds = 1, .reach = 300, .threshold = 5, .block = 1, .places = 1 }, 0, 1, 0.3, 0, 0 },
  { 700,
    { .speed = { 200, 300, 500 }, .speeds = 3, .reach = 1500, .threshold = 5, .block = 16, .places = 1 },
    0.5,
    1e-30,
    0.02,
    97,
    1 },
  /* 16 rows of this one are computed by four launches, all other calls by one: */
  { 4099, { .speed = { 200 }, .speeds = 1, .reach = 3200, .threshold = 6, .block = 8, .places = 1 }, 0, 1, 0.01, 0, 1 },
};

static double *positions(const struct shape *s)
{
  double *position = malloc(s->sensors * sizeof *position);
  assert_non_null(position);
  for (uint32_t i = 0; i < s->sensors; i++) /* not in the order of the line */
    position[i] = 100 * (double)(i * (uint64_t)7 % s->sensors) + 100 * s->uneven * uniform();
  return position;
}

static struct hk_focus_line *line_of(const struct shape *s)
{
  const struct hk_focus_rule rule = { .keys = s->keys, .interval = 0.1, .forget = 0.999f };
  struct hk_focus_line *line;
  char error[256];
  seed = 5;
  double *position = positions(s);
  if (hk_focus_new(&line, &rule, s->sensors, position, error, sizeof error) != 0)
    fail_msg("%s", error);
  free(position);
  return line;
}

/* Noise, in which a step spreads from places here and there. */
static double *values(const struct shape *s, const struct hk_focus_line *line)
{
  double *x = malloc((size_t)ROWS * s->sensors * sizeof *x);
  assert_non_null(x);
  for (uint32_t t = 0; t < ROWS; t++)
    for (uint32_t j = 0; j < s->sensors; j++) {
      double v = 1000 + (1 + j % 3) * noise();
      for (uint32_t k = 1; k <= 3; k++) {
        const double way = line->x[j] - line->x[s->sensors * k / 4];
        v += t >= 120 * k + fabs(way) / s->keys.speed[0] / 0.1 ? 3 * (1 + j % 3) : 0;
      }
      x[(size_t)t * s->sensors + j] = uniform() < s->missing ? NAN : s->scale * v;
    }
  return x;
}

/* Numbers are the same bits, or both no number: which NaN it is, is not promised. */
static void assert_same(const float *a, const float *b, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
      fail_msg("number %zu of %zu: %a and %a", i, n, (double)a[i], (double)b[i]);
}

static void assert_same_columns(const struct hk_focus *a, const struct hk_focus *b)
{
  assert_true(a->any == b->any && a->row == b->row);
  for (uint32_t j = 0; j < a->n; j++) {
    for (int64_t row = a->row - 2 * a->block + 1; row <= a->row; row++) {
      const double x = a->sample[hk_focus_at(a, a->past, row, j)], y = b->sample[hk_focus_at(b, b->past, row, j)];
      assert_true(x == y || (isnan(x) && isnan(y)));
    }
    for (int64_t row = a->row - a->keep; row <= a->row; row++) {
      assert_same(&a->change[hk_focus_at(a, a->room, row, j)], &b->change[hk_focus_at(b, b->room, row, j)], 1);
      assert_same(&a->held[hk_focus_at(a, a->room, row, j)], &b->held[hk_focus_at(b, b->room, row, j)], 1);
    }
  }
  assert_same(a->error, b->error, a->n);
  assert_memory_equal(a->errors, b->errors, a->n * sizeof *a->errors);
  assert_memory_equal(a->peak, b->peak, a->n * sizeof *a->peak);
}

static struct hk_focus_gpu *open_gpu(const struct hk_focus_line *line)
{
  struct hk_focus_gpu *g;
  char error[256];
  if (hk_focus_gpu_open(&g, line, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  return g;
}

static bool same_found(const struct hk_focus_found *a, const struct hk_focus_found *b)
{
  return a->changed == b->changed && a->settled == b->settled && a->sensor == b->sensor &&
         (a->strongest == b->strongest || (isnan(a->strongest) && isnan(b->strongest))) &&
         (!a->changed || (a->position == b->position && a->speed == b->speed));
}

/* Computes rows from *t on, as many as are allowed at once, on the device. Returns the changes. */
static uint32_t device_rows(struct hk_focus_line *host, struct hk_focus_line *back, struct hk_focus_gpu *g, const double *x,
                            uint32_t rows, int64_t from)
{
  const uint32_t n = host->f.n;
  uint32_t changes = 0;
  assert_int_equal(hk_focus_gpu_begin(g, from, x, rows), 0);
  assert_int_equal(hk_focus_gpu_wait(g), 0);
  for (uint32_t k = 0; k < rows; k++) {
    struct hk_focus_gpu_row row;
    assert_int_equal(hk_focus_gpu_row(g, k, &row), 0);
    hk_focus_row(host, from + k, x + (size_t)k * n);
    hk_focus_conclude(back, from + k, &row.find);
    assert_same(host->f.now.value, row.value, n);
    assert_memory_equal(host->f.now.blamed, row.blamed, n * sizeof *row.blamed);
    assert_true(same_found(&host->found, &back->found));
    changes += host->found.changed;
  }
  return changes;
}

/* The device takes the second and last third of the rows, and the columns come back between them. */
static void try(const struct shape *s, uint32_t at_once)
{
  struct hk_focus_line *host = line_of(s), *back = line_of(s);
  struct hk_focus_gpu *g = open_gpu(back);
  double *x = values(s, host);
  uint32_t changes = 0, finite = 0;
  for (uint32_t t = 0, rows; t < ROWS; t += rows) {
    const double *from = x + (size_t)t * s->sensors;
    const int64_t number = (int64_t)t - 100 + (s->skips ? t / s->skips : 0);
    rows = t + at_once <= ROWS && !s->skips ? at_once : 1;
    if (t < ROWS / 3) {
      hk_focus_row(host, number, from);
      hk_focus_row(back, number, from);
      rows = 1;
      if (t + 1 == ROWS / 3)
        assert_int_equal(hk_focus_gpu_write(g, back), 0);
      continue;
    }
    changes += device_rows(host, back, g, from, rows, number);
    for (uint32_t j = 0; j < s->sensors; j++)
      finite += !isnan(host->f.now.value[j]);
    if (t < ROWS / 3 * 2 && t + rows >= ROWS / 3 * 2) {
      assert_int_equal(hk_focus_gpu_read(g, back), 0);
      assert_same_columns(&host->f, &back->f);
      assert_int_equal(hk_focus_gpu_write(g, back), 0);
    }
  }
  assert_int_equal(hk_focus_gpu_read(g, back), 0);
  assert_same_columns(&host->f, &back->f);
  print_message("# %u sensors, %u rows at once: %u strengths, %u changes\n", s->sensors, at_once, finite, changes);
  assert_true(changes >= s->changes && finite > 0);
  free(x);
  hk_focus_gpu_close(g);
  hk_focus_free(host);
  hk_focus_free(back);
}

static void same_as_the_host(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    try(&shapes[i], 1);
    try(&shapes[i], i % 2 ? 7 : HK_FOCUS_AT_ONCE);
  }
}

/* ---- fields ---- */

#define MEMBERS 60u

static uint32_t begun;

static void told(void *arg, const char *why)
{
  (void)arg;
  if (why)
    fail_msg("%s", why);
  begun++;
}

static struct hk_field *field_of(const struct shape *s, const struct hk_field_place *place)
{
  struct hk_field_rule rule = hk_field_default();
  struct hk_field *f;
  uint32_t number;
  char error[256];
  rule.kind = HK_FIELD_FOCUS;
  rule.neighbours = HK_FIELD_LINE;
  rule.placed = true;
  rule.focus = s->keys;
  snprintf(rule.file, sizeof rule.file, "line");
  rule.interval = 100000000;
  rule.members = MEMBERS + 10;
  assert_int_equal(hk_field_new(&f, &rule), 0);
  seed = 5;
  double *position = positions(s);
  assert_int_equal(hk_field_attach_line(f, s->sensors, position, error, sizeof error), 0);
  free(position);
  for (uint32_t i = 0; i < s->sensors; i++) {
    assert_int_equal(hk_field_join(f, &number), 0);
    hk_field_set_node(f, number, i);
  }
  hk_field_compute_at(f, place);
  return f;
}

static uint32_t assert_same_rows(struct hk_field *one, struct hk_field *other)
{
  struct hk_field_row a, b;
  uint32_t changes = 0;
  while (hk_field_next(one, &a)) {
    assert_true(hk_field_next(other, &b));
    assert_true(a.n == b.n && a.said == b.said);
    for (uint32_t i = 0; i < a.n; i++)
      assert_true(memcmp(&a.value[i], &b.value[i], sizeof *a.value) == 0 || (isnan(a.value[i]) && isnan(b.value[i])));
    assert_true(same_found(&hk_field_line_of(one)->found, &hk_field_line_of(other)->found));
    changes += hk_field_line_of(one)->found.changed;
  }
  assert_false(hk_field_next(other, &b));
  return changes;
}

/* Members are missing here and there, and one goes and comes back. */
static void fields_that_live(void **state)
{
  (void)state;
  static const struct shape shape = {
    MEMBERS, { .speed = { 200 }, .speeds = 1, .reach = 1000, .threshold = 6, .block = 8, .places = 3 }, 0.3, 1, 0.03, 0, 1
  };
  const struct hk_field_kinds cuda = { .focus = &hk_cuda_focus };
  const struct hk_field_place none = { 0 }, device = { &cuda, 0, 8, told, NULL };
  struct hk_field *f[2] = { field_of(&shape, &none), field_of(&shape, &device) };
  struct hk_focus_line *line = line_of(&shape);
  double *x = values(&shape, line);
  uint32_t changes = 0, number;
  begun = 0;
  for (uint32_t t = 0; t < ROWS; t++) {
    for (uint32_t k = 0; k < 2 && t == 200; k++)
      hk_field_leave(f[k], 17);
    for (uint32_t k = 0; k < 2 && t == 220; k++) {
      assert_int_equal(hk_field_join(f[k], &number), 0);
      hk_field_set_node(f[k], number, 17);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
      const double v = x[(size_t)t * MEMBERS + line->rank[i]];
      for (uint32_t k = 0; k < 2 && hk_field_has(f[k], i); k++)
        hk_field_put(f[k], i, (int64_t)t * 100000000, v);
      changes += assert_same_rows(f[0], f[1]);
    }
    if (t % 100 == 99)
      field_same_states(f[0], f[1]);
    assert_true(hk_field_count(f[0]).settled == hk_field_count(f[1]).settled);
  }
  assert_true(begun == 1 && changes >= 1);
  free(x);
  hk_focus_free(line);
  hk_field_free(f[0]);
  hk_field_free(f[1]);
}

static void says_what_is_missing(void **state)
{
  (void)state;
  struct hk_focus_line *line = line_of(&shapes[0]);
  struct hk_focus_gpu *g;
  char error[256] = "";
  assert_true(hk_focus_gpu_bytes(line) > 1000);
  assert_int_equal(hk_focus_gpu_open(&g, line, 1000, error, sizeof error), -ENODEV);
  assert_null(g);
  assert_true(strlen(error) > 5);
  hk_focus_free(line);
}

/* Whether there is a GPU; otherwise the reason. */
static bool has_gpu(char *error, size_t size)
{
  struct hk_focus_line *line = line_of(&shapes[0]);
  struct hk_focus_gpu *g;
  const int code = hk_focus_gpu_open(&g, line, 0, error, size);
  hk_focus_gpu_close(g);
  hk_focus_free(line);
  return code != -ENODEV;
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_the_host), cmocka_unit_test(fields_that_live),
                                      cmocka_unit_test(says_what_is_missing) };
  char error[256];
  if (has_gpu(error, sizeof error))
    return cmocka_run_group_tests_name("focus", tests, NULL, NULL);
  printf("1..0 # SKIP %s\n", error);
  return 0;
}
