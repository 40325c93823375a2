/* Listener: a TCP or UDP socket that takes input. TCP connections are accepted on loop 0 and handed to the loop that has the
 * fewest; for datagrams each loop has a socket of its own, all bound to the same address, over which the kernel spreads them,
 * those of one sender always to the same. Thread: the loop's. */
#ifndef HK_LISTENER_H
#define HK_LISTENER_H

#include "daemon/base/address.h"
#include "daemon/base/log.h"
#include "daemon/config/config.h"

#include <uv.h>

struct hk_net;
struct hk_loop;
struct hk_source;
struct hk_gate;

/* Of UDP: buffers for one recvmmsg. */
struct hk_udp_buffers;

struct hk_listener {
  struct hk_net *net;
  struct hk_loop *loop; /* on whose thread it is */
  const struct hk_config_listener *config;
  struct hk_gate *gate;             /* its access rules */
  struct sockaddr_storage *bind_to; /* where to; then where it was bound */
  bool open;                        /* a handle of it is open */
  char address[HK_ADDRESS_MAX];     /* that was bound */
  struct hk_log_quota quota, audit; /* of log and audit */
  uv_poll_t poll;
  int fd;       /* -1: none */
  bool polling; /* otherwise paused: no room for datagrams, or no descriptors for connections */
  /* udp */
  struct hk_source *source;
  unsigned ask;            /* further calls that also ask for the sender, after an error */
  uint32_t kernel_lost;    /* as the kernel counted last */
  _Atomic int64_t read_to; /* ns, hk_now: datagrams that came before it have been read; any thread may read this */
  /* Under a flood the socket may never be empty. So: of the bytes in its buffer at the time `mark`, how many may still hold
   * unread datagrams; when none, all datagrams from before `mark` have been read. */
  int64_t mark, before_mark;
  struct hk_udp_buffers *buffers;
};

/* Binds (fd = -1), or takes a socket that is bound already, which is its own from then on; listens on a loop, and prints the bare
 * line `listening ...` (for one socket of several). 0, or a negative errno with a message. */
int hk_listener_open(struct hk_listener *l, struct hk_loop *loop, const struct hk_config_listener *config, struct hk_gate *gate,
                     struct sockaddr_storage *bind_to, int fd, char *error, size_t size);
void hk_listener_close(struct hk_listener *l); /* may be called twice; the loop must run once more */

/* TCP: accepts again where that was paused. Called every second. */
void hk_listener_retry(struct hk_listener *l);
/* A descriptor to have in reserve; -1: none is left. */
int hk_listener_reserve(void);

/* Makes calls on a socket that was passed return at once. 0, or -1 with errno. */
int hk_listener_unblock(int fd);

#endif
