#include "daemon/config/notify_quiet.h"

#include "daemon/base/zone.h"
#include "daemon/config/maintenance_rule.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll

const char *hk_notify_quiet_key(struct hk_notify_quiet *q, const char *name, const char *value, bool *known)
{
  char *end;
  *known = true;
  if (strcmp(name, "quiet") == 0)
    return hk_daily_parse(value, &q->from, &q->to) != 0 ? "not two times of the day such as 22:00-06:00" : NULL;
  if (strcmp(name, "quiet_severity") == 0) {
    q->severity = strtod(value, &end);
    return end == value || *end || !(q->severity >= 0 && q->severity <= 40) ? "not a number from 0 to 40" : NULL;
  }
  if (strcmp(name, "quiet_zone") == 0) {
    if (strlen(value) >= sizeof q->zone || !hk_zone_known(value))
      return "not local, UTC, or a time zone such as Europe/Berlin that this machine knows (package tzdata; named zones need a "
             "hankeld that is built with GLib)";
    memset(q->zone, 0, sizeof q->zone);
    memcpy(q->zone, value, strlen(value));
    return NULL;
  }
  *known = false;
  return NULL;
}

bool hk_notify_quiet_at(const struct hk_notify_quiet *q, int64_t time)
{
  if (q->from == q->to)
    return false;
  const int32_t now = hk_zone_second(q->zone, time / SECOND);
  return q->from < q->to ? now >= q->from && now < q->to : now >= q->from || now < q->to;
}
