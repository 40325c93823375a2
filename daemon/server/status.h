/* The status report. Thread: the loop's. */
#ifndef HK_STATUS_H
#define HK_STATUS_H

#include "daemon/server/server.h"

/* Writes the counters as one JSON object, for a connection of this loop. */
void hk_status_json(struct hk_loop *loop, struct hk_buffer *out);

#endif
