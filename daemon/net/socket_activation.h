/* Passed sockets: the service manager binds them before it starts the daemon, and keeps them while the daemon does not run
 * (sd_listen_fds(3)). Connections and datagrams wait in them, so that a restart refuses no connection and loses no datagram.
 *
 * A socket is for the listener of its name (FileDescriptorName=), whatever the address in that section, otherwise for the one
 * with its address. Several may be for one listener, such as one for IPv4 and one for IPv6. Thread: main. */
#ifndef HK_PASSED_H
#define HK_PASSED_H

#include "daemon/base/address.h"
#include "daemon/config/config.h"

#include <stdbool.h>

struct hk_passed {
  int fd; /* -1: it was given to a listener, which owns it */
  char name[HK_CONFIG_NAME_MAX];
  struct sockaddr_storage address; /* where it is bound; of no family: it is no socket over IP */
  char text[HK_ADDRESS_MAX];       /* the same */
  int type;                        /* SOCK_STREAM, SOCK_DGRAM */
};

/* Takes the sockets passed to this process: *out, `*n` of them, freed with hk_passed_free. 0 or a negative errno. */
int hk_passed_take(struct hk_passed **out, uint32_t *n);
/* Closes sockets that no listener took. */
void hk_passed_free(struct hk_passed *passed, uint32_t n);

/* Whether a listener's sockets have been passed, and this is one. */
bool hk_passed_fits(const struct hk_passed *passed, uint32_t n, const struct hk_config_listener *listener, uint32_t number);

#endif
