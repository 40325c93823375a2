/* Parses numbers of programs, people and spreadsheets: 1208.5, 1,208.5, 1.208,5, 1'208.5, 1 208,5. Pure functions. */
#ifndef HK_CSV_NUMBER_H
#define HK_CSV_NUMBER_H

#include <stdbool.h>

/* The decimal sign, `.` or `,`; the other one may separate thousands. */
enum hk_decimal {
  HK_DECIMAL_AUTO, /* decided for each cell by itself */
  HK_DECIMAL_POINT,
  HK_DECIMAL_COMMA,
};

/* What a cell reveals of the decimal sign; a sum of these. */
enum hk_decimal_seen {
  HK_SEEN_POINT = 1,  /* a decimal point, or commas between thousands */
  HK_SEEN_COMMA = 2,  /* a decimal comma, or points between thousands */
  HK_SEEN_EITHER = 4, /* ambiguous, one comma followed by three digits: 1,208 */
};
unsigned hk_decimal_seen(const char *cell);

/* Parses a whole cell, also nan and inf; numbers that are too large become infinite. `apart`: the file separates cells by commas,
 * so a comma within a cell more likely separates thousands. False: not a number, and *out is undefined. */
bool hk_csv_number(const char *cell, enum hk_decimal decimal, bool apart, double *out);

/* Whether a cell means a missing value: empty, null, na, n/a, none, - or --. */
bool hk_csv_missing(const char *cell);

#endif
