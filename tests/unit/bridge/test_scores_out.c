/* Shared scores: a mark is passed once the broker has confirmed all results from before it, and does not wait for later ones. The
 * broker here takes every message, and confirms when the test says so. */
#include "daemon/bridge/cluster_scores_out.h"
#include "proto/wire/message.h"
#include "proto/wire/score_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SENSORS 4u
#define MANY (3 * HK_SCORE_MESSAGE_MAX) /* results of one sensor: rounds of a message each */

static uint32_t published;

static int publish(struct hk_broker_engine *engine, uint32_t log, const void *data, size_t size)
{
  (void)engine;
  assert_int_equal(log, HK_ENGINE_SCORES);
  assert_true(data && size > 0);
  published++;
  return 0;
}

static const struct hk_broker_engine_kind kind = { .name = "test", .publish = publish };

struct shared {
  struct hk_cluster cluster;
  struct hk_scores_out out;
};

static int setup(void **state)
{
  struct shared *s = *state = calloc(1, sizeof *s);
  s->cluster.kind = &kind;
  published = 0;
  return hk_scores_out_begin(&s->out, SENSORS, -1);
}

static int teardown(void **state)
{
  struct shared *s = *state;
  hk_scores_out_finish(&s->out);
  free(s);
  return 0;
}

/* As if the inner connection had brought n more results of a sensor, named by one letter. */
static void come(struct hk_scores_out *o, uint32_t sensor, uint32_t n)
{
  const uint16_t length = 1;
  const uint32_t name = (uint32_t)o->names.size;
  const char letter = (char)('a' + sensor);
  hk_buffer_put(&o->names, (const char *)&length, sizeof length);
  hk_buffer_put(&o->names, &letter, 1);
  o->waiting = realloc(o->waiting, (o->n_waiting + n) * sizeof *o->waiting);
  assert_non_null(o->waiting);
  for (uint32_t i = 0; i < n; i++)
    o->waiting[o->n_waiting++] = (struct hk_scores_result){ .time = i + 1, .value = 1, .handle = sensor, .name = name };
  o->capacity = o->n_waiting;
}

static void confirm(struct hk_scores_out *o)
{
  const struct hk_broker_engine_event e = { .what = HK_ENGINE_CONFIRMED, .number = o->confirms.sent, .all = true };
  hk_scores_out_confirm(o, &e);
  assert_int_equal(o->n, 0);
}

static void passes_behind_its_results(void **state)
{
  struct shared *s = *state;
  struct hk_scores_out *o = &s->out;
  come(o, 0, MANY);
  hk_scores_out_mark(o, 7); /* nothing is on its way from the inner connection, which is closed */
  come(o, 0, HK_SCORE_MESSAGE_MAX);
  come(o, 1, 1);
  for (uint32_t round = 1; round <= 3; round++) {
    assert_int_equal(hk_scores_out_marked(o), 0);
    assert_int_equal(hk_scores_out_publish(&s->cluster, o), 0);
    assert_int_equal(hk_scores_out_marked(o), 0); /* on its way */
    confirm(o);
  }
  assert_true(published >= 3 && o->n_waiting > 0);
  assert_int_equal(hk_scores_out_publish(&s->cluster, o), 0); /* the next round does not delay it */
  assert_int_equal(hk_scores_out_marked(o), 7);
  assert_int_equal(hk_scores_out_marked(o), 0); /* once */
}

static void waits_for_what_is_on_its_way(void **state)
{
  struct shared *s = *state;
  struct hk_scores_out *o = &s->out;
  come(o, 2, 1);
  assert_int_equal(hk_scores_out_publish(&s->cluster, o), 0);
  hk_scores_out_mark(o, 1);
  hk_scores_out_mark(o, 2); /* one at a time */
  assert_int_equal(hk_scores_out_marked(o), 0);
  hk_confirms_begin(&o->confirms); /* another connection: it is published again */
  assert_int_equal(hk_scores_out_publish(&s->cluster, o), 0);
  assert_int_equal(hk_scores_out_marked(o), 0);
  confirm(o);
  assert_int_equal(published, 2);
  assert_int_equal(hk_scores_out_marked(o), 1);
}

static void nothing_to_wait_for(void **state)
{
  struct shared *s = *state;
  struct hk_scores_out *o = &s->out;
  hk_scores_out_mark(o, 3);
  assert_int_equal(hk_scores_out_marked(o), 3);
  come(o, 3, 5);
  hk_scores_out_mark(o, 4);
  assert_int_equal(hk_scores_out_marked(o), 0);
  hk_scores_out_discard(o); /* nobody listens any more */
  assert_int_equal(hk_scores_out_marked(o), 4);
}

/* An inner connection that has ended is read to its end before a mark passes. */
static void reads_what_has_ended(void **state)
{
  struct shared *s = *state;
  struct hk_scores_out *o = &s->out;
  uint8_t bytes[64];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  int end[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
  assert_int_equal(hk_gap_write(&w, 5, 0), 0);
  assert_int_equal(write(end[1], w.data, w.size), w.size);
  close(end[1]);
  o->fd = end[0];
  hk_scores_out_mark(o, 6);
  assert_int_equal(hk_scores_out_marked(o), 0);
  assert_false(hk_scores_out_hear(&s->cluster, o));
  assert_int_equal(o->lost, 5);
  hk_scores_out_close(o);
  assert_int_equal(hk_scores_out_marked(o), 0); /* it was not made */
  hk_scores_out_mark(o, 6);
  assert_int_equal(hk_scores_out_marked(o), 6);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(passes_behind_its_results, setup, teardown),
    cmocka_unit_test_setup_teardown(waits_for_what_is_on_its_way, setup, teardown),
    cmocka_unit_test_setup_teardown(nothing_to_wait_for, setup, teardown),
    cmocka_unit_test_setup_teardown(reads_what_has_ended, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
