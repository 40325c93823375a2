/* The inside of the reader of recordings, which csv.c opens, csv_survey.c looks through and csv_row.c reads: what they share. */
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
  char **cell;       /* of the last line split, columns.n; point into the buffer */
  char *ahead;       /* a line that was read and not yet handed out; NULL: none */
  bool bare;         /* bare numbers: every line is one */
  bool surveyed;     /* a plain file, looked through; otherwise the first line of data decides */
  bool undecided;    /* the first line of data is still to come */
  bool descends;     /* the points are to be sorted */
  bool quiet;        /* nothing is told, nothing counted: the file is being looked through */
  bool told_latin;   /* that it is not UTF-8 */
  int64_t next_time; /* without a time column; with now, the earliest */
  uint64_t bad, told;
  uint32_t *row_sensor;
  double *row_value;
};

#endif
