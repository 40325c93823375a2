#include "daemon/base/zone_named.h"

#include "cpu/library.h"
#include "cpu/sonames.h"

#include <glib.h>
#include <pthread.h>

#define GLIB_CALLS(_)                                                                                                            \
  _(g_, time_zone_new_identifier)                                                                                                \
  _(g_, time_zone_find_interval)                                                                                                 \
  _(g_, time_zone_get_offset)                                                                                                    \
  _(g_, time_zone_unref)

static struct {
  GLIB_CALLS(HK_LIBRARY_CALL)
} glib;
static struct hk_library glib_library = HK_LIBRARY(HK_SONAME_GLIB_2_0, glib, GLIB_CALLS);

/* GLib keeps the zones that are in use, and has a lock of its own for that, which a thread sanitizer cannot see. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool hk_zone_named(const char *zone, int64_t seconds, int64_t *offset)
{
  if (hk_library_load(&glib_library, NULL, 0) != 0)
    return false;
  pthread_mutex_lock(&lock);
  GTimeZone *z = glib.time_zone_new_identifier(zone);
  if (z) {
    const gint interval = glib.time_zone_find_interval(z, G_TIME_TYPE_UNIVERSAL, seconds);
    *offset = interval >= 0 ? glib.time_zone_get_offset(z, interval) : 0;
    glib.time_zone_unref(z);
  }
  pthread_mutex_unlock(&lock);
  return z != NULL;
}
