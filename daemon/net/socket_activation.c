/* Sockets that the service manager passed: their names and addresses. */
#include "daemon/net/socket_activation.h"

#include "daemon/base/address.h"
#include "daemon/base/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void socket_activation_look(struct hk_activated_socket *p)
{
  socklen_t size = sizeof p->address, type_size = sizeof p->type;
  if (getsockname(p->fd, (struct sockaddr *)&p->address, &size) != 0 ||
      getsockopt(p->fd, SOL_SOCKET, SO_TYPE, &p->type, &type_size) != 0 ||
      (p->address.ss_family != AF_INET && p->address.ss_family != AF_INET6)) {
    p->address.ss_family = AF_UNSPEC;
    snprintf(p->text, sizeof p->text, "no socket over IP");
    return;
  }
  hk_address_format((const struct sockaddr *)&p->address, p->text);
}

int hk_activation_take(struct hk_activated_socket **out, uint32_t *n)
{
  char **names = NULL;
  int first, status = hk_notify_sockets(&first, &names);
  *out = NULL;
  *n = 0;
  if (status <= 0)
    return status;
  struct hk_activated_socket *passed = calloc((size_t)status, sizeof *passed);
  for (int i = 0; i < status; i++) {
    if (passed) {
      passed[i].fd = first + i;
      snprintf(passed[i].name, sizeof passed[i].name, "%s", names && names[i] ? names[i] : "");
      socket_activation_look(&passed[i]);
    }
    if (names)
      free(names[i]);
  }
  free(names);
  if (!passed)
    return -ENOMEM;
  *out = passed;
  *n = (uint32_t)status;
  return 0;
}

void hk_activation_free(struct hk_activated_socket *passed, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (passed[i].fd >= 0)
      close(passed[i].fd);
  free(passed);
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
  char x[HK_ADDRESS_MAX], y[HK_ADDRESS_MAX];
  if (a->ss_family != b->ss_family)
    return false;
  hk_address_format((const struct sockaddr *)a, x);
  hk_address_format((const struct sockaddr *)b, y);
  return strcmp(x, y) == 0;
}

static bool usable(const struct hk_activated_socket *p, const struct hk_config_listener *l)
{
  return p->fd >= 0 && p->address.ss_family != AF_UNSPEC &&
         p->type == (l->transport == HK_TRANSPORT_TCP ? SOCK_STREAM : SOCK_DGRAM);
}

bool hk_activation_fits(const struct hk_activated_socket *passed, uint32_t n, const struct hk_config_listener *l, uint32_t number)
{
  const struct hk_activated_socket *p = &passed[number];
  bool named = false;
  for (uint32_t i = 0; i < n; i++)
    named |= strcmp(passed[i].name, l->name) == 0 && passed[i].address.ss_family != AF_UNSPEC;
  return usable(p, l) && (named ? strcmp(p->name, l->name) == 0 : same_address(&p->address, &l->address));
}

int hk_activation_unblock(int fd)
{
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 ? fcntl(fd, F_SETFL, flags | O_NONBLOCK) : -1;
}
