/* libhankel: the token of a client, and where it may be sent. Not installed. */
#ifndef HK_CLIENT_TOKEN_H
#define HK_CLIENT_TOKEN_H

#include "proto/client/client_tls.h"

/* Gets the token of the options, or the first line of its file; "" if neither is given. Returns 0, or a negative errno with a
 * message. */
int hk_client_token(const struct hankel_security *security, char token[HK_CLIENT_TOKEN], char *error, size_t size);
/* Checks whether a token may be sent to an address without TLS. Returns 0, or -EPERM with a message that names the remedy. */
int hk_client_token_may_go(const struct hankel_security *security, const struct sockaddr *to, char *error, size_t size);

#endif
