/* Inner connections: one end of a socket pair, served as any other connection of a protocol, for a part of the daemon whose peers
 * use another protocol (HTTP on the web's thread, bridges) and that holds the other end. So these points and results take the
 * usual road: the same rooms, back-pressure, gap notices and permissions.
 *
 * Differences: it is already admitted, as the peer that it serves, with that peer's scopes. It is not counted, because its peer
 * is (it takes no peer feed, so it has no feed over UDP, and no place of an address). It has no TCP options. The text protocol
 * shows nothing before the first line. It is closed like others: when its token is no longer valid after a reload, when the
 * daemon stops, when the other end is closed. The holder of the other end must read until then, and close it.
 *
 * The last line of a connection of the line protocol: after the end of the peer's stream (shutdown(fd, SHUT_WR)), when each of
 * its points is dealt with (with a journal: committed), it sends one line of JSON, and closes:
 *   {"taken":POINTS,"late":POINTS,"rejected":POINTS,"refused":LINES,"dropped":POINTS,
 *    "faults":[{"line":NUMBER,"byte":NUMBER,"why":"..."},...]}
 * taken: points that reached their sensors, with the numbers of late and rejected ones among them; refused: invalid lines;
 * dropped: points whose sensor was refused or whose time is too far ahead; with the first few errors (HK_LINES_FAULTS); byte 0:
 * the error has no place in its line. If the stream ends without that line, it is unknown how much was taken. */
#ifndef HK_INNER_H
#define HK_INNER_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"
#include "daemon/config/tokens.h"

struct hk_gate;
struct hk_net;

struct hk_inner {
  enum hk_protocol protocol;                 /* binary, line or text */
  const struct hk_config_listener *listener; /* the listener that the peer connected to, */
  struct hk_gate *gate;                      /* and its gate */
  const char *peer;                          /* address of the peer, for the log; copied */
  uint32_t scopes;                           /* scopes of the peer */
  const struct hk_token *shown;              /* the credentials; NULL: none. Copied */
  int64_t unit;                              /* line: ns of its times */
  bool scored;                               /* its points are scored here, even if those of peers are not (net.h, entry) */
};

/* Creates a socket pair, makes one end a connection of one of the loops, and returns the other end, >= 0, non-blocking and closed
 * on exec; or a negative errno: -EACCES: the scopes do not allow the protocol; -EINVAL: not a stream protocol; -ENOMEM; that of
 * socketpair. Thread: any, while the loops run. */
int hk_inner_open(struct hk_net *net, const struct hk_inner *inner);

#endif
