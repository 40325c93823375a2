/* Incident maker: from the events of the log to incidents, and what becomes of them back into the log.
 *
 *     hk_maker_read      events that are shown wait for their tick; the log's own words about incidents are passed over
 *     hk_maker_settle    ticks are over: logs to which incidents the events belong, then each change of an incident
 *
 * What is logged as settled says what was known then, and up to which time of the data ticks were over. So whoever reads the log
 * from an earlier state on decides the same again, whatever the clock on the wall did: the maker does that at its start, up to
 * the end that the log had then. Changes are numbered; those that the log has are not logged again, those that it lacks are.
 *
 * Its state is for a file: the place in the log, what waits, and the incidents.
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

/* All of these outlive it. */
struct hk_maker_parts {
  struct hk_eventlog *events;
  struct hk_registry *registry;
  struct hk_log *log;
  struct hk_incident_board *board;
};

/* Begins with the first event of the log. 0, -ENOMEM, -EIO or -EINVAL. */
int hk_maker_new(struct hk_incident_maker **out, const struct hk_incidents_rule *rule, const struct hk_maker_parts *parts);
void hk_maker_free(struct hk_incident_maker *maker); /* NULL is fine */

/* The image of its state, appended to out; and from one, into a new maker. 0; -EBADMSG: it is damaged, or of another interval or
 * version; -ENOMEM. After an error there is nothing but to free it. */
void hk_maker_write(const struct hk_incident_maker *maker, struct hk_buffer *out);
int hk_maker_take(struct hk_incident_maker *maker, const char *image, size_t size);

/* Another budget from now on. Thread: the maker's. */
void hk_maker_budget(struct hk_incident_maker *maker, double a_day);
/* Learns names that are new. Returns of the shards, of which there are n, those that have sensors, a bit each. */
uint64_t hk_maker_learn(struct hk_incident_maker *maker, uint32_t shards);
/* Reads what is shown. True: there was something of events, or of what was decided before. */
bool hk_maker_read(struct hk_incident_maker *maker);
/* All ticks before `time` (ns, of the data) are over, as far as events were read. */
void hk_maker_settle(struct hk_incident_maker *maker, int64_t time);

/* Somebody said something of an incident: it is logged, *position is where. As hk_word_log; or -EAGAIN: it decides again, ask
 * later. */
int hk_maker_feedback(struct hk_incident_maker *maker, const struct hk_incident_word *word, uint64_t *position);
/* Appends what is in force, objects of JSON with commas between them. */
void hk_maker_show_feedback(const struct hk_incident_maker *maker, struct hk_buffer *out);

/* How it is. */
struct hk_maker_look {
  struct hk_incidents_counts counts;
  struct hk_incident_day day;
  uint64_t position; /* of the last record that was read */
  int64_t newest;    /* ns, of the data: of the latest event so far; INT64_MIN: there was none */
  uint32_t waiting;  /* events */
  bool fresh;        /* events were read since it settled last */
  bool again;        /* it decides again what was decided before the start: it settles nothing, and has no state of its own yet */
};
struct hk_maker_look hk_maker_look(const struct hk_incident_maker *maker);
/* Whether something is over by a time, so that hk_maker_settle has something to do. */
bool hk_maker_due(const struct hk_incident_maker *maker, int64_t time);
/* Writes the board anew. */
void hk_maker_show(const struct hk_incident_maker *maker);

#endif
