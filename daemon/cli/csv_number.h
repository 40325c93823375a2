/* Numbers as programs and people write them in tables: 1208.5, 1,208.5, 1.208,5, 1'208.5, 1 208,5. Pure functions. */
#ifndef HK_CSV_NUMBER_H
#define HK_CSV_NUMBER_H

#include <stdbool.h>

/* Which of `.` and `,` stands before the fraction; the other one may stand between thousands. */
enum hk_decimal {
  HK_DECIMAL_AUTO, /* each cell says it by itself */
  HK_DECIMAL_POINT,
  HK_DECIMAL_COMMA,
};

/* What a cell shows of it; a sum of these. */
enum hk_decimal_seen {
  HK_SEEN_POINT = 1,  /* the point is before the fraction, or the comma between thousands */
  HK_SEEN_COMMA = 2,  /* the other way around */
  HK_SEEN_EITHER = 4, /* one comma with three digits behind it: 1,208 */
};
unsigned hk_decimal_seen(const char *cell);

/* Reads a whole cell, also nan and inf; too large a number is infinite. `apart`: the comma stands between the file's cells, so
 * that one within a cell is more likely to be between thousands. False: it is no number, and *out is undefined. */
bool hk_csv_number(const char *cell, enum hk_decimal decimal, bool apart, double *out);

/* Whether a cell stands for no value: empty, null, na, n/a, none, - or --. */
bool hk_csv_missing(const char *cell);

#endif
