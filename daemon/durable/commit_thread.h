/* The thread that commits. */
#ifndef HK_COMMIT_THREAD_H
#define HK_COMMIT_THREAD_H

#include "daemon/durable/durable.h"

/* Something was appended. */
void hk_durable_nudge(struct hk_durable *durable);
/* The thread. */
int hk_commit_start(struct hk_durable *durable);
bool hk_commit_stop(struct hk_durable *durable);

#endif
