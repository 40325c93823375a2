/* Durations as people write them: 250ms, 5m, 5min, 2 hours, 1 min 30 s, 1h30m, 90 (seconds). Pure functions; any thread. */
#ifndef HK_DURATION_H
#define HK_DURATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a number and a unit, or several of them, each of a smaller unit than the one before, with or without blanks, commas or
 * "and" between; a number alone is of seconds. Units are those of systemd.time(7) but for months and years: ns, us, ms, s, m, h,
 * d, w and their longer names. 0 and *ns, at least 1, or -EINVAL and *ns untouched. */
int hk_duration_parse(const char *text, int64_t *ns);

#ifdef __cplusplus
}
#endif
#endif
