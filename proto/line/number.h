/* Parses decimal numbers, fast and exactly rounded, for the line protocol and CSV files. Independent of the locale. */
#ifndef HK_NUMBER_H
#define HK_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum hk_number_fault {
  HK_NUMBER_NONE = 1,  /* the text does not start with a number */
  HK_NUMBER_RANGE = 2, /* too large */
};

/* Parses [+-]digits[.digits][e[+-]digits] (at least one digit before e; no inf, nan or hex) at text[0..size-1]. Returns 0 with
 * *out and *used (bytes), or an enum hk_number_fault. Underflow gives a denormal or 0, as strtod. */
int hk_number_parse(const char *text, size_t size, double *out, size_t *used);

/* Parse [+-]digits as int64_t, or digits as uint64_t. As hk_number_parse. */
int hk_integer_parse(const char *text, size_t size, int64_t *out, size_t *used);
int hk_unsigned_parse(const char *text, size_t size, uint64_t *out, size_t *used);

/* Returns m * 10^power, rounded once. m > 0, |power| <= HK_NUMBER_POWER. */
#define HK_NUMBER_POWER 27
double hk_number_scale(uint64_t m, int power);

#endif
