#include "daemon/server/incident_counts.h"

struct hk_watch_counts hk_counts_of(const struct hk_incident_section *s)
{
  const struct hk_incidents_counts c = hk_incidents_count(s->incidents);
  return (struct hk_watch_counts){ .events = c.events,
                                   .told = c.told,
                                   .updates = c.updates,
                                   .merged = c.merged,
                                   .withheld = c.withheld,
                                   .unlisted = c.unlisted + c.not_finite,
                                   .open = c.open,
                                   .members = c.members,
                                   .scored = hk_section_scored(s),
                                   .told_today = s->day.told,
                                   .withheld_today = s->day.withheld,
                                   .gravest_today = s->day.gravest,
                                   .budget = s->rule.a_day };
}

void hk_counts_add(struct hk_watch_counts *sum, const struct hk_watch_counts *c, bool today)
{
  sum->events += c->events;
  sum->told += c->told;
  sum->updates += c->updates;
  sum->merged += c->merged;
  sum->withheld += c->withheld;
  sum->unlisted += c->unlisted;
  sum->open += c->open;
  sum->members += c->members;
  sum->scored += c->scored;
  sum->told_today += today ? c->told_today : 0;
  sum->withheld_today += today ? c->withheld_today : 0;
  sum->gravest_today = today && c->gravest_today > sum->gravest_today ? c->gravest_today : sum->gravest_today;
  sum->budget += c->budget;
}
