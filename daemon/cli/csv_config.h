/* Options and results of the reader of recordings. */
#ifndef HK_CSV_CONFIG_H
#define HK_CSV_CONFIG_H

#include "daemon/cli/csv_lines.h"
#include "daemon/cli/csv_number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_csv_config {
  const char *path;           /* "-" is standard input */
  const char *sensor;         /* name of the only sensor; NULL: its header */
  const char *const *columns; /* headers of the columns to read; none: all */
  uint32_t n_columns;
  int64_t unit;            /* unit of epoch numbers, ns; 0: guessed */
  bool now;                /* the time of a line is when it is read, ascending; columns with a header of times are ignored */
  const char *format;      /* strptime format of times; NULL: guessed */
  const char *long_sensor; /* column with the sensor's name, if each line has one value; NULL: each column is a sensor */
  const char *long_value;  /* header of its value */
  enum hk_decimal decimal; /* AUTO: guessed */
  bool skip_bad;           /* omit, count and report bad cells and lines; otherwise they are errors */
  bool once;               /* read a plain file only once, like a pipe */
  uint64_t most_sorted;    /* maximum number of points to sort; 0: as many as fit into a quarter of the machine's memory */
  /* Receives notes for people on how the file is read: "file: text", without a newline. NULL: none. */
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
