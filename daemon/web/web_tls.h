/* TLS of connections of HTTP: between a peer's socket and one end of a socket pair, whose other end is served without TLS. It
 * uses the TLS of the other protocols (net/tls.h): the same files, the same reload, the same client certificates.
 *
 *   peer  --records-->  hk_web_tls  --socket pair-->  libwebsockets, HTTP
 *
 * While too many bytes wait for one side, the other is not read. The handshake must be complete within `handshake`.
 *
 * Thread: the web's. */
#ifndef HK_WEB_TLS_H
#define HK_WEB_TLS_H

#include "daemon/web/web_internal.h"

/* The peer's listener has TLS: takes over p->fd, and gives p the end of a pair in its place. 0; or a negative errno: p->fd was
 * closed. */
int hk_web_tls_begin(struct hk_web_peer *p);
/* The peer is gone, or was never served. NULL is allowed. */
void hk_web_tls_leave(struct hk_web_tls *tls);
/* Revocation lists were read again: closes connections whose client certificate is revoked now. */
void hk_web_tls_again(struct hk_web *web);
/* Events of both sockets. */
int hk_web_tls_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

#endif
