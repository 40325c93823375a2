/* Cells of a line. Pure functions. */
#ifndef HK_CSV_CELLS_H
#define HK_CSV_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum hk_cells_fault { HK_CELLS_MANY = -1, HK_CELLS_QUOTES = -2 };

/* Splits a line in place into cell[0..most-1], unquoted and without blanks around them. Their number, or an enum hk_cells_fault:
 * there are more (one empty cell more is none), or quotes are not closed; *bad is the cell's number then, from 1 on. */
int hk_cells_split(char *line, char separator, char **cell, uint32_t most, uint32_t *bad);

/* How many cells a line has. */
uint32_t hk_cells_count(const char *line, char separator);

/* What stands between the cells: of `,`, `;`, tab and `|` the one that a header has most of, rather one that the line of data
 * (NULL: not known) has as often. */
char hk_cells_separator(const char *header, const char *data);

/* Whether a name is written to CSV with an apostrophe before it, which this reader takes off a header's cell again: one that
 * begins with `=`, `+`, `-` or `@`, which a spreadsheet would run as a formula, or with `#`, as lines of events do; with
 * apostrophes before that, too, so that none is taken off that was not put there. Any thread. */
bool hk_csv_marks(const char *name);

#endif
