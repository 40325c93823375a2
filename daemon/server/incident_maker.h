/* Incident maker: makes incidents from the log's events, and logs their changes.
 *
 *     hk_maker_read      published events wait for their tick; the log's records of incidents are skipped
 *     hk_maker_settle    judges complete ticks, and ends incidents: logs the incidents of the events, then each change of one
 *
 * Each section [incidents NAME] has incidents, a budget and records of its own (incident_section.h); the numbers of incidents
 * count those of all. A `settled` record says how far events were known then, and up to which time of the data ticks were
 * complete; the end of an incident is in the log itself. So reading the log from an earlier state on gives the same decisions,
 * independent of the wall clock. At its start the maker repeats the decisions up to the end that the log had then.
 *
 * A section that is new has the events that no section had judged. One that the configuration no longer has gets no events, and
 * its incidents end; it is forgotten at the start after that.
 *
 * Its state, for a file: the position in the log, and of each section the waiting events and the incidents.
 *
 * Thread: one at a time. */
#ifndef HK_INCIDENT_MAKER_H
#define HK_INCIDENT_MAKER_H

#include "daemon/server/incident_section.h"
#include "daemon/server/incident_word.h"

struct hk_incident_maker;

#define HK_SECTIONS_MOST (2 * HK_INCIDENTS_MOST) /* with those that are gone */

/* Makes a maker that begins with the first event of the log. rules: outlive it. Returns 0, -ENOMEM, -EIO or -EINVAL. */
int hk_maker_new(struct hk_incident_maker **out, const struct hk_incidents_sections *rules, const struct hk_maker_parts *parts);
void hk_maker_free(struct hk_incident_maker *maker); /* NULL is allowed */

/* hk_maker_write appends the image of its state to out; hk_maker_take restores an image into a new maker and returns 0; -EBADMSG:
 * damaged, or of another version; -ENOMEM. After an error the maker can only be freed. */
void hk_maker_write(const struct hk_incident_maker *maker, struct hk_buffer *out);
int hk_maker_take(struct hk_incident_maker *maker, const char *image, size_t size);

/* Of a copy of a shared log, a maker repeats decisions, those of the leader; from now on it is the leader's. */
void hk_maker_lead(struct hk_incident_maker *maker);
/* Changes the budget of the section of this number. */
void hk_maker_budget(struct hk_incident_maker *maker, uint32_t section, double a_day);
/* Learns new names. Returns a bit for each of the n shards: whether it has sensors. */
uint64_t hk_maker_learn(struct hk_incident_maker *maker, uint32_t shards);
/* Of other machines of a cluster: learns a sensor's name, and returns the number of its section, or -1: it has none; sets the
 * number of a section's sensors that they score. here: whether this one scores its sensors, and does not merely know them. */
int hk_maker_learn_distant(struct hk_incident_maker *maker, struct hk_string name);
void hk_maker_count_distant(struct hk_incident_maker *maker, uint32_t section, uint32_t sensors, bool here);
/* Reads published events. Returns whether there were events, or earlier decisions. */
bool hk_maker_read(struct hk_incident_maker *maker);
/* Declares all ticks before `time` (ns, time of data) complete, as far as events were read; and ends the incidents that are over
 * by `ends`, which the data have reached of all devices that have any; 0: unknown, none ends. */
void hk_maker_settle(struct hk_incident_maker *maker, int64_t time, int64_t ends);

/* Logs a mark of an incident at *position. Returns as hk_word_log, or -EAGAIN: the maker is repeating decisions; try later. */
int hk_maker_feedback(struct hk_incident_maker *maker, const struct hk_incident_word *word, uint64_t *position);
/* Appends the marks in force, JSON objects separated by commas. */
void hk_maker_show_feedback(const struct hk_incident_maker *maker, struct hk_buffer *out);

/* State of a maker. */
struct hk_maker_look {
  uint64_t position; /* of the last record that was read */
  int64_t newest;    /* ns, time of data: of the latest event so far; INT64_MIN: none */
  uint32_t waiting;  /* number of events */
  bool fresh;        /* events were read since it last settled */
  bool again;        /* it is repeating the decisions from before the start: it settles nothing, and has no state to save yet */
};
struct hk_maker_look hk_maker_look(const struct hk_incident_maker *maker);
/* The section of a number, in the order of the configuration; NULL: there are no more. */
const struct hk_incident_section *hk_maker_section(const struct hk_incident_maker *maker, uint32_t section);
/* Whether hk_maker_settle has something to do by these times. */
bool hk_maker_due(const struct hk_incident_maker *maker, bool ticks, int64_t ends);
/* Rewrites the board. */
void hk_maker_show(const struct hk_incident_maker *maker);

#endif
