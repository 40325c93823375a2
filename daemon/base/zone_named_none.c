/* A daemon that is built without GLib. */
#include "daemon/base/zone_named.h"

bool hk_zone_named(const char *zone, int64_t seconds, int64_t *offset)
{
  (void)zone, (void)seconds, (void)offset;
  return false;
}
