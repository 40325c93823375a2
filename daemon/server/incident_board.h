/* Incident board: the incidents that HTTP shows: open ones by descending rank, and the last closed ones. The watch updates it
 * after changes; requests get a copy.
 *
 * Thread: the watch's, unless stated otherwise. */
#ifndef HK_INCIDENT_BOARD_H
#define HK_INCIDENT_BOARD_H

#include "daemon/incidents/feedback.h"
#include "daemon/incidents/incident_text.h"

#define HK_BOARD_STANDING 200u /* maximum number of open incidents; */
#define HK_BOARD_OVER 50u      /* and of closed incidents since the start */

struct hk_incident_board;

struct hk_incident_board *hk_board_new(void); /* NULL: no memory */
void hk_board_free(struct hk_incident_board *board);
/* Adds a closed incident. */
void hk_board_over(struct hk_incident_board *board, const struct hk_incident_news *news);
/* Rewrites the open incidents, and all marks. day: the current one. */
void hk_board_stand(struct hk_incident_board *board, const struct hk_incidents *all, const struct hk_incident_day *day,
                    const struct hk_feedback *feedback);
/* Appends the board as a JSON object and a newline. Thread: any. */
void hk_board_read(struct hk_incident_board *board, struct hk_buffer *out);

#endif
