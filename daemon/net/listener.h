/* Listener: a TCP or UDP socket for input. Loop 0 accepts TCP connections and hands them to the loop with the fewest. For
 * datagrams each loop has its own socket, all bound to the same address; the kernel distributes datagrams over these sockets,
 * always sending those of one sender to the same socket. Thread: the loop's. */
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

/* UDP: buffers for one recvmmsg. */
struct hk_udp_buffers;

struct hk_listener {
  struct hk_net *net;
  struct hk_loop *loop; /* the loop that serves it */
  const struct hk_config_listener *config;
  struct hk_gate *gate;             /* its access rules */
  struct sockaddr_storage *bind_to; /* address to bind; then the bound address */
  bool open;                        /* its handle is open */
  char address[HK_ADDRESS_MAX];     /* bound address */
  struct hk_log_quota quota, audit; /* of log and audit */
  uv_poll_t poll;
  int fd;       /* -1: none */
  bool polling; /* false: paused, because there is no room for datagrams or no descriptor for connections */
  /* udp */
  struct hk_source *source;
  unsigned ask;            /* number of further calls that also get the sender, after an error */
  uint32_t kernel_lost;    /* the kernel's last count */
  _Atomic int64_t read_to; /* ns, hk_now: datagrams that came before it have been read; any thread may read this */
  /* Under a flood the socket may never be empty. So: of the bytes in its buffer at the time `mark`, how many may still hold
   * unread datagrams; when none, all datagrams from before `mark` have been read. */
  int64_t mark, before_mark;
  struct hk_udp_buffers *buffers;
};

#endif
