/* State of the reader of recordings, shared by csv.c (opens), csv_survey.c (first pass) and csv_row.c (reads). */
#ifndef HK_CSV_READER_H
#define HK_CSV_READER_H

#include "daemon/cli/csv_columns.h"
#include "daemon/cli/csv_config.h"
#include "daemon/cli/csv_header.h"
#include "daemon/cli/csv_names.h"
#include "daemon/cli/csv_sorted.h"
#include "daemon/cli/csv_time.h"

struct hk_csv {
  struct hk_csv_config config;
  const char *path; /* for messages */
  struct hk_csv_lines *lines;
  struct hk_csv_header header;
  struct hk_csv_columns columns;
  struct hk_csv_times times;
  struct hk_csv_names names; /* long recordings */
  struct hk_csv_sorted sorted;
  enum hk_decimal decimal;
  char **cell;       /* cells of the last line, columns.n; point into the buffer */
  char *ahead;       /* a line that was read but not returned yet; NULL: none */
  bool bare;         /* bare numbers, one on each line */
  bool surveyed;     /* a plain file after its first pass; otherwise the first line of data decides */
  bool undecided;    /* the first line of data was not read yet */
  bool descends;     /* the points must be sorted */
  bool quiet;        /* during the first pass: nothing is reported or counted */
  bool told_latin;   /* it was reported that the file is not UTF-8 */
  int64_t next_time; /* next time without a time column; with `now`, the earliest one */
  uint64_t bad, told;
  uint32_t *row_sensor;
  double *row_value;
};

#endif
