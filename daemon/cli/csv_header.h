/* Where the header of a recording stands. Thread: the caller's. */
#ifndef HK_CSV_HEADER_H
#define HK_CSV_HEADER_H

#include "daemon/cli/csv_lines.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing is known. Owner of the text: this; see hk_csv_header_free. */
struct hk_csv_header {
  char *text;          /* the header as it stands, without a `#` before it, or bare numbers' first; NULL: the file is empty */
  uint64_t line;       /* its number */
  uint64_t units_line; /* 0: no row of units is known */
  uint64_t left_out;   /* lines before it that are neither blank nor begin with `#` */
  char separator;
  char *ahead; /* a line of data that was read with it; it points into the buffer of the lines. NULL: none */
};

/* Looks at the first lines, as far as it must; the lines are to be rewound then. 0, or a negative errno with a message. */
int hk_csv_header_find(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size);

/* Takes the first line of a pipe that is no comment, or the last comment, where that line is data and has as many cells. */
int hk_csv_header_take(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size);

void hk_csv_header_free(struct hk_csv_header *header);

/* Whether a header says that its column is of times. */
bool hk_csv_names_time(const char *name);

/* Whether a cell is a value or a time, rather than a word. */
bool hk_csv_is_data(const char *cell);

#endif
