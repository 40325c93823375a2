/* Converts lines of data into points. Thread: the caller's. */
#ifndef HK_CSV_ROW_H
#define HK_CSV_ROW_H

#include "daemon/cli/csv_reader.h"

/* Reads the next line of data and splits it into csv->cell. Returns 1, 0 at the end, or a negative errno with a message; -EINVAL
 * if only this line is invalid. */
int hk_csv_line(struct hk_csv *csv, char *error, size_t size);

/* Text of the time of the last line. `joined`: buffer for joining a date and a separate time of day. */
#define HK_CSV_JOINED 128
const char *hk_csv_time_cell(const struct hk_csv *csv, char *joined);

/* Reads the next points in the order of the file; returns as hk_csv_next. */
int hk_csv_row(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size);

#endif
