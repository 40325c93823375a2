/* First pass through a recording, before its first point is returned. Thread: the caller's. */
#ifndef HK_CSV_SURVEY_H
#define HK_CSV_SURVEY_H

#include "daemon/cli/csv_reader.h"

/* Examines a plain file from its first line of data: columns of text, decimal sign, format of times, whether they ascend, and
 * errors. Returns 0, or a negative errno with a message. */
int hk_csv_survey(struct hk_csv *csv, char *error, size_t size);

#endif
