/* Frames: every cut, every flipped bit, every type written and read back, wrong lengths. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/every_frame.h"
#include "tests/unit/support/frames.h"

#include <errno.h>
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

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

/* Reads the payload by its type. */
static int read_payload(const struct hk_frame *f)
{
  struct hk_list list;
  struct hk_points p;
  struct hk_hello hello;
  struct hk_welcome welcome;
  struct hk_subscription subscription;
  struct hk_scores scores;
  struct hk_error_message error;
  uint64_t a, b;
  switch (f->type) {
  case HK_HELLO:
    return hk_hello_read(f, &hello);
  case HK_REGISTER:
    return hk_register_read(f, &list);
  case HK_POINTS:
    return hk_points_read(f, &p);
  case HK_SUBSCRIBE:
    return hk_subscribe_read(f, &subscription);
  case HK_PING:
    return hk_ping_read(f, &a);
  case HK_BYE:
    return hk_bye_read(f, &a, &b);
  case HK_GAP:
    return hk_gap_read(f, &a, &b);
  case HK_WELCOME:
    return hk_welcome_read(f, &welcome);
  case HK_REGISTERED:
    return hk_registered_read(f, &list);
  case HK_NAMES:
    return hk_names_read(f, &list);
  case HK_SCORES:
    return hk_scores_read(f, &scores);
  case HK_EVENTS:
    return hk_events_read(f, &list);
  case HK_ERROR:
    return hk_error_read(f, &error);
  default:
    return hk_empty_read(f);
  }
}

/* Every payload cut short or made longer, with a good checksum, is a bad payload, and never read past its end (ASan detects
 * it). */
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
      assert_int_equal(read_payload(&f), HANKEL_BAD_PAYLOAD);
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

static void the_version_is_known_of_others(void **state)
{
  (void)state;
  uint8_t later[HK_FRAME_HEADER + 3] = { 'H', 'K', 2, 3, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' };
  const uint32_t head = libdeflate_crc32(0, later, 12), sum = libdeflate_crc32(head, later + HK_FRAME_HEADER, 2);
  memcpy(later + 12, &sum, sizeof sum);
  assert_int_equal(hk_frame_version(later, sizeof later), 2);
  for (size_t size = 0; size < sizeof later; size++)
    assert_int_equal(hk_frame_version(later, size), size < HK_FRAME_HEADER + 2 ? 0 : 2);
  for (size_t i = 0; i < HK_FRAME_HEADER + 2; i++) { /* a foreign or damaged one has no version */
    later[i] ^= 1;
    assert_int_equal(hk_frame_version(later, sizeof later), 0);
    later[i] ^= 1;
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_type_there_and_back_at_every_cut),  cmocka_unit_test(every_flipped_bit_is_found),
    cmocka_unit_test(wrong_headers_are_told_at_once),          cmocka_unit_test(every_wrong_length_is_a_bad_payload),
    cmocka_unit_test(a_frame_that_does_not_fit_is_taken_back), cmocka_unit_test(the_version_is_known_of_others),
  };
  return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
