/* What a shard shares with others: the log of past scores, cameras' last pictures, and the lines of the log. */
#include "daemon/base/log.h"
#include "daemon/intake/picture_board.h"
#include "daemon/scoring/score_log.h"
#include "tests/unit/support/together.h"

#include <string.h>

enum { ROUNDS = 200, SENSORS = 4 };

static void shard_puts(void *log, uint32_t round)
{
  uint32_t slot[SENSORS] = { 0, 1, 2, 3 };
  int64_t time[SENSORS] = { round, round, round, round };
  float score[SENSORS] = { 0.5f, 0.5f, 0.5f, 0.5f };
  const struct hk_batch b = { .n = SENSORS, .capacity = SENSORS, .slot = slot, .time = time, .score = score };
  hk_score_log_put(log, &b);
  if (round % 16 == 0)
    hk_score_log_forget(log, round / 16 % SENSORS);
}

static void other_reads(void *log, uint32_t round)
{
  struct hk_scored out[8];
  (void)hk_score_log_read(log, round % SENSORS, out, 8);
}

static void scores_are_read_while_they_come(void **state)
{
  struct hk_score_log *log = hk_score_log_new(0);
  (void)state;
  assert_non_null(log);
  together(log, ROUNDS, 2, (together_step *const[]){ shard_puts, other_reads });
  hk_score_log_free(log);
}

static void loop_shows(void *board, uint32_t round)
{
  static const uint8_t pixels[64] = { 1, 2, 3 };
  static const struct hk_pictures_rule rule = { .of.tile = 4 };
  const struct hk_picture_message m = {
    .camera = hk_string(round % 2 ? "one" : "two"), .height = 8, .width = 8, .pixels = pixels
  };
  hk_picture_board_show(board, &rule, &m, round);
}

static void web_shows(void *board, uint32_t round)
{
  struct hk_board_picture *heads = NULL;
  (void)round;
  (void)hk_picture_board_list(board, &heads);
  free(heads);
  free(hk_picture_board_copy(board, "one"));
}

static void pictures_are_shown(void **state)
{
  struct hk_picture_board *board = hk_picture_board_new();
  (void)state;
  assert_non_null(board);
  together(board, ROUNDS, 3, (together_step *const[]){ loop_shows, loop_shows, web_shows });
  hk_picture_board_free(board);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scores_are_read_while_they_come),
    cmocka_unit_test(pictures_are_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
