/* TCP listeners. Past max_connections a peer is told why and closed. When descriptors run out libuv closes what it cannot
 * take with one that it keeps in reserve, so that accepting never spins; hk_server_open sees to it that max_connections is
 * reached before. */
#include "daemon/listener.h"

#include "daemon/server.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 512

static void on_taken(uv_handle_t *handle)
{
  free(handle);
}

/* Takes what was accepted off libuv's hands: -1 when there is no descriptor. */
static int take_descriptor(uv_tcp_t *tcp)
{
  int fd;
  return uv_fileno((uv_handle_t *)tcp, &fd) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
}

static struct hk_loop *least_busy(struct hk_server *server)
{
  struct hk_loop *least = &server->loops[0];
  for (uint32_t i = 1; i < server->n_loops; i++)
    if (server->loops[i].n_connections < least->n_connections)
      least = &server->loops[i];
  return least;
}

static void on_connection(uv_stream_t *stream, int status)
{
  struct hk_listener *l = stream->data;
  struct hk_server *server = l->server;
  if (status != 0) {
    hk_log_peer(&server->log, &l->quota, HK_LOG_ERROR, l->address, "a connection could not be accepted: %s", uv_strerror(status));
    return;
  }
  uv_tcp_t *tcp = malloc(sizeof *tcp);
  if (!tcp || uv_tcp_init(&l->loop->uv, tcp) != 0) {
    free(tcp);
    l->stalled = true;
    hk_log_peer(&server->log, &l->quota, HK_LOG_ERROR, l->address, "a connection could not be accepted: no memory");
    return;
  }
  const int fd = uv_accept(stream, (uv_stream_t *)tcp) == 0 ? take_descriptor(tcp) : -1;
  uv_close((uv_handle_t *)tcp, on_taken);
  if (fd < 0)
    return;
  struct hk_connection *c = hk_connection_new(server, l->config, fd);
  if (!c) {
    close(fd);
    return;
  }
  c->seat = hk_seats_take(&server->seats);
  c->loop = least_busy(server);
  hk_loop_hand(c->loop, c);
}

void hk_listener_retry(struct hk_listener *l)
{
  if (!l->open || !l->stalled)
    return;
  l->stalled = false;
  on_connection((uv_stream_t *)&l->tcp, 0);
}

static int tcp_open(struct hk_listener *l, char *error, size_t size)
{
  struct sockaddr_storage bound;
  int length = sizeof bound;
  int status = uv_tcp_init(&l->loop->uv, &l->tcp);
  if (status == 0) {
    l->open = true;
    l->tcp.data = l;
    status = uv_tcp_bind(&l->tcp, (const struct sockaddr *)l->bind_to, 0);
  }
  if (status == 0)
    status = uv_listen((uv_stream_t *)&l->tcp, BACKLOG, on_connection);
  if (status == 0)
    status = uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&bound, &length);
  if (status != 0) {
    snprintf(error, size, "[listen %s]: %s over tcp: %s", l->config->name, l->address, uv_strerror(status));
    return status;
  }
  hk_address_format((const struct sockaddr *)&bound, l->address);
  return 0;
}

int hk_listener_open(struct hk_listener *l, struct hk_loop *loop, const struct hk_config_listener *config,
                     struct sockaddr_storage *bind_to, char *error, size_t size)
{
  *l = (struct hk_listener){ .server = loop->server, .loop = loop, .config = config, .bind_to = bind_to, .fd = -1 };
  hk_address_format((const struct sockaddr *)bind_to, l->address);
  const int status = config->transport == HK_TRANSPORT_UDP ? hk_udp_open(l, error, size) : tcp_open(l, error, size);
  if (status != 0) {
    hk_listener_close(l);
    return status;
  }
  if (loop->number == 0)
    hk_log_bare("listening %s %s %s", hk_protocol_name(config->protocol), hk_transport_name(config->transport), l->address);
  return 0;
}

void hk_listener_close(struct hk_listener *l)
{
  if (!l->config)
    return;
  if (l->config->transport == HK_TRANSPORT_UDP)
    hk_udp_close(l);
  else if (l->open)
    uv_close((uv_handle_t *)&l->tcp, NULL);
  l->open = false;
}
