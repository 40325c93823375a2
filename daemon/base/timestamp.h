/* Times as people and files write them, to and from nanoseconds since the epoch. Pure functions. */
#ifndef HK_TIMESTAMP_H
#define HK_TIMESTAMP_H

#include "daemon/base/novelty_sentence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when text is written as a date (YYYY-MM-...), false when it may be an epoch number. */
bool hk_timestamp_is_date(const char *text);

/* Reads `YYYY-MM-DD`, followed by nothing or by `T` or a blank and `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fraction`, followed by
 * nothing (UTC), `Z` or an offset (`+hh`, `+hhmm`, `+hh:mm`). 0, -EINVAL when there is no such date, -ERANGE
 * outside 1678 to 2261. */
int hk_timestamp_parse_date(const char *text, int64_t *ns);

/* Reads a decimal number of units, `unit` ns each, exactly to the ns (further digits are cut off). 0, -EINVAL when it is
 * no number, -ERANGE when it does not fit. */
int hk_timestamp_parse_epoch(const char *text, int64_t unit, int64_t *ns);

/* The unit in ns that an epoch number is most likely in: seconds below 1e11, then ms, us and ns, a thousand times more each. */
int64_t hk_timestamp_guess_unit(const char *text);

#endif
