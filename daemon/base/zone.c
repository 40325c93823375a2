#include "daemon/base/zone.h"

#include <glib.h>
#include <pthread.h>
#include <string.h>

#define DAY 86400

/* GLib keeps the zones that are in use, and has a lock of its own for that, which a thread sanitizer cannot see. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static GTimeZone *open_zone(const char *zone)
{
  return strcmp(zone, "local") == 0 ? g_time_zone_new_local() : g_time_zone_new_identifier(zone);
}

bool hk_zone_known(const char *zone)
{
  pthread_mutex_lock(&lock);
  GTimeZone *z = open_zone(zone);
  if (z)
    g_time_zone_unref(z);
  pthread_mutex_unlock(&lock);
  return z != NULL;
}

int32_t hk_zone_second(const char *zone, int64_t seconds)
{
  int64_t offset = 0;
  pthread_mutex_lock(&lock);
  GTimeZone *z = open_zone(zone);
  if (z) {
    const gint interval = g_time_zone_find_interval(z, G_TIME_TYPE_UNIVERSAL, seconds);
    offset = interval >= 0 ? g_time_zone_get_offset(z, interval) : 0;
    g_time_zone_unref(z);
  }
  pthread_mutex_unlock(&lock);
  return (int32_t)(((seconds + offset) % DAY + DAY) % DAY);
}
