/* Times as people, loggers and spreadsheets write them: 02.01.2024 03:04, 2/1/2024 3:04:05 PM, 2 Jan 2024, 20240102 030405. Pure
 * functions. */
#ifndef HK_CSV_DATE_H
#define HK_CSV_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* Which number of a date is which. */
enum hk_date_order { HK_DATE_YMD, HK_DATE_DMY, HK_DATE_MDY, HK_DATE_ORDERS };

/* Reads a date, or a date and a time of day, with the numbers in this order; where a month has a name, or the year stands first,
 * the order is clear and any that fits is taken. Between numbers stands one of `.`, `/`, `-` or blanks; with points the day is
 * first. Years of two digits are 1970 to 2069. UTC unless Z or an offset follows. 0, -EINVAL: it is none, or -ERANGE outside 1678
 * to 2261. */
int hk_date_read(const char *text, enum hk_date_order order, int64_t *ns);

/* Reads a time by a format of strptime, in which %f is a fraction's digits; all of the text. As above. */
int hk_date_by_format(const char *text, const char *format, int64_t *ns);

/* Whether text is a time of day alone: 3:04, 03:04:05.6, 3:04 PM. */
bool hk_date_is_time_of_day(const char *text);

#endif
