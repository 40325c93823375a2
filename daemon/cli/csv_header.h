/* Finds the header of a recording. Thread: the caller's. */
#ifndef HK_CSV_HEADER_H
#define HK_CSV_HEADER_H

#include "daemon/cli/csv_lines.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialise. Owns the text; see hk_csv_header_free. */
struct hk_csv_header {
  char *text;          /* the header without a leading `#`, or the first of bare numbers; NULL: the file is empty */
  uint64_t line;       /* its line number */
  uint64_t units_line; /* line of the units; 0: none */
  uint64_t left_out;   /* ignored lines before the header that are neither blank nor begin with `#` */
  char separator;
  char *ahead; /* a line of data that was read with the header; points into the buffer of the lines. NULL: none */
};

/* Finds the header in the first lines of a plain file; rewind the lines afterwards. Returns 0, or a negative errno with a
 * message. */
int hk_csv_header_find(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size);

/* Takes the header of a pipe: its first line that is not a comment; or, if that is data, the last comment before it with as many
 * cells. */
int hk_csv_header_take(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size);

void hk_csv_header_free(struct hk_csv_header *header);

/* Whether a header names a column of times. */
bool hk_csv_names_time(const char *name);

/* Whether a cell is a value or a time, and not a word. */
bool hk_csv_is_data(const char *cell);

#endif
