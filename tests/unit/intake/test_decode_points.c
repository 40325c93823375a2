/* Decoding, compared with a plain reading of the points one at a time: random frames of every kind, with invalid handles and
 * times too far ahead at any place, at any address, and cut into any pieces. */
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENSORS = 5000, MOST = 5000, ROUNDS = 4000 };
#define ARRIVAL 1700000000000000000
#define LATEST (ARRIVAL + 1000000000)

struct frame {
  struct hk_points p; /* to be written */
  uint32_t handle[MOST], steps[MOST];
  int64_t time[MOST]; /* of each point, as PROTOCOL.md has it */
  double value[MOST];
  float single[MOST];
};

static uint64_t state64 = 88172645463325252u;

static uint64_t random64(void)
{
  state64 ^= state64 << 13;
  state64 ^= state64 >> 7;
  return state64 ^= state64 << 17;
}
static uint32_t below(uint32_t n)
{
  return (uint32_t)(random64() % n);
}

/* A handle that no table of these has. */
static uint32_t bad_handle(void)
{
  static const uint32_t odd[] = { UINT32_MAX, SENSORS, 0xffffff, 3u << 24, 5u << 24 | SENSORS, 0xff000000 };
  return below(2) ? odd[below(sizeof odd / sizeof *odd)] : (uint32_t)(200 + below(50)) << 24 | below(SENSORS);
}

static double any_value(void)
{
  static const double odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1e300, 5e-324, 1e-40 };
  const uint32_t i = below(40);
  return i < sizeof odd / sizeof *odd ? odd[i] : (double)(int64_t)random64() * 1e-9;
}

/* Every sensor has a generation of its own; some slots hold none. */
static void make_handles(atomic_uint *of_slot)
{
  for (uint32_t i = 0; i < SENSORS; i++)
    atomic_init(&of_slot[i], i | (i * 7 % 100) << 24);
  for (uint32_t i = 0; i < SENSORS; i += 97)
    atomic_store(&of_slot[i], i % 2 || i == 0 ? HK_NO_HANDLE : 0);
  atomic_init(&of_slot[SENSORS], 0);
}

static void make_points(struct frame *f, const atomic_uint *of_slot, uint32_t bad_of, uint32_t late_of)
{
  const uint32_t n = below(4) ? 1 + below(70) : 1 + below(MOST);
  const int64_t base = LATEST - (late_of ? 500 : 100000000000000);
  f->p = (struct hk_points){ .n = n, .time_kind = (uint8_t)below(5), .value_kind = (uint8_t)below(2) };
  f->p.base = base;
  if (f->p.time_kind == HK_TIME_EVEN)
    f->p.step = (int64_t)below(5) - 2;
  if (f->p.time_kind == HK_TIME_STEPS)
    f->p.step = 1 + below(late_of ? 3 : 20000);
  for (uint32_t i = 0; i < n; i++) {
    do
      f->handle[i] = atomic_load(&of_slot[1 + below(SENSORS - 1)]);
    while (f->handle[i] == HK_NO_HANDLE || f->handle[i] == 0);
    if (bad_of && below(bad_of) == 0)
      f->handle[i] = bad_handle();
    f->steps[i] = late_of ? below(400) : (uint32_t)random64();
    switch (f->p.time_kind) {
    case HK_TIME_EACH:
      f->time[i] = late_of && below(late_of) == 0 ? LATEST + 1 + below(1000) : LATEST - (int64_t)(random64() >> 1);
      break;
    case HK_TIME_ONE:
      f->time[i] = f->p.base = late_of ? LATEST + (int64_t)(n % 2) : base;
      break;
    case HK_TIME_EVEN:
      f->time[i] = base + (int64_t)i * f->p.step;
      break;
    case HK_TIME_STEPS:
      f->time[i] = base + (int64_t)f->steps[i] * f->p.step;
      break;
    default:
      f->time[i] = ARRIVAL;
    }
    f->value[i] = any_value();
    f->single[i] = (float)f->value[i];
    if (f->p.value_kind == HK_VALUE_F32)
      f->value[i] = (double)f->single[i];
  }
  if (f->p.time_kind == HK_TIME_EACH)
    f->p.times = f->time;
  if (f->p.time_kind == HK_TIME_STEPS)
    f->p.steps = f->steps;
  f->p.handles = f->handle;
  f->p.values = f->p.value_kind == HK_VALUE_F32 ? (const void *)f->single : f->value;
}

static bool handle_good(const atomic_uint *of_slot, uint32_t handle)
{
  const uint32_t slot = handle & 0xffffff;
  return slot < SENSORS && handle != HK_NO_HANDLE && atomic_load(&of_slot[slot]) == handle;
}

/* Compares points first..first+n-1 of a frame that was read with the expected ones; the columns are exactly as long as needed. */
static void compare(const struct frame *f, const struct hk_points *read, const struct hk_decoder *d, uint32_t first, uint32_t n)
{
  const struct hk_columns to = { malloc(n * sizeof(uint32_t)), malloc(n * sizeof(int64_t)), malloc(n * sizeof(double)) };
  uint32_t later = 0, at = 0;
  const struct hk_decoded out = hk_decode(d, read, first, n, to);
  for (uint32_t i = first; i < first + n; i++) {
    if (!handle_good(d->handles.of_slot, f->handle[i]))
      continue;
    assert_true(at < out.n);
    const double value = f->time[i] > d->latest ? NAN : f->value[i];
    if (f->time[i] > d->latest && later++ == 0) {
      assert_int_equal(out.slot, f->handle[i] & 0xffffff);
      assert_int_equal(out.time, f->time[i]);
    }
    assert_int_equal(to.slot[at], f->handle[i] & 0xffffff);
    assert_int_equal(to.time[at], f->time[i]);
    assert_true(isnan(value) ? isnan(to.value[at]) : memcmp(&value, &to.value[at], sizeof value) == 0);
    at++;
  }
  assert_int_equal(at, out.n);
  assert_int_equal(out.ahead, later);
  free(to.slot);
  free(to.time);
  free(to.value);
}

static void test_random_frames(void **state)
{
  (void)state;
  static struct frame f;
  static atomic_uint of_slot[SENSORS + 1];
  uint32_t frames[5][2] = { { 0 } }, whole = 0, with_bad = 0;
  make_handles(of_slot);
  uint8_t *written = malloc(hk_points_size(HK_TIME_EACH, HK_VALUE_F64, MOST) + 64);
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t bad_of = (uint32_t[]){ 0, 0, 1, 3, 50, 2000 }[below(6)];
    make_points(&f, of_slot, bad_of, (uint32_t[]){ 0, 0, 1, 10, 2000 }[below(5)]);
    struct hk_writer w = HK_WRITER(written, hk_points_size(HK_TIME_EACH, HK_VALUE_F64, MOST));
    assert_int_equal(hk_points_write(&w, 0, &f.p), 0);
    /* Memory of its own that ends where the frame does, at an odd address. */
    const size_t shift = below(8);
    uint8_t *memory = malloc(shift + w.size);
    memcpy(memory + shift, written, w.size);
    struct hk_frame frame;
    struct hk_points read;
    assert_int_equal(hk_frame_read(memory + shift, w.size, HK_FRAME_MAX, &frame), HK_FRAME_WHOLE);
    assert_int_equal(hk_points_read(&frame, &read), 0);
    const struct hk_decoder d = { { of_slot, SENSORS }, ARRIVAL, below(8) ? LATEST : INT64_MAX };
    for (uint32_t first = 0, n; first < read.n; first += n) {
      n = below(3) ? read.n - first : 1 + below(read.n - first);
      whole += n == read.n;
      compare(&f, &read, &d, first, n);
    }
    frames[f.p.time_kind][f.p.value_kind]++;
    with_bad += bad_of != 0;
    free(memory);
  }
  free(written);
  for (int i = 0; i < 5; i++)
    assert_true(frames[i][0] > ROUNDS / 20 && frames[i][1] > ROUNDS / 20);
  assert_true(whole > ROUNDS / 4 && with_bad > ROUNDS / 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_frames) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
