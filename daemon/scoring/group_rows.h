/* Points of the members of a machine become rows. */
#ifndef HK_GROUP_ROWS_H
#define HK_GROUP_ROWS_H

#include "daemon/scoring/groups.h"

/* Takes point i of that chunk; the points that are made of it are written to the columns from place `at` on, where there is room
 * for HK_GROUPS_OF_ONE; slots are within the shard. Returns the place behind them. */
uint32_t hk_groups_put(struct hk_groups *groups, const struct hk_chunk *from, uint32_t i, const struct hk_columns *to,
                       uint32_t at);
/* A batch of points came back: fills in what it says of series. Before anything else looks at it. */
void hk_groups_mark(struct hk_groups *groups, struct hk_delivery *delivery);

#endif
