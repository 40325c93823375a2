/* Time zones: the local time of day in a zone. Those with a name need GLib, since the C library has one zone per process; without
 * it only UTC and the local zone are known. Thread: any. */
#ifndef HK_ZONE_H
#define HK_ZONE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a zone exists: `local` (the process's: TZ, else the machine's), `UTC`, or a name of the IANA database such as
 * Europe/Berlin. */
bool hk_zone_known(const char *zone);
/* Seconds since local midnight in a zone, 0 to 86399, at `seconds` since the epoch. zone: an existing one; if its file was
 * removed since, UTC is used. */
int32_t hk_zone_second(const char *zone, int64_t seconds);

#endif
