/* Reads the files of a listener's rules for tls.c: certificate, key, authorities, revocation lists. Only in a build with OpenSSL.
 * Thread: that of the context. */
#ifndef HK_TLS_FILES_H
#define HK_TLS_FILES_H

#include "daemon/config/listener_rules.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_TLS_WHOSE 160 /* bytes of a certificate's subject and serial number in words, with the 0 */

/* Loads the files into the context. *lists: owned by the caller; NULL: the rules name none. Returns 0, or a negative errno
 * with a message that names the file. */
int hk_tls_files_load(SSL_CTX *context, STACK_OF(X509_CRL) * *lists, const struct hk_rules *rules, char *error, size_t size);
/* s until a time; negative: it has passed. */
int64_t hk_tls_files_left(const ASN1_TIME *time);
/* Whether a list of the certificate's issuer revokes it. lists: NULL: none does. */
bool hk_tls_files_revoked(STACK_OF(X509_CRL) * lists, const X509 *certificate);
/* Describes a certificate, such as "CN=press-7, serial 1A2B". */
void hk_tls_files_whose(const X509 *certificate, char out[HK_TLS_WHOSE]);

#endif
