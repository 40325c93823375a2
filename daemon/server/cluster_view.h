/* Cluster view: what this machine knows of the machines of its cluster, and tells them of itself. */
#ifndef HK_CLUSTER_VIEW_H
#define HK_CLUSTER_VIEW_H

#include "daemon/base/buffer.h"
#include "daemon/server/outside_status.h"

struct hk_server;

/* For the reports. Thread: any, as of the next one. */
struct hk_outside hk_cluster_view_outside(struct hk_server *server);
/* Appends the machines, an object of JSON; without a cluster `machines` is empty. arg: the server. */
void hk_cluster_view(void *arg, struct hk_buffer *out);
/* Has other machines told and answered from now on. Thread: main, before the cluster is started. */
void hk_cluster_view_open(struct hk_server *server);

#endif
