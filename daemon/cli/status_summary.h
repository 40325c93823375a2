/* The first five lines of `hankel status`: what an operator looks at. */
#ifndef HK_STATUS_SUMMARY_H
#define HK_STATUS_SUMMARY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* Of a report of the daemon, and one of `seconds` before it, by which the points a second are told (NULL: since the start).
 * coloured: for a terminal that shows colours. True: nothing is wrong
 * with the daemon. */
bool hk_status_summary(FILE *out, const cJSON *report, const cJSON *before, double seconds, bool coloured);

#endif
