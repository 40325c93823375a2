/* How new the joint state of a group is: the statistic of HK_GROUP_NOVELTY. For group.c. */
#ifndef HK_GROUP_NOVELTY_H
#define HK_GROUP_NOVELTY_H

#include "cpu/group/group_internal.h"

/* Takes a value of a member and returns its slow mean. */
double hk_group_smooth(struct hk_group_member *member, double value);
/* Completes the tick of the row that was just closed. */
void hk_group_compare_novelty(struct hk_group *group, struct hk_group_tick *tick);

#endif
