/* Times in columns, as POINTS and SCORES give them: a kind, a head of up to two numbers, and for some kinds a column. See enum
 * hk_time_kind and PROTOCOL.md. The columns may stand at any address. */
#ifndef HK_TIMES_H
#define HK_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_TIME_UNIT_MOST 1000000000 /* ns: the largest unit of steps */

/* Bytes of the head (base and step), and of the column for each time. */
size_t hk_time_head(uint8_t kind);
size_t hk_time_bytes(uint8_t kind);
/* Whether the step is good and every time that n >= 1 of them can have fits into an int64_t. */
bool hk_times_fit(uint8_t kind, uint32_t n, int64_t base, int64_t step);
/* Times first .. first + count - 1, in ns. column: of int64_t (each) or uint32_t (steps), else not looked at. */
void hk_times_expand(uint8_t kind, int64_t base, int64_t step, const void *column, uint32_t first, uint32_t count, int64_t *time);

#endif
