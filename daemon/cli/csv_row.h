/* Lines of data into points. Thread: the caller's. */
#ifndef HK_CSV_ROW_H
#define HK_CSV_ROW_H

#include "daemon/cli/csv_reader.h"

/* Next line of data, split into csv->cell. 1, 0 at the end, or a negative errno with a message; -EINVAL where the line alone is
 * wrong. */
int hk_csv_line(struct hk_csv *csv, char *error, size_t size);

/* The text of the last line's time; `joined` has room for a date and a time of day that stand apart. */
#define HK_CSV_JOINED 128
const char *hk_csv_time_cell(const struct hk_csv *csv, char *joined);

/* Next points in the order of the file, as hk_csv_next. */
int hk_csv_row(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size);

#endif
