/* Reader of recordings: CSV files as programs and people write them, or bare numbers.
 *
 *   open -> sensors, names -> next, next, ... -> close
 *
 * What is taken as what is described in hankel(1), RECORDINGS. A plain file is read twice: the first time to see how its numbers
 * and times are written, which columns are text and whether anything is wrong, so that an error is told before the first point is
 * handed out; descending times are sorted, in memory. A pipe is read once, and its first line of data decides.
 *
 * Memory is constant (one line, at most HK_CSV_LINE_MAX bytes) but for what is sorted, and the names of long recordings. Errors
 * name file and line. Thread: the caller's. */
#ifndef HK_CSV_H
#define HK_CSV_H

#include "daemon/cli/csv_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_csv;

/* Opens the file and reads its header. 0 and *out, or a negative errno with a message. */
int hk_csv_open(struct hk_csv **out, const struct hk_csv_config *config, char *error, size_t size);
void hk_csv_close(struct hk_csv *csv); /* NULL is allowed */

/* How many there are. Of a long recording on a pipe, those seen so far. */
uint32_t hk_csv_sensors(const struct hk_csv *csv);
/* Every sensor is known: not a long recording on a pipe. */
bool hk_csv_sensors_known(const struct hk_csv *csv);
const char *hk_csv_sensor(const struct hk_csv *csv, uint32_t sensor);
/* Header of the time column, without control characters; NULL: there is none. *named: it says that it is one; else it is taken
 * for being the first. Owner: the reader. */
const char *hk_csv_time(const struct hk_csv *csv, bool *named);

/* The sensors have no name but the file's: bare numbers. */
bool hk_csv_bare(const struct hk_csv *csv);
/* Cells and lines that were left out as bad. */
uint64_t hk_csv_bad(const struct hk_csv *csv);

/* Next line with at least one point. 1, 0 at the end, or a negative errno with a message. */
int hk_csv_next(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size);

/* False when the next call may have to wait for a writer: a good time to hand on what was read. */
bool hk_csv_ready(const struct hk_csv *csv);

/* Descriptor to poll for input when it is not ready. */
int hk_csv_fd(const struct hk_csv *csv);

/* Share of the file that has been read, 0..1; negative when its size is not known. */
double hk_csv_progress(const struct hk_csv *csv);

#endif
