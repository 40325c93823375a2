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

/* A listener's certificate, key, authorities and lists: they never change once they are read. */
struct hk_tls_context;

/* Reads the files that the rules name. 0 and *out (NULL: the listener has no TLS), or a negative errno with a message that names
 * the file. */
int hk_tls_context_new(struct hk_tls_context **out, const struct hk_rules *rules, char *error, size_t size);
void hk_tls_context_free(struct hk_tls_context *context); /* NULL is allowed; connections go on */
/* s until the certificate expires; negative: it has. */
int64_t hk_tls_context_left(const struct hk_tls_context *context);

/* s until the first of its lists of revoked certificates has to be replaced; negative: that is over. False: it has no lists. */
bool hk_tls_context_crl_left(const struct hk_tls_context *context, int64_t *left);

struct hk_tls;

/* NULL: no memory. The context may be freed before it. */
struct hk_tls *hk_tls_new(struct hk_tls_context *context);
void hk_tls_free(struct hk_tls *tls); /* NULL is allowed */

enum hk_tls_status {
  HK_TLS_MORE = 0,    /* more bytes of the peer are needed */
  HK_TLS_ENDED = -1,  /* the peer has said that nothing more comes */
  HK_TLS_FAILED = -2, /* hk_tls_fault says why; nothing can be read or written any more */
};

/* Bytes that came; they stay the caller's, and where they are until hk_tls_settle. Not before HK_TLS_MORE was given. */
void hk_tls_feed(struct hk_tls *tls, const void *data, size_t size);
/* Keeps unused bytes. 0 or -ENOMEM. */
int hk_tls_settle(struct hk_tls *tls);
/* Over 0: through. Else an hk_tls_status. */
int hk_tls_handshake(struct hk_tls *tls);
bool hk_tls_through(const struct hk_tls *tls);
/* Bytes of the peer, up to size; how many; or an hk_tls_status. */
ssize_t hk_tls_read(struct hk_tls *tls, void *data, size_t size);
/* Appends the records of these bytes. 0; or -EPIPE: it has failed or ended, or has not begun; or -ENOMEM: none was appended. */
int hk_tls_write(struct hk_tls *tls, const void *data, size_t size, struct hk_buffer *records);
/* What is to be sent; the caller empties it. */
struct hk_buffer *hk_tls_output(struct hk_tls *tls);
/* Says that nothing more comes, if that can still be said, and gives OpenSSL's memory back. */
void hk_tls_end(struct hk_tls *tls);

/* In words; "" when nothing failed. */
const char *hk_tls_fault(const struct hk_tls *tls);
/* The verified common name of the peer's certificate; false: no certificate, or its name is missing, not printable or too long.
 */
bool hk_tls_peer(const struct hk_tls *tls, char name[HK_TLS_NAME_MAX]);
/* Whether a context, perhaps a newer one than the connection's, has a list by which the peer's certificate is revoked; why: in
 * words, naming the certificate. */
bool hk_tls_revoked(const struct hk_tls *tls, const struct hk_tls_context *context, char *why, size_t size);
/* "TLSv1.3", ... */
const char *hk_tls_version(const struct hk_tls *tls);

#endif
