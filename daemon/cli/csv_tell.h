/* What a person is told of how a recording is read. Thread: the caller's. */
#ifndef HK_CSV_TELL_H
#define HK_CSV_TELL_H

#include "daemon/cli/csv_reader.h"

/* Says how the file is read, with its name before it; nothing while it is looked through. */
void hk_csv_tell(struct hk_csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says that what a message tells is left out. */
void hk_csv_tell_wrong(struct hk_csv *csv, const char *error);
/* Says in which order the numbers of dates are taken. */
void hk_csv_tell_order(struct hk_csv *csv, const struct hk_csv_votes *votes);

/* -EINVAL and the message that a time cannot be read, by what hk_csv_time_read gave. */
int hk_csv_wrong_time(const struct hk_csv *csv, int status, const char *cell, char *error, size_t size);
/* Likewise, that day first and month first both fit. */
int hk_csv_ask_order(const struct hk_csv *csv, const struct hk_csv_votes *votes, char *error, size_t size);

#endif
