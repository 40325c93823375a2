/* TLS 1.2 and 1.3 of a connection, between its socket and its kind: it neither reads nor writes a socket, but turns bytes into
 * bytes.
 *
 *   hk_tls_feed -> hk_tls_handshake until it is through -> hk_tls_read until it needs more -> hk_tls_settle
 *   hk_tls_write -> records into a buffer of the caller's
 *   TLS's own bytes from a handshake, a read or a close wait in hk_tls_output, to be sent unchanged
 *
 * Until a peer's first record is complete and looks like a greeting, the peer costs only the bytes that it has sent; only then
 * does OpenSSL get memory for it (some 50 KiB until the handshake is complete, a few while idle). A peer's errors are reported as
 * text and end the connection.
 *
 * In a build without OpenSSL contexts cannot be had, so there are no connections with TLS either.
 *
 * Thread: a context's any; a connection's the loop's. */
#ifndef HK_TLS_H
#define HK_TLS_H

#include "daemon/base/buffer.h"
#include "daemon/config/listener_rules.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HK_TLS_NAME_MAX 64 /* bytes of a certificate's common name, with the 0: as many as the token file takes */

/* A listener's certificate, key, authorities and revocation lists; immutable. */
struct hk_tls_context;

/* Loads the files that the rules name. Returns 0 and *out (NULL: the listener has no TLS), or a negative errno with a message
 * that names the file. */
int hk_tls_context_new(struct hk_tls_context **out, const struct hk_rules *rules, char *error, size_t size);
void hk_tls_context_free(struct hk_tls_context *context); /* NULL is allowed; connections continue */
/* s until the certificate expires; negative: expired. */
int64_t hk_tls_context_left(const struct hk_tls_context *context);

/* s until the first revocation list expires; negative: expired. False: no lists. */
bool hk_tls_context_crl_left(const struct hk_tls_context *context, int64_t *left);

struct hk_tls;

/* NULL: out of memory. The context may be freed first. */
struct hk_tls *hk_tls_new(struct hk_tls_context *context);
void hk_tls_free(struct hk_tls *tls); /* NULL is allowed */

enum hk_tls_status {
  HK_TLS_MORE = 0,    /* more bytes of the peer are needed */
  HK_TLS_ENDED = -1,  /* the peer has ended the TLS stream */
  HK_TLS_FAILED = -2, /* hk_tls_fault says why; nothing can be read or written any more */
};

/* Passes received bytes, which the caller owns and must keep in place until hk_tls_settle. Call only after HK_TLS_MORE was
 * returned. */
void hk_tls_feed(struct hk_tls *tls, const void *data, size_t size);
/* Keeps unused bytes. 0 or -ENOMEM. */
int hk_tls_settle(struct hk_tls *tls);
/* Continues the handshake. Returns > 0: complete; otherwise an hk_tls_status. */
int hk_tls_handshake(struct hk_tls *tls);
bool hk_tls_through(const struct hk_tls *tls);
/* Reads up to `size` decrypted bytes. Returns their number, or an hk_tls_status. */
ssize_t hk_tls_read(struct hk_tls *tls, void *data, size_t size);
/* Encrypts bytes and appends the records. Returns 0; -EPIPE: TLS has failed, ended, or not started; -ENOMEM; on error nothing
 * was appended. */
int hk_tls_write(struct hk_tls *tls, const void *data, size_t size, struct hk_buffer *records);
/* TLS's own bytes to send; the caller empties the buffer. */
struct hk_buffer *hk_tls_output(struct hk_tls *tls);
/* Ends the TLS stream, if still possible, and frees OpenSSL's memory. */
void hk_tls_end(struct hk_tls *tls);

/* Text of the error; "" if there was none. */
const char *hk_tls_fault(const struct hk_tls *tls);
/* The verified common name of the peer's certificate; false: no certificate, or its name is missing, not printable or too long.
 */
bool hk_tls_peer(const struct hk_tls *tls, char name[HK_TLS_NAME_MAX]);
/* Whether a revocation list of a context, perhaps newer than the connection's, revokes the peer's certificate; why: a text
 * that names the certificate. */
bool hk_tls_revoked(const struct hk_tls *tls, const struct hk_tls_context *context, char *why, size_t size);
/* "TLSv1.3", ... */
const char *hk_tls_version(const struct hk_tls *tls);

#endif
