/* What receivers of alerts have done, in the daemon's report. Thread: any. */
#ifndef HK_RECEIVERS_STATUS_H
#define HK_RECEIVERS_STATUS_H

#include "daemon/base/buffer.h"
#include "daemon/notify/notify.h"

/* Puts the member `notify`, an array with an object for each, behind others. receivers: NULL is fine. */
void hk_receivers_status(struct hk_buffer *out, struct hk_receivers *receivers);

#endif
