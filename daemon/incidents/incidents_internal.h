/* Shared by the files of incidents. */
#ifndef HK_INCIDENTS_INTERNAL_H
#define HK_INCIDENTS_INTERNAL_H

#include "daemon/incidents/budget.h"
#include "daemon/incidents/incidents.h"

/* In points. */
#define HK_INCIDENT_HOLD 60
#define HK_INCIDENT_LONGEST 48
#define HK_INCIDENT_REPEAT 288

#define HK_INCIDENT_TIME_MOST (INT64_MAX / 4) /* ns: times are clamped to this, so that spans can be added */

#define HK_INCIDENT_ALPHA -3.0 /* log10: company rarer than this makes one incident */
#define HK_INCIDENT_BONUS 6.0  /* most that company adds to R */

struct hk_incidents {
  struct hk_incidents_rules rules;
  hk_incident_decided *decided;
  void *arg;
  struct hk_fleet_names names;
  struct hk_fleet_tail tail;
  struct hk_budget budget;
  uint32_t sensors; /* that are scored; 0: as many as there are names */
  uint64_t last_id;
  int64_t reached;                     /* ns: as of hk_incidents_hear, of the next event */
  uint64_t joined;                     /* by the last event; 0: none */
  struct hk_fleet_sensor *graver;      /* the last event was the gravest of this sensor so far; NULL: it was not */
  int64_t time;                        /* ns: of the present tick */
  bool begun;                          /* there was one */
  struct hk_incident *oldest, *newest; /* open ones, */
  struct hk_incident_ends ends;        /* and by their ends */
  struct hk_incident **judged;         /* room for the incidents of a tick, by falling rank */
  uint32_t judged_room;
  double *log_factorials; /* ln 0!, ln 1! and so on, as far as needed */
  uint32_t log_factorials_room;
  struct hk_incidents_counts counts;
};

/* Appends to the open ones, for which there is room in `ends`. hk_incident_unlink: removes. */
void hk_incident_link(struct hk_incidents *all, struct hk_incident *incident);
void hk_incident_unlink(struct hk_incidents *all, struct hk_incident *incident);
void hk_incident_add(struct hk_incident *incident, struct hk_fleet_sensor *member);

/* s is in an incident and was active within the window: looks for company in each node above, and merges. */
void hk_company_look(struct hk_incidents *all, struct hk_fleet_sensor *s);
/* Puts a child behind the active ones of the node above it, where it was when they were written: among equals, who stands first
 * is merged first. Its S is set. 0, -ENOMEM, or -EBADMSG: it is graver than the one before it. */
int hk_company_restore(struct hk_fleet_child *child);

#endif
