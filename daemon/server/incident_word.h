/* A mark of an incident: from a loop to the watch's thread, into the event log, and the answer back.
 *
 *   hk_word_new -> hk_watch_say -> (outcome is no longer HK_WORD_WAITS; the watch has released it) -> hk_word_release
 *
 * Thread: the loop's, unless stated otherwise. */
#ifndef HK_INCIDENT_WORD_H
#define HK_INCIDENT_WORD_H

#include "daemon/durable/event_log.h"
#include "daemon/server/incident_board.h"

#include <stdatomic.h>

#define HK_WORD_WAITS 1

struct hk_incident_word {
  struct hk_incident_word *next; /* the watch's */
  uint32_t kind;                 /* enum hk_feedback_kind */
  uint64_t incident;             /* 0: the sensor's latest, whose id replaces it once found */
  uint64_t position;             /* in the event log; 0: not logged yet */
  atomic_int outcome;            /* HK_WORD_WAITS, or the result of hk_word_log */
  atomic_uint holders;
  char sensor[HK_NAME_MAX + 1], by[HK_WHO_MAX + 1];
};

/* Makes a mark; NULL: no memory. sensor, by: at most HK_NAME_MAX and HK_WHO_MAX bytes. */
struct hk_incident_word *hk_word_new(uint32_t kind, uint64_t incident, struct hk_string sensor, const char *by);
void hk_word_release(struct hk_incident_word *word); /* NULL is allowed */

/* Finds the incident, open in one of the fleets or in the log, and logs the mark. Returns 0 and *position; -ENOENT: no such
 * incident, or the log no longer has it; -ESTALE: its section is none of these; -EALREADY: it has no mark to undo; -ENOMEM.
 * Thread: the watch's. */
int hk_word_log(struct hk_eventlog *events, const struct hk_incident_fleet *fleets, uint32_t n,
                const struct hk_incident_word *word, uint64_t *position);

#endif
