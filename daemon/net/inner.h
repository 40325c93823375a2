/* Inner connections: one end of a socket pair served as any other connection of a protocol, for a part of the daemon that speaks
 * to its peers in another way (HTTP, on the web's thread) and holds the other end. So what goes in and out by that way takes the
 * road of all else: the same rooms, the same back-pressure, gap notices and permissions.
 *
 * What is different: it is admitted already, as the peer that it is for, with that peer's scopes; it is counted by nobody, for
 * whoever holds the other end is (it takes no peer feed, so it has no feed over UDP, and no place of its address); kernel options
 * of TCP mean nothing to it; text shows nothing before the first line has come. It is closed like others: where its token is not
 * good any more after a reload, at the daemon's end, when the other end is closed. Whoever holds that must read on until then,
 * and close it.
 *
 * What a connection of lines says at its end: behind the end of its peer's stream (shutdown(fd, SHUT_WR)), when each of its
 * points is dealt with (with a journal: committed), one line of JSON, and then the end:
 *   {"taken":POINTS,"late":POINTS,"rejected":POINTS,"refused":LINES,"dropped":POINTS,"faults":[{"line":NUMBER,"byte":NUMBER,"why":"..."},...]}
 * taken: those that went to their sensors, of which so many came too late, and so many were rejected there (no number, or too far
 * ahead of others); refused: lines that cannot be read; dropped: points whose sensor was refused or whose time is too far ahead;
 * with the first few faults (HK_LINES_FAULTS); byte 0: the fault has no place in its line. Where it ends without that line nobody
 * knows how far it got. */
#ifndef HK_INNER_H
#define HK_INNER_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"
#include "daemon/config/tokens.h"

struct hk_gate;
struct hk_net;

struct hk_inner {
  enum hk_protocol protocol;                 /* binary, line or text */
  const struct hk_config_listener *listener; /* that the peer came by; */
  struct hk_gate *gate;                      /* its gate */
  const char *peer;                          /* address of the peer, for the log; copied */
  uint32_t scopes;                           /* what it may do */
  const struct hk_token *shown;              /* by what; NULL: by nothing. Copied */
  int64_t unit;                              /* line: ns of its times */
};

/* fd becomes a connection of one of the loops, which owns it from now on. It is a stream socket that does not block. 0, -EACCES:
 * its scopes do not allow what the protocol is for; -EINVAL: no protocol of a stream; -ENOMEM. With an error fd is still the
 * caller's. Thread: any, while the loops run. */
int hk_inner_adopt(struct hk_net *net, const struct hk_inner *inner, int fd);

/* As that, for the other end, which the caller gets: not below 0, and not blocking, closed on exec; or a negative errno. */
int hk_inner_open(struct hk_net *net, const struct hk_inner *inner);

#endif
