/* Shown: results of other machines of a cluster, on their way to the loops whose subscribers want them. */
#ifndef HK_SHOWN_H
#define HK_SHOWN_H

#include "cpu/backend.h"

#include <stdatomic.h>

struct hk_shown {
  struct hk_batch batch;                    /* without events; slots of the registry of others (scoring/others.h) */
  uint64_t *sequence;                       /* number of each point within its sensor; NULL: unknown */
  atomic_uint holders;                      /* loops that have not published it yet */
  void (*released)(struct hk_shown *shown); /* called by the last of them: frees it. Thread: any */
  void *owner;
};

static inline void hk_shown_release(struct hk_shown *shown)
{
  if (atomic_fetch_sub_explicit(&shown->holders, 1, memory_order_acq_rel) == 1)
    shown->released(shown);
}

#endif
