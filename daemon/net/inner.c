/* See inner.h. */
#include "daemon/net/inner.h"

#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes fd a connection of one of the loops, which then owns it. */
static int inner_adopt(struct hk_net *net, const struct hk_inner *inner, int fd)
{
  const struct hk_connection_kind *kind = hk_connection_kind_of(inner->protocol);
  if (!kind)
    return -EINVAL;
  struct hk_connection *c = hk_connection_new(net, inner->listener, kind, inner->gate, fd);
  if (!c)
    return -ENOMEM;
  if (kind->become_inner && kind->become_inner(c) != 0) {
    hk_connection_forget(c);
    return -ENOMEM;
  }
  c->inner = true;
  c->binary.scored = inner->scored;
  c->identity.newcomer = false;
  c->identity.scopes = inner->scopes;
  c->lines.unit = inner->unit;
  if (inner->shown)
    c->identity.shown = *inner->shown;
  snprintf(c->peer, sizeof c->peer, "%s", inner->peer);
  if (!hk_admission_allows(c, c->identity.scopes)) {
    hk_connection_forget(c);
    return -EACCES;
  }
  c->loop = hk_loop_least_busy(net);
  hk_loop_hand(c->loop, c);
  return 0;
}

int hk_inner_open(struct hk_net *net, const struct hk_inner *inner)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return -errno;
  const int status = inner_adopt(net, inner, ends[1]);
  if (status == 0)
    return ends[0];
  close(ends[0]);
  close(ends[1]);
  return status;
}
