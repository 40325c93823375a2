/* Feeds that outlive connections and restarts: their positions and connections, and that each point counts once. */
#include "daemon/durable/named_feeds.h"

#include "daemon/base/log.h"
#include "daemon/durable/journal_records.h"
#include "daemon/intake/intake.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/slots.h"
#include "proto/wire/columns.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SHARDS 2u
#define NAMES 6u

static void test_who_has_it(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *a, *b, *again;
  uint64_t turn, other, next;
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  assert_int_equal(hk_feeds_take(feeds, hk_string("a"), 0, NULL, &a, &turn), 0);
  assert_int_equal(hk_feeds_take(feeds, hk_string("b"), 0, NULL, &b, &other), 0);
  assert_ptr_not_equal(a, b);
  assert_int_equal(hk_feeds_survey(feeds).n, 2);
  assert_true(hk_feed_enter(a, turn));
  hk_feed_leave(a);
  assert_int_equal(hk_feeds_take(feeds, hk_string("a"), 0, NULL, &again, &next), 0);
  assert_ptr_equal(again, a);
  assert_false(hk_feed_enter(a, turn)); /* another connection has it now */
  hk_feed_give_up(a, turn);             /* which does not care */
  assert_true(hk_feed_enter(a, next));
  hk_feed_leave(a);
  hk_feed_give_up(a, next);
  assert_false(hk_feed_enter(a, next));
  hk_feeds_free(feeds);
}

static void test_committed(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *a;
  uint64_t turn;
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  assert_int_equal(hk_feeds_take(feeds, hk_string("a"), 0, NULL, &a, &turn), 0);
  hk_feed_commit(a, 0, 100);
  assert_int_equal(hk_feed_committed(a), 0);
  hk_feed_commit(a, 1, 60);
  assert_int_equal(hk_feed_committed(a), 60);
  hk_feed_commit(a, 1, 50); /* never back */
  assert_int_equal(hk_feed_committed(a), 60);
  hk_feed_taken(a, 0, 300);
  hk_feed_taken(a, 1, 300);
  hk_feeds_note(feeds, 0);
  hk_feeds_note(feeds, 1);
  hk_feed_taken(a, 0, 400);
  hk_feeds_commit_noted(feeds, 0);
  hk_feeds_commit_noted(feeds, 1);
  assert_int_equal(hk_feed_committed(a), 300);
  hk_feeds_free(feeds);
}

static void test_restore(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *a;
  uint64_t turn;
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  hk_feeds_restore_part(feeds, 5, 1, 90); /* from a journal that is read before the one with its record */
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 5, hk_string("five"), 0, 0 }), 0);
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 5, hk_string("five"), 0, 0 }), 0); /* may come twice */
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 5, hk_string("other"), 0, 0 }), -EBADMSG);
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 4, hk_string("five"), 0, 0 }),
                   0); /* before it was forgotten */
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 0, hk_string("x"), 0, 0 }), -EBADMSG);
  hk_feeds_restore_part(feeds, 5, 0, 70);
  hk_feeds_restore_part(feeds, 5, 0, 30);
  hk_feeds_restore_part(feeds, 9, 1, 90); /* of no feed */
  hk_feeds_restored(feeds, SHARDS);
  assert_int_equal(hk_feeds_survey(feeds).n, 1);
  assert_int_equal(hk_feeds_take(feeds, hk_string("five"), 0, NULL, &a, &turn), 0);
  assert_int_equal(hk_feed_number(a), 5);
  assert_int_equal(hk_feed_committed(a), 70);
  assert_int_equal(a->received, 70);
  assert_int_equal(a->horizon, 90);
  assert_int_equal(hk_feeds_take(feeds, hk_string("new"), 0, NULL, &a, &turn), 0);
  assert_int_equal(hk_feed_number(a), 10);
  hk_feeds_free(feeds);
  /* Another number of shards: the least position counts for all, and the positions of the old ones are remembered. */
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 1, hk_string("a"), 0, 0 }), 0);
  for (uint32_t i = 0; i < 3; i++)
    hk_feeds_restore_part(feeds, 1, i, 40 + i);
  hk_feeds_restored(feeds, 3);
  assert_int_equal(hk_feeds_take(feeds, hk_string("a"), 0, NULL, &a, &turn), 0);
  assert_int_equal(hk_feed_committed(a), 40);
  assert_int_equal(a->horizon, 42);
  assert_int_equal(a->before, 3);
  for (uint32_t i = 0; i < 3; i++)
    assert_int_equal(a->part[i].had, 40 + i);
  hk_feeds_free(feeds);
}

/* --- limits ------------------------------------------------------------------------------------------------------------ */

#define DAY (24 * 3600 * 1000000000ll)

static int take(struct hk_feeds *feeds, const char *stem, uint32_t i, uint64_t owner, struct hk_feed **feed, uint64_t *turn)
{
  char name[32];
  snprintf(name, sizeof name, "%s-%u", stem, i);
  return hk_feeds_take(feeds, hk_string(name), owner, NULL, feed, turn);
}

/* A feed with points, all of them committed, or all except those of one shard. */
static void fill(struct hk_feed *feed, uint64_t received, uint64_t committed)
{
  pthread_mutex_lock(&feed->lock);
  feed->received = received;
  pthread_mutex_unlock(&feed->lock);
  for (uint32_t i = 0; i < SHARDS; i++) {
    hk_feed_taken(feed, i, received);
    hk_feed_commit(feed, i, i == 0 ? received : committed);
  }
}

/* An owner at its quota gets no further feed, and takes no feed from another owner. */
static void test_owners(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *feed;
  uint64_t turn;
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  hk_feeds_limit(feeds, 10, 0);
  for (uint32_t i = 0; i < 10; i++)
    assert_int_equal(take(feeds, "greedy", i, 1, &feed, &turn), 0);
  assert_int_equal(take(feeds, "greedy", 10, 1, &feed, &turn), -EDQUOT);
  assert_int_equal(take(feeds, "greedy", 3, 1, &feed, &turn), 0); /* its own are there still */
  for (uint32_t i = 0; i < 10; i++)
    assert_int_equal(take(feeds, "honest", i, 2, &feed, &turn), 0);
  assert_int_equal(take(feeds, "honest", 10, 2, &feed, &turn), -EDQUOT);
  assert_int_equal(take(feeds, "greedy", 5, 2, &feed, &turn), 0); /* counts as its first owner's */
  assert_int_equal(hk_feeds_survey(feeds).n, 20);
  assert_int_equal(hk_feeds_survey(feeds).refused, 2);
  hk_feeds_limit(feeds, 0, 0);
  for (uint32_t i = 20; i < HK_FEEDS_MAX; i++)
    assert_int_equal(take(feeds, "greedy", i, 1, &feed, &turn), 0);
  assert_int_equal(take(feeds, "honest", 11, 2, &feed, &turn), -ENOSPC);
  hk_feeds_free(feeds);
}

static void test_empty_feeds_go(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *feed, *kept, *stale;
  uint64_t turn, keep, old;
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  hk_feeds_limit(feeds, 3, 0);
  assert_int_equal(take(feeds, "kept", 0, 1, &kept, &keep), 0);
  for (uint32_t i = 0; i < 100; i++) { /* room is made without a request, at most once a second */
    assert_int_equal(take(feeds, "idle", i, 1, &feed, &turn), 0);
    hk_feed_give_up(feed, turn);
    (void)hk_feeds_expire(feeds, hk_wall());
  }
  assert_int_equal(hk_feeds_survey(feeds).n, 1);
  assert_int_equal(hk_feeds_survey(feeds).expired, 0); /* no connection notices their removal */
  /* A connection that lost the feed to another one still holds it. */
  assert_int_equal(take(feeds, "idle", 0, 1, &stale, &old), 0);
  assert_int_equal(take(feeds, "idle", 0, 1, &feed, &turn), 0);
  hk_feed_give_up(feed, turn);
  (void)hk_feeds_expire(feeds, hk_wall());
  assert_int_equal(hk_feeds_survey(feeds).n, 2);
  assert_false(hk_feed_enter(stale, old));
  hk_feed_give_up(stale, old);
  (void)hk_feeds_expire(feeds, hk_wall());
  assert_int_equal(hk_feeds_survey(feeds).n, 1);
  hk_feeds_free(feeds);
}

/* A feed with points is kept as long as any of them may be needed, and for long afterwards. */
static void test_expiry(void **state)
{
  (void)state;
  struct hk_feeds *feeds;
  struct hk_feed *idle, *open, *uncommitted, *held, *uneven, *again;
  uint64_t turn, other;
  const int64_t now = hk_wall();
  assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 9, hk_string("uneven-0"), 1, now }), 0);
  assert_int_equal(hk_feeds_restore(feeds, &(struct hk_record_feed){ 7, hk_string("even-0"), 1, now - 40 * DAY }), 0);
  for (uint32_t i = 0; i < SHARDS; i++) {
    hk_feeds_restore_part(feeds, 9, i, 20 + i);
    hk_feeds_restore_part(feeds, 7, i, 20);
  }
  hk_feeds_restored(feeds, SHARDS);
  assert_int_equal(take(feeds, "idle", 0, 1, &idle, &turn), 0);
  assert_int_equal(hk_feed_number(idle), 10); /* a number is not given twice */
  fill(idle, 50, 50);
  hk_feed_give_up(idle, turn);
  assert_int_equal(take(feeds, "open", 0, 1, &open, &turn), 0);
  fill(open, 50, 50);
  assert_int_equal(take(feeds, "uncommitted", 0, 1, &uncommitted, &turn), 0);
  fill(uncommitted, 50, 49);
  hk_feed_give_up(uncommitted, turn);
  assert_int_equal(take(feeds, "held", 0, 1, &held, &turn), 0);
  fill(held, 50, 50);
  struct hk_chunk *chunk = hk_chunk_new(0);
  assert_true(hk_chunk_mark(chunk, held, 50));
  hk_feed_give_up(held, turn);
  assert_int_equal(hk_feeds_expire(feeds, now + 29 * DAY), 0); /* no limit yet */
  hk_feeds_limit(feeds, 0, 30 * DAY);
  assert_int_equal(hk_feeds_expire(feeds, now), 1); /* the one that was idle before the restart */
  assert_int_equal(hk_feeds_expire(feeds, now + 29 * DAY), 0);
  assert_int_equal(hk_feeds_expire(feeds, now + 31 * DAY), 1);
  assert_int_equal(hk_feeds_survey(feeds).n, 4);
  assert_int_equal(hk_feeds_survey(feeds).expired, 2);
  assert_int_equal(take(feeds, "uneven", 0, 1, &uneven, &other), 0);
  assert_int_equal(uneven->received, 20);
  assert_int_equal(take(feeds, "idle", 0, 1, &again, &other), 0); /* it starts over */
  assert_int_equal(hk_feed_committed(again), 0);
  assert_true(hk_feed_number(again) > 10);
  hk_feed_commit(uncommitted, 1, 50);
  hk_chunk_clear(chunk);
  assert_int_equal(hk_feeds_expire(feeds, now + 31 * DAY), 2);
  hk_chunk_free(chunk);
  hk_feeds_free(feeds);
}

/* Records of several journals about names that were forgotten and given again, in any order of the journals. */
static void test_restore_gone(void **state)
{
  (void)state;
  const struct hk_record_feed first = { 1, hk_string("a"), 5, 1 }, second = { 4, hk_string("a"), 5, 2 };
  for (uint32_t order = 0; order < 2; order++) {
    struct hk_feeds *feeds;
    struct hk_feed *a;
    uint64_t turn;
    assert_int_equal(hk_feeds_new(&feeds, SHARDS), 0);
    for (uint32_t k = 0; k < SHARDS; k++) {
      const bool snapshot = k == order; /* later points; the other journal has all of them */
      if (!snapshot) {
        assert_int_equal(hk_feeds_restore(feeds, &first), 0);
        hk_feeds_restore_part(feeds, 1, k, 100);
        hk_feeds_restore_gone(feeds, 1);
      }
      assert_int_equal(hk_feeds_restore(feeds, &second), 0);
      hk_feeds_restore_part(feeds, 4, k, 7);
    }
    hk_feeds_restore_gone(feeds, 8);
    hk_feeds_restored(feeds, SHARDS);
    assert_int_equal(hk_feeds_survey(feeds).n, 1);
    assert_int_equal(hk_feeds_take(feeds, hk_string("a"), 5, NULL, &a, &turn), 0);
    assert_int_equal(hk_feed_number(a), 4);
    assert_int_equal(hk_feed_committed(a), 7);
    assert_int_equal(a->horizon, 7);
    assert_int_equal(hk_feeds_take(feeds, hk_string("b"), 5, NULL, &a, &turn), 0);
    assert_int_equal(hk_feed_number(a), 9);
    hk_feeds_free(feeds);
  }
}

/* --- points of feeds ------------------------------------------------------------------------------------------------- */

struct road {
  struct hk_config_detector detector;
  struct hk_config config;
  struct hk_device *device[SHARDS];
  struct hk_registry *registry;
  uint32_t handle[NAMES];
  struct hk_lane lanes[SHARDS];
  struct hk_wake wake; /* nobody sleeps */
  struct hk_chunk_pool pool;
  struct hk_counters counters;
  struct hk_log log;
  struct hk_intake intake;
  struct hk_source *source;
  struct hk_feeds *feeds;
};

static struct road *road_new(void)
{
  struct road *r = aligned_alloc(64, (sizeof *r + 63) / 64 * 64);
  char error[256];
  assert_non_null(r);
  memset(r, 0, sizeof *r);
  r->detector = (struct hk_config_detector){ .name = "all", .match = "*" };
  assert_int_equal(hk_detector_parse("window=8", &r->detector.detector, error, sizeof error), 0);
  r->config = (struct hk_config){ .detectors = &r->detector, .n_detectors = 1, .max_sensors = 100, .threads = 1 };
  assert_int_equal(hk_registry_new(&r->registry, &r->config, SHARDS), 0);
  for (uint32_t i = 0; i < SHARDS; i++) {
    const struct hk_device_place place = { .number = i, .of = SHARDS };
    assert_int_equal(
        hk_device_open(&r->device[i], &hk_backend_kinds[HK_BACKEND_REFERENCE], &r->config, 0, &place, error, sizeof error), 0);
    hk_registry_move(r->registry, i, &r->device[i]->binding, NULL, NULL);
    assert_int_equal(hk_lane_open(&r->lanes[i], 64), 0);
    r->lanes[i].loop = r->lanes[i].shard = &r->wake;
  }
  for (uint32_t i = 0; i < NAMES; i++) {
    char name[8];
    uint32_t slot;
    snprintf(name, sizeof name, "s%u", i);
    assert_int_equal(hk_registry_take(r->registry, name, strlen(name), &slot), 0);
    assert_int_equal(slot, i);
    r->handle[i] = hk_registry_handle(r->registry, slot);
  }
  assert_int_equal(hk_chunk_pool_open(&r->pool, r->lanes, SHARDS, 1, 0, 4 * HK_CHUNK_POINTS), 0);
  r->intake = (struct hk_intake){
    .registry = r->registry, .pool = &r->pool, .counters = &r->counters, .log = &r->log, .max_pending = 1 << 20
  };
  r->source = hk_source_new();
  assert_int_equal(hk_feeds_new(&r->feeds, SHARDS), 0);
  return r;
}

static void road_free(struct road *r)
{
  hk_chunk_pool_close(&r->pool);
  hk_source_close(r->source);
  for (uint32_t i = 0; i < SHARDS; i++)
    hk_lane_close(&r->lanes[i]);
  hk_registry_free(r->registry);
  for (uint32_t i = 0; i < SHARDS; i++)
    hk_device_close(r->device[i]);
  hk_feeds_free(r->feeds);
  free(r);
}

/* Points first..behind-1 of the feed: point i is of sensor i % NAMES, at time i; number 7 has a handle that is no good. */
static bool send_points(struct road *r, struct hk_feeding *feeding, uint64_t first, uint64_t behind)
{
  uint32_t handle[64], n = (uint32_t)(behind - first), unknown;
  int64_t time[64];
  double value[64];
  uint8_t bytes[4096];
  struct hk_frame f;
  struct hk_points read;
  for (uint32_t i = 0; i < n; i++) {
    handle[i] = first + i == 7 ? HK_NO_HANDLE : r->handle[(first + i) % NAMES];
    time[i] = (int64_t)(first + i);
    value[i] = 1;
  }
  const struct hk_points p = {
    .n = n, .time_kind = HK_TIME_EACH, .value_kind = HK_VALUE_F64, .times = time, .values = value, .handles = handle
  };
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  assert_int_equal(hk_points_write(&w, 0, &p), 0);
  assert_int_equal(hk_frame_read(bytes, w.size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
  assert_int_equal(hk_points_read(&f, &read), 0);
  assert_true(hk_intake_open(&r->intake, r->source, n));
  return hk_intake_feed(&r->intake, r->source, feeding, &read, &unknown);
}

/* Checks that a shard's open chunk has every point of the shard up to `upto`, once, except for those before `had` of the sensor's
 * former shard. */
static void expect(const struct road *r, uint32_t shard, const uint64_t *had, uint32_t of, uint64_t from, uint64_t upto)
{
  const struct hk_chunk *c = r->pool.filling.chunk[shard];
  uint32_t k = 0;
  for (uint64_t i = from; i < upto; i++)
    if (i % NAMES % SHARDS == shard && i != 7 && i >= had[i % NAMES % of]) {
      assert_true(k < c->n);
      assert_int_equal(c->time[k], i);
      assert_int_equal(c->slot[k], i % NAMES / SHARDS);
      k++;
    }
  assert_int_equal(c->n, k);
  assert_int_equal(c->n_marks, 1);
  assert_int_equal(c->marks[0].upto, upto);
}

static void test_points(void **state)
{
  (void)state;
  struct road *r = road_new();
  struct hk_feeding feeding = { 0 }, second = { 0 };
  assert_int_equal(hk_feeds_take(r->feeds, hk_string("a"), 0, NULL, &feeding.feed, &feeding.turn), 0);
  assert_true(send_points(r, &feeding, 0, 10));
  assert_true(send_points(r, &feeding, 10, 30));
  assert_int_equal(feeding.at, 30);
  /* The client comes back, gets the position 5, and sends again from there. */
  assert_int_equal(hk_feeds_take(r->feeds, hk_string("a"), 0, NULL, &second.feed, &second.turn), 0);
  second.at = 5;
  assert_false(send_points(r, &feeding, 30, 40));
  /* Not before the shards have the first connection's points: its chunks may come from another loop. */
  assert_false(hk_feed_settled(second.feed, second.turn));
  assert_true(hk_feed_settled(second.feed, feeding.turn)); /* which waits for nothing any more */
  for (uint32_t i = 0; i < SHARDS; i++) {
    hk_feed_taken(second.feed, i, 29);
    assert_false(hk_feed_settled(second.feed, second.turn));
  }
  for (uint32_t i = 0; i < SHARDS; i++)
    hk_feed_taken(second.feed, i, 30);
  assert_true(hk_feed_settled(second.feed, second.turn));
  assert_true(send_points(r, &second, 5, 20));
  assert_true(send_points(r, &second, 20, 50));
  for (uint32_t i = 0; i < SHARDS; i++)
    expect(r, i, (uint64_t[]){ 0 }, 1, 0, 50);
  assert_int_equal(r->counters.in, 30 + 45);
  assert_int_equal(r->counters.resent, 25);
  assert_int_equal(r->counters.unknown_handle, 1);
  assert_int_equal(hk_source_pending(r->source), 49);
  road_free(r);
}

/* After a restart one shard has more of it than the other. */
static void test_points_after_restart(void **state)
{
  (void)state;
  struct road *r = road_new();
  struct hk_feeding feeding = { 0 };
  assert_int_equal(hk_feeds_restore(r->feeds, &(struct hk_record_feed){ 1, hk_string("a"), 0, 0 }), 0);
  hk_feeds_restore_part(r->feeds, 1, 0, 20);
  hk_feeds_restore_part(r->feeds, 1, 1, 33);
  hk_feeds_restored(r->feeds, SHARDS);
  assert_int_equal(hk_feeds_take(r->feeds, hk_string("a"), 0, NULL, &feeding.feed, &feeding.turn), 0);
  feeding.at = hk_feed_committed(feeding.feed);
  assert_int_equal(feeding.at, 20);
  assert_true(send_points(r, &feeding, 20, 30));
  assert_true(send_points(r, &feeding, 30, 60));
  for (uint32_t i = 0; i < SHARDS; i++)
    expect(r, i, (uint64_t[]){ 20, 33 }, 2, 20, 60);
  assert_int_equal(r->counters.resent, 6); /* 21, 23 .. 31 */
  road_free(r);
}

/* There were three shards then. */
static void test_points_after_restart_with_others(void **state)
{
  (void)state;
  struct road *r = road_new();
  struct hk_feeding feeding = { 0 };
  const uint64_t had[] = { 26, 20, 44 };
  uint64_t resent = 0;
  assert_int_equal(hk_feeds_restore(r->feeds, &(struct hk_record_feed){ 1, hk_string("a"), 0, 0 }), 0);
  for (uint32_t i = 0; i < 3; i++)
    hk_feeds_restore_part(r->feeds, 1, i, had[i]);
  hk_feeds_restored(r->feeds, 3);
  assert_int_equal(hk_feeds_take(r->feeds, hk_string("a"), 0, NULL, &feeding.feed, &feeding.turn), 0);
  feeding.at = hk_feed_committed(feeding.feed);
  assert_int_equal(feeding.at, 20);
  assert_true(send_points(r, &feeding, 20, 40));
  assert_true(send_points(r, &feeding, 40, 60));
  for (uint32_t i = 0; i < SHARDS; i++)
    expect(r, i, had, 3, 20, 60);
  for (uint64_t i = 20; i < 60; i++)
    resent += i < had[i % NAMES % 3];
  assert_int_equal(r->counters.resent, resent);
  road_free(r);
}

/* A chunk without room for another mark accepts no points until it is handed over. */
static void test_many_feeds(void **state)
{
  (void)state;
  struct road *r = road_new();
  for (uint32_t i = 0; i < HK_CHUNK_MARKS; i++) {
    struct hk_feeding feeding = { 0 };
    char name[8];
    snprintf(name, sizeof name, "f%u", i);
    assert_int_equal(hk_feeds_take(r->feeds, hk_string(name), 0, NULL, &feeding.feed, &feeding.turn), 0);
    assert_true(send_points(r, &feeding, 0, 1));
  }
  assert_false(hk_intake_open(&r->intake, r->source, 1));
  assert_true(hk_chunk_pool_seal(&r->pool)); /* the second shard's chunk has marks and no points */
  assert_int_equal(hk_ring_count(&r->lanes[1].sealed), 1);
  assert_true(hk_intake_open(&r->intake, r->source, 1));
  road_free(r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_who_has_it),
    cmocka_unit_test(test_committed),
    cmocka_unit_test(test_restore),
    cmocka_unit_test(test_owners),
    cmocka_unit_test(test_empty_feeds_go),
    cmocka_unit_test(test_expiry),
    cmocka_unit_test(test_restore_gone),
    cmocka_unit_test(test_points),
    cmocka_unit_test(test_points_after_restart),
    cmocka_unit_test(test_points_after_restart_with_others),
    cmocka_unit_test(test_many_feeds),
  };
  return cmocka_run_group_tests_name("feeds", tests, NULL, NULL);
}
