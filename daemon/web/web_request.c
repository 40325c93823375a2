/* Requests: access control, the table of paths, and answers. */
#include "daemon/web/web_request.h"

#include "daemon/web/web_access.h"
#include "daemon/web/web_api.h"
#include "daemon/web/web_body.h"
#include "daemon/web/web_files.h"
#include "daemon/web/web_influx.h"
#include "daemon/web/web_look.h"
#include "daemon/web/web_otlp.h"
#include "daemon/web/web_pictures.h"
#include "daemon/web/web_remote_write.h"
#include "daemon/web/web_reply.h"
#include "daemon/web/web_socket.h"
#include "daemon/web/web_stream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_MOST 65536 /* bytes of a request's body */
#define TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

static const char not_restored[] = "the state is being restored";
static const char not_ours[] = "the listener is on loopback, but the request's Host is not";
static const char socket_path[] = "/api/v1/ws";

static unsigned web_request_phase_of(const struct hk_web_peer *p)
{
  return atomic_load_explicit(&p->web->phase, memory_order_acquire);
}

/* Whether the process runs. */
static int web_request_health(struct lws *wsi, struct hk_web_peer *p)
{
  hk_buffer_print(&p->answer.body, "ok\n");
  return hk_web_reply(wsi, p, 200, "text/plain", NULL);
}

/* Whether new points are scored and kept as configured. */
static int readiness(struct lws *wsi, struct hk_web_peer *p)
{
  const unsigned phase = web_request_phase_of(p);
  struct hk_buffer why = { 0 };
  if (phase == HK_WEB_RESTORING)
    hk_json_string(&why, not_restored, sizeof not_restored - 1);
  else if (phase == HK_WEB_ENDING)
    hk_buffer_print(&why, "\"the daemon is ending\"");
  else
    p->web->answers.obstacles(p->web->answers.arg, &why);
  p->answer.body.failed = why.failed;
  hk_buffer_print(&p->answer.body, "{\"ready\":%s,\"reasons\":[%.*s]}\n", why.size == 0 ? "true" : "false", (int)why.size,
                  why.size ? why.data : "");
  const unsigned code = why.size == 0 ? 200 : 503;
  hk_buffer_free(&why);
  return hk_web_reply(wsi, p, code, "application/json", NULL);
}

static int web_request_metrics(struct lws *wsi, struct hk_web_peer *p)
{
  char accept[512] = "";
  (void)lws_hdr_copy(wsi, accept, sizeof accept, WSI_TOKEN_HTTP_ACCEPT); /* one that is too long: it stays empty */
  const bool open = strstr(accept, "application/openmetrics-text") != NULL;
  p->web->answers.metrics(p->web->answers.arg, open, &p->answer.body);
  return hk_web_reply(wsi, p, 200, open ? TYPE_OPEN : TYPE_PROMETHEUS, NULL);
}

/* --- who gets to it ---------------------------------------------------------------------------------------------------- */

#define SEES (HK_SCOPE_SUBSCRIBE | HK_SCOPE_ADMIN)

struct hk_web_route {
  const char *path;
  enum { READS, ASKS, FEEDS } kind; /* by GET and HEAD; by POST with JSON; by POST with points */
  bool needs_loops;                 /* not while the state is being restored */
  uint32_t scopes;                  /* one of these is needed; 0: none */
  int (*answer)(struct lws *wsi, struct hk_web_peer *p);
};

static const struct hk_web_route routes[] = {
  { "/healthz", READS, false, 0, web_request_health },
  { "/readyz", READS, false, SEES, readiness },
  { "/metrics", READS, true, SEES, web_request_metrics },
  { "/api/v1/status", READS, true, SEES, hk_web_api_status },
  { "/api/v1/alerts", READS, true, SEES, hk_web_api_alerts },
  { "/api/v1/cluster", READS, true, SEES, hk_web_api_cluster },
  { "/api/v1/incidents", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_api_incidents },
  { "/api/v1/events", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_api_events },
  { "/api/v1/told", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_api_told },
  { "/api/v1/sensors", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_sensors },
  { "/api/v1/groups", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_groups },
  { "/api/v1/lines", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_lines },
  { "/api/v1/cameras", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_cameras },
  { "/api/v1/picture", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_picture },
  { HK_WEB_LOOK_PATH, READS, true, HK_SCOPE_SUBSCRIBE, hk_web_look },
  { "/api/v1/stream", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_stream },
  { socket_path, READS, true, HK_SCOPE_SUBSCRIBE, hk_web_socket_plainly },
  { "/api/v1/ack", ASKS, true, HK_SCOPE_ADMIN, hk_web_api_acknowledge },
  { "/api/v1/feedback", READS, true, HK_SCOPE_SUBSCRIBE, hk_web_api_feedback },
  { "/api/v1/feedback", ASKS, true, HK_SCOPE_ADMIN, hk_web_api_say },
  { "/api/v1/maintenance", READS, true, SEES, hk_web_api_maintenance },
  { "/api/v1/maintenance", ASKS, true, HK_SCOPE_ADMIN, hk_web_api_maintain },
  { "/api/v1/reload", ASKS, true, HK_SCOPE_ADMIN, hk_web_api_reload },
  { "/write", FEEDS, true, HK_SCOPE_FEED, hk_web_influx_write },
  { "/api/v2/write", FEEDS, true, HK_SCOPE_FEED, hk_web_influx_write },
  { "/api/v1/push", FEEDS, true, HK_SCOPE_FEED, hk_web_remote_write },
  { "/v1/metrics", FEEDS, true, HK_SCOPE_FEED, hk_web_otlp },
  { "/query", READS, true, HK_SCOPE_FEED, hk_web_influx_query },
  { "/query", FEEDS, true, HK_SCOPE_FEED, hk_web_influx_query },
  { "/ping", READS, false, 0, hk_web_influx_ping },
  { "/health", READS, false, 0, hk_web_influx_health },
  { "/api/v1/login", ASKS, false, 0, hk_web_api_login },
  { "/api/v1/logout", ASKS, false, 0, hk_web_api_logout },
};

/* The route of a path; if a path has several, that of the method. */
static const struct hk_web_route *route_of(const char *path, bool posts)
{
  const struct hk_web_route *other = NULL;
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
    if (strcmp(routes[i].path, path) != 0 &&
        (routes[i].answer != hk_web_look || strncmp(routes[i].path, path, strlen(routes[i].path)) != 0))
      continue;
    if ((routes[i].kind != READS) == posts)
      return &routes[i];
    other = &routes[i];
  }
  return other;
}

/* Whether a request with a body is accepted; *status: the result if not. */
static bool may_ask(struct lws *wsi, struct hk_web_peer *p, int *status)
{
  static const char json[] = "application/json";
  char type[64] = "";
  const long long length = hk_web_body_length(wsi);
  (void)lws_hdr_copy(wsi, type, sizeof type, WSI_TOKEN_HTTP_CONTENT_TYPE); /* one that is too long: it stays empty */
  if (length < 0)
    *status = hk_web_fault(wsi, p, 411, "the request has no Content-Length", NULL);
  else if (length > BODY_MOST)
    *status = hk_web_fault(wsi, p, 413, "the body has over 64 KiB", NULL);
  else if (length > 0 && strncasecmp(type, json, sizeof json - 1) != 0)
    *status = hk_web_fault(wsi, p, 415, "the body must be JSON (Content-Type: application/json)", NULL);
  else
    return true;
  return false;
}

/* Answers a complete request. */
static int web_request_answer(struct lws *wsi, struct hk_web_peer *p)
{
  const struct hk_web_route *route = p->request.route;
  int status = 0;
  p->request.route = NULL;
  p->answer.last = p->request.in_chunks; /* libwebsockets does not know the end of its body */
  if (route->kind == FEEDS && !hk_web_body_unpack(wsi, p, &status))
    return status;
  return route->answer(wsi, p);
}

static void web_request_begin(struct lws *wsi, struct hk_web_peer *p, int method)
{
  p->wsi = wsi;
  p->answer.head = method == LWSHUMETH_HEAD;
  p->answer.last = method != LWSHUMETH_GET && method != LWSHUMETH_HEAD; /* it may have a body that is not read */
  p->request.route = NULL;
  p->answer.ready = 0;
  p->request.points.told[0] = 0;
  p->stream.open = p->stream.socket = p->stream.closing = p->answer.begun = p->request.in_chunks = false;
  p->answer.body.size = p->answer.sent = 0;
  hk_web_body_drop(p);
}

int hk_web_request(struct lws *wsi, struct hk_web_peer *p, const char *uri)
{
  static const struct hk_web_header read = { "allow:", "GET, HEAD" }, posted = { "allow:", "POST" };
  char *text;
  int length, status = 0;
  const int method = lws_http_get_uri_and_method(wsi, &text, &length);
  const struct hk_web_route *route = route_of(uri, method == LWSHUMETH_POST);
  const struct hk_web_file *file = route ? NULL : hk_web_file_of(uri);
  web_request_begin(wsi, p, method);
  p->request.path = uri;
  const bool posts = method == LWSHUMETH_POST, gets = !p->answer.last;
  if (!hk_web_host_is_ours(wsi, p))
    return hk_web_fault(wsi, p, 421, not_ours, NULL);
  if (!route && !file)
    return hk_web_fault(wsi, p, 404, "no such path; hankeld(8) lists all paths", NULL);
  if (file ? !gets : !(route->kind != READS ? posts : gets))
    return hk_web_fault(wsi, p, 405,
                        route && route->kind != READS ? "this path takes POST only" : "this path takes GET and HEAD only",
                        route && route->kind != READS ? &posted : &read);
  if (file)
    return hk_web_file_reply(wsi, p, file);
  if (route->kind != READS && !hk_web_origin_is_ours(wsi))
    return hk_web_fault(wsi, p, 403, "a page of another origin may not change anything", NULL);
  if (route->kind == ASKS && !may_ask(wsi, p, &status))
    return status;
  const char *why = route->scopes ? hk_web_know(wsi, p, (route->scopes & HK_SCOPE_FEED) != 0) : NULL;
  if (why)
    return hk_web_unauthorized(wsi, p, why);
  if (route->scopes && !(p->request.scopes & route->scopes))
    return hk_web_forbidden(wsi, p, route->path, route->scopes);
  if (route->needs_loops && web_request_phase_of(p) == HK_WEB_RESTORING)
    return hk_web_fault(wsi, p, 503, not_restored, NULL);
  if (route->kind == FEEDS && !hk_web_body_begin(wsi, p, &status))
    return status;
  p->request.route = route;
  return route->kind != READS && (hk_web_body_length(wsi) > 0 || p->request.in_chunks) ? 0 : web_request_answer(wsi, p);
}

/* Whether a request for a WebSocket is accepted; *status: the result of the answer if not. */
static bool may_upgrade(struct lws *wsi, struct hk_web_peer *p, int *status)
{
  static const struct hk_web_header version = { "sec-websocket-version:", "13" };
  const char *why;
  char spoken[4];
  unsigned code;
  if (!hk_web_host_is_ours(wsi, p))
    *status = hk_web_fault(wsi, p, 421, not_ours, NULL);
  else if (lws_hdr_copy(wsi, spoken, sizeof spoken, WSI_TOKEN_VERSION) <= 0 || strcmp(spoken, version.value) != 0)
    *status = hk_web_fault(wsi, p, 426, "only version 13 of WebSocket is supported (RFC 6455)", &version);
  else if (!hk_web_origin_is_ours(wsi)) /* browsers let any page open one, with cookies */
    *status = hk_web_fault(wsi, p, 403, "a page of another origin may not open a WebSocket", NULL);
  else if ((why = hk_web_know(wsi, p, false)))
    *status = hk_web_unauthorized(wsi, p, why);
  else if (!(p->request.scopes & HK_SCOPE_SUBSCRIBE))
    *status = hk_web_forbidden(wsi, p, socket_path, HK_SCOPE_SUBSCRIBE);
  else if (web_request_phase_of(p) == HK_WEB_RESTORING)
    *status = hk_web_fault(wsi, p, 503, not_restored, NULL);
  else if ((code = hk_web_socket_begin(wsi, p, &why)) != 0)
    *status = hk_web_fault(wsi, p, code, why, NULL);
  else
    return true;
  return false;
}

int hk_web_request_upgrade(struct lws *wsi, struct hk_web_peer *p, const char *protocol)
{
  char path[sizeof socket_path + 1]; /* one byte more, so that a longer path does not match */
  int status = 0;
  if (strcasecmp(protocol, "websocket") != 0 || lws_hdr_copy(wsi, path, sizeof path, WSI_TOKEN_GET_URI) <= 0 ||
      strcmp(path, socket_path) != 0)
    return -1;
  web_request_begin(wsi, p, LWSHUMETH_GET);
  if (may_upgrade(wsi, p, &status))
    return 0;
  if (status == 0)
    (void)hk_web_go_on(wsi, p); /* all of it: there is little */
  return -1;
}

int hk_web_request_body(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size)
{
  int status;
  if (!p->request.route)
    return 0; /* it was answered */
  if (p->request.route->kind == FEEDS)
    return hk_web_body_came(wsi, p, data, size, &status) ? web_request_answer(wsi, p) : status;
  if (p->request.body.size + size > BODY_MOST)
    return -1; /* more than it said */
  hk_buffer_put(&p->request.body, data, size);
  return p->request.body.failed ? -1 : 0;
}

int hk_web_request_whole(struct lws *wsi, struct hk_web_peer *p)
{
  return p->request.route ? web_request_answer(wsi, p) : 0;
}
