/* libhankel: opens and closes the connection: addresses, connect, TLS, HELLO. See client.h. */
#include "proto/client/client_connect.h"
#include "proto/client/client.h"
#include "proto/client/client_receive.h"
#include "proto/client/client_token.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Splits HOST:PORT, [V6]:PORT or PORT, and resolves it. Returns 0, -EINVAL (permanently invalid) or -EHOSTUNREACH; *why: the
 * reason. */
static int client_connect_look_up(const char *text, int socktype, char host[256], struct addrinfo **out, const char **why)
{
  snprintf(host, 256, "127.0.0.1");
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
  if (colon) {
    const bool bracket = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    const char *begin = text + bracket;
    const size_t length = (size_t)(colon - begin) - bracket;
    if (length == 0 || length >= 256 || (text[0] == '[' && !bracket)) {
      *why = "no address of the form HOST:PORT";
      return -EINVAL;
    }
    memcpy(host, begin, length);
    host[length] = 0;
  }
  if (port[0] == 0 || strspn(port, "0123456789") != strlen(port) || strtoul(port, NULL, 10) > 65535) {
    *why = "no address of the form HOST:PORT, with a number up to 65535 for the port";
    return -EINVAL;
  }
  const struct addrinfo hints = { .ai_socktype = socktype, .ai_flags = AI_NUMERICSERV };
  const int status = getaddrinfo(host, port, &hints, out);
  if (status != 0) {
    *why = gai_strerror(status);
    return -EHOSTUNREACH;
  }
  return 0;
}

void hk_client_release(struct hankel *h)
{
  if (h->link.tls)
    hk_client_tls_end(h->link.tls);
  hk_client_tls_free(h->link.tls);
  h->link.tls = NULL;
  hk_mac_free(h->datagrams.mac);
  h->datagrams.mac = NULL;
  if (h->link.fd >= 0)
    close(h->link.fd);
  if (h->datagrams.socket >= 0)
    close(h->datagrams.socket);
  if (h->link.addresses)
    freeaddrinfo(h->link.addresses);
  h->link.fd = h->datagrams.socket = -1;
  h->link.addresses = h->link.address = NULL;
  hk_inbox_free(&h->link.in);
}

void hk_client_disconnect(struct hankel *h, int fault, const char *reason)
{
  const bool was_ready = h->phase == HK_CLIENT_READY;
  const uint64_t in_doubt = h->options.feed ? 0 : h->written - h->confirmed;
  char why[1200];
  snprintf(why, sizeof why, "%.1199s", reason);
  snprintf(h->error, sizeof h->error, "%.300s: %s", h->options.address, why);
  hk_client_release(h);
  h->link.out.size = h->link.out_start = h->datagrams.size = 0;
  h->counters.in_doubt += in_doubt;
  h->confirmed = h->pinged = h->written;
  h->datagrams.feed = h->datagrams.sequence = h->datagrams.before = 0;
  h->pings = h->pongs = 0;
  h->own.asked = 0;
  for (uint32_t i = 0; i < h->own.n; i++)
    h->own.sensor[i].phase = HK_SENSOR_NEW;
  h->subscription.wanted = h->subscription.what != 0;
  h->subscription.asked = 0;
  h->points.first = h->points.kept; /* of a feed: sends again from the first unacknowledged point */
  hk_client_forget_names(h);
  const bool refused = fault == -EPERM || (fault == -EACCES && !h->link.greeted_once);
  if (h->options.once || h->farewell || fault == -EINVAL || refused) {
    h->phase = HK_CLIENT_OVER;
    h->fault = fault;
  } else {
    /* Half of the pause is random, so that the clients of a restarted daemon do not all reconnect at once. */
    const int64_t half = h->link.pause / 2;
    h->phase = HK_CLIENT_CLOSED;
    h->link.retry_at = hk_client_now() + half + random() % (half + 1);
    h->link.pause = 2 * h->link.pause < HK_CLIENT_PAUSE_MOST_MS ? 2 * h->link.pause : HK_CLIENT_PAUSE_MOST_MS;
  }
  if (was_ready && h->options.callbacks.disconnected)
    h->options.callbacks.disconnected(h->options.arg, in_doubt, why);
}

ssize_t hk_client_recv(struct hankel *h, void *data, size_t size)
{
  return h->link.tls ? hk_client_tls_read(h->link.tls, data, size) : recv(h->link.fd, data, size, 0);
}

ssize_t hk_client_send(struct hankel *h, const void *data, size_t size)
{
  return h->link.tls ? hk_client_tls_write(h->link.tls, data, size) : send(h->link.fd, data, size, MSG_NOSIGNAL);
}

/* Sends HELLO. */
static void client_connect_greet(struct hankel *h)
{
  char token[HK_CLIENT_TOKEN], error[300];
  int status = hk_client_token(&h->options.security, token, error, sizeof error);
  if (status == 0 && token[0] && !h->link.tls)
    status = hk_client_token_may_go(&h->options.security, h->link.address->ai_addr, error, sizeof error);
  if (status < 0) {
    hk_client_disconnect(h, status, error);
    return;
  }
  h->phase = HK_CLIENT_GREETING;
  h->link.last_read = h->link.last_sent = h->link.last_ping = hk_client_now();
  const uint32_t wants = (h->options.security.mac ? HK_WANTS_KEY : 0) | (h->options.counts ? HK_WANTS_COUNTS : 0);
  const struct hk_hello hello = { hk_string(h->options.client), hk_string(token), wants };
  (void)hk_hello_write(&h->link.out, 0, &hello); /* fits: the buffer is empty and the name was checked */
  h->link.fresh = true;
}

void hk_client_shake(struct hankel *h)
{
  const int status = hk_client_tls_shake(h->link.tls);
  if (status > 0)
    client_connect_greet(h);
  else if (status < 0)
    hk_client_disconnect(h, status, *hk_client_tls_fault(h->link.tls) ? hk_client_tls_fault(h->link.tls) : strerror(-status));
}

/* Connected: starts the TLS handshake, if TLS is used, or sends HELLO. */
static void begin_talk(struct hankel *h)
{
  const int on = 1;
  char error[300];
  (void)setsockopt(h->link.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* an error only affects speed */
  if (!h->options.security.tls) {
    client_connect_greet(h);
    return;
  }
  const int status = hk_client_tls_new(&h->link.tls, &h->options.security, h->link.host, h->link.fd, error, sizeof error);
  if (status < 0) {
    hk_client_disconnect(h, status, error);
    return;
  }
  h->phase = HK_CLIENT_SHAKING;
  hk_client_shake(h);
}

/* Tries the addresses from h->link.address, until one connects or is in progress. */
static void try_addresses(struct hankel *h, int fault)
{
  for (; h->link.address; h->link.address = h->link.address->ai_next) {
    h->link.fd = socket(h->link.address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->link.fd < 0) {
      fault = -errno;
      continue;
    }
    if (connect(h->link.fd, h->link.address->ai_addr, h->link.address->ai_addrlen) == 0) {
      begin_talk(h);
      return;
    }
    if (errno == EINPROGRESS) {
      h->phase = HK_CLIENT_CONNECTING;
      return;
    }
    fault = -errno;
    close(h->link.fd);
    h->link.fd = -1;
  }
  hk_client_disconnect(h, fault, strerror(-fault));
}

void hk_client_begin(struct hankel *h)
{
  h->link.deadline = hk_client_now() + HK_CLIENT_GREETING_MS;
  const char *why = "";
  char udp_host[256];
  int status = client_connect_look_up(h->options.address, SOCK_STREAM, h->link.host, &h->link.addresses, &why);
  struct addrinfo *udp = NULL;
  if (status == 0 && h->options.udp)
    status = client_connect_look_up(h->options.udp, SOCK_DGRAM, udp_host, &udp, &why);
  if (udp) {
    h->datagrams.socket = socket(udp->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->datagrams.socket < 0 || connect(h->datagrams.socket, udp->ai_addr, udp->ai_addrlen) < 0) {
      status = -errno;
      why = strerror(errno);
    }
    freeaddrinfo(udp);
  }
  if (status < 0) {
    hk_client_disconnect(h, status, why);
    return;
  }
  h->link.address = h->link.addresses;
  try_addresses(h, -EADDRNOTAVAIL);
}

void hk_client_connected(struct hankel *h)
{
  int fault = 0;
  socklen_t size = sizeof fault;
  if (getsockopt(h->link.fd, SOL_SOCKET, SO_ERROR, &fault, &size) < 0)
    fault = errno;
  if (fault == 0) {
    begin_talk(h);
    return;
  }
  close(h->link.fd);
  h->link.fd = -1;
  h->link.address = h->link.address->ai_next;
  try_addresses(h, -fault);
}
