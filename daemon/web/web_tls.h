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

/* Starts TLS for a peer whose listener has TLS: takes over p->fd, and replaces it by one end of a socket pair. Returns 0, or a
 * negative errno: p->fd was closed. */
int hk_web_tls_begin(struct hk_web_peer *p);
/* Ends TLS of a peer that is gone or was never served. NULL is allowed. */
void hk_web_tls_leave(struct hk_web_tls *tls);
/* Revocation lists were reloaded: closes connections whose client certificate is now revoked. */
void hk_web_tls_again(struct hk_web *web);
/* Handles events of both sockets. */
int hk_web_tls_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

#endif
