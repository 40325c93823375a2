/* Decimal numbers from text, exactly rounded and quick, for the line protocol and for CSV files. Independent of the locale. */
#ifndef HK_NUMBER_H
#define HK_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum hk_number_fault {
  HK_NUMBER_NONE = 1,  /* no number stands at the start */
  HK_NUMBER_RANGE = 2, /* too large */
};

/* Reads [+-]digits[.digits][e[+-]digits] (at least one digit before e; no inf, nan or hex) at text[0..size-1]. 0 and *out
 * and *used (bytes), or an enum hk_number_fault. What underflows becomes a denormal or 0, as strtod does. */
int hk_number_parse(const char *text, size_t size, double *out, size_t *used);

/* Reads [+-]digits as a signed, or digits as an unsigned, integer of 64 bits. As above. */
int hk_integer_parse(const char *text, size_t size, int64_t *out, size_t *used);
int hk_unsigned_parse(const char *text, size_t size, uint64_t *out, size_t *used);

/* m * 10^power, rounded once. m > 0, |power| <= HK_NUMBER_POWER. */
#define HK_NUMBER_POWER 27
double hk_number_scale(uint64_t m, int power);

#endif
