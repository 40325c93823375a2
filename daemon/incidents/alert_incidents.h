/* Remembers the incident of each standing alert, for the alert's end.
 *
 * Without memory, or beyond HK_ALERT_INCIDENTS_MOST, an alert is not remembered: its end has no incident. Thread: one at a time.
 * Owner: the caller. */
#ifndef HK_ALERT_INCIDENTS_H
#define HK_ALERT_INCIDENTS_H

#include "daemon/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

#define HK_ALERT_INCIDENTS_MOST (1u << 22)

struct hk_alert_incident {
  uint64_t alert; /* 0: free */
  uint64_t incident;
};
struct hk_alert_incidents {        /* all zero: there is none */
  struct hk_alert_incident *place; /* open addressing */
  uint32_t n, size;                /* a power of two; 0: no memory yet */
};

void hk_alert_incidents_free(struct hk_alert_incidents *alerts);
/* alert, incident: not 0. Replaces the incident of an alert that is there. */
void hk_alert_incidents_put(struct hk_alert_incidents *alerts, uint64_t alert, uint64_t incident);
/* The alert ends: its incident, 0: not known. */
uint64_t hk_alert_incidents_take(struct hk_alert_incidents *alerts, uint64_t alert);

/* An incident that was merged into another; each is merged once. */
struct hk_incident_merge {
  uint64_t incident, into;
};
void hk_merges_sort(struct hk_incident_merge *merges, uint32_t n);
/* The incident that contains one after all merges; sorted. */
uint64_t hk_merges_resolve(const struct hk_incident_merge *merges, uint32_t n, uint64_t incident);
/* Replaces incidents by those that contain them. */
void hk_alert_incidents_merge(struct hk_alert_incidents *alerts, const struct hk_incident_merge *merges, uint32_t n);

/* Appends the image to out; restores from an image into an empty table, and returns the bytes read; 0: it is damaged. */
void hk_alert_incidents_write(const struct hk_alert_incidents *alerts, struct hk_buffer *out);
size_t hk_alert_incidents_read(struct hk_alert_incidents *alerts, const char *image, size_t size);

#endif
