/* Zones of the IANA database, by GLib, which is loaded for the first of them. For zone.c alone. Thread: any. */
#ifndef HK_ZONE_NAMED_H
#define HK_ZONE_NAMED_H

#include <stdbool.h>
#include <stdint.h>

/* Sets what its local time is ahead of UTC, s, at `seconds` since the epoch. False: there is no such zone, or no GLib. */
bool hk_zone_named(const char *zone, int64_t seconds, int64_t *offset);

#endif
