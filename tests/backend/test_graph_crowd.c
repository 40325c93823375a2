/* Conformance: crowds of neighbour graphs. If sensors of algorithm = graph are many more than a GPU's warps, a warp takes
 * several of them together, each at its own point (gpu/graph/graph.cu); the results of a sensor must not depend on this. Each of
 * some signals ("stories") is sent by one sensor alone, then by crowds in which many sensors send every signal, each at its own
 * point, in batches of different cuts. Scores, states and events must be the same bit for bit, and states and events those of the
 * CPU backend.
 *
 * Arguments: BACKEND [brief|sanitize]: brief has fewer sensors; sanitize, for sanitizers that slow every launch and point down a
 * hundred times, has stories of a few points around a moment of interest, of sensors that the CPU backend has filled. */
#include "tests/backend/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Small ones: a graph is some KB, and alerts are cleared soon. */
static const char *const detector_texts[] = {
  "algorithm=graph,window=8,resident=88,shortest=2,alert=0.2,interval=1s",
  "algorithm=graph,window=8,resident=96,shortest=2,level=0.1,neighbours=5,alert=0.2,interval=1s",
  "algorithm=graph,window=9,resident=110,shortest=2,roughness=0.85,neighbours=2,stride=1,hold=2,alert=0.2,fill=linear,max_fill=5",
  "algorithm=graph,window=auto,resident=120,shortest=2,alert=0.2,interval=1s",
  "algorithm=graph,window=10,resident=130,shortest=3,neighbours=1,cooldown=30,alert=0.2,interval=1s",
};
#define DETECTORS (sizeof detector_texts / sizeof *detector_texts)

/* Signals in which rounding does not decide between subsequences. */
static const enum signal signals[] = {
  SIGNAL_FREQUENCY, SIGNAL_HOLES, SIGNAL_STEP,  SIGNAL_LATE, SIGNAL_SINE,
  SIGNAL_SICK,      SIGNAL_AR,    SIGNAL_NOISE, SIGNAL_RAMP, SIGNAL_OFFSET,
};
#define KINDS (sizeof signals / sizeof *signals)
/* Ways in which each kind of signal is told. */
enum way {
  PLAIN,
  HOLE,  /* a long one, behind which all starts over */
  MOVED, /* the first value is far from all others */
  NANS,
  WAYS,
};
#define STORIES (WAYS * KINDS * DETECTORS)
#define LEAST 240 /* points of a story, */
#define MOST 420  /* and most */
#define REST 6    /* points of a story, sanitize */

#define AT_ONCE 16 /* most points of a sensor in a round: a batch has room for some rounds */
#define FEW 90     /* points of a batch so small that warps take a sensor each: see HK_CUDA_SMALL_BATCH */
#define STEP 7919  /* prime, and no divisor of any number of sensors */

static const struct backend_kind *kind;
static enum form form;
static struct hk_detector detectors[DETECTORS];
static struct series stories[STORIES];
static struct results expected[STORIES]; /* of a sensor alone */
static struct hk_backend *filled;        /* sanitize: sensors as they are before their stories; NULL: there is nothing before */

static enum way way_of(uint32_t story)
{
  return story / DETECTORS / KINDS;
}

static struct series story_new(uint32_t story)
{
  uint64_t random = story;
  const uint32_t n = LEAST + (uint32_t)(test_random(&random) % (MOST - LEAST + 1));
  struct series s = series_new(signals[story / DETECTORS % KINDS], story, n);
  if (way_of(story) == MOVED)
    s.value[0] += 400;
  for (uint32_t i = 0; i < n; i++) {
    if (way_of(story) == HOLE && i >= n / 4 * 3)
      s.time[i] += 1000ll * TEST_INTERVAL;
    if (way_of(story) == NANS && i >= n / 4 && i < n / 4 + 3)
      s.value[i] = (double)NAN;
  }
  return s;
}

/* Binds a slot to a sensor that is to tell a story. */
static void teller_add(struct hk_backend *b, uint32_t slot)
{
  sensor_add(b, slot, slot % STORIES % DETECTORS, slot);
  if (filled)
    sensor_copy(filled, slot % STORIES, b, slot);
}

/* A backend's results for each signal, sent by one sensor alone. */
static void tell_alone(const struct backend_kind *how, struct results *out)
{
  struct hk_backend *b = backend_open(how, detectors, DETECTORS, STORIES);
  uint32_t slots[MOST];
  for (uint32_t i = 0; i < STORIES; i++) {
    const struct points p = { stories[i].n, STORIES, slots, stories[i].time, stories[i].value };
    for (uint32_t k = 0; k < p.n; k++)
      slots[k] = i;
    out[i] = results_new(p.n);
    teller_add(b, i);
    feed(b, &p, 0, p.n, HK_BATCH_PER_SENSOR, 0, &out[i]);
  }
  b->ops->close(b);
}

/* The interesting place of a signal, as the number of a point. */
static uint32_t moment(uint32_t story, const struct results *r)
{
  const struct hk_detector *d = &detectors[story % DETECTORS];
  const enum way way = way_of(story);
  if (way == PLAIN && d->search)
    return d->resident; /* the window is found */
  if (way == MOVED && d->level > 0)
    return 2 * hk_detector_span(d); /* the reference moves, and all levels with it */
  if (way == HOLE)
    return stories[story].n / 4 * 3;
  return r->n_events > 0 ? r->event[story / DETECTORS % r->n_events].index : stories[story].n / 2;
}

static int set_up(void **state)
{
  (void)state;
  for (uint32_t i = 0; i < DETECTORS; i++)
    detectors[i] = detector_parsed(detector_texts[i]);
  for (uint32_t i = 0; i < STORIES; i++)
    stories[i] = story_new(i);
  if (form == SANITIZE) {
    tell_alone(backend_kind("cpu"), expected);
    for (uint32_t i = 0; i < STORIES; i++) {
      stories[i].n = moment(i, &expected[i]) + REST / 2;
      assert_true(stories[i].n <= MOST);
      results_free(&expected[i]);
    }
    filled = backend_filled(detectors, DETECTORS, stories, STORIES, REST);
  }
  tell_alone(kind, expected);
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  for (uint32_t i = 0; i < STORIES; i++) {
    series_free(&stories[i]);
    results_free(&expected[i]);
  }
  if (filled)
    filled->ops->close(filled);
  return 0;
}

/* Checks that the signals have events, and that not all sensors do the same. */
static void stories_differ(void **state)
{
  (void)state;
  uint32_t kinds[HK_EVENT_CLEARED + 1] = { 0 }, states[HK_STATE_REJECTED + 1] = { 0 }, quiet = 0, scores[DETECTORS] = { 0 };
  for (uint32_t i = 0; i < STORIES; i++) {
    const struct results *r = &expected[i];
    quiet += r->n_events == 0;
    for (uint32_t e = 0; e < r->n_events; e++) {
      assert_in_range(r->event[e].kind, HK_EVENT_RAISED, HK_EVENT_CLEARED);
      kinds[r->event[e].kind]++;
    }
    for (uint32_t k = 0; k < stories[i].n; k++) {
      assert_in_range(r->state[k], HK_STATE_WARMING, HK_STATE_REJECTED);
      states[r->state[k]]++;
      scores[i % DETECTORS] += !isnan(r->score[k]);
    }
  }
  print_message("# %u raised, %u corrected, %u cleared; %u of %u stories have no alert\n", kinds[HK_EVENT_RAISED],
                kinds[HK_EVENT_CORRECTED], kinds[HK_EVENT_CLEARED], quiet, (uint32_t)STORIES);
  const bool whole = form != SANITIZE;
  assert_true(kinds[HK_EVENT_RAISED] >= (whole ? 100 : 30) && kinds[HK_EVENT_CLEARED] >= (whole ? 100 : 30));
  assert_true(kinds[HK_EVENT_CORRECTED] >= (whole ? 50 : 10) && quiet >= 50);
  for (uint32_t i = 0; i <= HK_STATE_REJECTED; i++)
    assert_true(states[i] >= (whole ? 200 : 3));
  for (uint32_t i = 0; i < DETECTORS; i++)
    assert_true(scores[i] >= (whole ? 2000 : 40));
}

/* Numbers of the CPU's that are logarithms and powers of another library may differ in the last bits. */
static bool near(double a, double b)
{
  return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

static void the_cpu_says_the_same(void **state)
{
  (void)state;
  static struct results want[STORIES];
  tell_alone(backend_kind("cpu"), want);
  for (uint32_t i = 0; i < STORIES; i++) {
    const struct results *r = &expected[i];
    for (uint32_t k = 0; k < stories[i].n; k++)
      if (r->state[k] != want[i].state[k])
        fail_msg("story %u, point %u: state %u, the CPU's %u", i, k, r->state[k], want[i].state[k]);
    assert_int_equal(r->n_events, want[i].n_events);
    for (uint32_t e = 0; e < r->n_events; e++) {
      const struct hk_event *x = &r->event[e], *y = &want[i].event[e];
      if (x->index != y->index || x->kind != y->kind || x->number != y->number || x->channel != y->channel ||
          x->time != y->time || x->from != y->from || x->instant != y->instant || !near(x->score, y->score) ||
          !near(x->before, y->before) || !near(x->after, y->after))
        fail_msg("story %u, event %u: point %u kind %u, the CPU's point %u kind %u, or what goes with it", i, e, x->index,
                 x->kind, y->index, y->kind);
    }
    results_free(&want[i]);
  }
}

/* The points of a crowd, in rounds: each brings most sensors a point, some of them none and some many. So a batch of a round or
 * two has points of nearly all, a batch of more has them interleaved, and tellers of one story are soon apart. */
static struct points crowd_points(uint32_t sensors, uint64_t random)
{
  uint32_t total = 0, *at = calloc(sensors, sizeof *at);
  for (uint32_t i = 0; i < sensors; i++)
    total += stories[i % STORIES].n;
  struct points p = { 0, sensors, calloc(total, sizeof *p.slot), calloc(total, sizeof *p.time), calloc(total, sizeof *p.value) };
  assert_true(at && p.slot && p.time && p.value);
  while (p.n < total) {
    const uint64_t first = test_random(&random) % sensors;
    for (uint32_t i = 0; i < sensors; i++) {
      const uint32_t slot = (uint32_t)((first + (uint64_t)i * STEP) % sensors), lot = (uint32_t)(test_random(&random) % 8);
      const struct series *s = &stories[slot % STORIES];
      uint32_t most = lot < 2 ? 0 : lot < 7 ? 1 : 1 + (uint32_t)(test_random(&random) % AT_ONCE);
      for (; most > 0 && at[slot] < s->n; most--, at[slot]++, p.n++) {
        p.slot[p.n] = slot;
        p.time[p.n] = s->time[at[slot]];
        p.value[p.n] = s->value[at[slot]];
      }
    }
  }
  free(at);
  return p;
}

/* Every sensor has the results of one that sends its signal alone. */
static void check_crowd(const struct points *p, const struct results *got)
{
  uint32_t *at = calloc(p->slots, sizeof *at), *events = calloc(p->slots, sizeof *events), event = 0;
  assert_true(at && events);
  for (uint32_t i = 0; i < p->n; i++) {
    const uint32_t slot = p->slot[i], k = at[slot]++;
    const struct results *want = &expected[slot % STORIES];
    if (got->state[i] != want->state[k] || memcmp(&got->score[i], &want->score[k], sizeof(float)) != 0)
      fail_msg("slot %u of %u, story %u, point %u: state %u score %.9g, and alone state %u score %.9g", slot, p->slots,
               (uint32_t)(slot % STORIES), k, got->state[i], (double)got->score[i], want->state[k], (double)want->score[k]);
    for (; event < got->n_events && got->event[event].index == i; event++) {
      const uint32_t e = events[slot]++;
      if (e >= want->n_events || want->event[e].index != k || !event_same(&got->event[event], &want->event[e]))
        fail_msg("slot %u of %u, story %u, point %u: event %u, of kind %u, is not that of a sensor alone", slot, p->slots,
                 (uint32_t)(slot % STORIES), k, e, got->event[event].kind);
    }
  }
  assert_int_equal(event, got->n_events);
  for (uint32_t i = 0; i < p->slots; i++)
    assert_int_equal(events[i], expected[i % STORIES].n_events);
  free(at);
  free(events);
}

static void crowd_tells(const struct backend_kind *how, uint32_t sensors)
{
  struct hk_backend *b = backend_open(how, detectors, DETECTORS, sensors);
  for (uint32_t i = 0; i < sensors; i++)
    teller_add(b, i);
  struct points p = crowd_points(sensors, sensors);
  struct results got = results_new(p.n);
  const uint32_t half = p.n / 2, tenth = p.n / 10, few = half + (tenth < 20 * FEW ? tenth : 20 * FEW), most = p.n - tenth;
  feed(b, &p, 0, half, 3 * sensors, 0, &got);
  feed(b, &p, half, few, FEW, 0, &got);
  feed(b, &p, few, most, 2 * sensors, 1, &got);
  feed(b, &p, most, p.n, sensors, 0, &got);
  b->ops->close(b);
  check_crowd(&p, &got);
  points_free(&p);
  results_free(&got);
}

/* On a GPU, more than the largest has room for side by side: some 800 blocks of 4 warps, 8 sensors to each. */
static void crowds_do_not_show(void **state)
{
  (void)state;
  crowd_tells(kind, strcmp(kind->name, "cuda") == 0 ? 32000 : 1000);
}

/* So few blocks that a warp has many bundles of sensors, one after the other. */
static void few_blocks_do_not_show(void **state)
{
  (void)state;
  const struct backend_kind how = { kind->name, kind->open, 3, form == SANITIZE ? 1 : 3 };
  crowd_tells(&how, form == WHOLE && strcmp(kind->name, "cuda") == 0 ? 2000 : STORIES);
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  const struct CMUnitTest all[] = {
    cmocka_unit_test(stories_differ),
    cmocka_unit_test(few_blocks_do_not_show),
    cmocka_unit_test(crowds_do_not_show),
    cmocka_unit_test(the_cpu_says_the_same),
  };
  struct CMUnitTest tests[sizeof all / sizeof *all];
  size_t n = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const bool large = all[i].test_func == crowds_do_not_show, other = all[i].test_func == the_cpu_says_the_same;
    if ((!large || form == WHOLE) && (!other || strcmp(kind->name, "cuda") == 0))
      tests[n++] = all[i];
  }
  return _cmocka_run_group_tests("graph_crowd", tests, n, set_up, tear_down);
}
