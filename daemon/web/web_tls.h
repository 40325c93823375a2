/* TLS of connections of HTTP: between a peer's socket and one end of a socket pair, whose other end is served as if there were no
 * TLS. So it is the TLS of the other protocols (net/tls.h): the same files, the same reload, the same client certificates.
 *
 *   peer  --records-->  hk_web_tls  --socket pair-->  libwebsockets, HTTP
 *
 * Either side is read no more while so much waits for the other. The handshake has to be through within `handshake`.
 *
 * Thread: the web's. */
#ifndef HK_WEB_TLS_H
#define HK_WEB_TLS_H

#include "daemon/web/web_internal.h"

/* The peer's listener has TLS: takes over p->fd, and gives p the end of a pair in its place. 0; or a negative errno: p->fd was
 * closed. */
int hk_web_tls_begin(struct hk_web_peer *p);
/* The peer is gone, or never was served. NULL is fine. */
void hk_web_tls_leave(struct hk_web_tls *tls);
/* Lists of revoked certificates were read again: whoever has shown one that is revoked now is closed. */
void hk_web_tls_again(struct hk_web *web);
/* Events of both sockets. */
int hk_web_tls_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

#endif
