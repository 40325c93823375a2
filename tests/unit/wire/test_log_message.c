/* Messages of a cluster's logs: written ones are read, and invalid ones are refused with the reason. */
#include "proto/wire/columns.h"
#include "proto/wire/log_message.h"
#include "tests/unit/support/frames.h"

#include <errno.h>

static const struct hk_string two[] = { { "pump 7", 6 }, { "pump 8", 6 } };
static const double values[] = { 1, 2, 3 };
static const int64_t times[] = { 10, 20, 20 };

static struct hk_points three(const uint32_t *handles)
{
  return (struct hk_points){ .n = 3, .time_kind = HK_TIME_EACH, .times = times, .values = values, .handles = handles };
}

static size_t made(uint8_t *bytes, size_t room, const struct hk_points *p)
{
  struct hk_writer w = HK_WRITER(bytes, room);
  assert_int_equal(hk_log_message_write(&w, 2, two, p), 0);
  return w.size;
}

static const char *why_not(const void *data, size_t size)
{
  struct hk_list names;
  struct hk_points points;
  const char *why = "it is one";
  const int status = hk_log_message_read(data, size, &names, &points, &why);
  assert_true(status == 0 || status == -EBADMSG);
  return why;
}

static void test_there_and_back(void **state)
{
  (void)state;
  static const uint32_t handles[] = { 0, 1, 0 };
  uint8_t bytes[512];
  const struct hk_points p = three(handles);
  const size_t size = made(bytes, sizeof bytes, &p);
  struct hk_list names;
  struct hk_points points;
  const char *why;
  assert_int_equal(hk_log_message_read(bytes, size, &names, &points, &why), 0);
  assert_int_equal(names.n, 2);
  const struct hk_string first = hk_name_next(&names), second = hk_name_next(&names);
  assert_text(first, "pump 7");
  assert_text(second, "pump 8");
  assert_int_equal(points.n, 3);
  assert_memory_equal(points.times, times, sizeof times);
  assert_memory_equal(points.values, values, sizeof values);
  assert_memory_equal(points.handles, handles, sizeof handles);
}

static void test_no_room(void **state)
{
  (void)state;
  static const uint32_t handles[] = { 0, 1, 0 };
  uint8_t bytes[100];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  const struct hk_points p = three(handles);
  assert_int_equal(hk_log_message_write(&w, 2, two, &p), -ENOSPC);
  assert_int_equal(w.size, 0);
}

static void test_what_is_none(void **state)
{
  (void)state;
  static const uint32_t good[] = { 0, 1, 0 }, beyond[] = { 0, 2, 0 };
  uint8_t bytes[512];
  struct hk_points p = three(good);
  const size_t size = made(bytes, sizeof bytes, &p);
  for (size_t i = 0; i < size; i++)
    assert_string_not_equal(why_not(bytes, i), "it is one");
  for (size_t i = 0; i < size; i++) {
    bytes[i] ^= 0x10;
    assert_string_not_equal(why_not(bytes, size), "it is one");
    bytes[i] ^= 0x10;
  }
  assert_string_equal(why_not(bytes, size), "it is one");
  bytes[size] = 0;
  assert_string_equal(why_not(bytes, size + 1), "it is not a REGISTER frame and a POINTS frame");
  p = three(beyond);
  assert_string_equal(why_not(bytes, made(bytes, sizeof bytes, &p)), "a point is of no name that it has");
  p = three(good);
  p.before = 1;
  assert_string_equal(why_not(bytes, made(bytes, sizeof bytes, &p)), "its points have no times of their own, or name a feed");
  p = three(good);
  p.time_kind = HK_TIME_ARRIVAL;
  assert_string_equal(why_not(bytes, made(bytes, sizeof bytes, &p)), "its points have no times of their own, or name a feed");
}

static void test_too_many_points(void **state)
{
  (void)state;
  enum { MANY = HK_LOG_POINTS_MAX + 1 };
  static double value[MANY];
  static uint32_t handle[MANY];
  static uint8_t bytes[MANY * 12 + 512];
  const struct hk_points p = { .n = MANY, .time_kind = HK_TIME_ONE, .base = 5, .values = value, .handles = handle };
  assert_string_equal(why_not(bytes, made(bytes, sizeof bytes, &p)), "it has over 8,192 points");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_there_and_back),
    cmocka_unit_test(test_no_room),
    cmocka_unit_test(test_what_is_none),
    cmocka_unit_test(test_too_many_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
