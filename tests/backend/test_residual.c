/* The graph residual on the GPU compared with the host: every residual and every column, bit by bit, over many shapes of
 * fields; fields that move from one to the other while they run; and fields as in the daemon (cpu/field/field.h), whose
 * members come and go. Skips without a GPU. Argument: sanitize, for sanitizers that slow every launch: the device takes
 * fewer rows, the last ones, and chooses neighbours among fewer members. */
#include "gpu/cuda.h"
#include "gpu/field/correlate_gpu.h"
#include "gpu/field/residual_gpu.h"
#include "gpu/field/residual_kernels.h"
#include "tests/unit/support/field.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROWS 420u
#define DEVICE_ROWS 280u  /* the last ones */
#define SANITIZE_ROWS 84u /* of these */
#define AT_ONCE 7u

static uint32_t on_device = DEVICE_ROWS; /* rows of a shape that the device takes */

struct shape {
  uint32_t nodes, q, refit;
  double zero, scale, missing, spike; /* shares of values that are missing, or far off */
  uint32_t least;                     /* residuals of a node, on average, at least */
  uint32_t alone;                     /* one node of that many has no neighbours, and the next one is constant; 0: none */
  bool hubs;                          /* many have the same few for neighbours, mostly far away */
};

static const struct shape shapes[] = {
  { 12, 4, 24, 0, 1, 0, 0, 150, 0, false },
  { 32, 2, 1, 0, 1, 0.05, 0.01, 100, 0, false },
  { 33, 3, 5, 1e6, 1e-3, 0.2, 0.01, 20, 7, false },
  { 127, 5, 24, -1e6, 1, 0.25, 0, 5, 5, false },
  { 128, 8, 24, 0, 1, 0.01, 0.002, 100, 0, false },
  { 129, 9, 7, 0, 1e-155, 0.01, 0, 100, 0, false },
  { 1000, 12, 24, 20, 1e9, 0.1, 0.001, 50, 9, false },
  { 4099, 16, 24, 0, 1, 0.02, 0.001, 50, 11, false },
  { 300, 13, 96, 0, 1e-42, 0, 0, 100, 0, false },
  { 40000, 3, 24, 0, 1, 0.02, 0.001, 50, 0, true },
};

static struct hk_residual_rule rule_of(const struct shape *s)
{
  return (struct hk_residual_rule){
    .neighbours = s->q, .refit = s->refit, .forget = 0.999, .clip = 3.75f, .fast = 4.0f / 96, .slow = 1.0f / 768
  };
}

static void open_field(struct hk_residual *f, const struct shape *s)
{
  const struct hk_residual_rule rule = rule_of(s);
  assert_int_equal(hk_residual_open(f, &rule, s->nodes), 0);
  for (uint32_t i = 0; i < s->nodes; i++)
    for (uint32_t k = 0; k < s->q; k++) {
      const double u = uniform();
      const uint32_t hub = (uint32_t)(u * u * u * 640), end = i < s->nodes / 2 ? s->nodes - 1 - hub : hub;
      const uint32_t j = s->hubs ? end : k % 2 == 0 ? (i + 1 + k) % s->nodes : (uint32_t)(u * s->nodes);
      if (j != i && !(s->alone && i % s->alone == 0) && uniform() > 0.05)
        hk_residual_bind(f, i, k, j);
    }
  hk_residual_bind(f, 3, 0, 3); /* 0 apart, which cannot be packed: those of its slice have 32 bits */
}

static double *values(const struct shape *s, uint32_t room)
{
  double *x = malloc((size_t)ROWS * room * sizeof *x), front = 0;
  assert_non_null(x);
  for (uint32_t t = 0; t < ROWS; t++) {
    front = 0.98 * front + noise();
    for (uint32_t i = 0; i < room; i++) {
      double v = s->zero + s->scale * ((1 + 0.1 * (i % 10)) * front + 0.3 * noise());
      if (uniform() < s->spike)
        v += 50 * s->scale * noise();
      if (s->alone && i % s->alone == 1)
        v = s->zero;
      x[(size_t)t * room + i] = i >= s->nodes || uniform() < s->missing ? NAN : v;
    }
  }
  return x;
}

/* Numbers of `bytes` each are the same bits, or both no number: which NaN it is, is not promised. */
static void assert_same(const void *a, const void *b, size_t n, size_t bytes, bool real)
{
  const char *p = a, *q = b;
  for (size_t i = 0; i < n; i++, p += bytes, q += bytes) {
    float x, y;
    if (memcmp(p, q, bytes) == 0)
      continue;
    if (real && bytes == sizeof x && (memcpy(&x, p, sizeof x), memcpy(&y, q, sizeof y), isnan(x) && isnan(y)))
      continue;
    double u, v;
    if (real && bytes == sizeof u && (memcpy(&u, p, sizeof u), memcpy(&v, q, sizeof v), isnan(u) && isnan(v)))
      continue;
    fail_msg("number %zu of %zu differs", i, n);
  }
}

static void assert_same_columns(const struct hk_residual *a, const struct hk_residual *b)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  hk_residual_columns(&a->rule, column);
  assert_true(a->rows == b->rows);
  for (uint32_t c = 0; c < HK_RESIDUAL_STATE; c++)
    assert_same(hk_residual_get(a, &column[c]), hk_residual_get(b, &column[c]), (size_t)a->room * column[c].numbers,
                column[c].bytes, true);
}

static struct hk_residual_gpu *open_gpu(const struct hk_residual *host)
{
  struct hk_residual_gpu *g;
  char error[256];
  if (hk_residual_gpu_open(&g, host, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  return g;
}

/* The device takes the last rows, in which nodes have residuals and fit their weights; the columns come back in their midst. */
static void try(const struct shape *s)
{
  const uint32_t up = ROWS - on_device, back_at = ROWS - on_device / 2;
  struct hk_residual host, back;
  seed = 11;
  open_field(&host, s);
  seed = 11;
  open_field(&back, s);
  struct hk_residual_gpu *g = open_gpu(&back);
  const uint32_t room = host.room;
  assert_true((hk_residual_gpu_field(g)->n_hot > 0) == s->hubs);
  double *x = values(s, room), *want = malloc((size_t)room * sizeof *want), *got = malloc((size_t)AT_ONCE * room * sizeof *got);
  float *weights = malloc((size_t)room * (s->q + 1) * sizeof *weights);
  uint32_t finite = 0, by_device = 0;
  assert_non_null(want);
  assert_non_null(got);
  assert_non_null(weights);
  for (uint32_t t = 0; t < ROWS; t += AT_ONCE) {
    const double *now = x + (size_t)t * room;
    if (t < up)
      for (uint32_t k = 0; k < AT_ONCE; k++)
        hk_residual_row(&back, now + (size_t)k * room, got + (size_t)k * room);
    else
      assert_int_equal(hk_residual_gpu_rows(g, now, got, AT_ONCE), 0);
    if (t + AT_ONCE == up) {
      assert_int_equal(hk_residual_gpu_write(g, &back), 0);
      memcpy(weights, back.weight, (size_t)room * (s->q + 1) * sizeof *weights);
    }
    if (t + AT_ONCE == back_at) {
      assert_int_equal(hk_residual_gpu_read(g, &back), 0);
      assert_int_equal(hk_residual_gpu_write(g, &back), 0);
    }
    for (uint32_t k = 0; k < AT_ONCE; k++) {
      hk_residual_row(&host, now + (size_t)k * room, want);
      assert_same(want, got + (size_t)k * room, room, sizeof *want, true);
      for (uint32_t i = 0; i < room; i++) {
        finite += !isnan(want[i]);
        by_device += t >= up && !isnan(want[i]);
      }
    }
  }
  assert_int_equal(hk_residual_gpu_read(g, &back), 0);
  assert_same_columns(&host, &back);
  assert_true(finite >= s->nodes * s->least);
  assert_true(by_device > 0);
  assert_memory_not_equal(weights, back.weight, (size_t)room * (s->q + 1) * sizeof *weights);
  print_message("# %u nodes, q = %u: %u residuals, %u of them by the device\n", s->nodes, s->q, finite, by_device);
  free(weights);
  free(x);
  free(want);
  free(got);
  hk_residual_gpu_close(g);
  hk_residual_close(&host);
  hk_residual_close(&back);
}

static void same_as_the_host(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    try(&shapes[i]);
}

/* The choice of neighbours: the same as on the host, also among equal nodes and nodes without values. */
static void chooses_the_same(void **state)
{
  (void)state;
  /* Members, q, rows. racecheck makes a launch over the last two longer than a hung device is waited for. */
  static const uint32_t sizes[][3] = { { 5, 4, 96 }, { 33, 16, 512 }, { 97, 8, 127 }, { 700, 5, 300 }, { 2049, 8, 511 } };
  const size_t tried = sizeof sizes / sizeof *sizes - (on_device == SANITIZE_ROWS ? 2 : 0);
  for (size_t s = 0; s < tried; s++) {
    const uint32_t n = sizes[s][0], q = sizes[s][1], kept = sizes[s][2], room = (n + 63) / 32 * 32;
    float *ring = malloc((size_t)kept * room * sizeof *ring);
    uint32_t *due = malloc(n * sizeof *due), *want = malloc((size_t)n * q * sizeof *want),
             *got = malloc((size_t)n * q * sizeof *got);
    uint32_t n_due = 0, none = 0;
    char error[256];
    assert_true(ring && due && want && got);
    seed = 21;
    for (size_t row = 0; row < kept; row++) {
      const double front[2] = { noise(), noise() };
      for (uint32_t i = 0; i < room; i++) /* 3 and 4 are twins, 7 stands still, 11 is hardly ever there */
        ring[row * room + i] = i == 4                                           ? ring[row * room + 3]
                               : i == 7                                         ? 2.5f
                               : uniform() < 0.05 || (i == 11 && row % 16 != 0) ? (float)NAN
                                                                                : (float)(front[i % 2] + (0.1 + i % 9) * noise());
    }
    for (uint32_t i = 0; i < n; i++)
      if (i < 20 || uniform() < 0.7)
        due[n_due++] = i;
    struct hk_correlate_task task = { ring, room, kept, n, q, due, n_due, want };
    assert_int_equal(hk_correlate(&task), 0);
    task.found = got;
    if (hk_correlate_gpu(&task, 0, error, sizeof error) != 0)
      fail_msg("%s", error);
    assert_memory_equal(want, got, (size_t)n_due * q * sizeof *got);
    for (size_t k = 0; k < (size_t)n_due * q; k++)
      none += want[k] == HK_RESIDUAL_NONE;
    print_message("# %u of %u choose %u of the others: %u places stay empty\n", n_due, n, q, none);
    assert_true(none > 0 && none < n_due * q / 2 + 5 * q);
    free(ring);
    free(due);
    free(want);
    free(got);
  }
}

/* ---- fields ---- */

#define MEMBERS 4300u

static uint32_t begun;

static void told(void *arg, const char *why)
{
  (void)arg;
  if (why)
    fail_msg("%s", why);
  begun++;
}

static struct hk_field *field_of(uint32_t neighbours, uint32_t members, const struct hk_field_place *place)
{
  struct hk_field_rule rule = hk_field_default();
  struct hk_field *f;
  uint32_t number;
  rule.neighbours = neighbours;
  snprintf(rule.file, sizeof rule.file, "%s", neighbours == HK_FIELD_AUTO ? "" : "graph");
  rule.q = 5;
  rule.members = members + 10;
  assert_int_equal(hk_field_new(&f, &rule), 0);
  for (uint32_t i = 0; i < members; i++)
    assert_int_equal(hk_field_join(f, &number), 0);
  for (uint32_t i = 0; i < members && neighbours == HK_FIELD_GRAPH; i++)
    for (uint32_t k = 0; k < 5; k++)
      hk_field_bind(f, i, k, (i + 1 + k * k * 97) % members);
  hk_field_compute_at(f, place);
  return f;
}

/* Both give the same rows. Returns how many residuals. */
static uint32_t assert_same_rows(struct hk_field *one, struct hk_field *other)
{
  struct hk_field_row a, b;
  uint32_t said = 0;
  for (; hk_field_next(one, &a); said += a.said) {
    assert_true(hk_field_next(other, &b));
    assert_true(a.n == b.n && a.said == b.said && a.out == b.out);
    assert_same(a.value, b.value, a.n, sizeof *a.value, true);
  }
  assert_false(hk_field_next(other, &b));
  return said;
}

/* A point of most members, at time t. Returns how many residuals came of that. */
static uint32_t take_points(struct hk_field *one, struct hk_field *other, uint32_t t, uint32_t members, double front)
{
  uint32_t said = 0;
  seed = t;
  for (uint32_t i = 0; i < members; i++) {
    const double v = front * (1 + i % 10) + uniform();
    if (uniform() < 0.03 || !hk_field_has(one, i))
      continue;
    hk_field_put(one, i, (int64_t)t * 1000000000, v);
    hk_field_put(other, i, (int64_t)t * 1000000000, v);
    said += assert_same_rows(one, other);
  }
  return said;
}

static void live(uint32_t neighbours, uint32_t members, const struct hk_field_place *place, uint32_t rows)
{
  const struct hk_field_place none = { 0 };
  struct hk_field *f[2] = { field_of(neighbours, members, &none), field_of(neighbours, members, place) };
  uint32_t number, said = 0;
  double front = 0;
  begun = 0;
  for (uint32_t t = 0; t < rows; t++) {
    front = 0.97 * front + sin(t * 0.7);
    for (uint32_t k = 0; k < 2; k++) {
      if (t == rows / 2)
        hk_field_leave(f[k], 17);
      if (t == rows / 2 + 9)
        assert_int_equal(hk_field_join(f[k], &number), 0);
      if (t == rows / 3 * 2 && neighbours == HK_FIELD_GRAPH)
        hk_field_bind(f[k], 40, 2, 99);
    }
    if (t % 100 == 99)
      field_same_states(f[0], f[1]);
    said += take_points(f[0], f[1], t, members, front);
  }
  assert_true(begun == 1 && said > members * (rows - 300));
  print_message("# a field of %u: %u residuals\n", members, said);
  hk_field_free(f[0]);
  hk_field_free(f[1]);
}

static void fields_that_live(void **state)
{
  (void)state;
  if (on_device < DEVICE_ROWS)
    skip();
  const struct hk_field_kinds cuda = { .residual = &hk_cuda_residual };
  const struct hk_field_place large = { &cuda, 0, HK_OFFLOAD_LEAST, told, NULL }, small = { &cuda, 0, 8, told, NULL };
  live(HK_FIELD_GRAPH, MEMBERS, &large, 330);
  live(HK_FIELD_AUTO, 60, &small, 900);
}

static void says_what_is_missing(void **state)
{
  (void)state;
  struct hk_residual host;
  struct hk_residual_gpu *g;
  char error[256] = "";
  open_field(&host, &shapes[0]);
  hk_residual_gpu_close(open_gpu(&host));
  assert_int_equal(hk_residual_gpu_open(&g, &host, 1000, error, sizeof error), -ENODEV);
  assert_null(g);
  assert_true(strlen(error) > 5);
  hk_residual_close(&host);
}

/* Whether there is a GPU; otherwise the reason. */
static bool has_gpu(char *error, size_t size)
{
  struct hk_residual host;
  struct hk_residual_gpu *g;
  open_field(&host, &shapes[0]);
  const int code = hk_residual_gpu_open(&g, &host, 0, error, size);
  hk_residual_gpu_close(g);
  hk_residual_close(&host);
  return code != -ENODEV;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_the_host), cmocka_unit_test(chooses_the_same),
                                      cmocka_unit_test(fields_that_live), cmocka_unit_test(says_what_is_missing) };
  char error[256];
  if (argc > 1 && strcmp(argv[1], "sanitize") == 0)
    on_device = SANITIZE_ROWS;
  if (has_gpu(error, sizeof error))
    return cmocka_run_group_tests_name("residual", tests, NULL, NULL);
  printf("1..0 # SKIP %s\n", error);
  return 0;
}
