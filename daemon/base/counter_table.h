/* The named counters: the table from which the status and the metrics are generated. */
#ifndef HK_COUNTER_TABLE_H
#define HK_COUNTER_TABLE_H

#include "daemon/base/counters.h"

/* `name` of `section` in the status, hankel_SECTION_NAME_total among the metrics. */
struct hk_counter_row {
  const char *section, *name;
  size_t offset;    /* in struct hk_counters */
  const char *help; /* what is counted since the daemon started */
};
extern const struct hk_counter_row hk_counter_table[]; /* grouped by section; the last entry's section is NULL */

/* The value of a counter in a sum (hk_counters_sum). */
static inline uint64_t hk_counter_of(const struct hk_counters *sum, const struct hk_counter_row *row)
{
  return *(const hk_counter *)((const char *)sum + row->offset);
}

#endif
