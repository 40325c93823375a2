/* Ticks: in whatever order events come, complete ticks are passed on in one order, and each event gets its incident. */
#include "daemon/incidents/incident_members.h"
#include "daemon/incidents/ticks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE INT64_C(60000000000)

struct heard {
  struct hk_incidents *all;
  struct hk_ticks *ticks;
  char text[512];
  size_t used;
};

static void decided(void *arg, int64_t time, enum hk_incident_decision d, const struct hk_incident *i,
                    const struct hk_incident *into, double threshold)
{
  (void)arg, (void)time, (void)d, (void)i, (void)into, (void)threshold;
}

static void joined(void *arg, uint64_t position, uint64_t incident)
{
  struct heard *h = arg;
  h->used += (size_t)snprintf(h->text + h->used, sizeof h->text - h->used, "%llu=%llu ", (unsigned long long)position,
                              (unsigned long long)incident);
}

static struct heard *begin(void)
{
  struct heard *h = calloc(1, sizeof *h);
  assert_non_null(h);
  assert_int_equal(hk_incidents_new(&h->all, &(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE }, decided, h), 0);
  for (int i = 0; i < 300; i++) { /* a fleet in which two alerts at one time mean nothing */
    char name[16];
    (void)snprintf(name, sizeof name, "other %d", i);
    assert_int_equal(hk_incidents_learn(h->all, hk_string(name), NULL, 0), 0);
  }
  assert_int_equal(hk_ticks_new(&h->ticks, h->all, joined, h), 0);
  return h;
}

static void end(struct heard *h)
{
  hk_ticks_free(h->ticks);
  hk_incidents_free(h->all);
  free(h);
}

static void event(struct heard *h, uint64_t position, int64_t minute, const char *name, uint64_t alert, bool ends)
{
  const struct hk_tick_event e = { .position = position,
                                   .alert = alert,
                                   .time = minute * MINUTE,
                                   .severity = 1.6,
                                   .ends = ends,
                                   .name = hk_string(name),
                                   .what = hk_string(ends             ? ""
                                                     : name[0] == 'y' ? "it fell"
                                                                      : "it rose") };
  assert_int_equal(hk_ticks_event(h->ticks, &e), 0);
}

static void expect(struct heard *h, int64_t minute, uint64_t seen, const char *expected)
{
  h->used = 0;
  h->text[0] = 0;
  assert_int_equal(hk_ticks_reach(h->ticks, minute * MINUTE, seen), 0);
  assert_string_equal(h->text, expected);
}

static void test_order(void **state)
{
  (void)state;
  struct heard *h = begin();
  event(h, 1, 5, "x", 11, false);
  event(h, 2, 4, "y", 12, false);
  event(h, 3, 4, "a", 13, false);
  event(h, 4, 6, "b", 14, false);
  assert_int_equal(hk_ticks_newest(h->ticks), 6 * MINUTE);
  assert_int_equal(hk_ticks_first(h->ticks), 1);
  expect(h, 4, UINT64_MAX, ""); /* it may still go on */
  expect(h, 6, UINT64_MAX, "3=1 2=2 1=3 ");
  assert_int_equal(hk_ticks_waiting(h->ticks), 1);
  expect(h, 7, 3, ""); /* it was unknown then */
  expect(h, 7, 4, "4=4 ");
  assert_int_equal(hk_ticks_first(h->ticks), UINT64_MAX);
  end(h);
}

static const char *said(const struct heard *h, const char *name)
{
  const struct hk_incident *i = hk_incidents_open(h->all, hk_string(name), 0);
  assert_non_null(i);
  return hk_incident_strongest(i)->what;
}

/* An incident has the details of its most severe alert, also if this waited in an image meanwhile. */
static void test_said(void **state)
{
  (void)state;
  struct heard *h = begin(), *again = begin();
  struct hk_buffer image = { 0 };
  event(h, 1, 1, "x", 11, false);
  event(h, 2, 1, "y", 12, false);
  hk_ticks_write(h->ticks, &image);
  assert_int_equal(hk_ticks_read(again->ticks, image.data, image.size), 0);
  expect(again, 2, UINT64_MAX, "1=1 2=2 ");
  assert_string_equal(said(again, "x"), "it rose");
  assert_string_equal(said(again, "y"), "it fell");
  assert_int_equal(hk_incidents_event(again->all, 2 * MINUTE, hk_string("x"), 0, 1.6, 0), 0);
  hk_incidents_said(again->all, hk_string("no graver"));
  assert_string_equal(said(again, "x"), "it rose");
  assert_int_equal(hk_incidents_event(again->all, 2 * MINUTE, hk_string("x"), 0, 1.7, 0), 0);
  assert_null(said(again, "x"));
  hk_incidents_said(again->all, hk_string("graver"));
  assert_string_equal(said(again, "x"), "graver");
  hk_buffer_free(&image);
  end(again);
  end(h);
}

/* The end of an alert belongs to the incident of its beginning, whatever events came since. */
static void test_ends(void **state)
{
  (void)state;
  struct heard *h = begin();
  event(h, 1, 1, "x", 11, false);
  event(h, 2, 1, "x", 11, true); /* both of one point */
  event(h, 3, 2, "y", 12, false);
  event(h, 4, 900, "y", 13, false); /* another incident */
  event(h, 5, 901, "y", 12, true);
  event(h, 6, 902, "y", 12, true); /* it is over */
  event(h, 7, 902, "z", 99, true); /* it is unknown */
  expect(h, 1000, UINT64_MAX, "1=1 2=1 3=2 4=3 5=2 ");
  event(h, 8, 1001, "y", 13, true);
  hk_ticks_merged(h->ticks, (const struct hk_incident_merge[]){ { 2, 1 }, { 3, 2 } }, 2);
  expect(h, 1002, UINT64_MAX, "8=1 ");
  end(h);
}

static void test_many_alerts(void **state)
{
  (void)state;
  struct hk_alert_incidents a = { 0 }, b = { 0 };
  struct hk_buffer image = { 0 };
  for (uint64_t i = 1; i <= 1000; i++)
    hk_alert_incidents_put(&a, i << 32 | 1, i + 5);
  for (uint64_t i = 1; i <= 1000; i += 3)
    assert_int_equal(hk_alert_incidents_take(&a, i << 32 | 1), i + 5);
  hk_alert_incidents_write(&a, &image);
  assert_int_equal(hk_alert_incidents_read(&b, image.data, image.size), image.size);
  for (uint64_t i = 1; i <= 1000; i++)
    assert_int_equal(hk_alert_incidents_take(&b, i << 32 | 1), i % 3 == 1 ? 0 : i + 5);
  assert_int_equal(b.n, 0);
  hk_buffer_free(&image);
  hk_alert_incidents_free(&a);
  hk_alert_incidents_free(&b);
}

/* Events that were judged elsewhere are dropped; later ones stay, in whatever order they came. */
static void test_drop(void **state)
{
  (void)state;
  struct heard *h = begin();
  event(h, 5, 3, "x", 0, false);
  event(h, 2, 1, "y", 0, false);
  event(h, 4, 9, "z", 0, false);
  event(h, 7, 8, "w", 0, false);
  hk_ticks_drop(h->ticks, 4);
  assert_int_equal(hk_ticks_waiting(h->ticks), 2);
  assert_int_equal(hk_ticks_first(h->ticks), 5);
  assert_true(hk_ticks_newest(h->ticks) == 8 * MINUTE);
  expect(h, 3, 10, "");
  expect(h, 4, 10, "5=1 ");
  expect(h, 20, 10, "7=2 ");
  hk_ticks_drop(h->ticks, 100);
  event(h, 101, 30, "x", 0, false);
  expect(h, 31, 200, "101=1 ");
  end(h);
}

static bool is_even(void *arg, uint64_t position)
{
  (void)arg;
  return position % 2 == 0;
}

/* Events that others are to judge are judged there, with their names, and only there. */
static void test_pass(void **state)
{
  (void)state;
  struct heard *from = begin(), *to = begin();
  event(from, 4, 1, "x", 0, false);
  event(from, 5, 3, "y", 0, false);
  event(from, 6, 5, "z", 0, false);
  event(to, 3, 2, "w", 0, false);
  assert_true(hk_ticks_pass(from->ticks, to->ticks, is_even, NULL));
  assert_int_equal(hk_ticks_waiting(from->ticks), 1);
  assert_int_equal(hk_ticks_first(from->ticks), 5);
  assert_int_equal(hk_ticks_waiting(to->ticks), 3);
  assert_true(hk_ticks_newest(to->ticks) == 5 * MINUTE);
  expect(from, 10, 10, "5=1 ");
  expect(to, 2, 10, "4=1 ");
  assert_non_null(hk_incidents_open(to->all, hk_string("x"), 0));
  expect(to, 10, 10, "3=2 6=3 ");
  end(from);
  end(to);
}

/* How far the data were when an event was logged: its incident ends a hold after that, also if it waited in an image meanwhile.
 */
static void test_late(void **state)
{
  (void)state;
  struct heard *h = begin();
  struct hk_buffer image = { 0 };
  struct hk_tick_event e = { .position = 1, .time = MINUTE, .reached = 600 * MINUTE, .severity = 3, .name = hk_string("x") };
  assert_int_equal(hk_ticks_event(h->ticks, &e), 0);
  hk_ticks_write(h->ticks, &image);
  struct heard *again = begin();
  assert_int_equal(hk_ticks_read(again->ticks, image.data, image.size), 0);
  for (int i = 0; i < 2; i++) {
    expect(i == 0 ? h : again, 600, UINT64_MAX, "1=1 ");
    assert_false(hk_incidents_expired((i == 0 ? h : again)->all, 660 * MINUTE));
    assert_true(hk_incidents_expired((i == 0 ? h : again)->all, 661 * MINUTE));
  }
  hk_buffer_free(&image);
  end(again);
  end(h);
}

/* An image with any byte changed is refused, or read as something consistent. A good one is written again with the same bytes. */
static void test_image(void **state)
{
  (void)state;
  struct heard *h = begin();
  struct hk_buffer image = { 0 };
  event(h, 1, 1, "x", 11, false);
  event(h, 2, 1, "y", 12, false);
  expect(h, 2, UINT64_MAX, "1=1 2=2 ");
  event(h, 3, 7, "one", 13, false);
  event(h, 4, 9, "x", 11, true);
  const struct hk_tick_event late = {
    .position = 5, .time = 9 * MINUTE, .reached = 99 * MINUTE, .severity = 1, .name = hk_string("y")
  };
  assert_int_equal(hk_ticks_event(h->ticks, &late), 0);
  hk_ticks_write(h->ticks, &image);
  for (size_t at = 0; at <= image.size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      struct heard *other = begin();
      char *copy = malloc(image.size);
      assert_non_null(copy);
      memcpy(copy, image.data, image.size);
      if (at < image.size)
        copy[at] = (char)(copy[at] ^ 1 << bit);
      const int status = hk_ticks_read(other->ticks, copy, image.size);
      assert_true(status == 0 || (status == -EBADMSG && at < image.size));
      if (at == image.size)
        expect(other, 10, UINT64_MAX, "3=1 4=1 ");
      else if (status == 0)
        (void)hk_ticks_finish(other->ticks);
      free(copy);
      end(other);
    }
  }
  for (size_t size = 0; size < image.size; size++) {
    struct heard *other = begin();
    (void)hk_ticks_read(other->ticks, image.data, size); /* of whole events it may be one */
    end(other);
  }
  hk_buffer_free(&image);
  end(h);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_said),
                                      cmocka_unit_test(test_ends),  cmocka_unit_test(test_many_alerts),
                                      cmocka_unit_test(test_drop),  cmocka_unit_test(test_pass),
                                      cmocka_unit_test(test_image), cmocka_unit_test(test_late) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
