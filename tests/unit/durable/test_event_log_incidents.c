/* The event log: incidents, operations, and the events that belong to them; records with any byte changed. */
#include "daemon/durable/event_log.h"
#include "tests/unit/support/event_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- incidents ---------------------------------------------------------------------------------------------------------- */

/* The records of a visit as text: E2 an event (of incident 7: E2=7), I3 a change of an incident, S4 a settled time, O5 an
 * operation. */
struct heard {
  char text[256];
  size_t used;
};

static void say(struct heard *h, const char *format, uint64_t a, uint64_t b)
{
  h->used += (size_t)snprintf(h->text + h->used, sizeof h->text - h->used, format, (unsigned long long)a, (unsigned long long)b);
}

static void hear_event(void *arg, const struct hk_logged *l)
{
  say(arg, l->incident ? "E%llu=%llu " : "E%llu ", l->position, l->incident);
}

static void hear_change(void *arg, const struct hk_logged_incident *i)
{
  assert_true(i->kind == HANKEL_INCIDENT_UPDATE && i->told && i->count == 2 && i->number == 9 && i->rank == 4.5);
  assert_true(i->time == 1000 && i->since == 900 && i->severity == 3.25);
  assert_int_equal(i->text.length, 4);
  assert_memory_equal(i->text.data, "text", 4);
  assert_memory_equal(i->about.data, "{}", 2);
  assert_int_equal(i->sensors.length, 4);
  assert_memory_equal(i->sensors.data, "a\0b", 4);
  say(arg, "I%llu:%llu ", i->position, i->id);
}

static void hear_settled(void *arg, const struct hk_logged_settled *s, uint64_t position)
{
  assert_true(s->time == 77 && s->number == 8 && s->id == 6 && s->a_day == 2.5 && s->sensors == 11);
  say(arg, "S%llu:%llu ", position, s->n);
}

static const struct hk_logged_operation operation = {
  .time = 5, .until = INT64_MAX, .kind = HK_LOGGED_MAINTENANCE, .subject = { "pump*", 5 }, .by = { "ann", 3 }, .text = { "", 0 }
};

static void hear_operation(void *arg, const struct hk_logged_operation *o)
{
  assert_true(o->time == 5 && o->until == INT64_MAX && o->kind == HK_LOGGED_MAINTENANCE && o->text.length == 0);
  assert_int_equal(o->subject.length, 5);
  assert_memory_equal(o->subject.data, "pump*", 5);
  assert_int_equal(o->by.length, 3);
  assert_memory_equal(o->by.data, "ann", 3);
  say(arg, "O%llu ", o->position, 0);
}

static void expect(struct hk_eventlog *e, uint64_t from, bool waits, const char *expected)
{
  const struct hk_eventlog_visit visit = { hear_event, hear_change, hear_settled, waits, hear_operation };
  struct hk_eventlog_cursor c = { .next = from };
  struct heard h = { .used = 0 };
  while (hk_eventlog_visit(e, &c, UINT64_MAX, 3, &visit, &h) > 0)
    say(&h, "| ", 0, 0);
  assert_string_equal(h.text, expected);
  assert_int_equal(c.missed, 0);
}

static void settle_section(struct hk_eventlog *e, const char *section, uint64_t seen, uint64_t upto,
                           const struct hk_settled_event *of, uint32_t n)
{
  const struct hk_logged_settled s = { seen, upto, 77, 8, 6, 2.5, 11, n, (const uint8_t *)of, hk_string(section) };
  assert_true(hk_eventlog_append_settled(e, &s) > 0);
}

static void settle(struct hk_eventlog *e, uint64_t seen, uint64_t upto, const struct hk_settled_event *of, uint32_t n)
{
  settle_section(e, "", seen, upto, of, n);
}

/* Events have their incidents once these are settled, in this run and the next; a reader that waits for them gets no event
 * before. */
static void test_incidents(void **state)
{
  struct place p;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  const struct hk_logged_incident change = { .number = 9,
                                             .id = 7,
                                             .time = 1000,
                                             .since = 900,
                                             .rank = 4.5,
                                             .severity = 3.25,
                                             .count = 2,
                                             .kind = HANKEL_INCIDENT_UPDATE,
                                             .told = true,
                                             .text = hk_string("text"),
                                             .about = hk_string("{}"),
                                             .sensors = { "a\0b", 4 } };
  for (uint64_t i = 1; i <= 4; i++)
    assert_int_equal(append(e, i), i);
  assert_int_equal(commit(e), 0);
  expect(e, 1, true, "E1 E2 E3 | E4 | "); /* without settling */
  hk_eventlog_settle(e, 0);
  expect(e, 1, true, "");
  settle(e, 4, 2, (const struct hk_settled_event[]){ { 1, 7 }, { 4, 8 } }, 2);
  assert_int_equal(hk_eventlog_append_incident(e, &change), 6);
  assert_int_equal(append(e, 7), 7);
  assert_int_equal(commit(e), 0);
  expect(e, 1, true, "E1=7 E2 | ");
  expect(e, 1, false, "E1=7 E2 E3 | E4=8 S5:2 I6:7 | E7 | ");
  assert_int_equal(count_from(e, 7, NULL), 1);
  settle_section(e, "hall", 7, 7, (const struct hk_settled_event[]){ { 3, 7 } }, 1);
  assert_int_equal(hk_eventlog_append_operation(e, &operation), 9);
  assert_int_equal(commit(e), 0);
  for (int run = 0; run < 2; run++) {
    expect(e, 1, true, "E1=7 E2 E3=7 | E4=8 S5:2 I6:7 | E7 S8:1 O9 | "); /* an incident ends a visit */
    expect(e, 6, true, "I6:7 | E7 S8:1 O9 | ");
    hk_eventlog_free(e);
    e = open_log(&p);
    hk_eventlog_settle(e, 0);
  }
  hk_eventlog_free(e);
  tear_down(&p);
}

/* Records of [incidents NAME] have its name; those of [incidents] are the bytes that they were before there were names. */
static void test_sections(void **state)
{
  (void)state;
  const struct hk_settled_event of[] = { { 2, 7 }, { 5, 8 } };
  struct hk_logged_settled settled = { 9, 5, 77, 8, 6, 2.5, 11, 2, (const uint8_t *)of, hk_string("hall") }, s;
  struct hk_logged_incident change = { .id = 7,
                                       .kind = HANKEL_INCIDENT_TOLD,
                                       .section = hk_string("hall"),
                                       .text = hk_string("text"),
                                       .about = hk_string("{}"),
                                       .sensors = { "a\0b", 4 } },
                            i;
  uint8_t bytes[256];
  hk_logged_settled_write(&settled, bytes);
  assert_int_equal(hk_logged_settled_size(&settled), 56 + 2 * 16 + 8);
  assert_true(hk_logged_settled_read(bytes, 56 + 2 * 16 + 8, &s));
  assert_int_equal(s.section.length, 4);
  assert_memory_equal(s.section.data, "hall", 4);
  assert_int_equal(hk_settled_at(&s, 1).incident, 8);
  bytes[56 + 2 * 16 + 5] = 1; /* in the padding */
  assert_false(hk_logged_settled_read(bytes, 56 + 2 * 16 + 8, &s));
  bytes[56 + 2 * 16] = bytes[56 + 2 * 16 + 5] = 0; /* no name */
  assert_false(hk_logged_settled_read(bytes, 56 + 2 * 16 + 8, &s));
  hk_logged_incident_write(&change, bytes);
  assert_int_equal(hk_logged_incident_size(&change), 80 + 4 + 2 + 4 + 4);
  assert_true(hk_logged_incident_read(bytes, 94, &i));
  assert_memory_equal(i.sensors.data, "a\0b", 4);
  assert_int_equal(i.section.length, 4);
  assert_memory_equal(i.section.data, "hall", 4);
  assert_false(hk_logged_incident_read(bytes, 93, &i));
  settled.section = change.section = hk_string("");
  assert_int_equal(hk_logged_settled_size(&settled), 56 + 2 * 16);
  hk_logged_incident_write(&change, bytes);
  assert_int_equal(hk_logged_incident_size(&change), 90);
  assert_memory_equal(bytes + 72, "\1\0\0\0\0\0\0\0", 8);
  assert_true(hk_logged_incident_read(bytes, 90, &i) && i.section.length == 0);
}

/* A payload with any byte changed is refused, or read within its bounds. */
static void test_payloads(void **state)
{
  (void)state;
  const struct hk_settled_event of[] = { { 2, 7 }, { 5, 8 } };
  const struct hk_logged_settled settled = { 9, 5, 77, 8, 6, 2.5, 11, 2, (const uint8_t *)of, hk_string("") };
  const struct hk_logged_incident change = {
    .id = 7, .kind = HANKEL_INCIDENT_TOLD, .text = hk_string("text"), .about = hk_string("{}"), .sensors = { "a\0b", 4 }
  };
  const size_t sizes[] = { hk_logged_settled_size(&settled), hk_logged_incident_size(&change),
                           hk_logged_operation_size(&operation) };
  for (uint32_t type = 0; type < 3; type++) {
    static const uint32_t types[] = { HK_RECORD_SETTLED, HK_RECORD_INCIDENT, HK_RECORD_OPERATION };
    const size_t size = sizes[type];
    uint8_t *bytes = malloc(size);
    struct hk_logged_settled s;
    struct hk_logged_incident i;
    struct hk_logged_operation o;
    assert_non_null(bytes);
    for (size_t at = 0; at < size; at++) {
      for (int bit = 0; bit < 8; bit++) {
        if (type == 0)
          hk_logged_settled_write(&settled, bytes);
        else if (type == 1)
          hk_logged_incident_write(&change, bytes);
        else
          hk_logged_operation_write(&operation, bytes);
        assert_true(hk_log_record_valid(types[type], bytes, size));
        bytes[at] ^= (uint8_t)(1 << bit);
        if (type == 0 && hk_logged_settled_read(bytes, size, &s))
          assert_true(s.n == 2 && s.events + 32 == bytes + size && s.upto <= s.seen);
        if (type == 1 && hk_logged_incident_read(bytes, size, &i))
          assert_true(i.sensors.data + i.sensors.length == (const char *)bytes + size && i.kind >= 1 && i.kind <= 8);
        if (type == 2 && hk_logged_operation_read(bytes, size, &o))
          assert_true(o.text.data + o.text.length == (const char *)bytes + size && o.kind >= 1 && o.kind <= 4);
      }
    }
    for (size_t less = 0; less < size; less++)
      assert_false(hk_log_record_valid(types[type], bytes, less));
    assert_false(hk_log_record_valid(HK_RECORD_OPERATION + 1, bytes, size));
    free(bytes);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_incidents),
    cmocka_unit_test(test_payloads),
    cmocka_unit_test(test_sections),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
