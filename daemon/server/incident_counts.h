/* Counts of incidents, for the status: those of a section, and sums of several.
 *
 * Thread: the incident maker's. */
#ifndef HK_INCIDENT_COUNTS_H
#define HK_INCIDENT_COUNTS_H

#include "daemon/server/incident_section.h"

struct hk_watch_counts {
  uint64_t events, told, updates, merged, withheld, unlisted;
  uint32_t open, members, told_today, withheld_today, scored;
  double budget, gravest_today;
};

struct hk_watch_counts hk_counts_of(const struct hk_incident_section *section);
/* today: the section's day is the latest of all. */
void hk_counts_add(struct hk_watch_counts *sum, const struct hk_watch_counts *section, bool today);

#endif
