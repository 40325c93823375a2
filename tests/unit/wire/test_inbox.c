/* Inboxes: memory in proportion to what arrived, full ones, and one buffer shared by several. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/every_frame.h"
#include "tests/unit/support/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

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
  for (size_t turn = 0; turn < 3000; turn++) { /* pieces of odd sizes, so that every remainder is moved */
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

enum { INBOXES = 3, FRAMES = 400, BUFFER = 2048, LONGEST = 5000 };

/* Writes FRAMES frames of random length, with the numbers of their inbox and of themselves. Returns the bytes. */
static size_t write_stream(uint8_t *stream, size_t capacity, int inbox)
{
  static uint8_t payload[LONGEST];
  struct hk_writer w = HK_WRITER(stream, capacity);
  for (uint32_t n = 0; n < FRAMES; n++) {
    const size_t place = hk_frame_begin(&w, (uint8_t)inbox, n);
    const size_t length = (size_t)rand() % (rand() % 8 ? 200 : LONGEST + 1);
    memset(payload, (int)(n + length), length);
    hk_put(&w, payload, length);
    assert_int_equal(hk_frame_end(&w, place), 0);
  }
  return w.size;
}

/* Takes the whole frames of an inbox; later: postpones each once, as when there is no room for points. Returns the number of
 * postponements. */
static uint32_t take_frames(struct hk_inbox *in, int inbox, bool later, uint32_t *come)
{
  struct hk_frame f;
  uint32_t held_back = 0;
  for (;;) {
    if (later) {
      assert_int_equal(hk_inbox_settle(in), 0);
      held_back++;
    }
    const int status = hk_inbox_next(in, &f);
    if (status != HK_FRAME_WHOLE) {
      assert_int_equal(status, HK_FRAME_PART);
      return held_back;
    }
    assert_int_equal(f.type, inbox);
    assert_int_equal(f.tag, *come);
    for (uint32_t k = 0; k < f.length; k++)
      assert_int_equal(f.payload[k], (uint8_t)(*come + f.length));
    ++*come;
  }
}

/* One buffer for three inboxes, whose streams are cut anywhere: frames of all lengths come out whole, whether they fit into the
 * buffer or not, and only incomplete frames are kept. */
static void inboxes_share_a_buffer(void **state)
{
  (void)state;
  static uint8_t stream[INBOXES][FRAMES * (LONGEST + HK_FRAME_HEADER)];
  struct hk_inbox in[INBOXES] = { { .max_length = LONGEST }, { .max_length = LONGEST }, { .max_length = LONGEST } };
  size_t size[INBOXES], at[INBOXES] = { 0 };
  uint32_t come[INBOXES] = { 0 }, lent = 0, held_back = 0;
  srand(5);
  for (int i = 0; i < INBOXES; i++)
    size[i] = write_stream(stream[i], sizeof stream[i], i);
  for (bool all = false; !all;) {
    const int i = rand() % INBOXES;
    uint8_t *buffer = malloc(BUFFER); /* a new one each time, so that a sanitizer notices later uses */
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
    held_back += take_frames(&in[i], i, rand() % 4 == 0 && in[i].lent, &come[i]);
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
    cmocka_unit_test(inbox_grows_with_what_came_only),
    cmocka_unit_test(inboxes_share_a_buffer),
    cmocka_unit_test(small_frames_in_a_full_inbox_all_come_out),
  };
  return cmocka_run_group_tests_name("inbox", tests, NULL, NULL);
}
