/* Incident board: what HTTP shows of incidents: those that stand, the gravest first, and the last ones that are over. The watch
 * writes it where something has changed; whoever asks gets a copy.
 *
 * Thread: the watch's, but for what says otherwise. */
#ifndef HK_INCIDENT_BOARD_H
#define HK_INCIDENT_BOARD_H

#include "daemon/incidents/feedback.h"
#include "daemon/incidents/incident_text.h"

#define HK_BOARD_STANDING 200u /* that are shown, at most; */
#define HK_BOARD_OVER 50u      /* and of those that are over since the start */

struct hk_incident_board;

struct hk_incident_board *hk_board_new(void); /* NULL: no memory */
void hk_board_free(struct hk_incident_board *board);
/* One is over: it is remembered. */
void hk_board_over(struct hk_incident_board *board, const struct hk_incident_news *news);
/* Writes those that stand anew, and what was said of all. day: that it is. */
void hk_board_stand(struct hk_incident_board *board, const struct hk_incidents *all, const struct hk_incident_day *day,
                    const struct hk_feedback *feedback);
/* Appends it as an object of JSON and a newline. Thread: any. */
void hk_board_read(struct hk_incident_board *board, struct hk_buffer *out);

#endif
