/* Passed sockets: the service manager binds them before it starts the daemon, and keeps them while the daemon does not run
 * (sd_listen_fds(3)). Connections and datagrams wait in them, so that a restart refuses no connection and loses no datagram.
 *
 * A listener takes the sockets with its name (FileDescriptorName=), whatever the address in its section; if there are none,
 * the sockets with its address. It may take several, such as one for IPv4 and one for IPv6. Thread: main. */
#ifndef HK_SOCKET_ACTIVATION_H
#define HK_SOCKET_ACTIVATION_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"

#include <stdbool.h>

struct hk_activated_socket {
  int fd; /* -1: a listener has taken it, and owns it */
  char name[HK_CONFIG_NAME_MAX];
  struct sockaddr_storage address; /* bound address; without a family: not an IP socket */
  char text[HK_ADDRESS_MAX];       /* bound address, as text */
  int type;                        /* SOCK_STREAM, SOCK_DGRAM */
};

/* Takes the *n sockets passed to this process: *out, freed with hk_activation_free. Returns 0 or a negative errno. */
int hk_activation_take(struct hk_activated_socket **out, uint32_t *n);
/* Closes sockets that no listener took. */
void hk_activation_free(struct hk_activated_socket *passed, uint32_t n);

/* Whether passed socket `number` belongs to the listener. */
bool hk_activation_fits(const struct hk_activated_socket *passed, uint32_t n, const struct hk_config_listener *listener,
                        uint32_t number);
/* Makes the socket of a listener that has taken it non-blocking. Returns 0, or -1 with errno. */
int hk_activation_unblock(int fd);

#endif
