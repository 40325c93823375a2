/* The state of a group as bytes. */
#ifndef HK_GROUP_STATE_H
#define HK_GROUP_STATE_H

#include "cpu/group/group.h"

/* Writes and reads the complete state of a group, in memory aligned to 8 bytes; a group that was read continues exactly, bit for
 * bit. Call hk_group_write only when hk_group_next has returned all rows. FORMAT.md has the layout. hk_group_state_size: bytes
 * that hk_group_write writes, a multiple of 8. */
size_t hk_group_state_size(const struct hk_group *group);
void hk_group_write(const struct hk_group *group, void *state);
/* Creates a group from a state, with the same member numbers. rule: the rule to continue with; shortest, hop, members and
 * threshold may differ from those of the state; NULL: those of the state. Returns 0 and *out; -EBADMSG: not a valid state;
 * -EINVAL: the state has another statistic or other rows than the rule, or more members; or -ENOMEM. */
int hk_group_read(struct hk_group **out, const struct hk_group_rule *rule, const void *state, size_t size);

#endif
