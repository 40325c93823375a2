/* What incidents cost: 100,000 sensors at a point a second, of which as many alert as the scale of severity promises (2 x 10^-S
 * of the blocks of 40 points), once with names of a tree and once flat; then a storm of a tenth of them in one tick. */
#include "daemon/base/log.h"
#include "daemon/incidents/incidents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SENSORS 100000u
#define SECONDS 600u
#define SECOND INT64_C(1000000000)

static uint64_t seed = 1;

static double uniform(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return ((double)(seed >> 11) + .5) / 9007199254740992.0;
}

static void ignore(void *arg, int64_t time, enum hk_incident_decision d, const struct hk_incident *i,
                   const struct hk_incident *into, double threshold)
{
  (void)arg, (void)time, (void)d, (void)i, (void)into, (void)threshold;
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
  int64_t begin = hk_now();
  for (uint32_t second = 0; second < SECONDS; second++)
    for (double left = a_second; left > uniform(); left--)
      event(all, second * SECOND, (uint32_t)(SENSORS * uniform()), 1.5 - log10(uniform()));
  double spent = (double)(hk_now() - begin) * 1e-9;
  const struct hk_incidents_counts c = hk_incidents_count(all);
  printf("%-5s %u sensors at 1 Hz, %.0f events a second: %.2f %% of a core, %.1f us an event; %u open incidents of %u\n",
         tree ? "tree" : "flat", SENSORS, (double)c.events / SECONDS, 100 * spent / SECONDS, 1e6 * spent / (double)c.events,
         c.open, c.members);
  begin = hk_now();
  for (uint32_t i = 0; i < SENSORS / 10; i++)
    event(all, SECONDS * SECOND, i, 3);
  hk_incidents_reach(all, (SECONDS + 1) * SECOND);
  spent = (double)(hk_now() - begin) * 1e-9;
  printf("%-5s a storm of %u in one tick: %.0f ms; %llu told\n", tree ? "tree" : "flat", SENSORS / 10, 1000 * spent,
         (unsigned long long)(hk_incidents_count(all).told - c.told));
  hk_incidents_free(all);
}

int main(void)
{
  run(true);
  run(false);
  return 0;
}
