/* Metrics for Prometheus. Their size does not depend on the number of sensors. */
#ifndef HK_METRICS_H
#define HK_METRICS_H

#include "daemon/server/server.h"

/* Appends all metrics, as OpenMetrics or (open = false) in Prometheus' older text format. Thread: any, once the daemon serves. */
void hk_metrics_text(struct hk_server *server, bool open, struct hk_buffer *out);

#endif
