/* Frames and payloads: every cut, every flipped bit, every type there and back, and wrong lengths. */
#include "proto/message.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hk_string text(const char *s)
{
  return hk_string(s);
}

#define assert_text(string, expected)                                                                                            \
  do {                                                                                                                           \
    assert_int_equal((string).length, strlen(expected));                                                                         \
    assert_memory_equal((string).data, expected, strlen(expected));                                                              \
  } while (0)

static struct hk_frame whole(const uint8_t *data, size_t size)
{
  struct hk_frame f;
  assert_int_equal(hk_frame_read(data, size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
  assert_int_equal(hk_frame_size(&f), size);
  return f;
}

/* One frame of each type, in a row. */
static size_t write_all(uint8_t *data, size_t capacity)
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

/* Checks the frame that write_all put at this place. */
static void check(size_t number, const struct hk_frame *f)
{
  struct hk_string s;
  struct hk_list list;
  struct hk_points p;
  struct hk_hello hello;
  struct hk_welcome welcome;
  struct hk_subscription subscription;
  struct hk_scores scores;
  struct hk_event_message event;
  struct hk_error_message error;
  uint64_t a, b;
  uint32_t handle[3], reason, base;
  int64_t time[3];
  double value[3];
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
  case 2:
  case 3:
  case 4:
  case 5:
  case 6:
    assert_int_equal(hk_points_read(f, &p), 0);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.feed, number == 2 ? 9 : 0);
    assert_int_equal(p.sequence, number == 2 ? 8 : 0);
    assert_int_equal(p.before, number == 2 ? 7 : 0);
    /* whole, and point by point: the same */
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
    break;
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
    break;
  case 16:
  case 17:
    assert_int_equal(hk_scores_read(f, &scores), 0);
    assert_int_equal(scores.n, 3);
    assert_int_equal(scores.values != NULL, number == 16);
    assert_memory_equal(scores.states, "\0\1\4", 3);
    hk_scores_times(&scores, time);
    assert_true(time[0] == -1 && time[1] == 0 && time[2] == INT64_MAX);
    assert_int_equal(f->length + HK_FRAME_HEADER, hk_scores_size(&scores));
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

enum { ALL = 21, ROOM = 8192 };

/* Puts the bytes into an inbox in pieces of `piece` (the first one `first`) and checks what comes out. */
static void feed(const uint8_t *data, size_t size, size_t first, size_t piece)
{
  struct hk_inbox in = { .max_length = HK_FRAME_MAX };
  size_t done = 0, frames = 0;
  while (done < size) {
    size_t room, n = done == 0 && first ? first : piece;
    uint8_t *space = hk_inbox_space(&in, &room);
    assert_non_null(space);
    assert_true(room > 0);
    n = n < size - done ? n : size - done;
    n = n < room ? n : room;
    memcpy(space, data + done, n);
    hk_inbox_wrote(&in, n);
    done += n;
    struct hk_frame f;
    int status;
    while ((status = hk_inbox_next(&in, &f)) == HK_FRAME_WHOLE)
      check(frames++, &f);
    assert_int_equal(status, HK_FRAME_PART);
  }
  assert_int_equal(frames, ALL);
  hk_inbox_free(&in);
}

static void every_type_there_and_back_at_every_cut(void **state)
{
  (void)state;
  uint8_t data[ROOM];
  const size_t size = write_all(data, sizeof data);
  feed(data, size, 0, size);
  for (size_t piece = 1; piece < 70; piece++)
    feed(data, size, 0, piece);
  for (size_t first = 1; first < size; first++)
    feed(data, size, first, size);
}

static void every_flipped_bit_is_found(void **state)
{
  (void)state;
  uint8_t data[512];
  struct hk_writer w = HK_WRITER(data, sizeof data);
  const struct hk_string names[2] = { text("machine temperature"), text("pressure") };
  struct hk_frame f;
  assert_int_equal(hk_register_write(&w, 77, 2, names), 0);
  for (size_t bit = 0; bit < 8 * w.size; bit++) {
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    const int status = hk_frame_read(data, w.size, HK_FRAME_MAX, &f);
    assert_int_not_equal(status, HK_FRAME_WHOLE);
    /* a longer length makes it wait for more; everything else is an error at once */
    if (status == HK_FRAME_PART)
      assert_in_range(bit / 8, 4, 7);
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  whole(data, w.size);
}

static void wrong_headers_are_told_at_once(void **state)
{
  (void)state;
  static const struct {
    uint8_t bytes[8];
    size_t size;
    int status;
  } cases[] = {
    { { 'H' }, 1, HK_FRAME_PART },
    { { 'h' }, 1, HANKEL_BAD_MAGIC },
    { { 'H', 'k' }, 2, HANKEL_BAD_MAGIC },
    { { 'H', 'K', 0 }, 3, HANKEL_BAD_VERSION },
    { { 'H', 'K', 2 }, 3, HANKEL_BAD_VERSION },
    { { 'H', 'K', 1, HK_POINTS, 0, 0, 16, 0 }, 16, HK_FRAME_PART },     /* 1 MiB: allowed */
    { { 'H', 'K', 1, HK_POINTS, 1, 0, 16, 0 }, 16, HANKEL_TOO_LONG },   /* one more */
    { { 'H', 'K', 1, HK_POINTS, 0, 0, 0, 0x80 }, 16, HANKEL_TOO_LONG }, /* the sign bit */
    { { 'H', 'K', 1, HK_POINTS, 255, 255, 255, 255 }, 16, HANKEL_TOO_LONG },
    { { 'H', 'K', 1, HK_POINTS, 0, 0, 0, 0 }, 16, HANKEL_BAD_CHECKSUM }, /* length 0 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t header[16] = { 0 };
    struct hk_frame f;
    memcpy(header, cases[i].bytes, sizeof cases[i].bytes);
    assert_int_equal(hk_frame_read(header, cases[i].size, HK_FRAME_MAX, &f), cases[i].status);
  }
}

/* A peer that announces much and sends little costs little; one that sends much is bounded. */
static void inbox_grows_with_what_came_only(void **state)
{
  (void)state;
  struct hk_inbox in = { .max_length = HK_FRAME_MAX };
  const uint8_t header[16] = { 'H', 'K', 1, HK_POINTS, 0, 0, 16, 0 };
  size_t room, longest = HK_FRAME_HEADER + (size_t)HK_FRAME_MAX;
  memcpy(hk_inbox_space(&in, &room), header, sizeof header);
  hk_inbox_wrote(&in, sizeof header);
  struct hk_frame f;
  assert_int_equal(hk_inbox_next(&in, &f), HK_FRAME_PART);
  assert_in_range(in.capacity, 1, 64 << 10);
  for (size_t came = sizeof header; came < longest; came += room) {
    uint8_t *space = hk_inbox_space(&in, &room);
    assert_in_range(in.capacity, 1, 2 * longest);
    room = room < longest - came ? room : longest - came;
    memset(space, 0, room);
    hk_inbox_wrote(&in, room);
  }
  assert_int_equal(hk_inbox_next(&in, &f), HANKEL_BAD_CHECKSUM);
  hk_inbox_free(&in);
  assert_int_equal(in.capacity, 0);
}

static void small_frames_in_a_full_inbox_all_come_out(void **state)
{
  (void)state;
  struct hk_inbox in = { .max_length = HK_FRAME_MAX_LEAST };
  uint8_t data[ROOM];
  const size_t size = write_all(data, sizeof data);
  size_t frames = 0, done = 0;
  for (size_t turn = 0; turn < 3000; turn++) { /* odd pieces, so that every remainder is moved about */
    size_t room;
    uint8_t *space = hk_inbox_space(&in, &room);
    for (size_t i = 0; i < room; i++)
      space[i] = data[(done + i) % size];
    hk_inbox_wrote(&in, room);
    done += room;
    struct hk_frame f;
    while (hk_inbox_next(&in, &f) == HK_FRAME_WHOLE)
      check(frames++ % ALL, &f);
  }
  assert_int_equal(frames, done / size * ALL + frames % ALL);
  hk_inbox_free(&in);
}

/* Every payload cut short or made longer, with a good checksum: a bad payload, never a read past the end (ASan looks). */
static void every_wrong_length_is_a_bad_payload(void **state)
{
  (void)state;
  uint8_t data[ROOM];
  const size_t size = write_all(data, sizeof data);
  size_t at = 0;
  for (size_t number = 0; number < ALL; number++) {
    struct hk_frame good;
    assert_int_equal(hk_frame_read(data + at, size - at, HK_FRAME_MAX, &good), HK_FRAME_WHOLE);
    at += hk_frame_size(&good);
    if (good.type == HK_REPORT)
      continue; /* any length will do */
    for (uint32_t length = 0; length <= good.length + 9; length++) {
      if (length == good.length)
        continue;
      uint8_t *payload = calloc(1, length + (length == 0)); /* its own piece of memory: ASan sees one byte too many */
      memcpy(payload, good.payload, length < good.length ? length : good.length);
      const struct hk_frame f = { good.type, 0, length, payload };
      struct hk_list list;
      struct hk_points p;
      struct hk_hello hello;
      struct hk_welcome welcome;
      struct hk_subscription subscription;
      struct hk_scores scores;
      struct hk_error_message error;
      uint64_t a, b;
      int status = 0;
      switch (good.type) {
      case HK_HELLO:
        status = hk_hello_read(&f, &hello);
        break;
      case HK_REGISTER:
        status = hk_register_read(&f, &list);
        break;
      case HK_POINTS:
        status = hk_points_read(&f, &p);
        break;
      case HK_SUBSCRIBE:
        status = hk_subscribe_read(&f, &subscription);
        break;
      case HK_PING:
        status = hk_ping_read(&f, &a);
        break;
      case HK_BYE:
        status = hk_bye_read(&f, &a, &b);
        break;
      case HK_GAP:
        status = hk_gap_read(&f, &a, &b);
        break;
      case HK_WELCOME:
        status = hk_welcome_read(&f, &welcome);
        break;
      case HK_REGISTERED:
        status = hk_registered_read(&f, &list);
        break;
      case HK_NAMES:
        status = hk_names_read(&f, &list);
        break;
      case HK_SCORES:
        status = hk_scores_read(&f, &scores);
        break;
      case HK_EVENTS:
        status = hk_events_read(&f, &list);
        break;
      case HK_ERROR:
        status = hk_error_read(&f, &error);
        break;
      default:
        status = hk_empty_read(&f);
      }
      assert_int_equal(status, HANKEL_BAD_PAYLOAD);
      free(payload);
    }
  }
}

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

static void a_frame_that_does_not_fit_is_taken_back(void **state)
{
  (void)state;
  uint8_t data[100];
  struct hk_writer w = HK_WRITER(data, sizeof data);
  assert_int_equal(hk_ping_write(&w, HK_PING, 0, 1), 0);
  const size_t size = w.size;
  char longest[HK_CLIENT_MAX + 2] = { 0 };
  memset(longest, 'x', HK_CLIENT_MAX);
  assert_int_equal(hk_hello_write(&w, 0, &(struct hk_hello){ text(longest), text(""), 0 }), -ENOSPC);
  assert_int_equal(w.size, size);
  longest[HK_CLIENT_MAX] = 'x';
  assert_int_equal(hk_hello_write(&w, 0, &(struct hk_hello){ text(longest), text(""), 0 }), -EINVAL);
  assert_int_equal(hk_ping_write(&w, HK_PONG, 0, 1), 0);
  assert_int_equal(w.size, 2 * size);
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
  /* every byte in every place of eight, beside the plain ones */
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

/* Every layout of SCORES: times of each kind, whatever they are, with values and without, states all ok and not. */
static void scores_in_every_layout(void **state)
{
  (void)state;
  enum { MOST = 1000 };
  static const struct {
    int64_t first, step; /* of times that are even but for the last, */
    int64_t last;        /* which is this much later than even */
    uint8_t kind;
    int64_t unit; /* STEPS */
  } cases[] = {
    { 5, 0, 0, HK_TIME_ONE, 0 },
    { INT64_MIN, 0, 0, HK_TIME_ONE, 0 },
    { -7, 1000, 0, HK_TIME_EVEN, 0 },
    { 1, -3, 0, HK_TIME_EVEN, 0 },
    { INT64_MAX, -1, 0, HK_TIME_EVEN, 0 },
    { 100, 1, 1, HK_TIME_STEPS, 1 },
    { 1700000000000000000, 1000, -500000, HK_TIME_STEPS, 1 },
    { 1700000000000000000, 0, 2147483647, HK_TIME_STEPS, 1 },
    { 1700000000000000000, 0, -2147483648, HK_TIME_STEPS, 1 },
    { 1700000000000000000, 0, 2147483648, HK_TIME_STEPS, 1 }, /* not near the first, and not over 2^32 */
    { 1700000000000000000, 0, 4294967295, HK_TIME_STEPS, 1 },
    { 1700000000000000000, 0, 4294967296, HK_TIME_EACH, 0 },
    { 1700000000000000000, 0, 4294968000, HK_TIME_STEPS, 1000 },
    { -50, 2000, 10000000000000, HK_TIME_EACH, 0 }, /* micro do not reach, and milli do not divide */
    { -50, 2000000, 10000000000000, HK_TIME_STEPS, 1000000 },
    { 9, 1000000000, 10000000000000000, HK_TIME_STEPS, 1000000000 },
    { 9, 1000000000, 10000000000000001, HK_TIME_EACH, 0 },
    { 9, 1, 4294967296000000000, HK_TIME_EACH, 0 },
    { INT64_MIN, 1, 1, HK_TIME_EACH, 0 }, /* a base two seconds before is no time */
    { INT64_MAX - 2000, 1, 1, HK_TIME_EACH, 0 },
  };
  static uint8_t bytes[40 * MOST], states[MOST];
  int64_t time[MOST], got[MOST];
  double value[MOST];
  uint32_t handle[MOST];
  float score[MOST];
  for (uint32_t i = 0; i < MOST; i++) {
    value[i] = i / 3.0;
    handle[i] = i * 7919;
    score[i] = (float)i / MOST;
    states[i] = HANKEL_OK;
  }
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (uint32_t n = 1; n <= MOST; n = n < 4 ? n + 1 : n + 83)
      for (int with = 0; with < 4; with++) {
        for (uint32_t i = 0; i < n; i++)
          time[i] = cases[c].first + (int64_t)i * cases[c].step;
        if (n > 2) /* two are always even */
          time[n - 1] += cases[c].last;
        states[n - 1] = with & 2 ? HANKEL_GAP : HANKEL_OK;
        struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
        assert_int_equal(hk_scores_write(&w, n, time, with & 1 ? value : NULL, NULL, handle, score, states), 0);
        struct hk_frame f;
        struct hk_scores s;
        assert_int_equal(hk_frame_read(bytes, w.size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
        assert_int_equal(hk_scores_read(&f, &s), 0);
        assert_int_equal(s.n, n);
        assert_int_equal(w.size, hk_scores_size(&s));
        assert_true(w.size <= hk_scores_most(n, with & 1));
        if (n > 2) {
          assert_int_equal(s.time_kind, cases[c].kind);
          assert_true(s.time_kind != HK_TIME_STEPS || s.step == cases[c].unit);
        }
        memset(got, 0, sizeof got);
        hk_scores_times(&s, got);
        assert_memory_equal(got, time, n * sizeof *time);
        assert_memory_equal(s.handles, handle, n * sizeof *handle);
        assert_memory_equal(s.scores, score, n * sizeof *score);
        assert_true((s.values != NULL) == (with & 1) && (s.states != NULL) == (with >> 1));
        if (s.values)
          assert_memory_equal(s.values, value, n * sizeof *value);
        if (s.states)
          assert_memory_equal(s.states, states, n);
        states[n - 1] = HANKEL_OK;
        /* No column may be missing or too long. */
        for (uint32_t cut = 1; cut < 9; cut++) {
          struct hk_frame wrong = f;
          wrong.length = f.length - cut;
          assert_int_equal(hk_scores_read(&wrong, &s), HANKEL_BAD_PAYLOAD);
          wrong.length = f.length + cut;
          assert_int_equal(hk_scores_read(&wrong, &s), HANKEL_BAD_PAYLOAD);
        }
      }
}

/* One buffer for three inboxes, whose streams are cut anywhere: frames of all lengths come out whole, whether they fit into the
 * buffer or not, and what is kept is no more than a rest. */
static void inboxes_share_a_buffer(void **state)
{
  (void)state;
  enum { INBOXES = 3, FRAMES = 400, BUFFER = 2048, LONGEST = 5000 };
  static uint8_t payload[LONGEST], stream[INBOXES][FRAMES * (LONGEST + HK_FRAME_HEADER)];
  struct hk_inbox in[INBOXES] = { { .max_length = LONGEST }, { .max_length = LONGEST }, { .max_length = LONGEST } };
  size_t size[INBOXES], at[INBOXES] = { 0 };
  uint32_t come[INBOXES] = { 0 }, lent = 0, held_back = 0;
  srand(5);
  for (int i = 0; i < INBOXES; i++) {
    struct hk_writer w = HK_WRITER(stream[i], sizeof stream[i]);
    for (uint32_t n = 0; n < FRAMES; n++) {
      const size_t place = hk_frame_begin(&w, (uint8_t)i, n);
      const size_t length = (size_t)rand() % (rand() % 8 ? 200 : LONGEST + 1);
      memset(payload, (int)(n + length), length);
      hk_put(&w, payload, length);
      assert_int_equal(hk_frame_end(&w, place), 0);
    }
    size[i] = w.size;
  }
  for (bool all = false; !all;) {
    const int i = rand() % INBOXES;
    uint8_t *buffer = malloc(BUFFER); /* one of its own each time: a sanitizer sees whoever comes back to it later */
    struct hk_frame f;
    size_t room;
    hk_inbox_lend(&in[i], buffer, BUFFER);
    lent += in[i].lent;
    uint8_t *space = hk_inbox_space(&in[i], &room);
    assert_non_null(space);
    assert_true(room > 0);
    size_t n = rand() % 2 ? room : (size_t)rand() % 300;
    n = n < room ? n : room;
    n = n < size[i] - at[i] ? n : size[i] - at[i];
    memcpy(space, stream[i] + at[i], n);
    hk_inbox_wrote(&in[i], n);
    at[i] += n;
    /* Sometimes whole frames are left for later, as when there is no room for points. */
    const bool later = rand() % 4 == 0 && in[i].lent;
    for (int status = HK_FRAME_WHOLE; status == HK_FRAME_WHOLE;) {
      if (later) {
        assert_int_equal(hk_inbox_settle(&in[i]), 0);
        held_back++;
      }
      status = hk_inbox_next(&in[i], &f);
      if (status != HK_FRAME_WHOLE) {
        assert_int_equal(status, HK_FRAME_PART);
        break;
      }
      assert_int_equal(f.type, i);
      assert_int_equal(f.tag, come[i]);
      for (uint32_t k = 0; k < f.length; k++)
        assert_int_equal(f.payload[k], (uint8_t)(come[i] + f.length));
      come[i]++;
    }
    assert_int_equal(hk_inbox_settle(&in[i]), 0);
    free(buffer);
    assert_true(in[i].capacity <= 2 * (LONGEST + HK_FRAME_HEADER));
    all = true;
    for (int k = 0; k < INBOXES; k++)
      all &= come[k] == FRAMES;
  }
  for (int i = 0; i < INBOXES; i++) {
    assert_int_equal(at[i], size[i]);
    hk_inbox_free(&in[i]);
    assert_null(in[i].data);
  }
  assert_true(lent > 100 && held_back > 20);
}

/* What makes delivery certain: feeds, positions, sequences. */
static void test_delivery(void **state)
{
  static const int64_t times[2] = { 5, 9 };
  static const uint64_t sequences[2] = { 1, UINT64_MAX };
  static const uint32_t handles[2] = { 3, 4 };
  static const float score[2] = { 0.5f, 0.25f };
  static const uint8_t states[2] = { HANKEL_OK, HANKEL_OK };
  const struct hk_event_message events[2] = { { .handle = 7, .kind = HANKEL_RAISED, .after = 1.5, .position = 12, .sequence = 3 },
                                              { .handle = 8, .kind = HANKEL_CLEARED, .time = -1, .position = UINT64_MAX } };
  const struct hk_feed_at at = { UINT64_MAX - 1, HANKEL_JOURNALED };
  uint8_t data[1024];
  char name[HK_FEED_NAME_MAX + 2];
  uint64_t n;
  struct hk_writer w = HK_WRITER(data, sizeof data);
  struct hk_feed_at at_read;
  struct hk_subscription m = { HANKEL_EVENTS | HANKEL_POSITIONS, 0, text("*"), 77 }, got;
  struct hk_string s;
  struct hk_scores scores;
  struct hk_list list;
  struct hk_event_message e;
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
  w.size = 0;
  assert_int_equal(hk_scores_write(&w, 2, times, NULL, sequences, handles, score, states), 0);
  f = whole(data, w.size);
  assert_int_equal(hk_scores_read(&f, &scores), 0);
  assert_int_equal(hk_scores_size(&scores), w.size);
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

static void details_of_events(void **state)
{
  (void)state;
  uint8_t data[1024];
  const struct hk_event_message events[2] = {
    { 7, 1, HANKEL_RAISED, 0.75f, 30, 10, 20, -1.5, 2.5, 5, 6, 0.5f, 1.5f, 1.25f, 2.25f, HANKEL_CHANGE, HANKEL_MAINTENANCE, 3, text("") },
    { 8, 2, HANKEL_ACKNOWLEDGED, .time = 40, .position = 9, .by = text("\xc3\xa9va at the desk") },
  };
  for (uint32_t with = 0; with <= 3; with++) {
    struct hk_writer w = HK_WRITER(data, sizeof data);
    struct hk_list list;
    struct hk_event_message e;
    assert_int_equal(hk_events_write(&w, 2, events, with), 0);
    struct hk_frame f = whole(data, w.size);
    assert_int_equal(hk_events_read(&f, &list), 0);
    for (size_t i = 0; i < 2; i++) {
      hk_event_next(&list, &e);
      assert_true(e.handle == events[i].handle && e.kind == events[i].kind && e.time == events[i].time);
      assert_true(e.position == (with & HK_EVENTS_PLACED ? events[i].position : 0));
      const struct hk_event_message none = { .by = text("") }, *told = with & HK_EVENTS_DETAILED ? &events[i] : &none;
      assert_true(e.confidence == told->confidence && e.margin == told->margin && e.spread_before == told->spread_before &&
                  e.spread_after == told->spread_after && e.channel == told->channel && e.marks == told->marks &&
                  e.held == told->held && e.by.length == (told->by.data ? told->by.length : 0) &&
                  memcmp(e.by.data, told->by.data, e.by.length) == 0);
    }
    for (uint32_t cut = 1; cut < 60; cut++) { /* no shorter payload is one, nor a longer one */
      struct hk_frame part = f;
      part.length -= cut;
      assert_int_equal(hk_events_read(&part, &list), HANKEL_BAD_PAYLOAD);
    }
    const struct hk_event_message talker = { .by = { (const char *)data, HK_WHO_MAX + 1 } };
    const size_t before = w.size;
    assert_int_equal(hk_events_write(&w, 1, &talker, with), -ENOSPC);
    assert_int_equal(w.size, before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_delivery),
    cmocka_unit_test(details_of_events),
    cmocka_unit_test(scores_in_every_layout),
    cmocka_unit_test(every_type_there_and_back_at_every_cut),
    cmocka_unit_test(every_flipped_bit_is_found),
    cmocka_unit_test(wrong_headers_are_told_at_once),
    cmocka_unit_test(inbox_grows_with_what_came_only),
    cmocka_unit_test(inboxes_share_a_buffer),
    cmocka_unit_test(small_frames_in_a_full_inbox_all_come_out),
    cmocka_unit_test(every_wrong_length_is_a_bad_payload),
    cmocka_unit_test(points_out_of_range_are_refused),
    cmocka_unit_test(bad_subscriptions_are_told_apart),
    cmocka_unit_test(names_that_cannot_be_are_a_bad_payload),
    cmocka_unit_test(the_example_of_the_document),
    cmocka_unit_test(a_frame_that_does_not_fit_is_taken_back),
    cmocka_unit_test(names_follow_the_rule),
  };
  return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
