/* Quiet hours of a receiver: `quiet = 22:00-06:00`. Thread: any. */
#ifndef HK_NOTIFY_QUIET_H
#define HK_NOTIFY_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#define HK_ZONE_MOST 64 /* bytes of its name, with the 0 */

struct hk_notify_quiet {
  int32_t from, to;        /* seconds of the day, perhaps over midnight; the same: there are no quiet hours */
  double severity;         /* from which on an alert is told all the same */
  char zone[HK_ZONE_MOST]; /* hk_zone_known */
};

/* For a table of keys (section_keys.h): sets from and to, or zone. NULL, or what is wrong with the value. */
const char *hk_notify_quiet_hours(void *quiet, const char *value);
const char *hk_notify_quiet_zone(void *quiet, const char *value);
/* Whether they are at so many ns since the epoch. */
bool hk_notify_quiet_at(const struct hk_notify_quiet *quiet, int64_t time);

#endif
