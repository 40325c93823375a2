/* Limits by address: how many connections an address may have, how many of these may be unauthenticated (newcomers), and how
 * often it may fail to authenticate before it is blocked for the rest of a minute. An address is an IPv4 address, or the first
 * 64 bits of an IPv6 address, because one host usually owns all addresses of such a prefix.
 *
 * The table has a fixed size and a keyed hash, so that a peer can neither make it grow nor craft colliding addresses. Thread:
 * any; the table has a lock, which is taken when connections open, are admitted, fail and close, never for points. */
#ifndef HK_ADDRESS_LIMITS_H
#define HK_ADDRESS_LIMITS_H

#include "daemon/base/log.h"

#include <netinet/in.h>

struct hk_address_limits;

/* The limits; 0: no limit. */
struct hk_address_limits_most {
  uint32_t connections, newcomers; /* of one address, at the same time */
  uint32_t failures;               /* of one address, within a minute */
};

/* Makes room for max_connections addresses with connections, and for some without connections that have failed. Returns 0 or a
 * negative errno. */
int hk_address_limits_new(struct hk_address_limits **out, uint32_t max_connections);
void hk_address_limits_free(struct hk_address_limits *limits); /* NULL is allowed */

/* An address with a connection, or with a recent failure. */
struct hk_address_limits_place;

enum hk_address_limits_verdict {
  HK_ADDRESS_LIMITS_FINE = 0,
  HK_ADDRESS_LIMITS_CONNECTIONS = 1, /* the address has too many */
  HK_ADDRESS_LIMITS_NEWCOMERS = 2,
  HK_ADDRESS_LIMITS_FAILURES = 3,
  HK_ADDRESS_LIMITS_FULL = 4, /* the table is full */
};
/* Text of a verdict, for a log. */
const char *hk_address_limits_words(enum hk_address_limits_verdict verdict);

/* Counts a new connection. FINE: sets *out, which must be given to hk_address_limits_leave when the connection closes. now: ns,
 * monotonic. */
enum hk_address_limits_verdict hk_address_limits_enter(struct hk_address_limits *limits,
                                                       const struct hk_address_limits_most *most,
                                                       const struct sockaddr_storage *address, bool newcomer, int64_t now,
                                                       struct hk_address_limits_place **out);
/* Normalises an address to that of its owner: an IPv4 address is mapped to IPv6; of an IPv6 address the first 64 bits count. */
#define HK_ADDRESS_LIMITS_ADDRESS 16 /* bytes */
void hk_address_limits_normalise(const struct sockaddr *address, uint8_t out[HK_ADDRESS_LIMITS_ADDRESS]);
/* The normalised address of an open connection. */
void hk_address_limits_address(const struct hk_address_limits_place *place, uint8_t out[HK_ADDRESS_LIMITS_ADDRESS]);
/* Marks a connection as authenticated. */
void hk_address_limits_admit(struct hk_address_limits *limits, struct hk_address_limits_place *place);
/* Counts a failure to authenticate. True: it exceeds the limit, and the address is now blocked. */
bool hk_address_limits_fail(struct hk_address_limits *limits, const struct hk_address_limits_most *most,
                            struct hk_address_limits_place *place, int64_t now);
/* Counts a closed connection. place: may be NULL. */
void hk_address_limits_leave(struct hk_address_limits *limits, struct hk_address_limits_place *place, bool newcomer);

/* Counts the newcomers of all addresses, and the addresses that are blocked now. */
void hk_address_limits_survey(struct hk_address_limits *limits, const struct hk_address_limits_most *most, int64_t now,
                              uint32_t *newcomers, uint32_t *turned_away);

#endif
