/* Quiet hours of a receiver: `quiet = 22:00-06:00`. Thread: any. */
#ifndef HK_NOTIFY_QUIET_H
#define HK_NOTIFY_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#define HK_ZONE_MOST 64 /* bytes of its name, with the 0 */

struct hk_notify_quiet {
  int32_t from, to;        /* seconds of the day, possibly over midnight; equal: no quiet hours */
  double severity;         /* alerts of at least this severity are sent regardless */
  char zone[HK_ZONE_MOST]; /* hk_zone_known */
};

/* For a table of keys (section_keys.h): set from and to, or zone. Return NULL, or what is wrong with the value. */
const char *hk_notify_quiet_hours(void *quiet, const char *value);
const char *hk_notify_quiet_zone(void *quiet, const char *value);
/* Whether it is quiet at a time, ns since the epoch. */
bool hk_notify_quiet_at(const struct hk_notify_quiet *quiet, int64_t time);

#endif
