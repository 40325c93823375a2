/* The alert rule of one sensor: from scores to events. Written once, for every backend (see window.h for how). */
#ifndef HK_ALERT_H
#define HK_ALERT_H

#include "cpu/window.h"

enum hk_event_kind {
  HK_EVENT_RAISED = 1,
  HK_EVENT_CORRECTED = 2, /* the change instant of a raised alert is known better now */
  HK_EVENT_CLEARED = 3,
  HK_EVENT_STALE = 4, /* notices: a sensor gone silent, or back */
  HK_EVENT_BACK = 5,
  HK_EVENT_IDLE = 6, /* silent for longer than the sweep's idle limit: may be evicted; not published */
};

/* An event (raised, corrected, cleared) or a notice (stale, back). Plain data. */
struct hk_event {
  uint32_t index;  /* of the point in its batch that caused it; UINT32_MAX for a notice */
  uint32_t slot;
  uint32_t number; /* n of the id `sensor:n`, counted from 1 for each sensor; 0 for a notice */
  uint8_t kind;    /* enum hk_event_kind */
  int64_t time;    /* ns: of the point; for a notice, of the sensor's last point */
  int64_t from;    /* ns: start of the interval [T-2w+2, T] that the alert was raised on; 0 for a notice */
  int64_t instant; /* ns: estimate of the change instant; 0 for a notice */
  float score;     /* raised: the score; corrected and cleared: the highest since it was raised */
  double before;   /* level (mean of the values) before and after the change, in the sensor's units */
  double after;
};

/* State of a sensor's alerts; at most 112 bytes. All zero is a sensor with none. */
struct hk_alert {
  int64_t from, instant;
  double before, after;
  float peak;
  uint32_t number;
  uint32_t over;   /* consecutive scores over the threshold */
  uint32_t quiet;  /* samples of cool-down left */
  uint8_t raised;
  uint8_t unused[7];
};

/* Takes one accepted point (state warming, ok or gap). z and share: the score and the share of the present's energy held by
 * its leading direction, both NaN when no score was due. ring: as the window left it. Returns 1 when an event was written
 * to *e (all fields but index and slot), else 0. At most one event a point. */
HK_INLINE int hk_alert_decide(struct hk_alert *a, const struct hk_window *w, const hk_real *ring, const struct hk_detector *d,
                              struct hk_step step, double z, double share, struct hk_event *e)
{
  (void)ring;
  (void)share;
  const int64_t interval = hk_window_interval(w, d);
  memset(e, 0, sizeof *e);
  e->time = w->last_time;
  if (a->raised && (step.restarted || (step.score && z < (double)(d->threshold * d->clear)))) {
    a->raised = 0;
    e->kind = HK_EVENT_CLEARED;
  } else if (!a->raised && step.score && step.state == HK_STATE_OK && d->alert == HK_ALERT_FIXED && z >= (double)d->threshold) {
    a->raised = 1;
    a->number++;
    a->peak = (float)z;
    a->from = w->last_time - (2 * (int64_t)d->window - 2) * interval;
    a->instant = w->last_time - ((int64_t)d->window - 1 + d->gap / 2) * interval;
    e->kind = HK_EVENT_RAISED;
  } else {
    return 0;
  }
  e->number = a->number;
  e->from = a->from;
  e->instant = a->instant;
  e->score = a->peak;
  return 1;
}

#endif
