#include "daemon/config/notify_quiet.h"

#include "cpu/library.h"
#include "cpu/sonames.h"
#include "daemon/base/zone.h"
#include "daemon/config/maintenance_rule.h"

#include <string.h>

#define SECOND 1000000000ll

const char *hk_notify_quiet_hours(void *quiet, const char *value)
{
  struct hk_notify_quiet *q = quiet;
  return hk_daily_parse(value, &q->from, &q->to) != 0 ? "not two times of the day such as 22:00-06:00" : NULL;
}

/* Why a zone is not known. */
static const char *zone_lacks(void)
{
#ifdef HK_SONAME_GLIB_2_0
  if (hk_library_find(HK_SONAME_GLIB_2_0, NULL, 0) != 0)
    return "zones other than local and UTC need " HK_SONAME_GLIB_2_0 ", which cannot be loaded here";
  return "not local, UTC, or a time zone such as Europe/Berlin that this machine knows (package tzdata)";
#else
  return "not local or UTC; zones with a name need a hankeld that is built with GLib";
#endif
}

const char *hk_notify_quiet_zone(void *quiet, const char *value)
{
  struct hk_notify_quiet *q = quiet;
  if (strlen(value) >= sizeof q->zone || !hk_zone_known(value))
    return zone_lacks();
  memset(q->zone, 0, sizeof q->zone);
  memcpy(q->zone, value, strlen(value));
  return NULL;
}

bool hk_notify_quiet_at(const struct hk_notify_quiet *q, int64_t time)
{
  if (q->from == q->to)
    return false;
  const int32_t now = hk_zone_second(q->zone, time / SECOND);
  return q->from < q->to ? now >= q->from && now < q->to : now >= q->from || now < q->to;
}
