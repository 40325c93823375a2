/* Reports to people how a recording is read. Thread: the caller's. */
#ifndef HK_CSV_TELL_H
#define HK_CSV_TELL_H

#include "daemon/cli/csv_reader.h"

/* Reports how the file is read, prefixed with its name; does nothing during the first pass. */
void hk_csv_tell(struct hk_csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports a bad cell or line, given by an error message, that is omitted. */
void hk_csv_tell_wrong(struct hk_csv *csv, const char *error);
/* Reports the assumed order of the numbers of dates, and a --unit that nothing uses. */
void hk_csv_tell_times(struct hk_csv *csv, const struct hk_csv_votes *votes);

/* Formats the message that a time cannot be parsed. status: from hk_csv_time_read. Returns -EINVAL. */
int hk_csv_wrong_time(const struct hk_csv *csv, int status, const char *cell, char *error, size_t size);
/* Formats the message that day first and month first both fit. Returns -EINVAL. */
int hk_csv_ask_order(const struct hk_csv *csv, const struct hk_csv_votes *votes, char *error, size_t size);

#endif
