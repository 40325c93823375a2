/* PEM files, read as hk_secret_read does, into a context of OpenSSL. Only in a build with OpenSSL.
 *
 * 0; or a negative errno and why, in words: what hk_secret_read says, or -EBADMSG, when OpenSSL's queue of errors may say more.
 * Nothing asks for a passphrase: a key that has one is not read. Thread: that of the context. */
#ifndef HK_PEM_H
#define HK_PEM_H

#include "proto/wire/secret_file.h"

#include <openssl/ssl.h>

#define HK_PEM_MOST (1u << 20)        /* bytes of a certificate or a key, */
#define HK_PEM_TRUST_MOST (16u << 20) /* of authorities, and of lists of what they have revoked */

/* The certificate to show, and those that it was signed with behind it. */
int hk_pem_chain(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY]);
/* Its key; it has to be that of the certificate. */
int hk_pem_key(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY]);
/* The authorities to trust; *names: NULL, or for their names, the caller's. */
int hk_pem_authorities(SSL_CTX *context, const char *path, int patience, STACK_OF(X509_NAME) * *names, char why[HK_SECRET_WHY]);
/* Lists of revoked certificates, one at least; the caller's. */
int hk_pem_lists(const char *path, STACK_OF(X509_CRL) * *lists, char why[HK_SECRET_WHY]);

#endif
