/* Requests: who may ask, what there is to ask for, and what is answered. */
#include "daemon/web/web_request.h"

#include "daemon/web/web_reply.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 256 /* bytes, with the 0 */
#define TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

static const char *const not_restored = "the state is being restored";

/* --- who may ask ------------------------------------------------------------------------------------------------------ */

/* Whether a Host header names this machine's loopback. A page of another origin whose name was made to resolve to 127.0.0.1 (DNS
 * rebinding) sends that name. */
static bool is_loopback(const char *host)
{
  struct in6_addr six;
  struct in_addr four;
  char name[HOST_MAX];
  const bool brackets = host[0] == '[';
  const size_t length = strcspn(host + brackets, brackets ? "]" : ":");
  snprintf(name, sizeof name, "%.*s", (int)length, host + brackets);
  if (brackets)
    return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
  return strcasecmp(name, "localhost") == 0 || (inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
}

static bool host_is_ours(struct lws *wsi, const struct hk_web_peer *p)
{
  char host[HOST_MAX];
  if (!p->near || lws_hdr_total_length(wsi, WSI_TOKEN_HOST) == 0) /* every browser sends one */
    return true;
  return lws_hdr_copy(wsi, host, sizeof host, WSI_TOKEN_HOST) > 0 && is_loopback(host);
}

/* It has failed to show what is needed. */
static int unauthorized(struct lws *wsi, struct hk_web_peer *p, const char *why)
{
  static const struct hk_web_header challenge = { "www-authenticate:", "Bearer realm=\"hankeld\"" };
  struct hk_net *net = p->web->net;
  hk_count(&p->web->counters.unauthorized, 1);
  hk_audit_refused(&net->audit, &p->audit, p->peer, p->gate->name, "%s", why);
  if (p->newcomer && hk_limits_fail(net->limits, &p->most, p->place, hk_now())) {
    hk_audit_refused(&net->audit, &p->audit, p->peer, p->gate->name,
                     "its address has failed %u times within a minute and is turned away for the rest of it", p->most.failures);
    p->last = true;
  }
  return hk_web_fault(wsi, p, 401, why, &challenge);
}

/* What the request may do, by its token or, where none is demanded, by its listener; 0 and *why: nothing. */
static uint32_t scopes_of(struct lws *wsi, struct hk_web_peer *p, const char **why)
{
  static const char word[] = "Bearer ";
  const size_t before = sizeof word - 1;
  char shown[sizeof word + HK_TOKEN_MAX + 1] = "";
  uint32_t scopes = 0;
  if (!hk_rules_demand(&p->gate->rules))
    return p->gate->rules.scopes;
  const int length = lws_hdr_copy(wsi, shown, sizeof shown, WSI_TOKEN_HTTP_AUTHORIZATION);
  *why = "a token is needed here, and none was shown (Authorization: Bearer TOKEN)";
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_AUTHORIZATION) == 0)
    return 0;
  *why = "the token is not known here";
  if (length <= (int)before || strncasecmp(shown, word, before) != 0)
    return 0;
  struct hk_credentials *credentials = hk_gate_credentials(p->gate);
  const struct hk_token *token =
      credentials->tokens ? hk_tokens_find(credentials->tokens, shown + before, (size_t)length - before) : NULL;
  scopes = token ? token->scopes : 0;
  hk_credentials_release(credentials);
  if (token && p->newcomer) {
    hk_limits_admit(p->web->net->limits, p->place);
    p->newcomer = false;
  }
  return scopes;
}

/* --- what there is ---------------------------------------------------------------------------------------------------- */

static unsigned phase_of(const struct hk_web_peer *p)
{
  return atomic_load_explicit(&p->web->phase, memory_order_acquire);
}

/* Whether the process runs. */
static int health(struct lws *wsi, struct hk_web_peer *p)
{
  hk_buffer_print(&p->body, "ok\n");
  return hk_web_reply(wsi, p, 200, "text/plain", NULL);
}

/* Whether points that come now are scored and kept as they should be. */
static int readiness(struct lws *wsi, struct hk_web_peer *p)
{
  const unsigned phase = phase_of(p);
  struct hk_buffer why = { 0 };
  if (phase == HK_WEB_RESTORING)
    hk_json_string(&why, not_restored, strlen(not_restored));
  else if (phase == HK_WEB_ENDING)
    hk_buffer_print(&why, "\"the daemon is ending\"");
  else
    p->web->answers.obstacles(p->web->answers.arg, &why);
  p->body.failed = why.failed;
  hk_buffer_print(&p->body, "{\"ready\":%s,\"reasons\":[%.*s]}\n", why.size == 0 ? "true" : "false", (int)why.size,
                  why.size ? why.data : "");
  const unsigned code = why.size == 0 ? 200 : 503;
  hk_buffer_free(&why);
  return hk_web_reply(wsi, p, code, "application/json", NULL);
}

static int metrics(struct lws *wsi, struct hk_web_peer *p)
{
  char accept[512] = "";
  if (phase_of(p) == HK_WEB_RESTORING)
    return hk_web_fault(wsi, p, 503, not_restored, NULL);
  (void)lws_hdr_copy(wsi, accept, sizeof accept, WSI_TOKEN_HTTP_ACCEPT); /* one that is too long: it stays empty */
  const bool open = strstr(accept, "application/openmetrics-text") != NULL;
  p->web->answers.metrics(p->web->answers.arg, open, &p->body);
  return hk_web_reply(wsi, p, 200, open ? TYPE_OPEN : TYPE_PROMETHEUS, NULL);
}

#define SEES (HK_SCOPE_SUBSCRIBE | HK_SCOPE_ADMIN)

static const struct route {
  const char *path;
  uint32_t scopes; /* one of these is needed; 0: none */
  int (*answer)(struct lws *wsi, struct hk_web_peer *p);
} routes[] = {
  { "/healthz", 0, health },
  { "/readyz", SEES, readiness },
  { "/metrics", SEES, metrics },
};

static const struct route *route_of(const char *path)
{
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
    if (strcmp(routes[i].path, path) == 0)
      return &routes[i];
  return NULL;
}

int hk_web_request(struct lws *wsi, struct hk_web_peer *p, const char *uri)
{
  static const struct hk_web_header allowed = { "allow:", "GET, HEAD" };
  const char *why = NULL;
  char *text;
  int length;
  const int method = lws_http_get_uri_and_method(wsi, &text, &length);
  const struct route *route = route_of(uri);
  p->head = method == LWSHUMETH_HEAD;
  p->last = method != LWSHUMETH_GET && method != LWSHUMETH_HEAD; /* it may have a body, which nobody reads */
  if (!host_is_ours(wsi, p))
    return hk_web_fault(wsi, p, 421, "this listener is on loopback, and the Host of the request is not", NULL);
  if (!route)
    return hk_web_fault(wsi, p, 404, "there is nothing of this path; hankeld(8) lists what there is", NULL);
  if (p->last)
    return hk_web_fault(wsi, p, 405, "this path knows GET and HEAD only", &allowed);
  const uint32_t scopes = route->scopes ? scopes_of(wsi, p, &why) : 0;
  if (route->scopes && scopes == 0)
    return unauthorized(wsi, p, why);
  if (route->scopes && !(scopes & route->scopes)) {
    hk_count(&p->web->counters.forbidden, 1);
    hk_audit_refused(&p->web->net->audit, &p->audit, p->peer, p->gate->name, "%s needs another scope than its token has", route->path);
    return hk_web_fault(wsi, p, 403, "this needs the scope subscribe or admin", NULL);
  }
  return route->answer(wsi, p);
}
