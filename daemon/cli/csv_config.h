/* What is asked of the reader of recordings, and what it hands out. */
#ifndef HK_CSV_CONFIG_H
#define HK_CSV_CONFIG_H

#include "daemon/cli/csv_lines.h"
#include "daemon/cli/csv_number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_csv_config {
  const char *path;           /* "-" is standard input */
  const char *sensor;         /* name for the one sensor, in place of its header; NULL = the header */
  const char *const *columns; /* headers to take; none = all */
  uint32_t n_columns;
  int64_t unit; /* ns of the unit of epoch numbers; 0 = guess */
  bool now; /* a line's time is when it is read, ascending; only columns whose headers say so are of times, which are not read */
  const char *format;      /* of times, for strptime; NULL: guessed */
  const char *long_sensor; /* a line is one value of the sensor that this column names; NULL: a column is a sensor */
  const char *long_value;  /* header of its value */
  enum hk_decimal decimal; /* AUTO: guessed */
  bool skip_bad;           /* bad cells and lines are counted and told, and left out; otherwise they are errors */
  bool once;               /* a plain file is read as a pipe is */
  uint64_t most_sorted;    /* points of which the times are sorted; 0: as many as fit into a quarter of the machine's memory */
  /* What a person should know of how the file is read: "file: text", without a newline. NULL: not told. */
  void (*tell)(void *arg, const char *text);
  void *arg;
};

/* The points of one line. Owner: the reader, until the next call. */
struct hk_csv_row {
  int64_t time; /* ns since the epoch */
  uint32_t n;   /* points, 0..sensors */
  const uint32_t *sensor;
  const double *value;
};

#endif
