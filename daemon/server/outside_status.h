/* What receivers of alerts and bridges to brokers have done, in the daemon's report. Thread: any. */
#ifndef HK_OUTSIDE_STATUS_H
#define HK_OUTSIDE_STATUS_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/bridge.h"
#include "daemon/notify/notify.h"

/* Puts the members `notify` and `mqtt`, arrays with an object for each, behind others. receivers, bridges: NULL is fine. */
void hk_outside_status(struct hk_buffer *out, struct hk_receivers *receivers, struct hk_bridges *bridges);

#endif
