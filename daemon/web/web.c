/* The thread, and opening and closing of connections. See web.h. */
#include "daemon/web/web.h"

#include "daemon/base/thread.h"
#include "daemon/net/loop.h"
#include "daemon/net/peer_socket.h"
#include "daemon/web/web_body.h"
#include "daemon/web/web_inner.h"
#include "daemon/web/web_look.h"
#include "daemon/web/web_reply.h"
#include "daemon/web/web_request.h"
#include "daemon/web/web_socket.h"
#include "daemon/web/web_stream.h"
#include "daemon/web/web_tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPARE 8        /* descriptors beside those of connections */
#define EACH 3         /* descriptors of a connection: its own, and both ends of an inner one; */
#define EACH_TLS 5     /* with TLS both ends of a pair, too */
#define PATIENCE 10    /* s for the thread to end */
#define STUCK_LONG 600 /* s for an answer to be taken, where `stuck` is off or longer */

static void web_leave(struct hk_web_peer *p)
{
  struct hk_web *web = p->web;
  hk_address_limits_leave(web->net->limits, p->place, p->newcomer);
  hk_log_peer_gone(&web->net->audit.log, &p->audit, p->peer);
  hk_web_inner_close(p->inner);
  hk_web_look_end(p);
  hk_web_tls_leave(p->tls);
  hk_buffer_free(&p->answer.body);
  hk_buffer_free(&p->stream.said);
  hk_web_body_drop(p);
  free(p);
  atomic_fetch_sub_explicit(&web->connections, 1, memory_order_relaxed);
}

/* Takes over the accepted connections. */
static void arrive(struct hk_web *web)
{
  pthread_mutex_lock(&web->lock);
  struct hk_web_peer *p = web->arrivals;
  web->arrivals = NULL;
  pthread_mutex_unlock(&web->lock);
  while (p) {
    struct hk_web_peer *next = p->next;
    const bool begun = !p->gate->rules.certificate[0] || hk_web_tls_begin(p) == 0;
    struct lws *wsi = begun ? lws_adopt_socket_vhost(web->vhost, p->fd) : NULL; /* closes fd when it fails */
    if (wsi) {
      lws_set_opaque_user_data(wsi, p);
      hk_count(&web->counters.accepted, 1);
    } else {
      web_leave(p);
    }
    p = next;
  }
}

/* Another thread woke this one. */
static void web_wake(struct hk_web *web)
{
  arrive(web);
  hk_web_look_go_on(web);
  if (atomic_exchange_explicit(&web->again, false, memory_order_acquire))
    hk_web_tls_again(web);
}

static int web_on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size)
{
  struct hk_web_peer *p = wsi ? lws_get_opaque_user_data(wsi) : NULL;
  if (p && p->what == HK_WEB_INNER)
    return hk_web_inner_event(wsi, reason, user, in, size);
  if (p && p->what == HK_WEB_TLS)
    return hk_web_tls_event(wsi, reason, user, in, size);
  switch (reason) {
  case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
    web_wake(lws_context_user(lws_get_context(wsi)));
    return 0;
  case LWS_CALLBACK_HTTP:
    return p ? hk_web_request(wsi, p, in) : -1;
  case LWS_CALLBACK_HTTP_WRITEABLE:
    return p ? hk_web_go_on(wsi, p) : -1;
  case LWS_CALLBACK_HTTP_BODY:
    return p ? hk_web_request_body(wsi, p, in, size) : -1;
  case LWS_CALLBACK_HTTP_BODY_COMPLETION:
    return p ? hk_web_request_whole(wsi, p) : -1;
  case LWS_CALLBACK_TIMER:
    return !p ? -1 : p->stream.open ? hk_web_stream_beat(wsi, p) : 0;
  case LWS_CALLBACK_WSI_DESTROY:
    if (p)
      web_leave(p);
    lws_set_opaque_user_data(wsi, NULL);
    return 0;
  case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
    return p ? hk_web_request_upgrade(wsi, p, in) : -1;
  case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
    return p && p->stream.socket ? 0 : -1;
  case LWS_CALLBACK_ESTABLISHED:
  case LWS_CALLBACK_SERVER_WRITEABLE:
  case LWS_CALLBACK_RECEIVE:
    return p ? hk_web_socket_event(wsi, p, reason, in, size) : -1;
  default:
    return 0;
  }
}

static const struct lws_protocols protocols[] = {
  { .name = "http", .callback = web_on_event, .rx_buffer_size = HK_WEB_SOCKET_RX, .tx_packet_size = HK_WEB_READ },
  { .name = "inner", .callback = hk_web_inner_event },
  { .name = "tls", .callback = hk_web_tls_event },
  { 0 }
};

static uint32_t web_most(const struct hk_config *config)
{
  return config->max_connections < HK_WEB_CONNECTIONS ? config->max_connections : HK_WEB_CONNECTIONS;
}

uint32_t hk_web_descriptors(const struct hk_config *config)
{
  uint32_t each = 0;
  for (uint32_t i = 0; i < config->n_listeners; i++)
    if (config->listeners[i].protocol == HK_PROTOCOL_HTTP)
      each = each == EACH_TLS || config->listeners[i].rules.certificate[0] ? EACH_TLS : EACH;
  return each > 0 ? each * web_most(config) + SPARE : 0;
}

int hk_web_open(struct hk_web **out, struct hk_net *net, const struct hk_web_answers *answers, char *error, size_t size)
{
  struct hk_web *web = calloc(1, sizeof *web);
  const struct hk_config *config = net->config;
  if (!web) {
    snprintf(error, size, "HTTP: no memory");
    return -ENOMEM;
  }
  web->net = net;
  web->answers = *answers;
  web->most = web_most(config);
  web->handshake = (int)((config->handshake + 999999999) / 1000000000);
  pthread_mutex_init(&web->lock, NULL);
  const struct lws_context_creation_info info = {
    .port = CONTEXT_PORT_NO_LISTEN_SERVER,
    .protocols = protocols,
    .user = web,
    .gid = -1,
    .uid = -1,
    .server_string = "hankeld",
    .fd_limit_per_thread = 4 * web->most + SPARE, /* each with an inner one, and a pair with TLS */
    .pt_serv_buf_size = HK_WEB_READ,
    .max_http_header_data = HK_WEB_HEADERS,
    .max_http_header_pool = (unsigned short)web->most, /* allocated as needed, so that no connection deprives another */
    .timeout_secs = (unsigned)((config->handshake + 999999999) / 1000000000),
    .timeout_secs_ah_idle = (unsigned)((config->handshake + 999999999) / 1000000000),
    .keepalive_timeout = HK_WEB_IDLE,
    .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
  };
  lws_set_log_level(0, NULL);
  web->lws = lws_create_context(&info);
  web->vhost = web->lws ? lws_create_vhost(web->lws, &info) : NULL;
  if (!web->vhost) {
    snprintf(error, size, "HTTP: libwebsockets cannot be started (no memory, or no descriptors)");
    hk_web_close(web);
    return -ENOMEM;
  }
  *out = web;
  return 0;
}

static void *web_run(void *arg)
{
  struct hk_web *web = arg;
  hk_thread_name("web", 0);
  while (!atomic_load_explicit(&web->stopping, memory_order_acquire) && lws_service(web->lws, 0) >= 0)
    ;
  return NULL;
}

int hk_web_start(struct hk_web *web)
{
  const int status = web ? pthread_create(&web->thread, NULL, web_run, web) : 0;
  if (web)
    web->running = status == 0;
  return -status;
}

bool hk_web_stop(struct hk_web *web)
{
  if (!web || !web->running)
    return true;
  atomic_store_explicit(&web->stopping, true, memory_order_release);
  lws_cancel_service(web->lws);
  web->running = !hk_thread_join(web->thread, PATIENCE);
  return !web->running;
}

void hk_web_close(struct hk_web *web)
{
  if (!web)
    return;
  if (web->lws)
    lws_context_destroy(web->lws);
  while (web->arrivals) {
    struct hk_web_peer *p = web->arrivals;
    web->arrivals = p->next;
    close(p->fd);
    web_leave(p);
  }
  pthread_mutex_destroy(&web->lock);
  free(web);
}

void hk_web_tell(struct hk_web *web, enum hk_web_phase phase)
{
  if (web)
    atomic_store_explicit(&web->phase, phase, memory_order_release);
}

void hk_web_again(struct hk_web *web)
{
  if (!web)
    return;
  atomic_store_explicit(&web->again, true, memory_order_release);
  lws_cancel_service(web->lws);
}

/* For how long answers may be left untaken, s. What the kernel has of one is its own to watch: libwebsockets knows nothing of it,
 * and would wait as between two requests. */
static int web_be_patient(int fd, const struct hk_config *config)
{
  const int64_t s = (config->stuck + 999999999) / 1000000000;
  const int patience = s > 0 && s < STUCK_LONG ? (int)s : STUCK_LONG;
  const unsigned ms = (unsigned)patience * 1000u;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  return patience;
}

bool hk_web_take(struct hk_web *web, const struct hk_listener *listener, int fd, struct hk_address_limits_place *place,
                 const char **why)
{
  struct sockaddr_storage address = { 0 };
  socklen_t length = sizeof address;
  const struct hk_config *config = listener->loop->config;
  if (atomic_load_explicit(&web->connections, memory_order_relaxed) >= web->most) {
    *why = "there are too many over HTTP";
    return false;
  }
  struct hk_web_peer *p = calloc(1, sizeof *p);
  if (!p) {
    *why = "no memory";
    return false;
  }
  p->web = web;
  p->gate = listener->gate;
  p->listener = listener->config;
  p->place = place;
  p->most = (struct hk_address_limits_most){ config->max_connections_per_address, config->max_newcomers, config->max_failures };
  p->near = hk_loopback(listener->bind_to);
  p->newcomer = hk_gate_shut(listener->gate);
  p->fd = fd;
  hk_peer_prepare(fd, config);
  p->stuck = web_be_patient(fd, config);
  if (getpeername(fd, (struct sockaddr *)&address, &length) == 0)
    hk_address_format((const struct sockaddr *)&address, p->peer);
  atomic_fetch_add_explicit(&web->connections, 1, memory_order_relaxed);
  pthread_mutex_lock(&web->lock);
  p->next = web->arrivals;
  web->arrivals = p;
  pthread_mutex_unlock(&web->lock);
  lws_cancel_service(web->lws);
  return true;
}

const struct hk_counters *hk_web_counters(const struct hk_web *web)
{
  static const struct hk_counters nothing;
  return web ? &web->counters : &nothing;
}

uint32_t hk_web_connections(const struct hk_web *web)
{
  return web ? atomic_load_explicit(&web->connections, memory_order_relaxed) : 0;
}
