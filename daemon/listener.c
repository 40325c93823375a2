/* TCP listeners. Past max_connections a peer is told why and closed. When descriptors run out libuv closes what it cannot
 * take with one that it keeps in reserve, so that accepting never spins; hk_server_open sees to it that max_connections is
 * reached before. */
#include "daemon/listener.h"

#include "daemon/server.h"
#include "daemon/text.h"

#include <stdlib.h>
#include <string.h>

#define BACKLOG 512
#define KEEPALIVE 60 /* s of silence before a peer is asked whether it still is there */

static const struct hk_connection_kind *const kinds[] = {
  [HK_PROTOCOL_BINARY] = &hk_binary_kind,
  [HK_PROTOCOL_LINE] = &hk_line_kind,
  [HK_PROTOCOL_TEXT] = &hk_text_kind,
};

static void peer_name(struct hk_connection *c)
{
  struct sockaddr_storage address;
  int length = sizeof address;
  if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&address, &length) == 0)
    hk_address_format((const struct sockaddr *)&address, c->peer);
  else
    snprintf(c->peer, sizeof c->peer, "%s client", hk_protocol_name(c->listener->protocol));
}

static void on_discard(uv_handle_t *handle)
{
  free(handle->data);
}

static void on_connection(uv_stream_t *stream, int status)
{
  struct hk_listener *l = stream->data;
  struct hk_server *server = l->server;
  if (status != 0) {
    hk_log_peer(&server->log, &l->quota, HK_LOG_ERROR, l->address, "a connection could not be accepted: %s", uv_strerror(status));
    return;
  }
  struct hk_connection *c = calloc(1, sizeof *c);
  if (!c || uv_tcp_init(&l->loop->uv, &c->tcp) != 0) {
    free(c);
    l->stalled = true;
    hk_log_peer(&server->log, &l->quota, HK_LOG_ERROR, l->address, "a connection could not be accepted: no memory");
    return;
  }
  c->tcp.data = c;
  c->server = server;
  c->loop = l->loop;
  c->listener = l->config;
  c->kind = kinds[l->config->protocol];
  c->splitter.max_line = l->config->protocol == HK_PROTOCOL_TEXT ? HK_LINE_MAX_LEAST : (uint32_t)server->config->max_line;
  if (uv_accept(stream, (uv_stream_t *)&c->tcp) != 0 || hk_stage_open(server->stage, &c->source) != 0) {
    uv_close((uv_handle_t *)&c->tcp, on_discard);
    return;
  }
  peer_name(c);
  /* neither is vital */
  (void)uv_tcp_nodelay(&c->tcp, 1);
  (void)uv_tcp_keepalive(&c->tcp, 1, KEEPALIVE);
  const bool room = hk_server_add(server, c);
  hk_connection_start(c);
  if (!room) {
    hk_count(&server->counters.refused, 1);
    hk_log_peer(&server->log, &l->quota, HK_LOG_WARNING, l->address,
                "%s was refused: there are %u connections already (max_connections)", c->peer, server->max_connections);
    hk_connection_refuse(c, HANKEL_LIMIT, "too many connections");
    return;
  }
  hk_count(&server->counters.accepted, 1);
  if (l->config->protocol == HK_PROTOCOL_TEXT)
    hk_text_greet(c);
}

void hk_listener_retry(struct hk_listener *l)
{
  if (l->config->transport == HK_TRANSPORT_UDP)
    hk_udp_look(l);
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
    status = uv_tcp_bind(&l->tcp, (const struct sockaddr *)&l->config->address, 0);
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

int hk_listener_open(struct hk_listener *l, struct hk_loop *loop, const struct hk_config_listener *config, char *error,
                     size_t size)
{
  *l = (struct hk_listener){ .server = loop->server, .loop = loop, .config = config, .fd = -1 };
  hk_address_format((const struct sockaddr *)&config->address, l->address);
  const int status = config->transport == HK_TRANSPORT_UDP ? hk_udp_open(l, error, size) : tcp_open(l, error, size);
  if (status != 0) {
    hk_listener_close(l);
    return status;
  }
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
