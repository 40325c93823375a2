/* Late points: sensors of which for a while all points are late are to be named in the log and in the status, as those of a
 * sender whose clock was set back. Repeats after a reconnection, which are late by design, are over sooner. Derived points do not
 * count here (late_results.h). */
#ifndef HK_LATE_POINTS_H
#define HK_LATE_POINTS_H

#include "daemon/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HK_LATE_SENSORS 16u            /* watched at a time */
#define HK_LATE_PATIENCE 10000000000LL /* ns for which all points of a sensor are late before it is named */
#define HK_LATE_FRESH 60000000000LL    /* ns for which a sensor without points is remembered */

struct hk_late_sensor {
  uint32_t slot;       /* within the shard */
  bool named;          /* in the log */
  int64_t first, last; /* ns, hk_now: when its late points came, with none in between that was not late */
};

/* All zero: none was late. Thread: the shard's; hk_late_shown: any. */
struct hk_late_points {
  struct hk_late_sensor sensor[HK_LATE_SENSORS];
  uint32_t n;
  uint64_t slots; /* bit slot % 64 of each is set, others may be */
  struct hk_log_quota quota;
  int64_t since; /* ns, hk_now: of points and late */
  uint64_t points, late;
  _Atomic int64_t when;   /* ns, hk_now: the last late point of `shown` */
  _Atomic uint32_t shown; /* the slot within the shard of a named sensor, + 1; 0: none */
  atomic_bool mostly;     /* in the last full 10 s with points most were late */
};

/* A point of a sensor was late, at `now`; returns whether the sensor is to be named, once. */
bool hk_late_take(struct hk_late_points *late, uint32_t slot, int64_t now);
/* A point of a sensor was not late. */
void hk_late_end(struct hk_late_points *late, uint32_t slot);
/* n points have come, of which so many were late. */
void hk_late_count(struct hk_late_points *late, uint32_t n, uint32_t of_these, int64_t now);
/* Whether most points are late now, and *slot, within the shard, is a sensor of which all are. */
bool hk_late_shown(const struct hk_late_points *late, int64_t now, uint32_t *slot);

#endif
