/* Alerts: the published state of each sensor's alerts: the standing one, who has acknowledged it, and the number of alerts; the
 * numbers of the sensor's results and events, which are their sequence numbers; and the flap limit.
 *
 * The backend decides the alerts themselves. When its device is lost, or a sensor is evicted, the alerts that stood there would
 * stay open with subscribers for ever, and the numbers of later ones would start over: this memory has what is needed to clear
 * the former and to continue the latter. Points that cause no event do not touch it.
 *
 * The flap limit: a sensor with more than `flap_limit` alerts raised within `flap_within`, by the points' times, flaps. The first
 * alert above the limit is published as HK_EVENT_FLAPPING; it and all that follow are held back: none of their events is
 * published, and they have no sequence. An alert more than `flap_within` after the one before it is published again, with the
 * number of alerts held back. So what is held back depends on the sensor's own events alone, and is the same in a replay.
 *
 * For sensors with alerts of the channel `change` it also has properties of their last segments (cpu/rules/segments.h).
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_ALERT_MEMORY_H
#define HK_ALERT_MEMORY_H

#include "cpu/backend.h"
#include "cpu/rules/segments.h"
#include "daemon/base/limits.h"
#include "proto/wire/message.h"

#include <stdbool.h>

struct hk_alerts;

/* A standing alert. */
struct hk_standing {
  struct hk_event event;   /* the latest */
  int64_t acknowledged;    /* time of the acknowledgement, ns, wall clock; 0: not acknowledged */
  char by[HK_WHO_MAX + 1]; /* who acknowledged */
  int64_t silent;          /* ns, hk_now: when its sensor was found silent; 0: not silent */
};

/* Makes the memory for slots below max_sensors. Returns 0 and *out, or -ENOMEM. */
int hk_alerts_new(struct hk_alerts **out, uint32_t max_sensors);
void hk_alerts_free(struct hk_alerts *alerts); /* NULL is allowed */

/* Passes an event of a backend through the flap limit (0: none), and completes it with the memory of its alert and of earlier
 * segments. False: not to be published, since it is held back, or is of an alert whose end was published without the backend. */
bool hk_alerts_pass(struct hk_alerts *alerts, struct hk_event *event, uint32_t limit, int64_t within);
/* Records an event or a notice that is about to be published. Returns 0, or -ENOMEM: a raised alert is not remembered. */
int hk_alerts_note(struct hk_alerts *alerts, const struct hk_event *event);
/* Ends a standing alert. True and *cleared, its event: the alert as last published, at that time; to be noted like any other
 * event. */
bool hk_alerts_clear(struct hk_alerts *alerts, uint32_t slot, struct hk_event *cleared);
/* Records in its alert that a sensor was found silent at `now`, hk_now; 0: it is no longer silent. */
void hk_alerts_silent(struct hk_alerts *alerts, uint32_t slot, int64_t now);
/* Lists at most `most` slots of alerts whose sensors were found silent by `since`. Returns their number. */
uint32_t hk_alerts_long_silent(const struct hk_alerts *alerts, int64_t since, uint32_t *slots, uint32_t most);
/* The slot is about to be given to another sensor. */
void hk_alerts_forget(struct hk_alerts *alerts, uint32_t slot);

/* Acknowledges a standing alert (number 0: any number). Returns 0 and *told, its event; -ENOENT: it does not stand; -EALREADY: it
 * is acknowledged already: by whom, in `before`, and when, as the time of *told. by: 1 to HK_WHO_MAX bytes. */
int hk_alerts_acknowledge(struct hk_alerts *alerts, uint32_t slot, uint32_t number, struct hk_string by, int64_t when,
                          struct hk_event *told, char before[HK_WHO_MAX + 1]);

/* The standing alerts, *n of them, in no order. Valid until the next call. */
const struct hk_standing *hk_alerts_standing(const struct hk_alerts *alerts, uint32_t *n);

/* Numbers of alerts, for the status. */
#define HK_CHANNELS (HANKEL_NEARS_LIMIT + 1)
struct hk_alerts_sum {
  uint32_t standing, acknowledged;
  uint32_t of_channel[HK_CHANNELS]; /* standing ones, by enum hankel_channel */
};
/* The properties that determine the order of alerts. */
struct hk_standing_key {
  uint32_t slot;
  bool acknowledged;
  float severity;
  int64_t time; /* of the event, ns */
};
static inline struct hk_standing_key hk_standing_key(const struct hk_standing *s)
{
  return (struct hk_standing_key){ s->event.slot, s->acknowledged != 0, s->event.severity, s->event.time };
}
/* The order for people, for qsort: unacknowledged ones first, then by falling severity, then the latest. */
int hk_standing_order(const void *a, const void *b);
/* Copies at most `most` standing alerts, the first in that order, sorted; returns their number. Thread: any. */
uint32_t hk_alerts_show(struct hk_alerts *alerts, struct hk_standing *out, uint32_t most, struct hk_alerts_sum *sum);
/* Copies at most `most` keys of standing alerts; returns their number. Thread: any. */
uint32_t hk_alerts_keys(struct hk_alerts *alerts, struct hk_standing_key *out, uint32_t most);
/* Copies the standing alert of a sensor. False: none. Thread: any. */
bool hk_alerts_copy(struct hk_alerts *alerts, uint32_t slot, struct hk_standing *out);
/* Time of the point that raised the sensor's last alert, ns: since the start, or of one that stood then; 0: none. Thread: any. */
int64_t hk_alerts_changed(const struct hk_alerts *alerts, uint32_t slot);
/* Number of the sensor's last alert; 0: none. */
uint32_t hk_alerts_number(const struct hk_alerts *alerts, uint32_t slot);
/* Sequence of the sensor's last event, which counts noted events. 0: none. */
uint64_t hk_alerts_sequence(const struct hk_alerts *alerts, uint32_t slot);
/* Raises the sequence of the sensor's last event, and the number of its last alert, to at least these. */
void hk_alerts_reach(struct hk_alerts *alerts, uint32_t slot, uint64_t sequence, uint32_t number);
/* Counts n points with results, in order; sequence: receives the number of each within its sensor, from 1. */
void hk_alerts_count(struct hk_alerts *alerts, uint32_t n, const uint32_t *slot, uint64_t *sequence);

/* The memory of a sensor, for a snapshot. */
struct hk_alerts_memory {
  uint64_t points, events; /* sequences of the last ones */
  uint32_t number;
  bool stands;
  struct hk_standing standing; /* if `stands`; its slot is within the shard */
  /* of the flap limit */
  uint32_t raised; /* number of kept times */
  uint32_t held;   /* alerts held back since the last published one; 0: the sensor does not flap */
  int64_t time[HK_FLAP_MAX];
  struct hk_segments segments;
};
void hk_alerts_get(const struct hk_alerts *alerts, uint32_t slot, struct hk_alerts_memory *out);
/* Restores a slot without a standing alert. Returns 0, or -ENOMEM: the standing alert is not remembered. */
int hk_alerts_set(struct hk_alerts *alerts, uint32_t slot, const struct hk_alerts_memory *memory);

#endif
