#include "daemon/server/incident_clock.h"

#define SILENCE INT64_C(10000000000) /* ns without data, at least, */
#define SILENT 10                    /* and intervals, after which ends do not wait for them */

void hk_clock_begin(struct hk_incident_clock *c, const struct hk_watch_source *source, const struct hk_incidents_sections *rules,
                    struct hk_eventlog *events)
{
  *c = (struct hk_incident_clock){ .source = source, .events = events, .silence = SILENCE };
  for (uint32_t i = 0; i < rules->n; i++)
    c->silence = SILENT * rules->of[i].interval > c->silence ? SILENT * rules->of[i].interval : c->silence;
}

void hk_clock_ask(struct hk_incident_clock *c, uint64_t shards)
{
  if (c->asked)
    return;
  c->ticks = c->source->reached(c->source->arg, shards);
  c->ends = c->source->ends(c->source->arg, c->silence);
  c->position = hk_eventlog_last(c->events);
  c->asked = true;
}

bool hk_clock_take(struct hk_incident_clock *c, uint64_t position, int64_t *ticks, int64_t *ends)
{
  if (!c->asked || position < c->position)
    return false;
  c->asked = false;
  *ticks = c->ticks;
  *ends = c->ends;
  return true;
}

void hk_clock_forget(struct hk_incident_clock *c)
{
  c->asked = false;
}
