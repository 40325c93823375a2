/* Messages with results: every layout of scores and of the details of events. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/frames.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Series of times, and the layout that they are written in. */
static const struct layout {
  int64_t first, step; /* of times that are even but for the last, */
  int64_t last;        /* which is this much later than even */
  uint8_t kind;
  int64_t unit; /* STEPS */
} layouts[] = {
  { 5, 0, 0, HK_TIME_ONE, 0 },
  { INT64_MIN, 0, 0, HK_TIME_ONE, 0 },
  { -7, 1000, 0, HK_TIME_EVEN, 0 },
  { 1, -3, 0, HK_TIME_EVEN, 0 },
  { INT64_MAX, -1, 0, HK_TIME_EVEN, 0 },
  { 100, 1, 1, HK_TIME_STEPS, 1 },
  { 1700000000000000000, 1000, -500000, HK_TIME_STEPS, 1 },
  { 1700000000000000000, 0, 2147483647, HK_TIME_STEPS, 1 },
  { 1700000000000000000, 0, -2147483648, HK_TIME_STEPS, 1 },
  { 1700000000000000000, 0, 2147483648, HK_TIME_STEPS, 1 }, /* not near the first, and not over 2^32 */
  { 1700000000000000000, 0, 4294967295, HK_TIME_STEPS, 1 },
  { 1700000000000000000, 0, 4294967296, HK_TIME_EACH, 0 },
  { 1700000000000000000, 0, 4294968000, HK_TIME_STEPS, 1000 },
  { -50, 2000, 10000000000000, HK_TIME_EACH, 0 }, /* micro do not reach, and milli do not divide */
  { -50, 2000000, 10000000000000, HK_TIME_STEPS, 1000000 },
  { 9, 1000000000, 10000000000000000, HK_TIME_STEPS, 1000000000 },
  { 9, 1000000000, 10000000000000001, HK_TIME_EACH, 0 },
  { 9, 1, 4294967296000000000, HK_TIME_EACH, 0 },
  { INT64_MIN, 1, 1, HK_TIME_EACH, 0 }, /* a base two seconds before is no time */
  { INT64_MAX - 2000, 1, 1, HK_TIME_EACH, 0 },
};

/* No column may be missing or too long. */
static void cut_scores(const struct hk_frame *f)
{
  struct hk_scores s;
  for (uint32_t cut = 1; cut < 9; cut++) {
    struct hk_frame wrong = *f;
    wrong.length = f->length - cut;
    assert_int_equal(hk_scores_read(&wrong, &s), HANKEL_BAD_PAYLOAD);
    wrong.length = f->length + cut;
    assert_int_equal(hk_scores_read(&wrong, &s), HANKEL_BAD_PAYLOAD);
  }
}

/* Columns of n scores; values and states may be NULL. */
struct columns {
  const int64_t *times;
  const double *values;
  const uint32_t *handles;
  const float *scores;
  const uint8_t *states;
};

/* Writes columns and reads them again. n > 2: the layout is this one; two times are always even. */
static void write_and_read(const struct columns *c, uint32_t n, const struct layout *layout)
{
  enum { ROOM = 40000 };
  static uint8_t bytes[ROOM];
  static int64_t got[ROOM / 8];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_frame f;
  struct hk_scores s;
  const bool all_ok = c->states[n - 1] == HANKEL_OK;
  assert_int_equal(hk_scores_write(&w, n, c->times, c->values, NULL, c->handles, c->scores, c->states), 0);
  assert_int_equal(hk_frame_read(bytes, w.size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
  assert_int_equal(hk_scores_read(&f, &s), 0);
  assert_int_equal(s.n, n);
  assert_true(w.size <= hk_scores_most(n, c->values != NULL));
  if (n > 2) {
    assert_int_equal(s.time_kind, layout->kind);
    assert_true(s.time_kind != HK_TIME_STEPS || s.step == layout->unit);
  }
  memset(got, 0, sizeof got);
  hk_scores_times(&s, got);
  assert_memory_equal(got, c->times, n * sizeof *got);
  assert_memory_equal(s.handles, c->handles, n * sizeof *c->handles);
  assert_memory_equal(s.scores, c->scores, n * sizeof *c->scores);
  assert_true((s.values != NULL) == (c->values != NULL) && (s.states != NULL) == !all_ok);
  if (s.values)
    assert_memory_equal(s.values, c->values, n * sizeof *c->values);
  if (s.states)
    assert_memory_equal(s.states, c->states, n);
  cut_scores(&f);
}

/* Every layout of SCORES: times of each kind, with values and without, with all states ok and not. */
static void scores_in_every_layout(void **state)
{
  (void)state;
  enum { MOST = 1000 };
  static uint8_t states[MOST];
  int64_t time[MOST];
  double value[MOST];
  uint32_t handle[MOST];
  float score[MOST];
  for (uint32_t i = 0; i < MOST; i++) {
    value[i] = i / 3.0;
    handle[i] = i * 7919;
    score[i] = (float)i / MOST;
    states[i] = HANKEL_OK;
  }
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
    for (uint32_t n = 1; n <= MOST; n = n < 4 ? n + 1 : n + 83)
      for (int with = 0; with < 4; with++) {
        const struct columns c = { time, with & 1 ? value : NULL, handle, score, states };
        for (uint32_t i = 0; i < n; i++)
          time[i] = layouts[l].first + (int64_t)i * layouts[l].step;
        if (n > 2)
          time[n - 1] += layouts[l].last;
        states[n - 1] = with & 2 ? HANKEL_GAP : HANKEL_OK;
        write_and_read(&c, n, &layouts[l]);
        states[n - 1] = HANKEL_OK;
      }
}

/* with: HK_EVENTS_*: the parts that were written. */
static void same_event(const struct hk_event_message *e, const struct hk_event_message *x, uint32_t with)
{
  assert_true(e->handle == x->handle && e->kind == x->kind && e->time == x->time);
  assert_true(e->position == (with & HK_EVENTS_PLACED ? x->position : 0));
  assert_true(e->incident == (with & HK_EVENTS_GROUPED ? x->incident : 0));
  const struct hk_event_message none = { .by = text("") }, *told = with & HK_EVENTS_DETAILED ? x : &none;
  assert_true(e->severity == hk_severity_told(told->severity) && e->margin == told->margin &&
              e->spread_before == told->spread_before && e->spread_after == told->spread_after && e->channel == told->channel &&
              e->marks == told->marks && e->held == told->held && e->similar == told->similar && e->likeness == told->likeness &&
              e->similar_from == told->similar_from && e->by.length == (told->by.data ? told->by.length : 0) &&
              memcmp(e->by.data, told->by.data, e->by.length) == 0);
  const struct hankel_novelty nothing = { 0 }, *a = &e->novelty, *b = with & HK_EVENTS_NOTED ? &x->novelty : &nothing;
  assert_true(a->kind == b->kind && a->reach == b->reach && a->compared == b->compared && a->nearest == b->nearest &&
              a->oldest == b->oldest && a->low == b->low && a->high == b->high);
}

static void details_of_events(void **state)
{
  (void)state;
  uint8_t data[1024];
  const struct hk_event_message events[2] = {
    { 7,
      1,
      HANKEL_RAISED,
      0.75f,
      30,
      10,
      20,
      -1.5,
      2.5,
      5,
      6,
      0.5f,
      1.5f,
      1.25f,
      2.25f,
      HANKEL_CHANGE,
      HANKEL_MAINTENANCE,
      3,
      4,
      0.75f,
      -9,
      text(""),
      { HANKEL_NOVELTY_CONTEXT, 258, 66051, 11, -12, -13.5, 14.5 },
      77,
      { 0 } },
    { 8, 2, HANKEL_ACKNOWLEDGED, .time = 40, .position = 9, .by = text("\xc3\xa9va at the desk") },
  };
  for (uint32_t with = 0; with <= 15; with++) {
    struct hk_writer w = HK_WRITER(data, sizeof data);
    struct hk_list list;
    struct hk_event_message e;
    assert_int_equal(hk_events_write(&w, 2, events, with), 0);
    struct hk_frame f = whole(data, w.size);
    assert_int_equal(hk_events_read(&f, &list), 0);
    for (size_t i = 0; i < 2; i++) {
      hk_event_next(&list, &e);
      same_event(&e, &events[i], with);
    }
    for (struct hk_frame part = f; f.length - part.length < 59;) { /* no shorter payload is one, nor a longer one */
      part.length--;
      assert_int_equal(hk_events_read(&part, &list), HANKEL_BAD_PAYLOAD);
    }
    const struct hk_event_message talker = { .by = { (const char *)data, HK_WHO_MAX + 1 } };
    const size_t before = w.size;
    assert_int_equal(hk_events_write(&w, 1, &talker, with), -ENOSPC);
    assert_int_equal(w.size, before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scores_in_every_layout),
    cmocka_unit_test(details_of_events),
  };
  return cmocka_run_group_tests_name("result_message", tests, NULL, NULL);
}
