/* Copies of a shared event log: machines append, a shared log takes their messages in some order, twice or damaged, and all
 * copies are equal, with each event once. */
#include "daemon/base/log.h"
#include "daemon/durable/event_copy.h"
#include "daemon/durable/event_shared.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

#define NODES 3

/* The shared log. */
struct broker {
  struct hk_eventlog *node[NODES];
  struct {
    uint8_t *bytes;
    size_t size;
  } message[256];
  uint64_t n, read[NODES];
};

static void set_up(struct broker *b)
{
  *b = (struct broker){ .n = 0 };
  for (int i = 0; i < NODES; i++)
    assert_int_equal(hk_copy_open(&b->node[i], 1 << 20), 0);
}

static void tear_down(struct broker *b)
{
  for (int i = 0; i < NODES; i++)
    hk_eventlog_free(b->node[i]);
  for (uint64_t i = 0; i < b->n; i++)
    free(b->message[i].bytes);
}

static void put(struct broker *b, const void *bytes, size_t size)
{
  b->message[b->n].bytes = malloc(size + 1);
  memcpy(b->message[b->n].bytes, bytes, size);
  b->message[b->n++].size = size;
}

/* Publishes the messages that a machine has appended; confirms them, or they come again. */
static void publish(struct broker *b, int node, bool confirm)
{
  struct hk_event_shared *s = hk_eventlog_shared(b->node[node]);
  const struct hk_shared_message *m = NULL;
  uint64_t last = 0;
  while ((m = hk_shared_outgoing(s, m)) != NULL) {
    put(b, m->message, m->size);
    last = m->number;
  }
  if (confirm && last > 0)
    hk_shared_confirmed(s, last);
}

/* All machines read the new messages; returns the number of valid ones. */
static int read_all(struct broker *b)
{
  int good = 0;
  for (int i = 0; i < NODES; i++)
    for (; b->read[i] < b->n; b->read[i]++) {
      const char *why;
      const bool is = hk_copy_take(b->node[i], b->read[i], b->message[b->read[i]].bytes, b->message[b->read[i]].size, &why);
      assert_true(is == !why);
      good += is && i == 0;
    }
  for (int i = 0; i < NODES; i++)
    hk_shared_ready(hk_eventlog_shared(b->node[i]));
  return good;
}

static uint64_t append(struct broker *b, int node, const char *name, uint64_t sequence, int64_t time, uint8_t kind,
                       uint32_t number)
{
  const struct hk_event e = { .kind = kind, .number = number, .time = time, .channel = HK_CHANNEL_SHIFT, .severity = 3 };
  const struct hk_string by = hk_string(kind == HK_EVENT_ACKNOWLEDGED ? "me" : "");
  return hk_eventlog_append(b->node[node], 77 + (uint32_t)node, hk_string(name), sequence, &e, by, 0);
}

struct seen {
  char text[4096];
  size_t size;
};

static void see(void *arg, const struct hk_logged *l)
{
  struct seen *s = arg;
  assert_int_equal(l->handle, 0);
  s->size += (size_t)snprintf(s->text + s->size, sizeof s->text - s->size, "%d %.*s:%u %d; ", (int)l->position,
                              (int)l->name.length, l->name.data, l->event.number, l->event.kind);
}

/* The events that all machines show; checks that they are the same, without gaps. */
static void shows(struct broker *b, const char *expected)
{
  for (int i = 0; i < NODES; i++) {
    struct seen seen = { .size = 0 };
    struct hk_eventlog_cursor cursor = { .next = 1 };
    while (hk_eventlog_read(b->node[i], &cursor, UINT64_MAX, 7, see, &seen) > 0) {
    }
    assert_string_equal(seen.text, expected);
    assert_int_equal(cursor.missed, 0);
    assert_int_equal(cursor.next, b->n + 1);
    assert_int_equal(hk_eventlog_shown(b->node[i]), b->n);
  }
}

static void test_each_event_once(void **state)
{
  struct broker b;
  (void)state;
  set_up(&b);
  assert_int_equal(append(&b, 0, "a", 1, 100, HK_EVENT_RAISED, 1), 1);
  assert_int_equal(append(&b, 0, "a", 2, 130, HK_EVENT_CLEARED, 1), 2);
  assert_false(hk_eventlog_safe(b.node[0], 1));
  publish(&b, 0, false); /* not confirmed, so it is published again */
  publish(&b, 0, true);
  assert_true(hk_eventlog_safe(b.node[0], 2));
  assert_int_equal(hk_eventlog_shown(b.node[0]), 0); /* before all is read nothing is shown */
  append(&b, 1, "a", 2, 130, HK_EVENT_CLEARED, 1);   /* the machine that takes over its sensors makes its last events again, */
  append(&b, 1, "a", 3, 160, HK_EVENT_RAISED, 2);    /* and continues */
  publish(&b, 1, true);
  append(&b, 0, "a", 3, 160, HK_EVENT_RAISED, 2); /* which does not know of it yet */
  publish(&b, 0, true);
  assert_int_equal(read_all(&b), 7 + 0);
  shows(&b, "1 a:1 1; 2 a:1 3; 6 a:2 1; ");
  append(&b, 2, "a", 1, 200, HK_EVENT_RAISED, 1); /* evicted, and made anew */
  append(&b, 2, "b", 1, 90, HK_EVENT_RAISED, 1);
  publish(&b, 2, true);
  read_all(&b);
  shows(&b, "1 a:1 1; 2 a:1 3; 6 a:2 1; 8 a:1 1; 9 b:1 1; ");
  tear_down(&b);
}

static void test_what_cannot_be_read(void **state)
{
  struct broker b;
  (void)state;
  set_up(&b);
  append(&b, 0, "a", 1, 100, HK_EVENT_RAISED, 1);
  publish(&b, 0, true);
  for (size_t i = 0; i < b.message[0].size; i++) { /* any byte flipped, and any end cut */
    put(&b, b.message[0].bytes, b.message[0].size);
    b.message[b.n - 1].bytes[i] ^= 1;
    if (b.n > 120)
      break;
  }
  put(&b, "", 0);
  put(&b, b.message[0].bytes, 23);
  put(&b, b.message[0].bytes, b.message[0].size - 1);
  assert_int_equal(read_all(&b), 1);
  shows(&b, "1 a:1 1; ");
  tear_down(&b);
}

/* Takes a copy of the first message with this number in its head, and a right checksum; returns why it is left out. */
static const char *left_out(struct broker *b, size_t at, uint32_t number, size_t cut)
{
  const size_t size = b->message[0].size - cut;
  uint8_t *bytes = malloc(size);
  const char *why = "it is not";
  memcpy(bytes, b->message[0].bytes, size);
  memcpy(bytes + at, &number, sizeof number);
  const uint64_t sum = XXH3_64bits(bytes + 8, size - 8);
  memcpy(bytes, &sum, sizeof sum);
  put(b, bytes, size);
  free(bytes);
  for (int i = 0; i < NODES; i++, b->read[i - 1]++)
    assert_false(hk_copy_take(b->node[i], b->read[i], b->message[b->read[i]].bytes, size, &why));
  return why;
}

/* The reason says whether a later build would read it. The next event is taken in any case. */
static void test_of_later_builds(void **state)
{
  enum { MAGIC = 8, TYPE = 12 };
  struct broker b;
  (void)state;
  set_up(&b);
  append(&b, 0, "a", 1, 100, HK_EVENT_RAISED, 1);
  publish(&b, 0, true);
  assert_int_equal(read_all(&b), 1);
  static const char later[] = "it is of a later version; this hankeld reads version 1: upgrade this machine";
  assert_string_equal(left_out(&b, MAGIC, 0x32454b48, 0), later);
  assert_string_equal(left_out(&b, MAGIC, 0x39454b48, 0), later);
  assert_string_equal(left_out(&b, MAGIC, 0x3a454b48, 0), "it is none of ours");
  assert_string_equal(left_out(&b, MAGIC, 0x30454b48, 0), "it is none of ours");
  static const char kind[] = "it is of a kind that this hankeld does not know: upgrade this machine";
  assert_string_equal(left_out(&b, TYPE, HK_SHARED_WISH + 1, 0), kind);
  assert_string_equal(left_out(&b, TYPE, HK_RECORD_OPERATION + 1, 0), kind);
  assert_string_equal(left_out(&b, TYPE, HK_RECORD_EVENT, 1), "it does not have the layout of its kind");
  assert_string_equal(left_out(&b, TYPE, HK_RECORD_SETTLED, 0), "it does not have the layout of its kind");
  append(&b, 1, "a", 2, 120, HK_EVENT_CLEARED, 1);
  publish(&b, 1, true);
  assert_int_equal(read_all(&b), 1);
  shows(&b, "1 a:1 1; 10 a:1 3; ");
  tear_down(&b);
}

static void test_who_leads(void **state)
{
  struct broker b;
  struct hk_place place = { .position = 5, .until = 7, .id = 99 }, found;
  (void)state;
  set_up(&b);
  struct hk_event_shared *one = hk_eventlog_shared(b.node[0]), *two = hk_eventlog_shared(b.node[1]);
  const struct hk_logged_incident change = {
    .id = 1, .number = 1, .kind = HANKEL_INCIDENT_TOLD, .text = hk_string("t"), .about = hk_string("{}"), .sensors = { "a", 2 }
  };
  assert_true(hk_shared_append_place(one, "hook", &place) > 0); /* it does not lead yet */
  const uint64_t mark = hk_shared_mark(one, true);
  hk_shared_lead(one, true);
  publish(&b, 0, true);
  read_all(&b);
  assert_true(hk_shared_marked(one) == mark && hk_shared_marked(two) == 0 && hk_shared_leads(one) && !hk_shared_leads(two));
  assert_false(hk_shared_place(two, "hook", &found));
  hk_shared_append_place(one, "hook", &place);
  hk_eventlog_append_incident(b.node[0], &change);
  publish(&b, 0, true);
  hk_shared_mark(two, true);
  hk_shared_lead(two, true);
  publish(&b, 1, true);
  place.position = place.until = 8;
  hk_shared_append_place(one, "hook", &place); /* it does not know of its successor */
  hk_eventlog_append_incident(b.node[0], &change);
  publish(&b, 0, true);
  read_all(&b);
  assert_true(!hk_shared_leads(one) && hk_shared_leads(two));
  for (int i = 0; i < NODES; i++) {
    assert_true(hk_shared_place(hk_eventlog_shared(b.node[i]), "hook", &found) && found.position == 5 && found.until == 7);
    assert_false(hk_shared_place(hk_eventlog_shared(b.node[i]), "hoo", &found));
  }
  hk_shared_lead(two, false);
  assert_false(hk_shared_leads(two));
  tear_down(&b);
}

/* A mark is passed once all is read that was in the log before it, also another machine's events. */
static void test_marks(void **state)
{
  struct broker b;
  uint64_t mark, later, theirs;
  (void)state;
  set_up(&b);
  read_all(&b);
  append(&b, 0, "a", 1, 100, HK_EVENT_RAISED, 1);
  assert_false(hk_eventlog_safe(b.node[0], hk_eventlog_appended(b.node[0])));
  publish(&b, 0, true);
  assert_true(hk_eventlog_safe(b.node[0], hk_eventlog_appended(b.node[0])));
  append(&b, 1, "b", 1, 100, HK_EVENT_RAISED, 1);
  assert_true(hk_eventlog_mark(b.node[1], &mark) && hk_eventlog_mark(b.node[1], &later) && hk_eventlog_mark(b.node[2], &theirs));
  publish(&b, 1, true);
  for (b.n = 0; b.n < 4; b.n++) { /* the two events, then the two marks */
    read_all(&b);
    assert_false(hk_eventlog_passed(b.node[1], mark) && b.n < 3);
    assert_false(hk_eventlog_passed(b.node[1], later));
  }
  assert_true(hk_eventlog_passed(b.node[1], mark));
  read_all(&b);
  assert_true(hk_eventlog_passed(b.node[1], later) && !hk_eventlog_passed(b.node[2], theirs));
  shows(&b, "1 a:1 1; 2 b:1 1; ");
  tear_down(&b);
}

static void test_acknowledged_anywhere(void **state)
{
  struct broker b;
  char by[HK_WHO_MAX + 1] = "you";
  int64_t when = 500;
  uint32_t number = 0, acknowledged;
  uint64_t positions[4];
  (void)state;
  set_up(&b);
  append(&b, 0, "a", 1, 100, HK_EVENT_RAISED, 4);
  append(&b, 0, "b", 1, 100, HK_EVENT_RAISED, 1);
  append(&b, 0, "b", 2, 120, HK_EVENT_CLEARED, 1);
  publish(&b, 0, true);
  assert_int_equal(hk_copy_acknowledge(b.node[2], hk_string("a"), &number, by, &when), -ENOENT); /* not read yet */
  read_all(&b);
  assert_int_equal(hk_copy_standing(b.node[1], positions, 4, &acknowledged), 1);
  assert_true(positions[0] == 1 && acknowledged == 0);
  assert_int_equal(hk_copy_acknowledge(b.node[2], hk_string("b"), &number, by, &when), -ENOENT);
  number = 3;
  assert_int_equal(hk_copy_acknowledge(b.node[2], hk_string("a"), &number, by, &when), -ENOENT);
  number = 0;
  assert_true(hk_copy_acknowledge(b.node[2], hk_string("a"), &number, by, &when) > 0);
  assert_int_equal(number, 4);
  publish(&b, 2, true);
  number = 0;
  assert_true(hk_copy_acknowledge(b.node[1], hk_string("a"), &number, by, &when) > 0); /* at the same time */
  publish(&b, 1, true);
  read_all(&b);
  shows(&b, "1 a:4 1; 2 b:1 1; 3 b:1 3; 4 a:4 8; ");
  assert_int_equal(hk_copy_standing(b.node[0], positions, 4, &acknowledged), 1);
  assert_int_equal(acknowledged, 1);
  snprintf(by, sizeof by, "else");
  when = 900;
  assert_int_equal(hk_copy_acknowledge(b.node[0], hk_string("a"), &number, by, &when), -EALREADY);
  assert_true(strcmp(by, "you") == 0 && when == 500);
  assert_true(hk_copy_noted(b.node[0], hk_string("a"), 4, by, &when) && !hk_copy_noted(b.node[0], hk_string("a"), 5, by, &when));
  tear_down(&b);
}

/* A machine announces that it has a partition or, with NULL, that it is to have it; all machines read it. */
static void say_holder(struct broker *b, int node, uint64_t epoch, const char *machine)
{
  assert_true(hk_shared_append_holder(hk_eventlog_shared(b->node[node]), 7, epoch, machine) > 0);
  publish(b, node, true);
  read_all(b);
}

static void is_held(struct broker *b, uint64_t epoch, const char *machine)
{
  struct hk_holder holder;
  for (int i = 0; i < NODES; i++) {
    assert_true(hk_holders_find(hk_shared_holders(hk_eventlog_shared(b->node[i])), 7, &holder));
    assert_true(holder.epoch == epoch && strcmp(holder.machine, machine) == 0);
  }
}

static enum hk_holders_wish wish_of(struct broker *b, int node, int64_t later)
{
  return hk_holders_wish(hk_shared_holders(hk_eventlog_shared(b->node[node])), 7, hk_now() + later);
}

/* The holder of the latest epoch has a partition, whatever later messages of others are. */
static void test_who_has_a_partition(void **state)
{
  struct broker b;
  struct hk_holder holder;
  (void)state;
  set_up(&b);
  assert_false(hk_holders_find(hk_shared_holders(hk_eventlog_shared(b.node[0])), 7, &holder));
  say_holder(&b, 0, 3, "a:7410");
  is_held(&b, 3, "a:7410");
  say_holder(&b, 1, 4, "b:7410");
  say_holder(&b, 0, 3, "a:7410"); /* it does not know yet */
  is_held(&b, 4, "b:7410");
  say_holder(&b, 2, 5, "c d"); /* no name */
  say_holder(&b, 2, 0, "c:1"); /* no epoch */
  is_held(&b, 4, "b:7410");
  tear_down(&b);
}

/* The number of machines that have a partition, each counted once. */
static void test_how_many_have_partitions(void **state)
{
  static const struct {
    uint32_t partition;
    uint64_t epoch;
    const char *machine;
    uint32_t count;
  } steps[] = { { 3, 1, "a:1", 1 }, { 9, 1, "a:1", 1 }, { 0, 1, "b:1", 2 },
                { 9, 2, "c:1", 3 }, { 3, 2, "c:1", 2 }, { 0, 2, "c:1", 1 } };
  struct hk_holders *h;
  uint8_t record[64];
  (void)state;
  assert_int_equal(hk_holders_new(&h), 0);
  assert_int_equal(hk_holders_count(h), 0);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    hk_holders_write(record, steps[i].partition, steps[i].epoch, steps[i].machine);
    hk_holders_take(h, 1, record, hk_holders_size(steps[i].machine));
    assert_int_equal(hk_holders_count(h), steps[i].count);
  }
  hk_holders_free(h);
}

/* A machine is to have a partition until it has it, or for 30 s; requests from before a start are old. */
static void test_who_is_to_have_a_partition(void **state)
{
  struct broker b;
  (void)state;
  set_up(&b);
  say_holder(&b, 1, 0, NULL); /* they have not read all earlier messages */
  assert_true(wish_of(&b, 0, 0) == HK_WISH_NONE && wish_of(&b, 1, 0) == HK_WISH_NONE);
  say_holder(&b, 0, 3, "a:7410");
  say_holder(&b, 1, 0, NULL);
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  assert_int_equal(wish_of(&b, 1, 0), HK_WISH_OURS);
  assert_true(wish_of(&b, 0, HK_HOLDERS_WISH) == HK_WISH_NONE);
  say_holder(&b, 0, 3, "a:7410"); /* again, as every few hours */
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  say_holder(&b, 0, 4, "a:7410"); /* had taken it before the request, and reports it after it */
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  assert_int_equal(wish_of(&b, 1, 0), HK_WISH_OURS);
  say_holder(&b, 1, 5, "b:7410");
  assert_true(wish_of(&b, 0, 0) == HK_WISH_NONE && wish_of(&b, 1, 0) == HK_WISH_NONE);
  is_held(&b, 5, "b:7410");
  tear_down(&b);
}

/* A request that is sent again overrules none that was made for another machine since, not even a fulfilled one. */
static void test_a_request_is_repeated(void **state)
{
  struct broker b;
  (void)state;
  set_up(&b);
  say_holder(&b, 0, 3, "a:7410");
  say_holder(&b, 1, HK_HOLDERS_AGAIN, NULL); /* the first one came before the start */
  assert_int_equal(wish_of(&b, 1, 0), HK_WISH_OURS);
  say_holder(&b, 1, 0, NULL);
  say_holder(&b, 1, HK_HOLDERS_AGAIN, NULL);
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  say_holder(&b, 2, 0, NULL);
  say_holder(&b, 1, HK_HOLDERS_AGAIN, NULL);
  assert_int_equal(wish_of(&b, 1, 0), HK_WISH_OTHERS);
  assert_int_equal(wish_of(&b, 2, 0), HK_WISH_OURS);
  say_holder(&b, 2, 4, "c:7410");
  say_holder(&b, 1, HK_HOLDERS_AGAIN, NULL);
  assert_int_equal(wish_of(&b, 2, 0), HK_WISH_NONE);
  say_holder(&b, 1, 0, NULL); /* a new one */
  assert_int_equal(wish_of(&b, 2, 0), HK_WISH_OTHERS);
  tear_down(&b);
}

/* A withdrawn request counts no longer, but harms none that another machine made since. */
static void test_a_request_is_withdrawn(void **state)
{
  struct broker b;
  (void)state;
  set_up(&b);
  say_holder(&b, 1, HK_HOLDERS_WITHDRAWN, NULL);
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_NONE);
  say_holder(&b, 1, 0, NULL);
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  say_holder(&b, 1, HK_HOLDERS_WITHDRAWN, NULL);
  assert_true(wish_of(&b, 0, 0) == HK_WISH_NONE && wish_of(&b, 1, 0) == HK_WISH_NONE);
  say_holder(&b, 1, 0, NULL);
  say_holder(&b, 2, 0, NULL);
  say_holder(&b, 1, HK_HOLDERS_WITHDRAWN, NULL);
  assert_int_equal(wish_of(&b, 0, 0), HK_WISH_OTHERS);
  assert_int_equal(wish_of(&b, 2, 0), HK_WISH_OURS);
  say_holder(&b, 2, HK_HOLDERS_WITHDRAWN + 1, NULL); /* of a later build */
  assert_int_equal(wish_of(&b, 2, 0), HK_WISH_OURS);
  tear_down(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_event_once),
    cmocka_unit_test(test_what_cannot_be_read),
    cmocka_unit_test(test_of_later_builds),
    cmocka_unit_test(test_who_leads),
    cmocka_unit_test(test_marks),
    cmocka_unit_test(test_acknowledged_anywhere),
    cmocka_unit_test(test_who_has_a_partition),
    cmocka_unit_test(test_who_is_to_have_a_partition),
    cmocka_unit_test(test_a_request_is_repeated),
    cmocka_unit_test(test_a_request_is_withdrawn),
    cmocka_unit_test(test_how_many_have_partitions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
