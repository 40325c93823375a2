/* [maintenance NAME] of the configuration. */
#ifndef HK_MAINTENANCE_RULE_H
#define HK_MAINTENANCE_RULE_H

#include "daemon/base/limits.h"

#include <stddef.h>
#include <stdint.h>

/* A maintenance window: from..to-1, or certain hours of each day in it. */
struct hk_maintenance_rule {
  char name[HK_CONFIG_NAME_MAX + 1]; /* of a window that a client requested: the client */
  char match[513];                   /* glob for names of sensors, ends with 0 */
  int64_t from, to;                  /* ns since the epoch; INT64_MAX: without end */
  int64_t duration;                  /* ns; only while it is read: determines `to` */
  int32_t daily_from, daily_to;      /* seconds of the day (UTC), possibly over midnight; equal: the whole day */
};

/* Sets a key of a rule: match, from, to, duration, daily. Returns 0, or -EINVAL with a message. */
int hk_maintenance_key(struct hk_maintenance_rule *rule, const char *name, const char *value, char *error, size_t size);
/* Parses two different times of the day such as 22:00-04:30, as seconds. Returns 0 or -EINVAL. */
int hk_daily_parse(const char *text, int32_t *from, int32_t *to);
/* Checks the whole rule. Returns 0, or -EINVAL with a message. */
int hk_maintenance_finish(struct hk_maintenance_rule *rule, char *error, size_t size);

#endif
