/* The commit thread. */
#ifndef HK_COMMIT_THREAD_H
#define HK_COMMIT_THREAD_H

#include "daemon/durable/durable.h"

/* Wakes the commit thread because a record was appended. */
void hk_durable_nudge(struct hk_durable *durable);
/* Start and stop the thread. hk_commit_start returns 0 or a negative errno. hk_commit_stop: false: the thread hangs. */
int hk_commit_start(struct hk_durable *durable);
bool hk_commit_stop(struct hk_durable *durable);

#endif
