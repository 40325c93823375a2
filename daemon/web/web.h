/* Web: HTTP, served by libwebsockets on a thread of its own, so that pages never delay points or events.
 *
 * Connections are accepted like all others (net/listener.h), by the same limits, and handed over. A table in web_request.c
 * lists all paths and the scopes that they need; hankeld(8) documents them. Nothing here changes the daemon.
 *
 * Bounds: HK_WEB_CONNECTIONS connections, HK_WEB_HEADERS bytes of a request's headers, `handshake` to receive them, HK_WEB_IDLE
 * between two requests, `stuck` for the peer to take an answer. Thread: main, unless stated otherwise. */
#ifndef HK_WEB_H
#define HK_WEB_H

#include "daemon/base/buffer.h"
#include "daemon/base/counters.h"
#include "daemon/net/listener.h"
#include "daemon/web/web_source.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_WEB_CONNECTIONS 4096u /* most connections of all listeners together; fewer if max_connections is less */
#define HK_WEB_HEADERS 8192u     /* bytes */
#define HK_WEB_IDLE 60           /* s */
#define HK_WEB_READ 65536u       /* bytes that are read at a time */

struct hk_address_limits_place;
struct hk_web;

/* net: must have its gates and limits. Returns 0 and *out, or a negative errno with a message. */
int hk_web_open(struct hk_web **out, struct hk_net *net, const struct hk_web_answers *answers, char *error, size_t size);
/* All functions below accept NULL, for a daemon without HTTP. */
int hk_web_start(struct hk_web *web);  /* 0, or a negative errno */
bool hk_web_stop(struct hk_web *web);  /* closes all connections and stops the thread; false: it hangs. May be called twice */
void hk_web_close(struct hk_web *web); /* after it has stopped */
void hk_web_tell(struct hk_web *web, enum hk_web_phase phase);
/* Certificates, keys and tokens were reloaded: closes connections whose client certificate is revoked. Tokens are checked with
 * each request; a stream is closed by its inner connection. */
void hk_web_again(struct hk_web *web);
/* Takes a connection that a listener has accepted. True: the web now owns fd and place. False: too many connections, or out of
 * memory; *why: the reason. */
bool hk_web_take(struct hk_web *web, const struct hk_listener *listener, int fd, struct hk_address_limits_place *place,
                 const char **why);

/* The web's counters; all 0 for NULL. Thread: any. */
const struct hk_counters *hk_web_counters(const struct hk_web *web);
/* Number of open connections. Thread: any. */
uint32_t hk_web_connections(const struct hk_web *web);
/* Number of descriptors that the web needs in addition to other protocols. Thread: any. */
uint32_t hk_web_descriptors(const struct hk_config *config);

#endif
