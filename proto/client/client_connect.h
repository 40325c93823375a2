/* The connection of a client: connecting, the handshake, reading and writing bytes, and its end. */
#ifndef HK_CLIENT_CONNECT_H
#define HK_CLIENT_CONNECT_H

#include "proto/client/client.h"

void hk_client_begin(struct hankel *h);
void hk_client_connected(struct hankel *h);
void hk_client_shake(struct hankel *h);

/* Frees what belongs to a connection: sockets, addresses, received data. */
void hk_client_release(struct hankel *h);

/* Ends the connection: reports it to the caller, frees its data, and schedules the next attempt (with `once`: phase OVER). */
void hk_client_disconnect(struct hankel *h, int fault, const char *reason);

/* As recv and send, on the connection. */
ssize_t hk_client_recv(struct hankel *h, void *data, size_t size);
ssize_t hk_client_send(struct hankel *h, const void *data, size_t size);

#endif
