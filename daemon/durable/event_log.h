/* Event log: the last events of all sensors, limited in bytes, in memory and likewise in a journal.
 *
 * Every event (an alert raised, corrected, cleared, acknowledged, held back by the flap limit; notices are not included) gets a
 * position, 1, 2, 3 and so on, unique within this state folder. Subscribers get events from here in this order, new ones as well
 * as those requested days later: so no event is missed or repeated between past and present. Readers never touch the disk.
 *
 * Records derived from events are among them, with positions of their own: changes of incidents, and the incidents of events. So
 * are operations.
 *
 * An event is `shown` to readers when it is on the disk, or at once while the journal is paused.
 *
 *     shard     hk_eventlog_append                               loop    hk_eventlog_read, as far as is shown
 *     commit    hk_journal_take of the log, take and commit all other journals, hk_eventlog_commit
 *
 * The points that caused the events appended before the take are in their journals by then. So no event is ever on the disk
 * without its points, and after a crash every logged event happens again when the journals are replayed: during replay an event
 * whose sequence its sensor has reached in the log already is not appended a second time. So the disk keeps the events of all
 * points that a replay may begin with, however many they are; memory is limited. Alerts whose end does not happen again, because
 * the points are lost, are ended at the start: see hk_shard_events_replayed.
 *
 * In a cluster the log is a copy of one that all machines share: event_copy.h.
 *
 * FORMAT.md describes the records. Damaged records are omitted, and their positions are a gap.
 *
 * Errors: 0 or a negative errno. Thread: any, unless stated otherwise. */
#ifndef HK_EVENT_LOG_H
#define HK_EVENT_LOG_H

#include "daemon/base/log.h"
#include "daemon/durable/event_blocks.h"
#include "daemon/durable/event_log_past.h"
#include "daemon/durable/event_records.h"
#include "daemon/durable/journal.h"

struct hk_eventlog;
struct hk_event_shared;

/* Opens the log in a state folder and reads its events into memory. most: limit for the bytes in memory, and for those on the
 * disk; at least HK_EVENTLOG_LEAST. disk and folder stay the caller's. marks: record the log's former end: if that end is gone,
 * positions continue after all published ones; NULL: unknown. log: for messages about damage. -EPROTONOSUPPORT: a file is of
 * another version. Every error has a message. */
#define HK_EVENTLOG_LEAST (1u << 20)
int hk_eventlog_open(struct hk_eventlog **out, const struct hk_disk *disk, int folder, uint64_t most, struct hk_marks *marks,
                     struct hk_log *log, char *error, size_t size);
/* Number of published events that are known to be lost since the previous run. */
uint64_t hk_eventlog_lost(const struct hk_eventlog *log);
/* Frees the log; uncommitted records are lost. NULL is allowed. */
void hk_eventlog_free(struct hk_eventlog *log);

/* Appends an event; returns its position; 0: it is in the log already (during replay). Without memory it is dropped, also 0: the
 * sensor's sequences have a gap. The event is not a notice; index and slot are ignored. by: at most HK_WHO_MAX bytes. reached: as
 * of struct hk_logged; 0: unknown. */
uint64_t hk_eventlog_append(struct hk_eventlog *log, uint32_t handle, struct hk_string name, uint64_t sequence,
                            const struct hk_event *event, struct hk_string by, int64_t reached);

/* Appends a change of an incident (position and unsure are ignored). Returns as above; 0: no memory, or it is too long. */
uint64_t hk_eventlog_append_incident(struct hk_eventlog *log, const struct hk_logged_incident *incident);
/* Appends a settled record: from now on its events have their incidents. At most HK_SETTLED_MOST of them. The rest as above. */
#define HK_SETTLED_MOST 16384u
uint64_t hk_eventlog_append_settled(struct hk_eventlog *log, const struct hk_logged_settled *settled);
/* Appends an operator's action (position and unsure are ignored; the strings have at most HK_OPERATION_TEXT bytes). As above. */
uint64_t hk_eventlog_append_operation(struct hk_eventlog *log, const struct hk_logged_operation *operation);
/* Declares that events after this position will be settled: for readers that wait for that. */
void hk_eventlog_settle(struct hk_eventlog *log, uint64_t position);

/* The log's journal, to take, pause, resume and examine. */
struct hk_journal *hk_eventlog_journal(struct hk_eventlog *log);
/* Commits the taken records, and deletes old files. Thread: the commit thread. */
int hk_eventlog_commit(struct hk_eventlog *log);
/* Events after this position stay on the disk, regardless of their size: a replay may repeat them, and recognises them by the
 * log. 0, the initial value: all. */
void hk_eventlog_keep(struct hk_eventlog *log, uint64_t position);

/* What the log has of the shared one that it is a copy of; NULL: it is none. log: may be NULL. */
struct hk_event_shared *hk_eventlog_shared(const struct hk_eventlog *log);
/* What was appended so far, and whether it is where the next start, or the next machine, finds it. */
uint64_t hk_eventlog_appended(struct hk_eventlog *log);
bool hk_eventlog_safe(struct hk_eventlog *log, uint64_t appended);

/* Marks the end that the log has now. Once hk_eventlog_passed, the shown records have all that this machine had appended by then;
 * and those of a shared log all of other machines for which these had found hk_eventlog_safe. False: no memory. */
bool hk_eventlog_mark(struct hk_eventlog *log, uint64_t *mark);
bool hk_eventlog_passed(struct hk_eventlog *log, uint64_t mark);

/* Positions of the last appended event, and of the last shown event; 0: none. */
uint64_t hk_eventlog_last(struct hk_eventlog *log);
uint64_t hk_eventlog_shown(struct hk_eventlog *log);

/* Functions for the visited records, in order; kinds with NULL are skipped. An incident ends the visit. */
struct hk_eventlog_visit {
  void (*event)(void *arg, const struct hk_logged *logged);
  void (*incident)(void *arg, const struct hk_logged_incident *incident);
  void (*settled)(void *arg, const struct hk_logged_settled *settled, uint64_t position);
  bool waits; /* for the incidents of events: with settling, an event is visited only once it is settled */
  void (*operation)(void *arg, const struct hk_logged_operation *operation);
};
/* Visits up to `most` published records whose position is at most `last`, from the cursor on, in order, and advances the cursor.
 * Returns their number. Functions must be brief, and must not call the log except hk_eventlog_past; their arguments are valid
 * until they return. */
uint32_t hk_eventlog_visit(struct hk_eventlog *log, struct hk_eventlog_cursor *cursor, uint64_t last, uint32_t most,
                           const struct hk_eventlog_visit *visit, void *arg);
/* As hk_eventlog_visit, for events alone. */
static inline uint32_t hk_eventlog_read(struct hk_eventlog *log, struct hk_eventlog_cursor *cursor, uint64_t last, uint32_t most,
                                        void (*visit)(void *arg, const struct hk_logged *logged), void *arg)
{
  const struct hk_eventlog_visit events = { .event = visit };
  return hk_eventlog_visit(log, cursor, last, most, &events, arg);
}

/* The log's knowledge of a sensor, from its opening and from records that the replay has appended since; all zero: none. Valid
 * until hk_eventlog_replayed. No thread may append meanwhile. */
struct hk_eventlog_past hk_eventlog_past(const struct hk_eventlog *log, uint32_t handle, struct hk_string name);
/* The last acknowledgement of the sensor's alerts in the log at its opening: `by`, the event's number and time. False: none.
 * Valid until hk_eventlog_replayed. */
bool hk_eventlog_noted(const struct hk_eventlog *log, uint32_t handle, struct hk_string name, struct hk_logged *out);
/* Until hk_eventlog_replayed memory keeps all events, whatever is appended: at most one end for each open alert. */
void hk_eventlog_hold(struct hk_eventlog *log);
/* The replay is over: from now on every event is appended. No thread may append, or query the log's knowledge, meanwhile. */
void hk_eventlog_replayed(struct hk_eventlog *log);

/* Position of the oldest event (one after the last if there is none), and bytes of all events. */
uint64_t hk_eventlog_first(struct hk_eventlog *log);
uint64_t hk_eventlog_bytes(struct hk_eventlog *log);

/* The log's files in a folder. */
struct hk_journal_place hk_eventlog_place(const struct hk_disk *disk, int folder, uint64_t most);

#endif
