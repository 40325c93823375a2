/* A frame of each type, one after the other: written, and checked when it is read again. */
#ifndef HK_TESTS_EVERY_FRAME_H
#define HK_TESTS_EVERY_FRAME_H

#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/frames.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* One frame of each type, in a row. */
static inline size_t write_all(uint8_t *data, size_t capacity)
{
  struct hk_writer w = HK_WRITER(data, capacity);
  const int64_t times[3] = { -1, 0, INT64_MAX };
  const double values[3] = { 1.5, NAN, -0.0 };
  const float small[3] = { 1.5f, -2, 0 }, scores[3] = { 0.25f, NAN, 1 };
  const uint32_t handles[3] = { 7, 0, 0xfffffffe }, steps[3] = { 0, 5, UINT32_MAX }, reasons[3] = { 0, 2, 3 };
  const uint8_t states[3] = { 0, 1, 4 };
  const struct hk_string names[3] = { text("a"), text("machine temperature"), text("\xc3\xa9t\xc3\xa9") };
  const struct hk_welcome welcome = { 0x123456789abcdef0, 1 << 20, text("hankeld"), text("") };
  const struct hk_subscription subscription = { HANKEL_SCORES | HANKEL_VALUES, 0.5f, text("m*"), 0 };
  const struct hk_event_message events[2] = { { 7, 1, HANKEL_RAISED, 0.75f, 30, 10, 20, -1.5, 2.5, .channel = HANKEL_SHIFT },
                                              { 8, 0, HANKEL_STALE, .time = 40 } };
  const struct hk_points points[] = {
    { 9, 8, 7, 3, HK_TIME_EACH, HK_VALUE_F64, 0, 0, times, NULL, values, handles },
    { 0, 0, 0, 3, HK_TIME_ONE, HK_VALUE_F32, 99, 0, NULL, NULL, small, handles },
    { 0, 0, 0, 3, HK_TIME_EVEN, HK_VALUE_F64, 99, -10, NULL, NULL, values, handles },
    { 0, 0, 0, 3, HK_TIME_STEPS, HK_VALUE_F32, 99, 1000, NULL, steps, small, handles },
    { 0, 0, 0, 3, HK_TIME_ARRIVAL, HK_VALUE_F64, 0, 0, NULL, NULL, values, handles },
  };
  int failed = 0;
  failed |= hk_hello_write(&w, 1, &(struct hk_hello){ text("a client"), text(""), 0 });
  failed |= hk_register_write(&w, 2, 3, names);
  for (size_t i = 0; i < 5; i++) {
    const size_t before = w.size;
    failed |= hk_points_write(&w, 3, &points[i]);
    assert_int_equal(w.size - before, hk_points_size(points[i].time_kind, points[i].value_kind, 3));
  }
  failed |= hk_subscribe_write(&w, 4, &subscription);
  failed |= hk_empty_write(&w, HK_UNSUBSCRIBE, 5);
  failed |= hk_ping_write(&w, HK_PING, 6, 66);
  failed |= hk_empty_write(&w, HK_STATUS, 7);
  failed |= hk_bye_write(&w, 8, 88, 99);
  failed |= hk_welcome_write(&w, 9, &welcome);
  failed |= hk_registered_write(&w, 10, 3, handles, reasons);
  failed |= hk_report_write(&w, 11, text("{}"));
  failed |= hk_names_write(&w, 3, handles, names);
  failed |= hk_scores_write(&w, 3, times, values, NULL, handles, scores, states);
  failed |= hk_scores_write(&w, 3, times, NULL, NULL, handles, scores, states);
  failed |= hk_events_write(&w, 2, events, false);
  failed |= hk_gap_write(&w, 12, 13);
  failed |= hk_error_write(&w, 14, HANKEL_UNKNOWN_HANDLE, HK_POINTS, text("sensor 7"));
  assert_int_equal(failed, 0);
  return w.size;
}

static inline void check_points(size_t number, const struct hk_frame *f)
{
  struct hk_points p;
  uint32_t handle[3];
  int64_t time[3];
  double value[3];
  assert_int_equal(hk_points_read(f, &p), 0);
  assert_int_equal(p.n, 3);
  assert_int_equal(p.feed, number == 2 ? 9 : 0);
  assert_int_equal(p.sequence, number == 2 ? 8 : 0);
  assert_int_equal(p.before, number == 2 ? 7 : 0);
  /* read as a whole and point by point: the same */
  hk_points_handles(&p, 0, 3, handle);
  hk_points_times(&p, 0, 3, 1234, time);
  hk_points_values(&p, 0, 3, value);
  for (uint32_t i = 0; i < 3; i++) {
    static const int64_t times[5][3] = {
      { -1, 0, INT64_MAX }, { 99, 99, 99 }, { 99, 89, 79 }, { 99, 5099, 99 + 1000 * (int64_t)UINT32_MAX }, { 1234, 1234, 1234 }
    };
    uint32_t one_handle;
    int64_t one_time;
    double one_value;
    hk_points_handles(&p, i, 1, &one_handle);
    hk_points_times(&p, i, 1, 1234, &one_time);
    hk_points_values(&p, i, 1, &one_value);
    assert_int_equal(handle[i], i == 0 ? 7 : i == 1 ? 0 : 0xfffffffe);
    assert_int_equal(one_handle, handle[i]);
    assert_int_equal(time[i], times[number - 2][i]);
    assert_int_equal(one_time, time[i]);
    assert_memory_equal(&one_value, &value[i], sizeof one_value);
  }
  assert_true(value[0] == 1.5);
  assert_true(p.value_kind == HK_VALUE_F32 ? value[1] == -2 : isnan(value[1]));
  assert_true(value[2] == 0 && (p.value_kind == HK_VALUE_F32 || signbit(value[2])));
}

/* The frames that clients send, except for points. */
static inline void check_request(size_t number, const struct hk_frame *f)
{
  struct hk_string s;
  struct hk_list list;
  struct hk_hello hello;
  struct hk_subscription subscription;
  uint64_t a, b;
  switch (number) {
  case 0:
    assert_int_equal(hk_hello_read(f, &hello), 0);
    assert_text(hello.client, "a client");
    break;
  case 1:
    assert_int_equal(hk_register_read(f, &list), 0);
    assert_int_equal(list.n, 3);
    s = hk_name_next(&list);
    assert_text(s, "a");
    s = hk_name_next(&list);
    assert_text(s, "machine temperature");
    s = hk_name_next(&list);
    assert_text(s, "\xc3\xa9t\xc3\xa9");
    break;
  case 7:
    assert_int_equal(hk_subscribe_read(f, &subscription), 0);
    assert_int_equal(subscription.what, HANKEL_SCORES | HANKEL_VALUES);
    assert_true(subscription.min_score == 0.5f);
    assert_text(subscription.glob, "m*");
    break;
  case 8:
  case 10:
    assert_int_equal(hk_empty_read(f), 0);
    break;
  case 9:
    assert_int_equal(hk_ping_read(f, &a), 0);
    assert_int_equal(a, 66);
    break;
  case 11:
    assert_int_equal(hk_bye_read(f, &a, &b), 0);
    assert_int_equal(a, 88);
    assert_int_equal(b, 99);
  }
}

/* Results, events, gaps and errors. */
static inline void check_result(size_t number, const struct hk_frame *f)
{
  struct hk_list list;
  struct hk_scores scores;
  struct hk_event_message event;
  struct hk_error_message error;
  uint64_t a, b;
  int64_t time[3];
  switch (number) {
  case 16:
  case 17:
    assert_int_equal(hk_scores_read(f, &scores), 0);
    assert_int_equal(scores.n, 3);
    assert_int_equal(scores.values != NULL, number == 16);
    assert_memory_equal(scores.states, "\0\1\4", 3);
    hk_scores_times(&scores, time);
    assert_true(time[0] == -1 && time[1] == 0 && time[2] == INT64_MAX);
    break;
  case 18:
    assert_int_equal(hk_events_read(f, &list), 0);
    assert_int_equal(list.n, 2);
    hk_event_next(&list, &event);
    assert_true(event.handle == 7 && event.number == 1 && event.kind == HANKEL_RAISED && event.score == 0.75f &&
                event.time == 30 && event.from == 10 && event.instant == 20 && event.before == -1.5 && event.after == 2.5);
    hk_event_next(&list, &event);
    assert_true(event.handle == 8 && event.kind == HANKEL_STALE && event.time == 40);
    break;
  case 19:
    assert_int_equal(hk_gap_read(f, &a, &b), 0);
    assert_true(a == 12 && b == 13);
    break;
  default:
    assert_int_equal(hk_error_read(f, &error), 0);
    assert_true(error.code == HANKEL_UNKNOWN_HANDLE && error.type == HK_POINTS && !error.closing);
    assert_text(error.message, "sensor 7");
  }
}

/* The frames that the daemon sends. */
static inline void check_answer(size_t number, const struct hk_frame *f)
{
  struct hk_string s;
  struct hk_list list;
  struct hk_welcome welcome;
  uint32_t base, reason;
  switch (number) {
  case 12:
    assert_int_equal(hk_welcome_read(f, &welcome), 0);
    assert_true(welcome.feed == 0x123456789abcdef0 && welcome.max_frame == 1 << 20);
    assert_text(welcome.server, "hankeld");
    break;
  case 13:
    assert_int_equal(hk_registered_read(f, &list), 0);
    assert_int_equal(list.n, 3);
    hk_registered_next(&list, &base, &reason);
    assert_true(base == 7 && reason == 0);
    hk_registered_next(&list, &base, &reason);
    assert_true(base == 0 && reason == 2);
    break;
  case 14:
    assert_int_equal(f->length, 2);
    assert_memory_equal(f->payload, "{}", 2);
    break;
  case 15:
    assert_int_equal(hk_names_read(f, &list), 0);
    hk_names_next(&list, &base, &s);
    hk_names_next(&list, &base, &s);
    assert_int_equal(base, 0);
    assert_text(s, "machine temperature");
  }
}

/* Checks the frame that write_all put at this place. */
static inline void check(size_t number, const struct hk_frame *f)
{
  static const struct {
    uint8_t type;
    uint32_t tag;
  } expected[] = { { HK_HELLO, 1 },  { HK_REGISTER, 2 }, { HK_POINTS, 3 },    { HK_POINTS, 3 },      { HK_POINTS, 3 },
                   { HK_POINTS, 3 }, { HK_POINTS, 3 },   { HK_SUBSCRIBE, 4 }, { HK_UNSUBSCRIBE, 5 }, { HK_PING, 6 },
                   { HK_STATUS, 7 }, { HK_BYE, 8 },      { HK_WELCOME, 9 },   { HK_REGISTERED, 10 }, { HK_REPORT, 11 },
                   { HK_NAMES, 0 },  { HK_SCORES, 0 },   { HK_SCORES, 0 },    { HK_EVENTS, 0 },      { HK_GAP, 0 },
                   { HK_ERROR, 14 } };
  assert_in_range(number, 0, sizeof expected / sizeof *expected - 1);
  assert_int_equal(f->type, expected[number].type);
  assert_int_equal(f->tag, expected[number].tag);
  if (number >= 2 && number <= 6)
    check_points(number, f);
  else if (number < 12)
    check_request(number, f);
  else if (number < 16)
    check_answer(number, f);
  else
    check_result(number, f);
}

enum { ALL = 21, ROOM = 8192 };

#endif
