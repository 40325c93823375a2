#include "daemon/base/zone.h"

#include "daemon/base/zone_named.h"

#include <string.h>
#include <time.h>

#define DAY 86400

static bool is_local(const char *zone)
{
  return strcmp(zone, "local") == 0;
}

static bool is_utc(const char *zone)
{
  return strcmp(zone, "UTC") == 0;
}

bool hk_zone_known(const char *zone)
{
  int64_t offset;
  return is_local(zone) || is_utc(zone) || hk_zone_named(zone, 0, &offset);
}

int32_t hk_zone_second(const char *zone, int64_t seconds)
{
  const time_t when = (time_t)seconds;
  struct tm there;
  int64_t offset = 0;
  if (is_local(zone))
    offset = localtime_r(&when, &there) ? there.tm_gmtoff : 0;
  else if (!is_utc(zone) && !hk_zone_named(zone, seconds, &offset))
    offset = 0;
  return (int32_t)(((seconds + offset) % DAY + DAY) % DAY);
}
