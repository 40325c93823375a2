/* Alerts: the published state of each sensor's alerts: the standing one, who has acknowledged it, and the number of alerts; the
 * numbers of the sensor's results and events, which are their sequence numbers; and the flap limit.
 *
 * The alerts themselves are decided in the backend. When its device is lost, or a sensor is evicted, the alerts that stood there
 * would stay open with subscribers for ever, and the numbers of later ones start over: this remembers what is needed to clear
 * the first and to go on with the second. Nothing here is touched by points that cause no event.
 *
 * The flap limit: with more than `flap_limit` alerts raised within `flap_within`, by the points' times, a sensor flaps. The alert
 * that is one too many is told as HK_EVENT_FLAPPING, and it and all that follow are held back: none of their events is told, and
 * they have no sequence. An alert that comes more than `flap_within` behind the one before it is told again, with how many were
 * held back. So what is held back depends on the sensor's own events alone, and is the same when they happen again in a replay.
 *
 * And of sensors with alerts of the channel `change`, what their last segments were like (cpu/rules/segments.h).
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_ALERTS_H
#define HK_ALERTS_H

#include "cpu/backend.h"
#include "cpu/rules/segments.h"
#include "daemon/base/limits.h"
#include "proto/wire/message.h"

#include <stdbool.h>

struct hk_alerts;

/* An alert that stands. */
struct hk_standing {
  struct hk_event event;   /* the latest */
  int64_t acknowledged;    /* ns, wall clock: when; 0: not acknowledged */
  char by[HK_WHO_MAX + 1]; /* who */
  int64_t silent;          /* ns, hk_now: when its sensor was found silent; 0: it is not */
};

/* Slots are below max_sensors. 0 and *out, or -ENOMEM. */
int hk_alerts_new(struct hk_alerts **out, uint32_t max_sensors);
void hk_alerts_free(struct hk_alerts *alerts); /* NULL is allowed */

/* Passes an event of a backend through the flap limit (0: none), and completes it with the memory of its alert and of earlier
 * segments. False: it is not to be published: held back, or of an alert whose end was published without the backend. */
bool hk_alerts_pass(struct hk_alerts *alerts, struct hk_event *event, uint32_t limit, int64_t within);
/* An event or a notice is about to be published. 0, or -ENOMEM: an alert that was raised is not remembered. */
int hk_alerts_note(struct hk_alerts *alerts, const struct hk_event *event);
/* Ends a standing alert. True and *cleared, its event: the alert as last published, at that time; it is to be noted like any
 * other. */
bool hk_alerts_clear(struct hk_alerts *alerts, uint32_t slot, struct hk_event *cleared);
/* A sensor was found silent at `now`, hk_now, or, with 0, is back: its alert remembers it. */
void hk_alerts_silent(struct hk_alerts *alerts, uint32_t slot, int64_t now);
/* Slots of the alerts whose sensors were found silent by `since`, at most `most`. Their number. */
uint32_t hk_alerts_long_silent(const struct hk_alerts *alerts, int64_t since, uint32_t *slots, uint32_t most);
/* The slot is about to be another sensor's. */
void hk_alerts_forget(struct hk_alerts *alerts, uint32_t slot);

/* Acknowledges a standing alert (number 0: any number). 0 and *told, its event; -ENOENT: it does not stand; -EALREADY: it is
 * acknowledged already: by whom, into `before`, and when, as the time of *told. by: 1 to HK_WHO_MAX bytes.
 */
int hk_alerts_acknowledge(struct hk_alerts *alerts, uint32_t slot, uint32_t number, struct hk_string by, int64_t when,
                          struct hk_event *told, char before[HK_WHO_MAX + 1]);

/* Alerts that stand: `n` of them, in no order. Valid until the next call. */
const struct hk_standing *hk_alerts_standing(const struct hk_alerts *alerts, uint32_t *n);

/* How they are, for the status. */
#define HK_CHANNELS (HANKEL_NEARS_LIMIT + 1)
struct hk_alerts_sum {
  uint32_t standing, acknowledged;
  uint32_t of_channel[HK_CHANNELS]; /* standing ones, by enum hankel_channel */
};
/* What it takes to choose among them. */
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
/* Copies `most` of the alerts that stand, the first by that order, in it; returns how many. Thread: any. */
uint32_t hk_alerts_show(struct hk_alerts *alerts, struct hk_standing *out, uint32_t most, struct hk_alerts_sum *sum);
/* Copies the keys of up to `most` of them; returns how many. Thread: any. */
uint32_t hk_alerts_keys(struct hk_alerts *alerts, struct hk_standing_key *out, uint32_t most);
/* Copies the alert that stands at a sensor. False: none does. Thread: any. */
bool hk_alerts_copy(struct hk_alerts *alerts, uint32_t slot, struct hk_standing *out);
/* Time of the point that raised the sensor's last alert, ns: since the start, or of one that stood then; 0: none. Thread: any. */
int64_t hk_alerts_changed(const struct hk_alerts *alerts, uint32_t slot);
/* Number of the sensor's last alert; 0: there was none. */
uint32_t hk_alerts_number(const struct hk_alerts *alerts, uint32_t slot);
/* Sequence of the sensor's last event: it counts noted events. 0: none. */
uint64_t hk_alerts_sequence(const struct hk_alerts *alerts, uint32_t slot);
/* The sequence of the sensor's last event, and the number of its last alert, are at least these. */
void hk_alerts_reach(struct hk_alerts *alerts, uint32_t slot, uint64_t sequence, uint32_t number);
/* Counts n points, in order, that have results; sequence: receives the number of each among its sensor's, from 1 on. */
void hk_alerts_count(struct hk_alerts *alerts, uint32_t n, const uint32_t *slot, uint64_t *sequence);

/* All that is remembered of a sensor, for a snapshot. */
struct hk_alerts_memory {
  uint64_t points, events; /* sequences of the last ones */
  uint32_t number;
  bool stands;
  struct hk_standing standing; /* if one does; its slot is within the shard */
  /* of the flap limit */
  uint32_t raised; /* times that are kept */
  uint32_t held;   /* alerts held back since the last published one; 0: the sensor does not flap */
  int64_t time[HK_FLAP_MAX];
  struct hk_segments segments;
};
void hk_alerts_get(const struct hk_alerts *alerts, uint32_t slot, struct hk_alerts_memory *out);
/* Of a slot where no alert stands. 0, or -ENOMEM: the alert that stands is not remembered. */
int hk_alerts_set(struct hk_alerts *alerts, uint32_t slot, const struct hk_alerts_memory *memory);

#endif
