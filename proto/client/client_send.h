/* Sending of a client: requests, points, acknowledged points. */
#ifndef HK_CLIENT_SEND_H
#define HK_CLIENT_SEND_H

#include "proto/client/client.h"

/* Sends requests, then points, as far as the socket accepts. May end the connection. */
void hk_client_pump(struct hankel *h);

/* Handles an acknowledgement: drops the first `points` points of the feed from the buffer. */
void hk_client_acknowledged(struct hankel *h, uint64_t points);

#endif
