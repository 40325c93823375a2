/* Parses dates of people, loggers and spreadsheets: 02.01.2024 03:04, 2/1/2024 3:04:05 PM, 2 Jan 2024, 20240102 030405. Pure
 * functions. */
#ifndef HK_CSV_DATE_H
#define HK_CSV_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* Order of the numbers of a date. */
enum hk_date_order { HK_DATE_YMD, HK_DATE_DMY, HK_DATE_MDY, HK_DATE_ORDERS };

/* Parses a date, optionally with a time of day, with its numbers in this order. If the month is a name or the year is first, the
 * order is evident and `order` is ignored. Numbers are separated by `.`, `/`, `-` or spaces; with `.` the day is first. Years of
 * two digits are 1970 to 2069. UTC unless Z or an offset follows. Returns 0, -EINVAL if it is not a date, or -ERANGE outside 1678
 * to 2261. */
int hk_date_read(const char *text, enum hk_date_order order, int64_t *ns);

/* Parses the whole text by a strptime format, in which %f stands for the digits of a fraction. Returns as above. */
int hk_date_by_format(const char *text, const char *format, int64_t *ns);

/* Whether text is a time of day alone: 3:04, 03:04:05.6, 3:04 PM. */
bool hk_date_is_time_of_day(const char *text);

#endif
