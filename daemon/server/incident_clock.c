#include "daemon/server/incident_clock.h"

#include <errno.h>

#define SILENCE INT64_C(10000000000) /* ns without data, at least, */
#define SILENT 10                    /* and intervals, after which ends do not wait for them */
#define EVERY INT64_C(1000000000)    /* ns between two marks of a shared log: all machines read them, and the broker keeps them */

int hk_clock_begin(struct hk_incident_clock *c, const struct hk_watch_source *source, const struct hk_incidents_sections *rules,
                   struct hk_eventlog *events, void (*ready)(void *arg), void *arg)
{
  *c = (struct hk_incident_clock){ .source = source, .events = events, .silence = SILENCE };
  for (uint32_t i = 0; i < rules->n; i++)
    c->silence = SILENT * rules->of[i].interval > c->silence ? SILENT * rules->of[i].interval : c->silence;
  if (hk_eventlog_shared(events))
    c->distant = hk_distant_progress_new(ready, arg);
  return c->distant || !hk_eventlog_shared(events) ? 0 : -ENOMEM;
}

void hk_clock_finish(struct hk_incident_clock *c)
{
  hk_distant_progress_free(c->distant);
}

/* By what incidents end, ns; 0: unknown, or no data come. */
static int64_t clock_ends(struct hk_incident_clock *c)
{
  int64_t others = INT64_MAX;
  if (c->distant && !hk_distant_reached(c->distant, &others))
    return 0;
  const int64_t ours = c->source->scores ? c->source->ends(c->source->arg, c->silence) : INT64_MAX;
  const int64_t least = ours < others ? ours : others;
  return least == INT64_MAX ? 0 : least;
}

void hk_clock_look(struct hk_incident_clock *c, uint64_t shards, struct hk_cluster *mail, bool open)
{
  if (c->distant) /* also while a mark waits, for long if the broker is away: it listens for notices */
    hk_distant_ask(c->distant, mail, c->silence, open && !c->marked);
  if (c->marked)
    return;
  c->ticks = c->source->reached(c->source->arg, shards);
  c->ends = clock_ends(c);
}

void hk_clock_mark(struct hk_incident_clock *c)
{
  const bool shared = hk_eventlog_shared(c->events) != NULL;
  if (c->marked || (shared && hk_now() - c->marked_at < EVERY))
    return;
  c->marked = hk_eventlog_mark(c->events, &c->mark);
  c->marked_at = hk_now();
}

bool hk_clock_passed(struct hk_incident_clock *c)
{
  const bool passed = c->marked && hk_eventlog_passed(c->events, c->mark);
  c->marked = c->marked && !passed;
  return passed;
}

void hk_clock_forget(struct hk_incident_clock *c)
{
  c->marked = false;
  if (c->distant)
    hk_distant_progress_forget(c->distant);
}
