/* Incident board: the incidents that HTTP shows: open ones by descending rank, the last closed ones that were reported, and the
 * last that were not. The watch updates it after changes; requests get a copy.
 *
 * Thread: the watch's, unless stated otherwise. */
#ifndef HK_INCIDENT_BOARD_H
#define HK_INCIDENT_BOARD_H

#include "daemon/durable/event_log.h"
#include "daemon/incidents/feedback.h"
#include "daemon/incidents/incident_text.h"

#define HK_BOARD_STANDING 200u /* maximum number of open incidents; */
#define HK_BOARD_OVER 50u      /* of closed ones that were reported, and of those that were not */

/* A section [incidents NAME]: its incidents, and what is known of them. */
struct hk_incident_fleet {
  struct hk_string section; /* "": [incidents] */
  const struct hk_incidents *all;
  const struct hk_incident_day *day; /* the current one */
  const struct hk_feedback *feedback;
};

struct hk_incident_board;

struct hk_incident_board *hk_board_new(void); /* NULL: no memory */
void hk_board_free(struct hk_incident_board *board);
/* Adds a closed incident. */
void hk_board_over(struct hk_incident_board *board, const struct hk_incident_news *news);
/* The same of a change in the log, from before the start; others than ends are left out. */
void hk_board_recall(struct hk_incident_board *board, const struct hk_logged_incident *change);
/* Rewrites the open incidents of all sections, and all marks. */
void hk_board_stand(struct hk_incident_board *board, const struct hk_incident_fleet *fleets, uint32_t n);
/* Appends the board as a JSON object and a newline. Thread: any. */
void hk_board_read(struct hk_incident_board *board, struct hk_buffer *out);

#endif
