/* A recording is looked through before the first of its points is handed out. Thread: the caller's. */
#ifndef HK_CSV_SURVEY_H
#define HK_CSV_SURVEY_H

#include "daemon/cli/csv_reader.h"

/* Looks through a plain file, from its first line of data on: columns of text, decimal sign, how times are written, whether they
 * descend, and what is wrong. 0, or a negative errno with a message. */
int hk_csv_survey(struct hk_csv *csv, char *error, size_t size);

#endif
