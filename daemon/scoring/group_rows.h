/* Makes rows of the points of a machine's members. */
#ifndef HK_GROUP_ROWS_H
#define HK_GROUP_ROWS_H

#include "daemon/scoring/groups.h"

/* Takes point i of the chunk, and writes the points made of it to the columns from place `at` on, where there is room for
 * HK_GROUPS_OF_ONE; slots are within the shard. Returns the place after them. */
uint32_t hk_groups_put(struct hk_groups *groups, const struct hk_chunk *from, uint32_t i, const struct hk_columns *to,
                       uint32_t at);
/* Fills in the scores and events of series in a finished batch. To call before other uses of the batch. */
void hk_groups_mark(struct hk_groups *groups, struct hk_delivery *delivery);

#endif
