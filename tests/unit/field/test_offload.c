/* Rows of a field on a device: here another set of columns in the same memory, while those of the host are overwritten if they
 * are not up to date. The bits are those of the host, whatever happens to the field in between; and a device that fails. The GPU
 * itself: tests/backend/test_residual.c. */
#include "cpu/field/count.h"
#include "cpu/field/field.h"
#include "cpu/field/residual.h"
#include "cpu/field/state.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#define SECOND ((int64_t)1000000000)
#define ROWS 900u
#define MEMBERS 40u

/* ---- the device ---- */

static struct {
  uint32_t opened, closed, rows, reads, writes, number, chose;
  uint32_t fails_at; /* row; 0: never */
  bool full;         /* it has no room for any field */
} device;

static void copy(const struct hk_residual *from, const struct hk_residual *to)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  hk_residual_columns(&from->rule, column);
  assert_int_equal(from->room, to->room);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    memcpy(hk_residual_get(to, &column[c]), hk_residual_get(from, &column[c]), column[c].bytes * column[c].numbers * from->room);
}

/* Overwrites all columns except the neighbours, which the device does not change. */
static void spoil(const struct hk_residual *host)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  hk_residual_columns(&host->rule, column);
  for (uint32_t c = 1; c < HK_RESIDUAL_COLUMNS; c++)
    memset(hk_residual_get(host, &column[c]), 0x4b, column[c].bytes * column[c].numbers * host->room);
}

static int device_open(void **out, const void *columns, uint32_t number, char *error, size_t size)
{
  const struct hk_residual *host = columns;
  device.number = number;
  if (device.full) {
    snprintf(error, size, "no room");
    return -ENOMEM;
  }
  struct hk_residual *own = malloc(sizeof *own);
  assert_non_null(own);
  assert_int_equal(hk_residual_open(own, &host->rule, host->room), 0);
  copy(host, own);
  own->rows = host->rows;
  device.opened++;
  *out = own;
  return 0;
}

static void device_close(void *columns)
{
  hk_residual_close(columns);
  free(columns);
  device.closed++;
}

static int device_row(void *columns, void *of, int64_t number, const double *x, double *r, char *error, size_t size)
{
  struct hk_residual *own = columns, *host = of;
  (void)number;
  if (++device.rows == device.fails_at) {
    snprintf(error, size, "out of order");
    return -EIO;
  }
  hk_residual_row(own, x, r);
  host->rows++;
  if (device.fails_at)
    return 0; /* the host continues from its columns */
  spoil(host);
  host->out = own->out;
  if (host->shows)
    memcpy(host->now.z, own->now.z, own->room * sizeof *own->now.z);
  return 0;
}

static int device_read(void *columns, void *host, char *error, size_t size)
{
  (void)error, (void)size;
  copy(columns, host);
  device.reads++;
  return 0;
}

static int device_write(void *columns, const void *of, char *error, size_t size)
{
  const struct hk_residual *host = of;
  struct hk_residual *own = columns;
  (void)error, (void)size;
  copy(host, own);
  own->rows = host->rows;
  device.writes++;
  return 0;
}

static int device_correlate(const struct hk_correlate_task *task, uint32_t number, char *error, size_t size)
{
  assert_int_equal(number, 3);
  if (device.chose++ > 0)
    return hk_correlate(task);
  snprintf(error, size, "no room for that"); /* the host computes it, without a report */
  return -ENOMEM;
}

static const struct hk_offload_kind residual = { device_open, device_close, device_row,
                                                 device_read, device_write, device_correlate };
static const struct hk_field_kinds elsewhere = { .residual = &residual };

static char said[64];

static uint32_t begun;

static void told(void *arg, const char *why)
{
  assert_ptr_equal(arg, &device);
  begun += !why;
  if (!why)
    return;
  assert_string_equal(said, ""); /* once */
  snprintf(said, sizeof said, "%s", why);
}

static const struct hk_field_place place = { &elsewhere, 3, 24, told, &device };

/* ---- a field ---- */

static struct hk_field *field_of(uint32_t neighbours, uint32_t members)
{
  struct hk_field_rule rule = hk_field_default();
  struct hk_field *f;
  uint32_t number;
  rule.neighbours = neighbours;
  snprintf(rule.file, sizeof rule.file, "%s", neighbours == HK_FIELD_AUTO ? "" : "graph");
  rule.q = 4;
  rule.members = 200;
  assert_int_equal(hk_field_new(&f, &rule), 0);
  for (uint32_t i = 0; i < members; i++)
    assert_int_equal(hk_field_join(f, &number), 0);
  for (uint32_t i = 0; i < members && neighbours == HK_FIELD_GRAPH; i++)
    for (uint32_t k = 0; k < 4; k++)
      hk_field_bind(f, i, k, (i + 2 * (k + 1)) % members);
  return f;
}

struct heard {
  uint64_t hash;
  uint32_t rows, said, out;
};

static void listen(struct heard *h, struct hk_field *f)
{
  struct hk_field_row row;
  while (hk_field_next(f, &row)) {
    h->rows++;
    h->said += row.said;
    h->out += row.out;
    for (uint32_t i = 0; i < row.n; i++) {
      uint64_t bits;
      if (isnan(row.value[i]))
        continue;
      memcpy(&bits, &row.value[i], sizeof bits);
      h->hash = (h->hash ^ bits ^ (uint64_t)row.time[i] * 31 ^ i) * 1099511628211u;
    }
  }
}

/* The field by its state. */
static struct hk_field *over(struct hk_field *f, const struct hk_field_place *where)
{
  const size_t size = hk_field_state_size(f);
  struct hk_field *again;
  void *state = malloc(size);
  assert_non_null(state);
  hk_field_write(f, state);
  assert_int_equal(hk_field_read(&again, NULL, state, size), 0);
  hk_field_free(f);
  free(state);
  hk_field_compute_at(again, where);
  return again;
}

/* Members come and go, are bound anew, the field grows, is counted, written and read. */
static struct heard live(uint32_t neighbours, const struct hk_field_place *where)
{
  struct heard h = { 0 };
  uint32_t members = MEMBERS / 2, number;
  struct hk_field *f = field_of(neighbours, members);
  double front[2] = { 0 };
  hk_field_compute_at(f, where);
  seed = 3;
  for (uint32_t t = 0; t < ROWS; t++) {
    for (uint32_t k = 0; k < 2; k++)
      front[k] = 0.97 * front[k] + uniform() - 0.5;
    if (t == 50 || t == 400) /* from the second time on there are as many as the device wants */
      for (; members < (t == 50 ? MEMBERS / 2 + 3 : 2 * MEMBERS); members++)
        assert_int_equal(hk_field_join(f, &number), 0);
    if (t == 60)
      for (; members < MEMBERS; members++)
        assert_int_equal(hk_field_join(f, &number), 0);
    if (t == 300)
      hk_field_leave(f, 7);
    if (t == 320)
      assert_int_equal(hk_field_join(f, &number), 0);
    if (t == 500 && neighbours == HK_FIELD_GRAPH)
      hk_field_bind(f, 5, 1, 30);
    if (t == 600 || t == 601)
      f = over(f, where);
    if (t % 250 == 0)
      h.hash ^= hk_field_count(f).explained;
    for (uint32_t i = 0; i < members; i++) {
      const double wild = t > 700 && i == 11 ? 3 : 0, v = front[i % 2] * (1 + i) + (1 + i) * 0.1 * (uniform() + wild);
      if (uniform() < 0.05 || !hk_field_has(f, i))
        continue;
      hk_field_put(f, i, (int64_t)t * SECOND, v);
      listen(&h, f);
    }
  }
  hk_field_free(f);
  return h;
}

static void gives_the_hosts_bits(void **state)
{
  (void)state;
  for (uint32_t neighbours = HK_FIELD_AUTO; neighbours <= HK_FIELD_GRAPH; neighbours++) {
    const struct hk_field_place host = { 0 };
    memset(&device, 0, sizeof device);
    said[0] = 0;
    const struct heard want = live(neighbours, &host);
    assert_true(want.said > 10000 && want.out > 50 && device.opened == 0);
    begun = 0;
    const struct heard got = live(neighbours, &place);
    assert_true(begun == device.opened);
    assert_true(got.hash == want.hash && got.rows == want.rows && got.said == want.said && got.out == want.out);
    assert_true(device.rows > ROWS - 80 && device.reads >= 5 && device.writes >= 2); /* it had all rows but the first */
    assert_true(device.opened == 4 && device.closed == 4 && device.number == 3);     /* grown once, read twice */
    assert_string_equal(said, "");
    assert_true(neighbours == HK_FIELD_AUTO ? device.chose > 2 : device.chose == 0);
  }
}

/* A device that fails, at once or in the middle, is reported once and no longer used: the field continues from the host's
 * numbers. */
static void fails(void **state)
{
  (void)state;
  const struct hk_field_place host = { 0 };
  memset(&device, 0, sizeof device);
  const struct heard want = live(HK_FIELD_GRAPH, &host);
  said[0] = 0;
  device.fails_at = 200;
  struct heard got = live(HK_FIELD_GRAPH, &place);
  assert_string_equal(said, "out of order");
  assert_true(got.rows == want.rows && device.closed == device.opened);
  memset(&device, 0, sizeof device);
  said[0] = 0;
  device.full = true;
  struct hk_field *f = field_of(HK_FIELD_GRAPH, MEMBERS);
  hk_field_compute_at(f, &place);
  for (uint32_t t = 0; t < 10; t++)
    for (uint32_t i = 0; i < MEMBERS; i++)
      hk_field_put(f, i, (int64_t)t * SECOND, i);
  listen(&got, f);
  hk_field_free(f);
  assert_string_equal(said, "no room");
  assert_true(device.opened == 0 && device.rows == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(gives_the_hosts_bits),
    cmocka_unit_test(fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
