/* Numbers as decimal text, for a fraction of what printf takes. Any thread. */
#ifndef HK_DECIMAL_H
#define HK_DECIMAL_H

#include <stdint.h>

/* Writes a whole number, with zeros in front up to `least` digits. out: 20 bytes or `least`; no 0 follows. Returns the length. */
int hk_decimal_whole(char *out, uint64_t x, int least);
/* Writes a number that is a decimal fraction of at most 15 digits, as most readings are, as %.15g does. out: 32 bytes. Returns
 * the length, and 0 for other numbers, and for those that %.15g writes with an exponent. */
int hk_decimal_short(char *out, double x);
/* Writes a float as %.9g does. out: 32 bytes. Returns the length. */
int hk_decimal_nine(char *out, float x);

#endif
