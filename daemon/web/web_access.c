/* See web_access.h. */
#include "daemon/web/web_access.h"

#include "daemon/web/web_reply.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 256                       /* bytes, with the 0 */
#define SHOWN_MAX (2 * HK_TOKEN_MAX + 256) /* bytes of Authorization, with the 0 */

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
  p->request.scopes = token ? token->scopes : 0;
  if (token)
    p->request.shown = *token;
  hk_credentials_release(credentials);
  if (token && p->newcomer) {
    hk_address_limits_admit(p->web->net->limits, p->place);
    p->newcomer = false;
  }
  return p->request.scopes ? NULL : "unknown token";
}

/* The token in Authorization, whose remaining length is *length; NULL: none. Clients of InfluxDB 2 send `Token TOKEN`, those of
 * version 1 send it as a password. */
static const char *token_in(char *shown, size_t size, size_t *length)
{
  static const char *const words[] = { "Bearer ", "Token " };
  static const char basic[] = "Basic ";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t before = strlen(words[i]);
    if (*length > before && strncasecmp(shown, words[i], before) == 0) {
      *length -= before;
      return shown + before;
    }
  }
  if (*length < sizeof basic || strncasecmp(shown, basic, sizeof basic - 1) != 0)
    return NULL;
  const int n = lws_b64_decode_string(shown + sizeof basic - 1, shown, (int)size); /* reading is ahead of writing */
  const char *colon = n > 0 ? memchr(shown, ':', (size_t)n) : NULL;
  if (!colon)
    return NULL;
  *length = (size_t)(shown + n - (colon + 1));
  return colon + 1;
}

/* Whether the client certificate is enough. */
static bool know_certificate(struct hk_web_peer *p)
{
  struct hk_credentials *credentials = hk_gate_credentials(p->gate);
  const struct hk_token *token =
      p->certificate[0] && credentials->tokens ? hk_tokens_certificate(credentials->tokens, p->certificate) : NULL;
  if (token) {
    p->request.scopes = token->scopes;
    p->request.shown = *token;
  } else if (!credentials->tokens) {
    p->request.scopes = p->gate->rules.scopes;
  }
  hk_credentials_release(credentials);
  return p->request.scopes != 0;
}

const char *hk_web_know(struct lws *wsi, struct hk_web_peer *p, bool argument)
{
  char shown[SHOWN_MAX] = "", cookie[HK_TOKEN_MAX + 1];
  size_t cookie_length = sizeof cookie;
  memset(&p->request.shown, 0, sizeof p->request.shown);
  p->request.scopes = 0;
  if (!hk_rules_demand(&p->gate->rules)) {
    p->request.scopes = p->gate->rules.scopes;
    return NULL;
  }
  if (p->tls && know_certificate(p))
    return NULL;
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_AUTHORIZATION) > 0) {
    const int all = lws_hdr_copy(wsi, shown, sizeof shown, WSI_TOKEN_HTTP_AUTHORIZATION);
    size_t length = all > 0 ? (size_t)all : 0;
    const char *token = token_in(shown, sizeof shown, &length);
    return token ? hk_web_know_token(p, token, length) : "unknown token";
  }
  if (lws_http_cookie_get(wsi, HK_WEB_COOKIE, cookie, &cookie_length) == 0 && cookie_length > 0)
    return hk_web_know_token(p, cookie, strlen(cookie));
  if (argument && hk_web_argument(wsi, "p", shown, sizeof shown) == 0 && shown[0])
    return hk_web_know_token(p, shown, strlen(shown));
  return "a token is required (Authorization: Bearer TOKEN, or log in)";
}

int hk_web_unauthorized(struct lws *wsi, struct hk_web_peer *p, const char *why)
{
  static const struct hk_web_header challenge = { "www-authenticate:", "Bearer realm=\"hankeld\"" };
  struct hk_net *net = p->web->net;
  hk_count(&p->web->counters.unauthorized, 1);
  hk_audit_refused(&net->audit, &p->audit, p->peer, p->gate->name, "%s", why);
  if (p->newcomer && hk_address_limits_fail(net->limits, &p->most, p->place, hk_now())) {
    hk_audit_refused(&net->audit, &p->audit, p->peer, p->gate->name,
                     "its address failed to authenticate %u times within a minute and is blocked for the rest of it",
                     p->most.failures);
    p->answer.last = true;
  }
  return hk_web_fault(wsi, p, 401, why, &challenge);
}

int hk_web_forbidden(struct lws *wsi, struct hk_web_peer *p, const char *what, uint32_t scopes)
{
  const struct hk_audit_lack lack = { what, p->request.shown.name, scopes, p->request.scopes };
  char answer[HK_AUDIT_LACK_TEXT];
  hk_count(&p->web->counters.forbidden, 1);
  hk_audit_forbidden(&p->web->net->audit, &p->audit, p->peer, p->gate->name, &lack, answer);
  return hk_web_fault(wsi, p, 403, answer, NULL);
}
