/* libhankel: TLS between the client and its socket, and the client's credentials. Not installed. */
#ifndef HK_CLIENT_TLS_H
#define HK_CLIENT_TLS_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define HK_CLIENT_TOKEN 256 /* bytes, including the NUL */

struct hk_client_tls;

/* Reads the files that the options name, and starts TLS on a connected socket. host: for which the certificate must be valid.
 * Returns 0 and *out, or a negative errno with a message. The caller keeps the socket. */
int hk_client_tls_new(struct hk_client_tls **out, const struct hankel_security *security, const char *host, int fd, char *error,
                      size_t size);
void hk_client_tls_free(struct hk_client_tls *tls); /* NULL is allowed */

/* Returns 1: the handshake is complete; 0: wait for the socket; or a negative errno. */
int hk_client_tls_shake(struct hk_client_tls *tls);
/* As recv and send, including errno; EPROTO: hk_client_tls_fault has the reason. */
ssize_t hk_client_tls_read(struct hk_client_tls *tls, void *data, size_t size);
ssize_t hk_client_tls_write(struct hk_client_tls *tls, const void *data, size_t size);
/* Whether TLS waits for the socket to become writable. */
bool hk_client_tls_wants_room(const struct hk_client_tls *tls);
/* Whether decrypted data is available that polling the socket does not show. */
bool hk_client_tls_pending(const struct hk_client_tls *tls);
/* Sends the end of the TLS stream, if the socket accepts it. */
void hk_client_tls_end(struct hk_client_tls *tls);
const char *hk_client_tls_fault(const struct hk_client_tls *tls);

#endif
