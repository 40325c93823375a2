/* See web_access.h. */
#include "daemon/web/web_access.h"

#include "daemon/web/web_reply.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 256 /* bytes, with the 0 */

/* Whether a Host header names this machine's loopback. */
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

bool hk_web_host_is_ours(struct lws *wsi, const struct hk_web_peer *p)
{
  char host[HOST_MAX];
  if (!p->near || lws_hdr_total_length(wsi, WSI_TOKEN_HOST) == 0) /* every browser sends one */
    return true;
  return lws_hdr_copy(wsi, host, sizeof host, WSI_TOKEN_HOST) > 0 && is_loopback(host);
}

bool hk_web_origin_is_ours(struct lws *wsi)
{
  static const char site_header[] = "sec-fetch-site:";
  char origin[HOST_MAX], host[HOST_MAX], site[16];
  const int site_length = lws_hdr_custom_length(wsi, site_header, sizeof site_header - 1);
  if (site_length >= 0 && (lws_hdr_custom_copy(wsi, site, sizeof site, site_header, sizeof site_header - 1) <= 0 ||
                           (strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)))
    return false;
  if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) == 0)
    return true;
  if (lws_hdr_copy(wsi, origin, sizeof origin, WSI_TOKEN_ORIGIN) <= 0 ||
      lws_hdr_copy(wsi, host, sizeof host, WSI_TOKEN_HOST) <= 0)
    return false;
  const char *name = strstr(origin, "://"); /* `null` has none */
  return name && strcasecmp(name + 3, host) == 0;
}

const char *hk_web_know_token(struct hk_web_peer *p, const char *text, size_t length)
{
  struct hk_credentials *credentials = hk_gate_credentials(p->gate);
  const struct hk_token *token = length > 0 && credentials->tokens ? hk_tokens_find(credentials->tokens, text, length) : NULL;
  p->scopes = token ? token->scopes : 0;
  if (token)
    p->shown = *token;
  hk_credentials_release(credentials);
  if (token && p->newcomer) {
    hk_limits_admit(p->web->net->limits, p->place);
    p->newcomer = false;
  }
  return p->scopes ? NULL : "the token is not known here";
}

const char *hk_web_know(struct lws *wsi, struct hk_web_peer *p)
{
  static const char word[] = "Bearer ";
  const size_t before = sizeof word - 1;
  char shown[sizeof word + HK_TOKEN_MAX + 1] = "", cookie[HK_TOKEN_MAX + 1];
  size_t cookie_length = sizeof cookie;
  memset(&p->shown, 0, sizeof p->shown);
  p->scopes = 0;
  if (!hk_rules_demand(&p->gate->rules)) {
    p->scopes = p->gate->rules.scopes;
    return NULL;
  }
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_AUTHORIZATION) > 0) {
    const int length = lws_hdr_copy(wsi, shown, sizeof shown, WSI_TOKEN_HTTP_AUTHORIZATION);
    if (length <= (int)before || strncasecmp(shown, word, before) != 0)
      return "the token is not known here";
    return hk_web_know_token(p, shown + before, (size_t)length - before);
  }
  if (lws_http_cookie_get(wsi, HK_WEB_COOKIE, cookie, &cookie_length) == 0 && cookie_length > 0)
    return hk_web_know_token(p, cookie, strlen(cookie));
  return "a token is needed here, and none was shown (Authorization: Bearer TOKEN, or log in)";
}

int hk_web_unauthorized(struct lws *wsi, struct hk_web_peer *p, const char *why)
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

int hk_web_forbidden(struct lws *wsi, struct hk_web_peer *p, const char *what)
{
  hk_count(&p->web->counters.forbidden, 1);
  hk_audit_refused(&p->web->net->audit, &p->audit, p->peer, p->gate->name, "%s needs another scope than its token has", what);
  return hk_web_fault(wsi, p, 403, "what was shown does not have the scope for this", NULL);
}
