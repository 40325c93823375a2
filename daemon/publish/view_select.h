/* Selects what views want of a batch. */
#ifndef HK_VIEW_SELECT_H
#define HK_VIEW_SELECT_H

#include "daemon/publish/view.h"

/* Calls `chosen` for each view that wants something of the batch; its arguments are valid until it returns. dropped: the batch
 * has no scores, and all points are chosen whose results the view might have wanted. Returns 0, or -ENOMEM: something was
 * dropped. */
int hk_views_choose(struct hk_views *views, const struct hk_batch *batch, bool dropped,
                    void (*chosen)(void *arg, struct hk_view *view, const struct hk_choice *results,
                                   const struct hk_choice *events),
                    void *arg);

#endif
