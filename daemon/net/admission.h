/* Admission: from a connection's first byte until it is authenticated and has its scopes.
 *
 *   newcomer: handshake of TLS, if the listener has TLS -> a certificate that its token file names, or a token, or what the
 *             listener gives to all -> admitted, with scopes
 *
 * A binary peer's token comes in HELLO, another's in its first line: `token TOKEN`, or `# token TOKEN`, which the line protocol
 * skips where none is asked for. A newcomer can do nothing else; it has the handshake deadline (HK_ADMISSION_HURRY when three
 * quarters of all connections are taken), HK_ADMISSION_BYTES bytes and the places of its address (address_limits.h).
 *
 * Thread: the connection's loop's, unless stated otherwise. */
#ifndef HK_ADMISSION_H
#define HK_ADMISSION_H

#include "daemon/net/connection.h"

#define HK_ADMISSION_BYTES (32u << 10)  /* that a newcomer may send, of TLS too */
#define HK_ADMISSION_READ (16u << 10)   /* most that is read of it at a time */
#define HK_ADMISSION_HURRY 1000000000   /* ns */
#define HK_ADMISSION_CHUNK (256u << 10) /* bytes that are read at a time to be decrypted */

/* Whether a new connection is accepted; it then has *place. False: the audit has logged it, and it is to be closed. quota: of the
 * listener, for the audit. Thread: main. */
bool hk_admission_enter(struct hk_net *net, const struct hk_gate *gate, int fd, struct hk_log_quota *quota,
                        struct hk_limits_place **place);
/* The peer has closed or reset the connection. Over TLS, before authentication, that counts as a failure: such handshakes cost
 * the daemon as much as others. */
void hk_admission_dropped(struct hk_connection *c);
/* It is gone, or was never started. */
void hk_admission_leave(struct hk_connection *c);

/* Whether scopes allow the connection's protocol at all. */
bool hk_admission_allows(const struct hk_connection *c, uint32_t scopes);

/* The connection begins. Admits it at once if no authentication is needed. */
void hk_admission_begin(struct hk_connection *c);
/* A step of a newcomer whose kind reads lines. */
enum hk_turn hk_admission_step(struct hk_connection *c);
/* A binary newcomer says HELLO with this token, of length 0 when with none. False: it was refused. */
bool hk_admission_hello(struct hk_connection *c, const char *token, size_t length);
/* Gives the protocol the decrypted bytes. False: more bytes are needed. */
bool hk_admission_decrypt(struct hk_connection *c);
/* Says over TLS, if there is TLS, that nothing more comes. */
void hk_admission_farewell(struct hk_connection *c);
/* A newcomer's bytes or time are used up: refuses it. True: it is so. */
bool hk_admission_spent(struct hk_connection *c);
bool hk_admission_late(struct hk_connection *c, int64_t now);

/* A peer requests something that its scopes do not allow: counts that, and logs it in the audit. */
void hk_admission_forbidden(struct hk_connection *c, const char *what);

/* Feeds whose names begin so belong to the daemon's own parts, over inner connections. */
#define HK_OUR_FEEDS "[cluster] "
/* Whether a peer may use the feed of this name: it is reserved for the peer, or for none; otherwise counts that and logs it in
 * the audit. */
bool hk_admission_feed(struct hk_connection *c, struct hk_string name);

/* The owner number of a peer's sensors and feeds: from the name of its token or certificate or, without one, from its address (an
 * IPv4 address, or the first 64 bits of an IPv6 address). Not 0, and the same after a restart. */
uint64_t hk_admission_owner(const struct hk_connection *c);
/* The same of a peer of which there is nothing but its address. Thread: any. */
uint64_t hk_admission_owner_at(const struct sockaddr *address);

/* Certificates, keys and tokens were read again. Closes a connection whose token or named certificate is no longer valid; others
 * get its present scopes, and keep their TLS state until they close. A connection that waits for the result of a reload loses its
 * scopes instead of being closed: call this again after the answer. */
void hk_admission_again(struct hk_connection *c);

#endif
