/* Incident section: the incidents of one [incidents NAME], with a budget of their own. A sensor belongs to the first section, in
 * the order of the configuration, that matches it; so an incident has the sensors of one section.
 *
 *     hk_section_take       an event of its sensors waits for its tick
 *     hk_section_decide     judges complete ticks
 *     hk_section_settled    logs the basis of these decisions, and the incidents of the events
 *     hk_section_log        logs each change of an incident
 *
 * or, of decisions that the log has, hk_section_repeat. Changes are numbered, so that only those missing in the log are logged.
 *
 * Thread: the incident maker's. */
#ifndef HK_INCIDENT_SECTION_H
#define HK_INCIDENT_SECTION_H

#include "daemon/base/glob.h"
#include "daemon/base/log.h"
#include "daemon/config/incidents_rule.h"
#include "daemon/durable/event_log.h"
#include "daemon/incidents/ticks.h"
#include "daemon/sensors/registry.h"
#include "daemon/server/incident_board.h"

/* All of these outlive the maker. */
struct hk_maker_parts {
  struct hk_eventlog *events;
  struct hk_registry *registry;
  struct hk_log *log;
  struct hk_incident_board *board;
};

struct hk_pending_change;
struct hk_settled_list {
  struct hk_settled_event *of;
  uint32_t n, room;
};
struct hk_merge_list {
  struct hk_incident_merge *of;
  uint32_t n, room;
};

struct hk_incident_section {
  struct hk_maker_parts parts;
  struct hk_incidents_rule rule; /* with the budget of now */
  bool gone;                     /* the configuration no longer has it: it gets no alerts, and its incidents end */
  struct hk_glob *match;         /* NULL: all sensors */
  struct hk_incidents *incidents;
  struct hk_ticks *ticks;
  struct hk_incident_day day;
  struct hk_feedback feedback;
  uint64_t number; /* of the last change */
  uint64_t base;   /* before the current settling: of the last change, */
  uint64_t before; /* and the last incident, of any section, that had begun */
  struct hk_pending_change *first, **last;
  struct hk_settled_list pairs; /* of the current settling */
  struct hk_merge_list merges;  /* likewise */
  uint32_t sensors;             /* of the registry, */
  uint32_t distant;             /* and of other machines of a cluster, */
  bool counted;                 /* which have those of the registry, too */
  bool fresh;                   /* events or marks were read since it last settled */
};

/* Makes one that begins with no incidents. 0, -ENOMEM, -EIO or -EINVAL. */
int hk_section_new(struct hk_incident_section **out, const struct hk_incidents_rule *rule, const struct hk_maker_parts *parts);
void hk_section_free(struct hk_incident_section *section); /* NULL is allowed */
struct hk_string hk_section_name(const struct hk_incident_section *section);
struct hk_incident_fleet hk_section_fleet(const struct hk_incident_section *section);
/* Whether it matches a sensor. */
bool hk_section_takes(const struct hk_incident_section *section, struct hk_string name);

/* Number of sensors of the section that are scored, on all machines. */
uint32_t hk_section_scored(const struct hk_incident_section *section);
/* Sets the budget and the number of scored sensors, as the configuration and the machines have them. */
void hk_section_go_on(struct hk_incident_section *section);
void hk_section_take(struct hk_incident_section *section, const struct hk_tick_event *event);
/* A mark of one of its incidents. */
void hk_section_mark(struct hk_incident_section *section, const struct hk_logged_incident *mark);

/* *id: the last incident of any section; is set to that afterwards. */
void hk_section_decide(struct hk_incident_section *section, int64_t time, uint64_t seen, uint64_t *id);
/* Ends the incidents that are over by a time of the data, which no waiting event is before; after hk_section_decide. No record
 * has that time: the ends themselves are logged, and repeated from there. hk_section_ends: whether there are such incidents. */
void hk_section_end(struct hk_incident_section *section, int64_t time);
bool hk_section_ends(const struct hk_incident_section *section, int64_t time);
/* Whether there is something to log after these. */
bool hk_section_says(const struct hk_incident_section *section);
/* upto: as in the record. */
void hk_section_settled(struct hk_incident_section *section, int64_t time, uint64_t seen, uint64_t upto);
void hk_section_log(struct hk_incident_section *section);

/* Repeats the decisions of a record; a change that the log has is not logged again. */
void hk_section_repeat(struct hk_incident_section *section, const struct hk_logged_settled *settled, uint64_t *id);
void hk_section_repeated(struct hk_incident_section *section, const struct hk_logged_incident *change);

/* Appends the image of its state to out. hk_section_read restores the next one of a file: a new section, with the rule of its
 * name; without a rule it is gone, and of another interval it begins with no incidents. Returns the bytes read; or 0, and
 * *status: -EBADMSG: damaged; -ENOMEM. */
void hk_section_write(const struct hk_incident_section *section, struct hk_buffer *out);
size_t hk_section_read(struct hk_incident_section **out, const struct hk_incidents_sections *rules,
                       const struct hk_maker_parts *parts, const char *image, size_t size, int *status);
/* The same of a section's parts, of these lengths: feedback, ticks and incidents. 0, or as *status. */
int hk_section_restore(struct hk_incident_section **out, const struct hk_incidents_sections *rules,
                       const struct hk_maker_parts *parts, const char *name, const char *image, const uint64_t lengths[3]);

#endif
