/* Frames: every cut, every flipped bit, every type there and back, wrong lengths, and inboxes. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/frames.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_type_there_and_back_at_every_cut),
    cmocka_unit_test(every_flipped_bit_is_found),
    cmocka_unit_test(wrong_headers_are_told_at_once),
    cmocka_unit_test(inbox_grows_with_what_came_only),
    cmocka_unit_test(inboxes_share_a_buffer),
    cmocka_unit_test(small_frames_in_a_full_inbox_all_come_out),
    cmocka_unit_test(every_wrong_length_is_a_bad_payload),
    cmocka_unit_test(a_frame_that_does_not_fit_is_taken_back),
  };
  return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
