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

#include "daemon/net/audit.h"
#include "daemon/net/connection.h"

#define HK_ADMISSION_BYTES (32u << 10)  /* most bytes that a newcomer may send, including those of TLS */
#define HK_ADMISSION_READ (16u << 10)   /* most bytes that are read from it at a time */
#define HK_ADMISSION_HURRY 1000000000   /* ns */
#define HK_ADMISSION_CHUNK (256u << 10) /* bytes of TLS records that are read at a time */

/* Decides whether a new connection is accepted. True: sets *place. False: the audit has logged the reason, and the caller must
 * close the connection. quota: of the listener, for the audit. Thread: main. */
bool hk_admission_enter(struct hk_net *net, const struct hk_gate *gate, int fd, struct hk_log_quota *quota,
                        struct hk_address_limits_place **place);
/* The peer has closed or reset the connection. Over TLS, before authentication, this counts as a failure, because such
 * handshakes cost the daemon as much as others. */
void hk_admission_dropped(struct hk_connection *c);
/* The connection was closed, or never started. */
void hk_admission_leave(struct hk_connection *c);

/* Whether scopes allow the connection's protocol at all. */
bool hk_admission_allows(const struct hk_connection *c, uint32_t scopes);

/* The connection begins. Admits it at once if no authentication is needed. */
void hk_admission_begin(struct hk_connection *c);
/* Authenticates a newcomer whose protocol reads lines by its first line. */
enum hk_turn hk_admission_first_line(struct hk_connection *c);
/* Authenticates a binary newcomer by its HELLO; length 0: no token. False: it was refused. */
bool hk_admission_hello(struct hk_connection *c, const char *token, size_t length);
/* Decrypts received bytes and passes them to the protocol. False: more bytes are needed. */
bool hk_admission_decrypt(struct hk_connection *c);
/* With TLS, sends the end of the TLS stream. */
void hk_admission_farewell(struct hk_connection *c);
/* Refuses a newcomer that has used up its bytes or its time. Returns whether it was refused. */
bool hk_admission_spent(struct hk_connection *c);
bool hk_admission_late(struct hk_connection *c, int64_t now);

/* A peer requests something for which it lacks a scope (need: one of these): counts that, logs it in the audit, and writes the
 * answer. */
void hk_admission_forbidden(struct hk_connection *c, const char *what, uint32_t need, char answer[HK_AUDIT_LACK_TEXT]);

/* Prefix of the names of feeds that belong to the daemon's own parts, over inner connections. */
#define HK_OUR_FEEDS "[cluster] "
/* Whether a peer may use the feed of this name: the name is reserved for this peer, or not reserved. Otherwise counts the
 * refusal and logs it in the audit. */
bool hk_admission_feed(struct hk_connection *c, struct hk_string name);

/* The owner number of a peer's sensors and feeds: from the name of its token or certificate or, without one, from its address (an
 * IPv4 address, or the first 64 bits of an IPv6 address). Not 0, and the same after a restart. */
uint64_t hk_admission_owner(const struct hk_connection *c);
/* As hk_admission_owner, for a peer of which only the address is known. Thread: any. */
uint64_t hk_admission_owner_at(const struct sockaddr *address);

/* Certificates, keys and tokens were reloaded. Closes a connection whose token or named certificate is no longer valid;
 * updates the scopes of others, which keep their TLS state until they close. A connection that waits for the result of a
 * reload loses its scopes instead of being closed: call this again after the answer. */
void hk_admission_again(struct hk_connection *c);

#endif
