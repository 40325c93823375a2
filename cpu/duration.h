/* Parses durations: 250ms, 5m, 5min, 2 hours, 1 min 30 s, 1h30m, 90 (seconds). Pure functions; any thread. */
#ifndef HK_DURATION_H
#define HK_DURATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parses a number and a unit, or several of these with descending units, optionally separated by blanks, commas or "and"; a
 * number alone is in seconds. Units are those of systemd.time(7) without months and years: ns, us, ms, s, m, h, d, w and their
 * longer names. Returns 0 and *ns, at least 1, or -EINVAL with *ns unchanged. */
int hk_duration_parse(const char *text, int64_t *ns);

#ifdef __cplusplus
}
#endif
#endif
