/* The novelty of an event of the channel novelty, as sent to clients. Cannot fail. Thread: any. */
#ifndef HK_NOVELTY_SHOWN_H
#define HK_NOVELTY_SHOWN_H

#include "cpu/backend.h"
#include "proto/hankel.h"

/* All 0: the event has no novelty. */
static inline struct hankel_novelty hk_novelty_shown(const struct hk_event *e)
{
  if (e->channel != HK_CHANNEL_NOVELTY)
    return (struct hankel_novelty){ 0 };
  return (struct hankel_novelty){ .kind = e->novelty.channel,
                                  .reach = e->novelty.reach,
                                  .compared = e->novelty.compared,
                                  .nearest = e->novelty.nearest,
                                  .oldest = e->novelty.oldest,
                                  .low = e->novelty.low,
                                  .high = e->novelty.high };
}

#endif
