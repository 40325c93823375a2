/* The predicted time of reaching the limit of an event of the channel limit, as sent to clients. Cannot fail. Thread: any. */
#ifndef HK_LIMIT_SHOWN_H
#define HK_LIMIT_SHOWN_H

#include "cpu/backend.h"
#include "proto/hankel.h"

/* All 0: the event has no prediction. */
static inline struct hankel_limit hk_limit_shown(const struct hk_event *e)
{
  if (e->channel != HK_CHANNEL_LIMIT || e->limit.kind != HK_NOTE_LIMIT)
    return (struct hankel_limit){ 0 };
  return (struct hankel_limit){ .blocks = e->limit.blocks,
                                .slope = e->limit.slope,
                                .limit = e->limit.limit,
                                .earliest = e->limit.earliest,
                                .reached = e->limit.reached,
                                .latest = e->limit.latest };
}

#endif
