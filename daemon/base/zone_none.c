/* A daemon without GLib: the zones that the C library knows. */
#include "daemon/base/zone.h"

#include <string.h>
#include <time.h>

#define DAY 86400

bool hk_zone_known(const char *zone)
{
  return strcmp(zone, "local") == 0 || strcmp(zone, "UTC") == 0;
}

int32_t hk_zone_second(const char *zone, int64_t seconds)
{
  const time_t when = (time_t)seconds;
  struct tm there;
  if (strcmp(zone, "local") == 0 && localtime_r(&when, &there))
    return there.tm_hour * 3600 + there.tm_min * 60 + (there.tm_sec < 60 ? there.tm_sec : 59);
  return (int32_t)((seconds % DAY + DAY) % DAY);
}
