/* Limits by address: how many connections an address may have, how many of these may be unauthenticated (newcomers), and how
 * often it may fail to authenticate before it is blocked for the rest of a minute. An address is an IPv4 address, or the first 64
 * bits of an IPv6 address, because one host usually has all of those.
 *
 * The table has a fixed size and a keyed hash, so that a peer can neither make it grow nor prepare colliding addresses. Thread:
 * any; it is under a lock, which is taken when connections open, are admitted, fail and close, never for points. */
#ifndef HK_LIMITS_H
#define HK_LIMITS_H

#include "daemon/base/log.h"

#include <netinet/in.h>

struct hk_limits;

/* What is allowed; 0 = no limit. */
struct hk_limits_most {
  uint32_t connections, newcomers; /* of one address, at a time */
  uint32_t failures;               /* of one address, within a minute */
};

/* Room for as many addresses as there may be connections, and for some that have none and failed. 0 or a negative errno. */
int hk_limits_new(struct hk_limits **out, uint32_t max_connections);
void hk_limits_free(struct hk_limits *limits); /* NULL is allowed */

/* An address with a connection, or with a recent failure. */
struct hk_limits_place;

enum hk_limits_verdict {
  HK_LIMITS_FINE = 0,
  HK_LIMITS_CONNECTIONS = 1, /* it has too many */
  HK_LIMITS_NEWCOMERS = 2,
  HK_LIMITS_FAILURES = 3,
  HK_LIMITS_FULL = 4, /* the table is full */
};
/* A verdict in words, for a log. */
const char *hk_limits_words(enum hk_limits_verdict verdict);

/* A connection has come. FINE: *out is to be given to hk_limits_leave when it goes. now: ns, monotonic. */
enum hk_limits_verdict hk_limits_enter(struct hk_limits *limits, const struct hk_limits_most *most,
                                       const struct sockaddr_storage *address, bool newcomer, int64_t now,
                                       struct hk_limits_place **out);
/* An address by which one owner is known: an IPv4 address as one of IPv6, and of an IPv6 address the first 64 bits. */
#define HK_LIMITS_ADDRESS 16 /* bytes */
void hk_limits_normalise(const struct sockaddr *address, uint8_t out[HK_LIMITS_ADDRESS]);
/* The place of an open connection. */
void hk_limits_address(const struct hk_limits_place *place, uint8_t out[HK_LIMITS_ADDRESS]);
/* It is no newcomer any more. */
void hk_limits_admit(struct hk_limits *limits, struct hk_limits_place *place);
/* Counts a failure to authenticate. True: that was one too many; its address is blocked from now on. */
bool hk_limits_fail(struct hk_limits *limits, const struct hk_limits_most *most, struct hk_limits_place *place, int64_t now);
/* The connection is closed. place: may be NULL. */
void hk_limits_leave(struct hk_limits *limits, struct hk_limits_place *place, bool newcomer);

/* Newcomers of all addresses; addresses that are turned away now. */
void hk_limits_survey(struct hk_limits *limits, const struct hk_limits_most *most, int64_t now, uint32_t *newcomers,
                      uint32_t *turned_away);

#endif
