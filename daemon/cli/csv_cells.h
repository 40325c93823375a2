/* Splits lines into cells. Pure functions. */
#ifndef HK_CSV_CELLS_H
#define HK_CSV_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum hk_cells_fault { HK_CELLS_MANY = -1, HK_CELLS_QUOTES = -2 };

/* Splits a line in place into cell[0..most-1], unquoted and trimmed. Returns the number of cells, or an enum hk_cells_fault if
 * there are more (a further empty cell at the end is ignored) or a quote is not closed; then *bad is the number of the cell,
 * from 1. */
int hk_cells_split(char *line, char separator, char **cell, uint32_t most, uint32_t *bad);

/* Number of cells of a line. */
uint32_t hk_cells_count(const char *line, char separator);

/* Guesses the separator: of `,`, `;`, tab and `|` the most frequent in the header, preferring one that is as frequent in a line
 * of data (NULL: unknown). */
char hk_cells_separator(const char *header, const char *data);

/* Whether a name is written to CSV with a leading apostrophe, which this reader removes from the cells of a header: a name that
 * begins with
 * `=`, `+`, `-` or `@`, which a spreadsheet would run as a formula, or with `#`, as lines of events do. So are names with
 * apostrophes before these characters, so that only added apostrophes are removed. Thread: any. */
bool hk_csv_marks(const char *name);

#endif
