/* Messages of a cluster's log of scores: written ones are read, and invalid ones are refused with the reason. */
#include "proto/wire/score_message.h"
#include "tests/unit/support/frames.h"

#include <errno.h>

static const struct hk_string two[] = { { "pump 7", 6 }, { "pump 8", 6 } };
static const int64_t times[] = { 10, 20, 20 };
static const double values[] = { 1, 2, 3 };
static const uint64_t sequences[] = { 7, 8, 1 };
static const float scores[] = { 0.25f, 0.5f, 0.75f };

static size_t made(uint8_t *bytes, size_t room, const double *value, const uint32_t *numbers, const uint8_t *states)
{
  struct hk_writer w = HK_WRITER(bytes, room);
  const struct hk_score_columns c = { 3, times, value, sequences, numbers, scores, states };
  assert_int_equal(hk_score_message_write(&w, 77, 2, two, &c), 0);
  return w.size;
}

static const char *why_not(const void *data, size_t size)
{
  struct hk_score_message m;
  const char *why = "it is one";
  const int status = hk_score_message_read(data, size, &m, &why);
  assert_true(status == 0 || status == -EBADMSG);
  return why;
}

static const uint32_t numbers[] = { 0, 1, 0 };
static const uint8_t states[] = { HANKEL_OK, HANKEL_PROVISIONAL_SCORE, HANKEL_OK };

static void test_there_and_back(void **state)
{
  (void)state;
  uint8_t bytes[512];
  const size_t size = made(bytes, sizeof bytes, values, numbers, states);
  struct hk_score_message m;
  const char *why;
  int64_t read[3];
  assert_int_equal(hk_score_message_read(bytes, size, &m, &why), 0);
  assert_int_equal(m.writer, 77);
  assert_int_equal(m.names.n, 2);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t handle;
    struct hk_string name;
    hk_names_next(&m.names, &handle, &name);
    assert_int_equal(handle, i);
    assert_memory_equal(name.data, two[i].data, name.length);
  }
  assert_int_equal(m.scores.n, 3);
  hk_scores_times(&m.scores, read);
  assert_memory_equal(read, times, sizeof times);
  assert_memory_equal(m.scores.values, values, sizeof values);
  assert_memory_equal(m.scores.sequences, sequences, sizeof sequences);
  assert_memory_equal(m.scores.handles, numbers, sizeof numbers);
  assert_memory_equal(m.scores.scores, scores, sizeof scores);
  assert_memory_equal(m.scores.states, states, sizeof states);
}

static void test_no_message(void **state)
{
  (void)state;
  static const uint32_t third[] = { 0, 1, 2 };
  static const uint8_t unknown[] = { HANKEL_OK, HANKEL_PROVISIONAL_SCORE + 1, HANKEL_OK };
  uint8_t bytes[512];
  size_t size = made(bytes, sizeof bytes, values, numbers, states);
  assert_string_equal(why_not(bytes, size), "it is one");
  for (size_t shorter = 0; shorter < size; shorter++)
    assert_string_equal(why_not(bytes, shorter), "it is not a PING, a NAMES and a SCORES frame");
  bytes[size - 1] ^= 1;
  assert_string_equal(why_not(bytes, size), "it was damaged: a checksum does not match");
  size = made(bytes, sizeof bytes, values, third, states);
  assert_string_equal(why_not(bytes, size), "it has no values, or a result is of no name that it has");
  size = made(bytes, sizeof bytes, values, numbers, unknown);
  assert_string_equal(why_not(bytes, size), "it has no values, or a result is of no name that it has");
  size = made(bytes, sizeof bytes, NULL, numbers, states);
  assert_string_equal(why_not(bytes, size), "it has no values, or a result is of no name that it has");
}

static void test_no_room(void **state)
{
  (void)state;
  uint8_t bytes[100];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  const struct hk_score_columns c = { 3, times, values, sequences, numbers, scores, states };
  assert_int_not_equal(hk_score_message_write(&w, 77, 2, two, &c), 0);
  assert_int_equal(w.size, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_there_and_back),
    cmocka_unit_test(test_no_message),
    cmocka_unit_test(test_no_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
