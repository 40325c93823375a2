/* The first five lines of `hankel status`: what an operator looks at. */
#ifndef HK_STATUS_SUMMARY_H
#define HK_STATUS_SUMMARY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints a status report. before: a report `seconds` older, for the points per second (NULL: average since the start). coloured:
 * for a terminal with colours. Returns whether the daemon has no fault. */
bool hk_status_summary(FILE *out, const cJSON *report, const cJSON *before, double seconds, bool coloured);

#define HK_STATUS_FAULTS_MAX 600
/* Writes what of the daemon itself is not as it should be, the gravest first, with ; between; "": nothing. */
void hk_status_faults(const cJSON *report, char text[HK_STATUS_FAULTS_MAX]);

#endif
