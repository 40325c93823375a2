/* Time zones: what time of the day it is somewhere. By GLib, since the C library knows one zone a process; without it there are
 * UTC and the zone of this machine. Thread: any. */
#ifndef HK_ZONE_H
#define HK_ZONE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a zone is known: `local` (of the process: TZ, else the machine's), `UTC`, or a name of the IANA data base such as
 * Europe/Berlin. */
bool hk_zone_known(const char *zone);
/* Seconds since midnight there, by its clocks, 0 to 86399, at so many seconds since the epoch. zone: known; one that is known no
 * more (its file is gone) is taken for UTC. */
int32_t hk_zone_second(const char *zone, int64_t seconds);

#endif
