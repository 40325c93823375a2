/* What threads share of durable things: the event log and its journal, marks, named feeds, who holds which partition. */
#include "daemon/durable/event_holders.h"
#include "daemon/durable/event_shared.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/marks.h"
#include "daemon/durable/named_feeds.h"
#include "tests/unit/support/event_log.h"
#include "tests/unit/support/together.h"

#include <string.h>

enum { ROUNDS = 400 };

/* --- the event log: shards append, the commit thread commits, loops read -------------------------------------------------------
 */

static void shard_appends(void *log, uint32_t round)
{
  const struct hk_event e = { .kind = HK_EVENT_RAISED, .number = round };
  (void)hk_eventlog_append(log, 3, hk_string("sensor number 3"), round + 1, &e, hk_string(""), 0);
  hk_eventlog_settle(log, round);
}

static void commit_thread_commits(void *log, uint32_t round)
{
  if (hk_journal_take(hk_eventlog_journal(log)))
    (void)hk_eventlog_commit(log);
  hk_eventlog_keep(log, round);
}

static void visit_event(void *arg, const struct hk_logged *logged)
{
  (void)arg;
  (void)logged;
}

static void loop_reads(void *log, uint32_t round)
{
  struct hk_eventlog_cursor cursor = { 0 };
  if (round % 8 > 0) {
    (void)hk_eventlog_read(log, &cursor, UINT64_MAX, 4, visit_event, NULL);
  } else {
    (void)hk_eventlog_first(log);
    (void)hk_eventlog_bytes(log);
    (void)hk_eventlog_last(log);
    (void)hk_eventlog_shown(log);
  }
}

static void main_pauses(void *log, uint32_t round)
{
  struct hk_journal *j = hk_eventlog_journal(log);
  if (round % 64 == 0)
    hk_journal_pause(j);
  else if (round % 64 == 1)
    (void)hk_journal_resume(j);
  else
    (void)hk_journal_waiting_since(j);
  (void)hk_journal_position(j);
  (void)hk_journal_committed(j);
  (void)hk_journal_room(j);
}

static void events_are_appended_and_read(void **state)
{
  struct place p;
  (void)state;
  set_up(&p);
  struct hk_eventlog *log = open_log(&p);
  hk_eventlog_replayed(log);
  together(log, ROUNDS, 4, (together_step *const[]){ shard_appends, commit_thread_commits, loop_reads, main_pauses });
  hk_eventlog_free(log);
  tear_down(&p);
}

/* --- marks: each journal has one, written by the commit thread and others ------------------------------------------------------
 */

static void commit_thread_marks(void *marks, uint32_t round)
{
  const struct hk_journal_mark mark = { .position = round, .segment = 1, .bytes = 96, .salt = 7 };
  if (round % 3 == 0)
    (void)hk_marks_put(marks, round % 2, &mark);
  else if (round % 3 == 1)
    (void)hk_marks_sync(marks);
  else if (round % 16 == 2)
    (void)hk_marks_mend(marks);
}

static void other_marks(void *marks, uint32_t round)
{
  const struct hk_journal_mark mark = { .position = round, .segment = 2, .bytes = 96, .salt = 8 };
  struct hk_journal_mark out;
  if (round % 8 == 0)
    (void)hk_marks_end(marks, round / 8 % 2, &mark);
  else
    (void)hk_marks_get(marks, round % 2, &out);
}

static void marks_are_written(void **state)
{
  struct place p;
  struct hk_marks *m = NULL;
  (void)state;
  set_up(&p);
  assert_int_equal(hk_marks_open(&m, &p.disk, p.folder), 0);
  together(m, ROUNDS, 2, (together_step *const[]){ commit_thread_marks, other_marks });
  hk_marks_free(m);
  tear_down(&p);
}

/* --- named feeds: loops take them, shards commit, some are forgotten -----------------------------------------------------------
 */

static void print_feed(char out[8], uint32_t round)
{
  snprintf(out, 8, "f%u", round % 8);
}

static void loop_feeds(void *feeds, uint32_t round)
{
  struct hk_feed *feed;
  uint64_t turn;
  char name[8];
  print_feed(name, round);
  if (hk_feeds_take(feeds, hk_string(name), 1 + round % 2, NULL, &feed, &turn) != 0)
    return;
  if (hk_feed_enter(feed, turn)) {
    feed->received += round % 2;
    hk_feed_leave(feed);
  }
  (void)hk_feed_settled(feed, turn);
  (void)hk_feed_is_committed(feed);
  hk_feed_give_up(feed, turn);
}

static int visit_feed(void *arg, struct hk_feed *feed)
{
  (void)arg;
  hk_feed_hold(feed);
  (void)hk_feed_committed(feed);
  hk_feed_release(feed);
  return 0;
}

static void commit_thread_feeds(void *feeds, uint32_t round)
{
  switch (round % 5) {
  case 0:
    hk_feeds_commit(feeds, 1 + round % 16, 0, round);
    break;
  case 1:
    hk_feeds_note(feeds, 0);
    break;
  case 2:
    hk_feeds_commit_noted(feeds, 0);
    break;
  case 3:
    (void)hk_feeds_each(feeds, visit_feed, NULL);
    break;
  default:
    (void)hk_feeds_survey(feeds);
  }
}

static void main_feeds(void *feeds, uint32_t round)
{
  if (round % 3 == 0)
    hk_feeds_limit(feeds, 5 + round % 2, 1);
  else if (round % 3 == 1)
    (void)hk_feeds_expire(feeds, INT64_MAX);
  else
    hk_feeds_journal(feeds, NULL);
}

static void feeds_come_and_go(void **state)
{
  struct hk_feeds *feeds;
  (void)state;
  assert_int_equal(hk_feeds_new(&feeds, 1), 0);
  together(feeds, ROUNDS, 4, (together_step *const[]){ loop_feeds, loop_feeds, commit_thread_feeds, main_feeds });
  hk_feeds_free(feeds);
}

/* --- a cluster's shared log, and who holds its partitions
 * ------------------------------------------------------------------------ */

static void cluster_hears(void *holders, uint32_t round)
{
  uint8_t payload[256];
  const uint32_t partition = round / 2 % 4;
  if (round % 2 == 0) {
    hk_holders_write(payload, partition, round + 1, "pump house");
    hk_holders_take(holders, 7, payload, hk_holders_size("pump house"));
  } else {
    hk_holders_write(payload, partition, 0, NULL);
    hk_holders_take_wish(holders, 8, true, round, payload, hk_holders_size(NULL));
  }
}

static void others_look(void *holders, uint32_t round)
{
  struct hk_holder out;
  if (round % 3 == 0)
    (void)hk_holders_find(holders, round % 4, &out);
  else if (round % 3 == 1)
    (void)hk_holders_count(holders);
  else
    (void)hk_holders_wish(holders, round % 4, round);
}

static void partitions_are_held(void **state)
{
  struct hk_holders *holders;
  (void)state;
  assert_int_equal(hk_holders_new(&holders), 0);
  together(holders, 4 * ROUNDS, 2, (together_step *const[]){ cluster_hears, others_look });
  hk_holders_free(holders);
}

static void cluster_publishes(void *shared, uint32_t round)
{
  static const struct hk_shared_message *last; /* of this thread alone */
  if (round == 0)
    last = NULL;
  if (round % 2 == 0)
    last = hk_shared_outgoing(shared, NULL);
  else if (last)
    hk_shared_confirmed(shared, last->number);
}

static void others_append(void *shared, uint32_t round)
{
  struct hk_place place;
  if (round % 2 == 0)
    (void)hk_shared_put(shared, hk_shared_message(1, 8));
  else
    (void)hk_shared_place(shared, "mail", &place);
  (void)hk_shared_safe(shared, hk_shared_appended(shared));
  (void)hk_shared_waiting(shared);
}

static void machines_share_a_log(void **state)
{
  struct hk_event_shared *shared;
  (void)state;
  assert_int_equal(hk_shared_open(&shared), 0);
  together(shared, ROUNDS, 3, (together_step *const[]){ cluster_publishes, others_append, others_append });
  hk_shared_free(shared);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(events_are_appended_and_read), cmocka_unit_test(marks_are_written),    cmocka_unit_test(feeds_come_and_go),
    cmocka_unit_test(partitions_are_held),          cmocka_unit_test(machines_share_a_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
