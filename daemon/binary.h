/* Points out of a POINTS payload, over TCP or UDP. Thread: the loop's. */
#ifndef HK_BINARY_H
#define HK_BINARY_H

#include "proto/message.h"

struct hk_loop;

/* Takes all points of a payload; there must be room for them. *unknown: how many had handles that are no good. */
void hk_points_take(struct hk_loop *loop, uint32_t source, const struct hk_points *points, uint32_t *unknown);

#endif
