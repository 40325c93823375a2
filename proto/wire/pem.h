/* Loads PEM files, read by hk_secret_read, into an OpenSSL context. Only in a build with OpenSSL.
 *
 * Functions return 0, or a negative errno and the reason in `why`: an error of hk_secret_read, or -EBADMSG, for which
 * OpenSSL's error queue may have details. They never ask for a passphrase: encrypted keys are rejected. Thread: that of the
 * context. */
#ifndef HK_PEM_H
#define HK_PEM_H

#include "proto/wire/secret_file.h"

#include <openssl/ssl.h>

#define HK_PEM_MOST (1u << 20)        /* longest file of certificates or a key, bytes, */
#define HK_PEM_TRUST_MOST (16u << 20) /* of authorities, and of certificate revocation lists */

/* Loads the certificate to present, followed by its chain. */
int hk_pem_chain(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY]);
/* Loads the private key; it must match the certificate. */
int hk_pem_key(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY]);
/* Loads the trusted authorities. names: NULL, or receives their names, which the caller owns. */
int hk_pem_authorities(SSL_CTX *context, const char *path, int patience, STACK_OF(X509_NAME) * *names, char why[HK_SECRET_WHY]);
/* Reads certificate revocation lists, at least one; the caller owns them. */
int hk_pem_lists(const char *path, STACK_OF(X509_CRL) * *lists, char why[HK_SECRET_WHY]);

#endif
