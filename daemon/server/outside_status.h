/* Counters of receivers of alerts and of bridges to brokers, for the status report. Thread: any. */
#ifndef HK_OUTSIDE_STATUS_H
#define HK_OUTSIDE_STATUS_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/bridge.h"
#include "daemon/bridge/cluster.h"
#include "daemon/notify/notify.h"

/* Each may be NULL. */
struct hk_outside {
  struct hk_receivers *receivers;
  struct hk_bridges *bridges;
  struct hk_cluster *cluster, *publishing, *events, *scores, *mail; /* server.h */
};

/* Appends the members `notify` and `mqtt`, arrays with an object for each, and `cluster`, if there is one. */
void hk_outside_status(struct hk_buffer *out, const struct hk_outside *from);
/* Appends what others are to know of this machine: an object, as `cluster` without `where`, `others` and `wanted`. */
void hk_outside_notice(struct hk_buffer *out, const struct hk_outside *from);

#endif
