/* Reader of recordings: CSV files with a header, or bare numbers.
 *
 *   open -> sensors, names -> next, next, ... -> close
 *
 * The file, as hankel(1) describes it: `,` or `;` between cells, whichever the header has more of; cells may be quoted; a byte
 * order mark, CRLF and blank lines are fine. The time column is the first whose header begins with `time` or `date` or is `ts`,
 * `t` or `epoch`; where none does, it is the first column. Every other column with a name is a sensor of that name, or those that
 * the caller picks. Times: see timestamp.h; the unit of epoch numbers is guessed from the first one and then kept. Numbers may
 * have a decimal comma where `;` separates. An empty cell (also null, na, n/a, none) is no point; `nan` and `inf` are points,
 * which every backend rejects. Anything else that is no number is an error. A line may end early (the rest is empty) but not have
 * more cells than the header.
 *
 * A file whose first line is one bare number has one sensor, named after the file, and so does a file with one column, named by
 * its header; their points are one second apart, from time 0.
 *
 * Memory is constant: one line, at most HK_CSV_LINE_MAX bytes. Errors name file and line. Thread: the caller's. */
#ifndef HK_CSV_H
#define HK_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CSV_LINE_MAX (1u << 20)

struct hk_csv;

/* Whether a name is written to CSV with an apostrophe before it, which this reader takes off a header's cell again: one that
 * begins with `=`, `+`, `-` or `@`, which a spreadsheet would run as a formula, or with `#`, as lines of events do; with
 * apostrophes before that, too, so that none is taken off that was not put there. Any thread. */
bool hk_csv_marks(const char *name);

struct hk_csv_config {
  const char *path;           /* "-" is standard input */
  const char *sensor;         /* name for the one sensor, in place of its header; NULL = the header */
  const char *const *columns; /* headers to take; none = all */
  uint32_t n_columns;
  int64_t unit; /* ns of the unit of epoch numbers; 0 = guess */
  bool now; /* a line's time is when it is read, ascending; only a column whose header says so is one of times, which are not read
             */
};

/* The points of one line. Owner: the reader, until the next call. */
struct hk_csv_row {
  int64_t time; /* ns since the epoch */
  uint32_t n;   /* points, 0..sensors */
  const uint32_t *sensor;
  const double *value;
};

/* Opens the file and reads its header. 0 and *out, or a negative errno with a message. */
int hk_csv_open(struct hk_csv **out, const struct hk_csv_config *config, char *error, size_t size);
void hk_csv_close(struct hk_csv *csv); /* NULL is fine */

uint32_t hk_csv_sensors(const struct hk_csv *csv);
const char *hk_csv_sensor(const struct hk_csv *csv, uint32_t sensor);
/* Header of the time column, without control characters; NULL: there is none. *named: it says that it is one; else it is taken
 * for being the first. Owner: the reader. */
const char *hk_csv_time(const struct hk_csv *csv, bool *named);

/* Next line with at least one point. 1, 0 at the end, or a negative errno with a message. */
int hk_csv_next(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size);

/* False when the next call may have to wait for a writer: a good time to hand on what was read. */
bool hk_csv_ready(const struct hk_csv *csv);

/* Descriptor to poll for input when it is not ready. */
int hk_csv_fd(const struct hk_csv *csv);

/* Share of the file that has been read, 0..1; negative when its size is not known. */
double hk_csv_progress(const struct hk_csv *csv);

#endif
