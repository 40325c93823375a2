/* Columns of times of POINTS and SCORES: a kind, a head of up to two numbers, and for some kinds a column. See
 * PROTOCOL.md. Columns may be unaligned. */
#ifndef HK_TIMES_H
#define HK_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hk_time_kind { HK_TIME_EACH = 0, HK_TIME_ONE = 1, HK_TIME_EVEN = 2, HK_TIME_STEPS = 3, HK_TIME_ARRIVAL = 4 };

#define HK_TIME_UNIT_MOST 1000000000 /* ns: the largest unit of steps */

/* Bytes of the head (base and step), and bytes per time in the column. */
size_t hk_time_head(uint8_t kind);
size_t hk_time_bytes(uint8_t kind);
/* Whether the step is valid, and all times that n >= 1 points can have fit into int64_t. */
bool hk_times_fit(uint8_t kind, uint32_t n, int64_t base, int64_t step);
/* Expands the times first..first+count-1, ns. column: int64_t (each) or uint32_t (steps), else unused. */
void hk_times_expand(uint8_t kind, int64_t base, int64_t step, const void *column, uint32_t first, uint32_t count, int64_t *time);

#endif
