/* Reader of recordings: CSV files of programs and people, or files of bare numbers.
 *
 *   open -> sensors, names -> next, next, ... -> close
 *
 * hankel(1), RECORDINGS, describes the accepted formats. A plain file is read twice. The first pass determines the format of
 * numbers and times and the columns of text, and checks all lines, so that an error is reported before the first point is
 * returned. Points whose times do not ascend are sorted in memory. A pipe is read once; its first line of data determines the
 * format.
 *
 * Memory is constant (one line, at most HK_CSV_LINE_MAX bytes), except for sorted points and the names of long recordings. Errors
 * name file and line. Thread: the caller's. */
#ifndef HK_CSV_H
#define HK_CSV_H

#include "daemon/cli/csv_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_csv;

/* Opens the file and reads its header. Returns 0 and *out, or a negative errno with a message. */
int hk_csv_open(struct hk_csv **out, const struct hk_csv_config *config, char *error, size_t size);
void hk_csv_close(struct hk_csv *csv); /* NULL is allowed */

/* Number of sensors; of a long recording on a pipe, those seen so far. */
uint32_t hk_csv_sensors(const struct hk_csv *csv);
/* Whether all sensors are known; false for a long recording on a pipe. */
bool hk_csv_sensors_known(const struct hk_csv *csv);
const char *hk_csv_sensor(const struct hk_csv *csv, uint32_t sensor);
/* Header of the time column, without control characters; NULL: no time column. *named: whether the header names a time; if not,
 * the column was chosen because it is the first. Owner: the reader. */
const char *hk_csv_time(const struct hk_csv *csv, bool *named);

/* Whether the file has bare numbers, and so no name of a sensor but its own. */
bool hk_csv_bare(const struct hk_csv *csv);
/* Number of cells and lines omitted as bad. */
uint64_t hk_csv_bad(const struct hk_csv *csv);

/* Reads the next line with at least one point. Returns 1, 0 at the end, or a negative errno with a message. */
int hk_csv_next(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size);

/* False if the next call may block on a slow writer: forward what was read before. */
bool hk_csv_ready(const struct hk_csv *csv);

/* Descriptor to poll for input when the reader is not ready. */
int hk_csv_fd(const struct hk_csv *csv);

/* Share of the file read so far, 0..1; negative if its size is unknown. */
double hk_csv_progress(const struct hk_csv *csv);

#endif
