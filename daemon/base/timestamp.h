/* Parses dates and epoch numbers into nanoseconds since the epoch. Pure functions. */
#ifndef HK_TIMESTAMP_H
#define HK_TIMESTAMP_H

#include "daemon/base/novelty_sentence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the days from 1970-01-01 to a date; year >= 1, month: 1..12. Returns 0, or -EINVAL for one that does not exist, such as
 * 30 February. */
int hk_timestamp_days(int year, int month, int day, int64_t *days);
/* Whether the text is a date (YYYY-MM-...) and not an epoch number. */
bool hk_timestamp_is_date(const char *text);

/* Parses `YYYY-MM-DD`, optionally followed by `T` or a space and `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fraction`, then optionally by
 * `Z` or an offset (`+hh`, `+hhmm`, `+hh:mm`). Without an offset the time is UTC. Returns 0, -EINVAL if there is no such date, or
 * -ERANGE outside 1678 to 2261. */
int hk_timestamp_parse_date(const char *text, int64_t *ns);

/* Parses a decimal number of units of `unit` ns each, exact to the ns (further digits are truncated). Returns 0, -EINVAL if it is
 * not a number, or -ERANGE if it does not fit. */
int hk_timestamp_parse_epoch(const char *text, int64_t unit, int64_t *ns);

/* The most likely unit of an epoch number, in ns: seconds below 1e11, ms below 1e14, us below 1e17, else ns. */
int64_t hk_timestamp_guess_unit(const char *text);

#endif
