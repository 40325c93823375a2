/* What a connection asks of its socket beside reading and writing: who the peer is, and whether it is gone. Thread: the loop's.
 */
#ifndef HK_PEER_SOCKET_H
#define HK_PEER_SOCKET_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"

#include <stdbool.h>
#include <uv.h>

/* Its address; false: it has none. */
bool hk_peer_name(const uv_tcp_t *tcp, char name[HK_ADDRESS_MAX]);
/* What is written to a socket of TCP goes at once, without waiting for acknowledgements of what went before. A peer that is gone
 * without a word (its machine, a cable, a firewall that forgot it) is found out by the kernel: while nothing waits to be sent by
 * probes, else because what was sent is not acknowledged. None of it is vital. Thread: any. */
void hk_peer_prepare(int fd, const struct hk_config *config);
/* Whether the peer of a socket that is not read is gone: libuv does not watch it meanwhile. The end of its stream alone does not
 * say so: what it sent before is still to be taken. */
bool hk_peer_gone(const uv_tcp_t *tcp);
/* Bytes that have come and were not read. */
size_t hk_peer_unread(const uv_tcp_t *tcp);

#endif
