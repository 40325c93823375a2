/* Alerts: what subscribers have been told of each sensor's alerts: those that stand, and how many there were; and how many
 * results and events of the sensor there were, which are their sequence numbers.
 *
 * The alerts themselves are decided in the backend. When its device is lost, or a sensor is evicted, the alerts that stood there
 * would stay open with subscribers for ever, and the numbers of later ones begin anew: this remembers what is needed to clear
 * the first and to go on with the second. Nothing here is touched by points that cause no event.
 *
 * Thread: the shard's. */
#ifndef HK_ALERTS_H
#define HK_ALERTS_H

#include "cpu/backend.h"

#include <stdbool.h>

struct hk_alerts;

/* Slots are below max_sensors. 0 and *out, or -ENOMEM. */
int hk_alerts_new(struct hk_alerts **out, uint32_t max_sensors);
void hk_alerts_free(struct hk_alerts *alerts); /* NULL is fine */

/* An event or a notice is about to be published. 0, or -ENOMEM: an alert that was raised is not remembered. */
int hk_alerts_note(struct hk_alerts *alerts, const struct hk_event *event);
/* Ends an alert that stands. True and *cleared, the event that says so: the alert as it was last told, at the time of that; it
 * is to be noted like any other. */
bool hk_alerts_clear(struct hk_alerts *alerts, uint32_t slot, struct hk_event *cleared);
/* The slot is about to be another sensor's. */
void hk_alerts_forget(struct hk_alerts *alerts, uint32_t slot);

/* Slots with an alert that stands: `n` of them, in no order. Valid until the next call. */
const struct hk_event *hk_alerts_standing(const struct hk_alerts *alerts, uint32_t *n);
/* Number of the sensor's last alert; 0: there was none. */
uint32_t hk_alerts_number(const struct hk_alerts *alerts, uint32_t slot);
/* Sequence of the sensor's last event: it counts those that were noted. 0: there was none. */
uint64_t hk_alerts_sequence(const struct hk_alerts *alerts, uint32_t slot);
/* The sequence of the sensor's last event is at least this one. */
void hk_alerts_reach(struct hk_alerts *alerts, uint32_t slot, uint64_t sequence);
/* Counts n points, in order, that have results; sequence: receives the number of each among its sensor's, from 1 on. */
void hk_alerts_count(struct hk_alerts *alerts, uint32_t n, const uint32_t *slot, uint64_t *sequence);

/* All that is remembered of a sensor, for a snapshot. */
struct hk_alerts_memory {
  uint64_t points, events; /* sequences of the last ones */
  uint32_t number;
  bool stands;
  struct hk_event standing; /* if one does; its slot is within the shard */
};
void hk_alerts_get(const struct hk_alerts *alerts, uint32_t slot, struct hk_alerts_memory *out);
/* Of a slot of which nothing is remembered. 0, or -ENOMEM: the alert that stands is not remembered. */
int hk_alerts_set(struct hk_alerts *alerts, uint32_t slot, const struct hk_alerts_memory *memory);

#endif
