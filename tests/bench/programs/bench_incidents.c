/* Measures the cost of incidents: 100,000 sensors send a point a second and raise as many alerts as the scale of severity
 * allows (2 x 10^-S of the blocks of 40 points), once with names that form a tree and once with flat names; then a tenth of
 * them raise alerts in one tick. Also checks that a budget is kept in each week, with 2,400 sensors that send a point every
 * five minutes and raise as many alerts, and more. */
#include "daemon/base/log.h"
#include "daemon/incidents/incidents.h"
#include "tests/unit/support/noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SENSORS 100000u
#define SECONDS 600u
#define SECOND INT64_C(1000000000)

static void ignore(void *arg, int64_t time, enum hk_incident_decision d, const struct hk_incident *i,
                   const struct hk_incident *into, double threshold)
{
  (void)arg, (void)time, (void)d, (void)i, (void)into, (void)threshold;
}

/* Processor time of this program in ns, which other programs on the machine hardly change. */
static int64_t spent_so_far(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

static char names[SENSORS][32];

static void event(struct hk_incidents *all, int64_t time, uint32_t s, double S)
{
  if (hk_incidents_event(all, time, hk_string(names[s]), s % 3, S, time) != 0) {
    fprintf(stderr, "bench_incidents: no room\n");
    exit(1);
  }
}

static void run(bool tree)
{
  struct hk_incidents *all;
  const double a_second = SENSORS / 40. * 2 * pow(10, -1.5);
  if (hk_incidents_new(&all, &(struct hk_incidents_rules){ .a_day = 10, .interval = SECOND }, ignore, NULL) != 0)
    exit(1);
  for (uint32_t s = 0; s < SENSORS; s++) {
    (void)snprintf(names[s], sizeof names[s], tree ? "s%u.r%u.m%u.c%u" : "%u-%u-%u-%u", s / 4096, s / 256, s / 16, s);
    if (hk_incidents_learn(all, hk_string(names[s]), NULL, 0) != 0)
      exit(1);
  }
  int64_t begin = spent_so_far();
  for (uint32_t second = 0; second < SECONDS; second++)
    for (double left = a_second; left > uniform(); left--)
      event(all, second * SECOND, (uint32_t)(SENSORS * uniform()), 1.5 - log10(uniform()));
  double spent = (double)(spent_so_far() - begin) * 1e-9;
  const struct hk_incidents_counts c = hk_incidents_count(all);
  printf("%-5s %u sensors at 1 Hz, %.0f events a second: %.2f %% of a core, %.1f us an event; %u open incidents of %u\n",
         tree ? "tree" : "flat", SENSORS, (double)c.events / SECONDS, 100 * spent / SECONDS, 1e6 * spent / (double)c.events,
         c.open, c.members);
  begin = spent_so_far();
  for (uint32_t i = 0; i < SENSORS / 10; i++)
    event(all, SECONDS * SECOND, i, 3);
  hk_incidents_reach(all, (SECONDS + 1) * SECOND);
  spent = (double)(spent_so_far() - begin) * 1e-9;
  printf("%-5s a storm of %u in one tick: %.0f ms; %llu told\n", tree ? "tree" : "flat", SENSORS / 10, 1000 * spent,
         (unsigned long long)(hk_incidents_count(all).told - c.told));
  hk_incidents_free(all);
}

#define FLEET 2400u
#define STEP (300 * SECOND)
#define STEPS 288u /* a day */
#define WEEKS 6u

/* The alerts of a kind of fleet. calm: as many as severity promises, with severities that grow by exponential steps; causes:
 * twice a day a machine of 8 sensors also raises alerts of severity 2 to 5; restless: three times as many as promised, and a
 * hundred times as many for one sensor in 50. */
enum fleet { CALM, CAUSES, RESTLESS };

static void step_of(struct hk_incidents *all, enum fleet kind, uint32_t step)
{
  const double each = 2 * pow(10, -1.5) / 40 * (kind == RESTLESS ? 3 : 1);
  for (uint32_t s = 0; s < FLEET; s++)
    if (uniform() < (kind == RESTLESS && s % 50 == 7 ? 33 * each : each))
      event(all, step * STEP, s, 1.5 - log10(uniform()));
  if (kind != CALM && step % (STEPS / 2) == 17)
    for (uint32_t machine = (uint32_t)(FLEET / 8 * uniform()), c = 0; c < 8; c++)
      event(all, step * STEP, 8 * machine + c, 2 + 3 * uniform());
}

/* Counts the messages of each week at a budget. */
static void weeks(enum fleet kind, double a_day)
{
  static const char *const kinds[] = { "calm", "causes", "restless" };
  struct hk_incidents *all;
  if (hk_incidents_new(&all, &(struct hk_incidents_rules){ .a_day = a_day, .interval = STEP }, ignore, NULL) != 0)
    exit(1);
  for (uint32_t s = 0; s < FLEET; s++) {
    (void)snprintf(names[s], sizeof names[s], "s%u.r%u.m%u.c%u", s / 800, s / 80, s / 8, s);
    if (hk_incidents_learn(all, hk_string(names[s]), NULL, 0) != 0)
      exit(1);
  }
  printf("%-9s budget %3.0f/day, messages a day in each week:", kinds[kind], a_day);
  uint64_t before = 0;
  for (uint32_t step = 0; step < 7 * STEPS * WEEKS; step++) {
    step_of(all, kind, step);
    if ((step + 1) % (7 * STEPS) != 0)
      continue;
    hk_incidents_reach(all, (step + 1) * STEP);
    const uint64_t told = hk_incidents_count(all).told;
    printf(" %6.1f", (double)(told - before) / 7);
    before = told;
  }
  printf("\n");
  hk_incidents_free(all);
}

/* So many incidents are open, of sensors whose data are far behind: what a turn without an end, and an event of another time,
 * cost. */
static void late(uint32_t open)
{
  enum { TURNS = 1000 };
  const int64_t ahead = (int64_t)SENSORS * 100 * SECOND;
  struct hk_incidents *all;
  const struct hk_incidents_rules rules = { .a_day = 10, .interval = SECOND, .most_members = 2 * SENSORS };
  if (hk_incidents_new(&all, &rules, ignore, NULL) != 0)
    exit(1);
  for (uint32_t s = 0; s < open; s++) {
    (void)snprintf(names[s], sizeof names[s], "%u", s);
    hk_incidents_hear(all, ahead);
    event(all, (s / 2) * 13 * SECOND, s, 1.5); /* two in a window are no company */
  }
  uint32_t over = 0;
  int64_t begin = spent_so_far();
  for (int64_t turn = 0; turn < TURNS; turn++)
    over += hk_incidents_expired(all, open * 13 * SECOND + turn);
  const double turns = (double)(spent_so_far() - begin);
  begin = spent_so_far();
  for (int64_t turn = 0; turn < TURNS; turn++)
    event(all, (open / 2 + turn) * 13 * SECOND, 0, 1.5);
  printf("late  %u open incidents: %.2f us a turn, %.2f us an event of another time; %u over\n", hk_incidents_count(all).open,
         turns / TURNS * 1e-3, (double)(spent_so_far() - begin) / TURNS * 1e-3, over);
  hk_incidents_free(all);
}

int main(void)
{
  seed = 1;
  late(1000);
  late(SENSORS);
  run(true);
  run(false);
  for (int kind = CALM; kind <= RESTLESS; kind++)
    for (int budget = 0; budget < 3; budget++)
      weeks((enum fleet)kind, (double[]){ 3, 10, 30 }[budget]);
  return 0;
}
