/* Messages: the payload of each type: values at their limits, those beyond, names. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/frames.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void points_out_of_range_are_refused(void **state)
{
  (void)state;
  uint8_t data[256];
  const uint32_t handle[2] = { 1, 2 }, steps[2] = { 0, 1 };
  const double value[2] = { 1, 2 };
  const struct hk_points bad[] = {
    { 0, 0, 0, 0, HK_TIME_ARRIVAL, HK_VALUE_F64, 0, 0, NULL, NULL, value, handle },         /* none */
    { 0, 0, 0, 2, 5, HK_VALUE_F64, 0, 0, NULL, NULL, value, handle },                       /* no such kind of time */
    { 0, 0, 0, 2, HK_TIME_ARRIVAL, 2, 0, 0, NULL, NULL, value, handle },                    /* nor of value */
    { 0, 0, 0, 2, HK_TIME_EVEN, HK_VALUE_F64, INT64_MAX, 1, NULL, NULL, value, handle },    /* over the end of time */
    { 0, 0, 0, 2, HK_TIME_EVEN, HK_VALUE_F64, INT64_MIN, -1, NULL, NULL, value, handle },   /* before its beginning */
    { 0, 0, 0, 2, HK_TIME_STEPS, HK_VALUE_F64, 0, 0, NULL, steps, value, handle },          /* unit */
    { 0, 0, 0, 2, HK_TIME_STEPS, HK_VALUE_F64, 0, 1000000001, NULL, steps, value, handle }, /* unit */
    { 0, 0, 0, 2, HK_TIME_STEPS, HK_VALUE_F64, INT64_MAX, 1, NULL, steps, value, handle },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct hk_writer w = HK_WRITER(data, sizeof data);
    assert_int_equal(hk_points_write(&w, 0, &bad[i]), -EINVAL);
    /* the same as a peer might write it */
    const size_t place = hk_frame_begin(&w, HK_POINTS, 0);
    const uint64_t zeros[3] = { 0 };
    hk_put(&w, zeros, sizeof zeros);
    hk_put_u32(&w, bad[i].n);
    hk_put_u8(&w, bad[i].time_kind);
    hk_put_u8(&w, bad[i].value_kind);
    hk_put_u16(&w, 0);
    if (bad[i].time_kind == HK_TIME_EVEN || bad[i].time_kind == HK_TIME_STEPS) {
      hk_put_i64(&w, bad[i].base);
      hk_put_i64(&w, bad[i].step);
    }
    hk_put(&w, value, 8 * bad[i].n);
    hk_put(&w, handle, 4 * bad[i].n);
    if (bad[i].steps)
      hk_put(&w, steps, 4 * bad[i].n);
    assert_int_equal(hk_frame_end(&w, place), 0);
    const struct hk_frame f = whole(data, w.size);
    struct hk_points p;
    assert_int_equal(hk_points_read(&f, &p), HANKEL_BAD_PAYLOAD);
  }
  /* a count that would overflow a product */
  struct hk_writer w = HK_WRITER(data, sizeof data);
  const struct hk_points good = { 0, 0, 0, 2, HK_TIME_ARRIVAL, HK_VALUE_F64, 0, 0, NULL, NULL, value, handle };
  assert_int_equal(hk_points_write(&w, 0, &good), 0);
  struct hk_frame f = whole(data, w.size);
  memset(data + HK_FRAME_HEADER + 24, 0xff, 4);
  struct hk_points p;
  assert_int_equal(hk_points_read(&f, &p), HANKEL_BAD_PAYLOAD);
}

static void bad_subscriptions_are_told_apart(void **state)
{
  (void)state;
  static const struct {
    uint32_t what;
    float min_score;
    const char *glob;
    int status;
  } cases[] = {
    { HANKEL_SCORES, 0, "", 0 },
    { HANKEL_NOTICES | HANKEL_VALUES, 1, "*", 0 },
    { 0, 0, "", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_VALUES, 0, "", HANKEL_BAD_SUBSCRIPTION },
    { 32, 0, "", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_SCORES, NAN, "", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_SCORES, -0.1f, "", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_SCORES, 1.1f, "", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_SCORES, 0, "a\tb", HANKEL_BAD_SUBSCRIPTION },
    { HANKEL_SCORES, 0, "\xff", HANKEL_BAD_SUBSCRIPTION },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t data[128];
    struct hk_writer w = HK_WRITER(data, sizeof data);
    struct hk_subscription m = { cases[i].what, cases[i].min_score, text(cases[i].glob), 0 };
    assert_int_equal(hk_subscribe_write(&w, 0, &m), 0);
    const struct hk_frame f = whole(data, w.size);
    assert_int_equal(hk_subscribe_read(&f, &m), cases[i].status);
  }
}

static void names_that_cannot_be_are_a_bad_payload(void **state)
{
  (void)state;
  static const char *const bad[] = { "", "a\nb", "\xff" };
  const uint32_t handle[1] = { 1 };
  for (size_t i = 0; i < 3; i++) {
    uint8_t data[128];
    struct hk_writer w = HK_WRITER(data, sizeof data);
    const struct hk_string name = text(bad[i]);
    assert_int_equal(hk_names_write(&w, 1, handle, &name), 0);
    const struct hk_frame f = whole(data, w.size);
    struct hk_list list;
    assert_int_equal(hk_names_read(&f, &list), HANKEL_BAD_PAYLOAD);
  }
}

/* The example at the end of the binary protocol in PROTOCOL.md, byte for byte. */
static void the_example_of_the_document(void **state)
{
  (void)state;
  static const uint8_t expected[] = {
    0x48, 0x4b, 1, 1,    4,  0,    0,    0, 1, 0,    0,    0,    0xc7, 0xb4, 0x6e, 0x6d, 2, 0,    'm',  'e',  0x48, 0x4b, 1,
    2,    10,   0, 0,    0,  2,    0,    0, 0, 0x0f, 0x09, 0x11, 0x5e, 1,    0,    0,    0, 4,    0,    'p',  'u',  'm',  'p',
    0x48, 0x4b, 1, 0x82, 12, 0,    0,    0, 2, 0,    0,    0,    0xf9, 0xc3, 0xea, 0x2a, 1, 0,    0,    0,    0,    0,    0,
    0,    0,    0, 0,    0,  0x48, 0x4b, 1, 3, 48,   0,    0,    0,    3,    0,    0,    0, 0xd7, 0xb0, 0x2e, 0x72, 0,    0,
    0,    0,    0, 0,    0,  0,    0,    0, 0, 0,    0,    0,    0,    0,    0,    0,    0, 0,    0,    0,    0,    0,    1,
    0,    0,    0, 1,    1,  0,    0,    1, 0, 0,    0,    0,    0,    0,    0,    0,    0, 0,    0,    0,    0,    0,    0x40,
  };
  uint8_t data[256];
  struct hk_writer w = HK_WRITER(data, sizeof data);
  const struct hk_string name = text("pump");
  const uint32_t zero[1] = { 0 };
  const float two[1] = { 2 };
  assert_int_equal(hk_hello_write(&w, 1, &(struct hk_hello){ text("me"), text(""), 0 }), 0);
  assert_int_equal(hk_register_write(&w, 2, 1, &name), 0);
  assert_int_equal(hk_registered_write(&w, 2, 1, zero, zero), 0);
  assert_int_equal(
      hk_points_write(&w, 3, &(struct hk_points){ 0, 0, 0, 1, HK_TIME_ONE, HK_VALUE_F32, 1, 0, NULL, NULL, two, zero }), 0);
  assert_int_equal(w.size, sizeof expected);
  assert_memory_equal(data, expected, sizeof expected);
}

static void names_follow_the_rule(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    bool valid;
  } cases[] = {
    { "a", true },
    { "", false },
    { "machine,site=a temperature", true },
    { "twelve bytes", true },
    { "tab\tin it", false },
    { "a long name with a control \x1f character", false },
    { "del\x7f", false },
    { "\xc2\x80", false }, /* C1 control */
    { "\xc2\x9f", false },
    { "\xc2\xa0", true }, /* no-break space */
    { "\xc3\xa9", true },
    { "\xc0\x80", false }, /* overlong */
    { "\xc1\xbf", false },
    { "\xe0\x9f\xbf", false },
    { "\xe0\xa0\x80", true },
    { "\xed\x9f\xbf", true },
    { "\xed\xa0\x80", false }, /* surrogate */
    { "\xef\xbf\xbf", true },
    { "\xf0\x8f\xbf\xbf", false },
    { "\xf0\x90\x80\x80", true },
    { "\xf4\x8f\xbf\xbf", true },
    { "\xf4\x90\x80\x80", false }, /* over U+10FFFF */
    { "\xf5\x80\x80\x80", false },
    { "\x80", false },
    { "\xe2\x82", false }, /* cut off */
    { "1234567\xe2\x82\xac tail", true },
    { "12345678~~~~~~~~\x7f", false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (hk_name_valid(cases[i].name, strlen(cases[i].name)) != cases[i].valid)
      fail_msg("name %zu", i);
  }
  assert_false(hk_name_valid("a\0b", 3));
  /* every byte at every one of eight places, beside plain ones */
  for (unsigned byte = 0; byte < 128; byte++) {
    for (size_t place = 0; place < 9; place++) {
      char name[] = "abcdefghi";
      name[place] = (char)byte;
      size_t fault = 99;
      assert_int_equal(hk_name_piece_valid(name, 9, &fault), byte >= 32 && byte != 127);
      assert_int_equal(fault, byte >= 32 && byte != 127 ? 99 : place);
    }
  }
  char longest[HK_NAME_MAX + 1];
  memset(longest, 'x', sizeof longest);
  assert_true(hk_name_valid(longest, HK_NAME_MAX));
  assert_false(hk_name_valid(longest, HK_NAME_MAX + 1));
}

/* Feeds: names, positions and acknowledgements. */
static void feeds_and_acknowledgements(void **state)
{
  const struct hk_feed_at at = { UINT64_MAX - 1, HANKEL_JOURNALED };
  uint8_t data[1024];
  char name[HK_FEED_NAME_MAX + 2];
  uint64_t n;
  struct hk_writer w = HK_WRITER(data, sizeof data);
  struct hk_feed_at at_read;
  struct hk_string s;
  struct hk_frame f;
  (void)state;
  memset(name, 'x', sizeof name);
  assert_int_equal(hk_feed_write(&w, 1, (struct hk_string){ name, HK_FEED_NAME_MAX + 1 }), -EINVAL);
  assert_int_equal(hk_feed_write(&w, 1, (struct hk_string){ name, HK_FEED_NAME_MAX }), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_feed_read(&f, &s), 0);
  assert_int_equal(s.length, HK_FEED_NAME_MAX);
  static const char *const bad[] = { "", "a\x01", "\xff" };
  for (size_t i = 0; i < 3; i++) {
    w.size = 0;
    assert_int_equal(hk_feed_write(&w, 1, text(bad[i])), 0);
    f = whole(data, w.size);
    assert_int_equal(hk_feed_read(&f, &s), HANKEL_BAD_PAYLOAD);
  }
  w.size = 0;
  assert_int_equal(hk_feed_at_write(&w, 1, &at), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_feed_at_read(&f, &at_read), 0);
  assert_true(at_read.points == at.points && at_read.durability == at.durability);
  w.size = 0;
  assert_int_equal(hk_ack_write(&w, 99), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_ack_read(&f, &n), 0);
  assert_int_equal(n, 99);
}

/* The position of a subscription, and DONE with it and without. */
static void subscriptions_have_positions(void **state)
{
  const struct hk_subscription m = { HANKEL_EVENTS | HANKEL_POSITIONS, 0, text("*"), 77 };
  uint8_t data[1024];
  uint64_t n = 99;
  struct hk_writer w = HK_WRITER(data, sizeof data);
  struct hk_subscription got;
  struct hk_frame f;
  (void)state;
  for (int with = 0; with < 2; with++) {
    w.size = 0;
    assert_int_equal(hk_done_write(&w, 5, with ? &n : NULL), 0);
    f = whole(data, w.size);
    assert_int_equal(hk_done_read(&f, &n), 0);
    assert_true(n == (with ? 99 : HANKEL_NOW));
    n = 99;
  }
  w.size = 0;
  assert_int_equal(hk_subscribe_write(&w, 2, &m), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_subscribe_read(&f, &got), 0);
  assert_int_equal(got.since, 77);
  f.length -= 8;
  assert_int_equal(hk_subscribe_read(&f, &got), HANKEL_BAD_PAYLOAD);
}

/* Scores and events with the sequence numbers of their sensors, events also with positions. */
static void results_have_sequences(void **state)
{
  static const int64_t times[2] = { 5, 9 };
  static const uint64_t sequences[2] = { 1, UINT64_MAX };
  static const uint32_t handles[2] = { 3, 4 };
  static const float score[2] = { 0.5f, 0.25f };
  static const uint8_t states[2] = { HANKEL_OK, HANKEL_OK };
  const struct hk_event_message events[2] = { { .handle = 7, .kind = HANKEL_RAISED, .after = 1.5, .position = 12, .sequence = 3 },
                                              { .handle = 8, .kind = HANKEL_CLEARED, .time = -1, .position = UINT64_MAX } };
  uint8_t data[1024];
  struct hk_writer w = HK_WRITER(data, sizeof data);
  struct hk_scores scores;
  struct hk_list list;
  struct hk_event_message e;
  struct hk_frame f;
  (void)state;
  assert_int_equal(hk_scores_write(&w, 2, times, NULL, sequences, handles, score, states), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_scores_read(&f, &scores), 0);
  assert_true(w.size <= hk_scores_most(2, 1));
  assert_memory_equal(scores.sequences, sequences, sizeof sequences);
  assert_memory_equal(scores.handles, handles, sizeof handles);
  w.size = 0;
  assert_int_equal(hk_events_write(&w, 2, events, true), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_events_read(&f, &list), 0);
  for (size_t i = 0; i < 2; i++) {
    hk_event_next(&list, &e);
    assert_true(e.position == events[i].position && e.sequence == events[i].sequence && e.handle == events[i].handle &&
                e.kind == events[i].kind && e.time == events[i].time && e.after == events[i].after);
  }
  f.length -= HK_EVENT_BYTES;
  assert_int_equal(hk_events_read(&f, &list), HANKEL_BAD_PAYLOAD);
}

static void operations(void **state)
{
  (void)state;
  uint8_t data[1024];
  char glob[HK_GLOB_MAX + 1];
  memset(glob, '*', sizeof glob);
  const struct {
    struct hk_operate m;
    int written, read;
  } cases[] = {
    { { HANKEL_ACKNOWLEDGE, 7, 0, text("press 4"), text("anna") }, 0, 0 },
    { { HANKEL_ACKNOWLEDGE, 0, 0, text(""), text("") }, 0, 0 },
    { { HANKEL_BEGIN_MAINTENANCE, 0, 1, { glob, HK_GLOB_MAX }, { glob, HK_WHO_MAX } }, 0, 0 },
    { { HANKEL_END_MAINTENANCE, 0, 0, text("press*"), text("") }, 0, 0 },
    { { HANKEL_FALSE, 35, 0, text(""), text("anna") }, 0, 0 },
    { { HANKEL_BEGIN_MAINTENANCE, 0, 0, text("press*"), text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { 0, 0, 0, text("press"), text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { HANKEL_MOVE + 1, 0, 0, text("press"), text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { HANKEL_ACKNOWLEDGE, 0, 0, text("press\n"), text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { HANKEL_ACKNOWLEDGE, 0, 0, text("press"), text("\t") }, 0, HANKEL_BAD_PAYLOAD },
    { { HANKEL_ACKNOWLEDGE, 0, 0, { glob, HK_GLOB_MAX + 1 }, text("") }, -EINVAL, 0 },
    { { HANKEL_ACKNOWLEDGE, 0, 0, text("press"), { glob, HK_WHO_MAX + 1 } }, -EINVAL, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_writer w = HK_WRITER(data, sizeof data);
    struct hk_operate m;
    assert_int_equal(hk_operate_write(&w, 3, &cases[i].m), cases[i].written);
    if (cases[i].written != 0)
      continue;
    struct hk_frame f = whole(data, w.size);
    assert_int_equal(hk_operate_read(&f, &m), cases[i].read);
    if (cases[i].read != 0)
      continue;
    assert_true(m.what == cases[i].m.what && m.number == cases[i].m.number && m.duration == cases[i].m.duration);
    assert_int_equal(m.subject.length, cases[i].m.subject.length);
    assert_memory_equal(m.subject.data, cases[i].m.subject.data, m.subject.length);
    assert_int_equal(m.by.length, cases[i].m.by.length);
    assert_memory_equal(m.by.data, cases[i].m.by.data, m.by.length);
    while (f.length-- > 0)
      assert_int_equal(hk_operate_read(&f, &m), HANKEL_BAD_PAYLOAD);
  }
}

static void lists_of_sensors(void **state)
{
  (void)state;
  uint8_t data[1024];
  char glob[HK_GLOB_MAX + 1];
  memset(glob, '*', sizeof glob);
  const struct {
    struct hk_sensors_asked m;
    int written, read;
  } cases[] = {
    { { 7, 1, text("pump*") }, 0, 0 },
    { { UINT64_MAX, HK_SENSORS_MAX, { glob, HK_GLOB_MAX } }, 0, 0 },
    { { 0, 0, text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { 0, HK_SENSORS_MAX + 1, text("") }, 0, HANKEL_BAD_PAYLOAD },
    { { 0, 1, text("a\tb") }, 0, HANKEL_BAD_PAYLOAD },
    { { 0, 1, { glob, HK_GLOB_MAX + 1 } }, -EINVAL, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_writer w = HK_WRITER(data, sizeof data);
    struct hk_sensors_asked m;
    assert_int_equal(hk_sensors_write(&w, 3, &cases[i].m), cases[i].written);
    if (cases[i].written != 0)
      continue;
    struct hk_frame f = whole(data, w.size);
    assert_int_equal(hk_sensors_read(&f, &m), cases[i].read);
    if (cases[i].read != 0)
      continue;
    assert_true(m.after == cases[i].m.after && m.limit == cases[i].m.limit && m.glob.length == cases[i].m.glob.length);
    assert_memory_equal(m.glob.data, cases[i].m.glob.data, m.glob.length);
    while (f.length-- > 0)
      assert_int_equal(hk_sensors_read(&f, &m), HANKEL_BAD_PAYLOAD);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(points_out_of_range_are_refused),  cmocka_unit_test(lists_of_sensors),
    cmocka_unit_test(bad_subscriptions_are_told_apart), cmocka_unit_test(names_that_cannot_be_are_a_bad_payload),
    cmocka_unit_test(the_example_of_the_document),      cmocka_unit_test(names_follow_the_rule),
    cmocka_unit_test(feeds_and_acknowledgements),       cmocka_unit_test(subscriptions_have_positions),
    cmocka_unit_test(results_have_sequences),           cmocka_unit_test(operations),
  };
  return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
