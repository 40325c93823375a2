/* Incident maker: makes incidents from the log's events, and logs their changes.
 *
 *     hk_maker_read      published events wait for their tick; the log's records of incidents are skipped
 *     hk_maker_settle    judges complete ticks: logs the incidents of the events, then each change of an incident
 *
 * A `settled` record says how far events were known then, and up to which time of the data ticks were complete. So reading the
 * log from an earlier state on gives the same decisions, independent of the wall clock. At its start the maker repeats the
 * decisions up to the end that the log had then. Changes are numbered, so that only those missing in the log are logged.
 *
 * Its state, for a file: the position in the log, the waiting events, and the incidents.
 *
 * Thread: one at a time. */
#ifndef HK_INCIDENT_MAKER_H
#define HK_INCIDENT_MAKER_H

#include "daemon/base/log.h"
#include "daemon/config/incidents_rule.h"
#include "daemon/durable/event_log.h"
#include "daemon/sensors/registry.h"
#include "daemon/server/incident_board.h"
#include "daemon/server/incident_word.h"

struct hk_incident_maker;

/* All of these outlive the maker. */
struct hk_maker_parts {
  struct hk_eventlog *events;
  struct hk_registry *registry;
  struct hk_log *log;
  struct hk_incident_board *board;
};

/* Makes a maker that begins with the first event of the log. Returns 0, -ENOMEM, -EIO or -EINVAL. */
int hk_maker_new(struct hk_incident_maker **out, const struct hk_incidents_rule *rule, const struct hk_maker_parts *parts);
void hk_maker_free(struct hk_incident_maker *maker); /* NULL is allowed */

/* hk_maker_write appends the image of its state to out; hk_maker_take restores an image into a new maker and returns 0; -EBADMSG:
 * damaged, or of another interval or version; -ENOMEM. After an error the maker can only be freed. */
void hk_maker_write(const struct hk_incident_maker *maker, struct hk_buffer *out);
int hk_maker_take(struct hk_incident_maker *maker, const char *image, size_t size);

/* Of a copy of a shared log, a maker repeats decisions, those of the leader; from now on it is the leader's. */
void hk_maker_lead(struct hk_incident_maker *maker);
/* Changes the budget. Thread: the maker's. */
void hk_maker_budget(struct hk_incident_maker *maker, double a_day);
/* Learns new names. Returns a bit for each of the n shards: whether it has sensors. */
uint64_t hk_maker_learn(struct hk_incident_maker *maker, uint32_t shards);
/* Of other machines of a cluster: learns a sensor's name; sets the number of sensors that they score. here: whether this one
 * scores its sensors, and does not merely know them. */
bool hk_maker_learn_distant(struct hk_incident_maker *maker, struct hk_string name);
void hk_maker_count_distant(struct hk_incident_maker *maker, uint32_t sensors, bool here);
/* Reads published events. Returns whether there were events, or earlier decisions. */
bool hk_maker_read(struct hk_incident_maker *maker);
/* Declares all ticks before `time` (ns, time of data) complete, as far as events were read. */
void hk_maker_settle(struct hk_incident_maker *maker, int64_t time);

/* Logs a mark of an incident at *position. Returns as hk_word_log, or -EAGAIN: the maker is repeating decisions; try later. */
int hk_maker_feedback(struct hk_incident_maker *maker, const struct hk_incident_word *word, uint64_t *position);
/* Appends the marks in force, JSON objects separated by commas. */
void hk_maker_show_feedback(const struct hk_incident_maker *maker, struct hk_buffer *out);

/* State of a maker. */
struct hk_maker_look {
  struct hk_incidents_counts counts;
  struct hk_incident_day day;
  uint64_t position; /* of the last record that was read */
  int64_t newest;    /* ns, time of data: of the latest event so far; INT64_MIN: none */
  uint32_t waiting;  /* number of events */
  bool fresh;        /* events were read since it last settled */
  bool again;        /* it is repeating the decisions from before the start: it settles nothing, and has no state to save yet */
};
struct hk_maker_look hk_maker_look(const struct hk_incident_maker *maker);
/* Whether hk_maker_settle has incidents to close by a time. */
bool hk_maker_due(const struct hk_incident_maker *maker, int64_t time);
/* Rewrites the board. */
void hk_maker_show(const struct hk_incident_maker *maker);

#endif
