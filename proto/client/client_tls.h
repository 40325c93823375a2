/* libhankel: TLS between the client and its socket, and what it shows the daemon. Not installed. */
#ifndef HK_CLIENT_TLS_H
#define HK_CLIENT_TLS_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define HK_CLIENT_TOKEN 256 /* bytes, with the 0 */

struct hk_client_tls;

/* Reads the files that the options name, and begins on a socket that is connected. host: whom the certificate has to be of. 0 and
 * *out, or a negative errno with a message. The socket stays the caller's. */
int hk_client_tls_new(struct hk_client_tls **out, const struct hankel_security *security, const char *host, int fd, char *error,
                      size_t size);
void hk_client_tls_free(struct hk_client_tls *tls); /* NULL is allowed */

/* 1: the handshake is through; 0: the socket has to be waited for; or a negative errno. */
int hk_client_tls_shake(struct hk_client_tls *tls);
/* As recv and send, errno too; EPROTO: hk_client_tls_fault says why. */
ssize_t hk_client_tls_read(struct hk_client_tls *tls, void *data, size_t size);
ssize_t hk_client_tls_write(struct hk_client_tls *tls, const void *data, size_t size);
/* Whether it waits for the socket to take something. */
bool hk_client_tls_wants_room(const struct hk_client_tls *tls);
/* Whether there is something to read that the socket does not know of any more. */
bool hk_client_tls_pending(const struct hk_client_tls *tls);
/* Says that nothing more comes, as far as the socket takes it. */
void hk_client_tls_end(struct hk_client_tls *tls);
const char *hk_client_tls_fault(const struct hk_client_tls *tls);

/* The token that the options give, or the first line of the file that they name; "" when neither. 0, or a negative errno with a
 * message. */
int hk_client_token(const struct hankel_security *security, char token[HK_CLIENT_TOKEN], char *error, size_t size);
/* Whether a token may be sent there without TLS: 0; or -EPERM with a message that says what to do. */
int hk_client_token_may_go(const struct hankel_security *security, const struct sockaddr *to, char *error, size_t size);

#endif
