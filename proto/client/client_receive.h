/* Receiving of a client: frames, and the names of sensors in them. */
#ifndef HK_CLIENT_RECEIVE_H
#define HK_CLIENT_RECEIVE_H

#include "proto/client/client.h"

/* Receives and handles frames. May end the connection. */
void hk_client_read(struct hankel *h);

void hk_client_forget_names(struct hankel *h);

#endif
