#include "daemon/server/listeners.h"

#include "daemon/net/loop_thread.h"
#include "daemon/net/tcp_listener.h"
#include "daemon/server/web_answers.h"

#include <errno.h>
#include <unistd.h>

/* Opens a listener on a socket of its own, or, for UDP, on one for each loop. */
static int listen_on(struct hk_server *s, const struct hk_config_listener *config, struct hk_gate *gate,
                     struct sockaddr_storage *address, char *error, size_t size)
{
  int status = 0;
  if (config->transport == HK_TRANSPORT_TCP) {
    status = hk_listener_open(&s->net.sockets.listeners[s->net.sockets.n_listeners], &s->net.loops[0], config, gate, address, -1,
                              error, size);
    s->net.sockets.n_listeners += status == 0;
    return status;
  }
  for (uint32_t i = 0; i < s->net.n_loops && status == 0; i++)
    status = hk_loop_listen(&s->net.loops[i], config, gate, address, -1, error, size);
  return status;
}

/* Opens a listener on the sockets that were passed for it, for UDP one for each loop. *any: whether there are any. */
static int listen_on_passed(struct hk_server *s, const struct hk_config_listener *config, struct hk_gate *gate, bool *any,
                            char *error, size_t size)
{
  uint32_t loop = 0;
  int status = 0;
  for (uint32_t i = 0; i < s->net.sockets.n_passed && status == 0; i++) {
    struct hk_activated_socket *p = &s->net.sockets.passed[i];
    if (!hk_activation_fits(s->net.sockets.passed, s->net.sockets.n_passed, config, i))
      continue;
    if (!hk_loopback(&p->address) && hk_loopback(&config->address)) {
      snprintf(error, size, "[listen %s]: the socket that was passed for it is on %s, beyond loopback, and its address is not",
               config->name, p->text);
      return -EINVAL;
    }
    *any = true;
    const int fd = p->fd;
    p->fd = -1;
    if (config->transport == HK_TRANSPORT_TCP) {
      status = hk_listener_open(&s->net.sockets.listeners[s->net.sockets.n_listeners], &s->net.loops[0], config, gate,
                                &p->address, fd, error, size);
      s->net.sockets.n_listeners += status == 0;
    } else {
      status = hk_loop_listen(&s->net.loops[loop++ % s->net.n_loops], config, gate, &p->address, fd, error, size);
    }
  }
  return status;
}

int hk_server_listen(struct hk_server *s, char *error, size_t size)
{
  int status = hk_server_open_web(s, error, size);
  for (uint32_t i = 0; i < s->config->n_listeners && status == 0; i++) {
    const struct hk_config_listener *l = &s->config->listeners[i];
    bool passed = false;
    s->net.sockets.addresses[i] = l->address;
    status = listen_on_passed(s, l, &s->net.gates.gate[i], &passed, error, size);
    if (status == 0 && !passed)
      status = listen_on(s, l, &s->net.gates.gate[i], &s->net.sockets.addresses[i], error, size);
  }
  for (uint32_t i = 0; i < s->net.sockets.n_passed && status == 0; i++) {
    if (s->net.sockets.passed[i].fd < 0)
      continue;
    hk_log(&s->log, HK_LOG_WARNING, "an activated socket (`%s`, %s) is closed: no [listen NAME] section has its name or address",
           s->net.sockets.passed[i].name, s->net.sockets.passed[i].text);
    close(s->net.sockets.passed[i].fd);
    s->net.sockets.passed[i].fd = -1;
  }
  return status;
}
