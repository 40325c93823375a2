/* [maintenance NAME] of the configuration. */
#ifndef HK_MAINTENANCE_RULE_H
#define HK_MAINTENANCE_RULE_H

#include "daemon/base/limits.h"

#include <stddef.h>
#include <stdint.h>

/* A maintenance window: from..to-1, and of that, where there are such, certain hours of the day. */
struct hk_maintenance_rule {
  char name[HK_CONFIG_NAME_MAX + 1]; /* of a window that a client asked for: who did */
  char match[513];                   /* glob on names of sensors, ends with 0 */
  int64_t from, to;                  /* ns since the epoch; INT64_MAX: without end */
  int64_t duration;                  /* ns; while it is read: what `to` is made of */
  int32_t daily_from, daily_to;      /* seconds of the day (UTC), perhaps over midnight; the same: all of it */
};

/* Sets a key of a rule: match, from, to, duration, daily. 0, or -EINVAL with a message. */
int hk_maintenance_key(struct hk_maintenance_rule *rule, const char *name, const char *value, char *error, size_t size);
/* Two times of the day such as 22:00-04:30, as seconds; not the same. 0 or -EINVAL. */
int hk_daily_parse(const char *text, int32_t *from, int32_t *to);
/* What can only be said of a whole rule. 0, or -EINVAL with a message. */
int hk_maintenance_finish(struct hk_maintenance_rule *rule, char *error, size_t size);

#endif
