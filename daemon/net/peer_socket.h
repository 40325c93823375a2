/* Socket functions besides reading and writing: the peer's address, and whether the peer is gone. Thread: the loop's. */
#ifndef HK_PEER_SOCKET_H
#define HK_PEER_SOCKET_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"

#include <stdbool.h>
#include <uv.h>

/* Gets the peer's address; false: it has none. */
bool hk_peer_name(const uv_tcp_t *tcp, char name[HK_ADDRESS_MAX]);
/* Sets TCP options: written bytes are sent at once, without waiting for earlier acknowledgements, and the kernel detects a peer
 * that has vanished (its machine, a cable, a firewall that forgot it), by probes while nothing is to be sent, otherwise by
 * missing acknowledgements. Failures are ignored. Thread: any. */
void hk_peer_prepare(int fd, const struct hk_config *config);
/* Whether the peer of a socket that is not being read is gone: libuv does not watch it meanwhile. The end of its stream alone
 * does not count: earlier bytes are still to be taken. */
bool hk_peer_gone(const uv_tcp_t *tcp);
/* Bytes that have arrived but were not read. */
size_t hk_peer_unread(const uv_tcp_t *tcp);

#endif
