/* Incidents in the status and in the metrics: sums, and each section [incidents NAME].
 *
 * Thread: any. */
#ifndef HK_INCIDENT_STATUS_H
#define HK_INCIDENT_STATUS_H

#include "daemon/server/incident_watch.h"

/* Appends the member "incidents" of the status, after a comma. watch: NULL: all is 0. */
void hk_incident_status(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Appends families of metrics, in which each section is a label; nothing without a watch. total: what the family of a counter
 * ends with: "_total", or "" (OpenMetrics). */
void hk_incident_metrics(struct hk_incident_watch *watch, const char *total, struct hk_buffer *out);

#endif
