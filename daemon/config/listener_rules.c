/* See listener_rules.h. */
#include "daemon/config/listener_rules.h"
#include "cpu/suggest.h"
#include "daemon/config/section_keys.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  uint32_t scope;
} scopes[] = { { "feed", HK_SCOPE_FEED }, { "subscribe", HK_SCOPE_SUBSCRIBE }, { "admin", HK_SCOPE_ADMIN } };
#define SCOPES (sizeof scopes / sizeof *scopes)

int hk_scopes_parse(const char *text, uint32_t *out)
{
  *out = 0;
  do {
    const size_t length = strcspn(text, ",");
    size_t i = 0;
    while (i < SCOPES && !(strlen(scopes[i].name) == length && memcmp(scopes[i].name, text, length) == 0))
      i++;
    if (i == SCOPES)
      return -EINVAL;
    *out |= scopes[i].scope;
    text += length;
    if (*text)
      text += 1 + strspn(text + 1, " ");
    else
      return 0;
  } while (true);
}

void hk_scopes_format(uint32_t set, char out[HK_SCOPES_TEXT])
{
  out[0] = 0;
  for (size_t i = 0; i < SCOPES; i++)
    if (set & scopes[i].scope) {
      if (out[0])
        strcat(out, ",");
      strcat(out, scopes[i].name);
    }
  if (!out[0])
    strcpy(out, "none");
}

void hk_scopes_format_need(uint32_t wanted, char out[HK_SCOPES_NEED_TEXT])
{
  char each[HK_SCOPES_TEXT];
  hk_scopes_format(wanted, each);
  snprintf(out, HK_SCOPES_NEED_TEXT, "%s %s", strchr(each, ',') ? "one of the scopes" : "scope", each);
}

bool hk_loopback(const struct sockaddr_storage *address)
{
  if (address->ss_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static int set_flag(bool *flag, const char *name, const char *value, char *error, unsigned size)
{
  *flag = strcmp(value, "yes") == 0;
  if (*flag || strcmp(value, "no") == 0)
    return 0;
  snprintf(error, size, "%s = %.64s: not one of yes, no", name, value);
  hk_suggest_of(value, "yes, no", error, size);
  return -EINVAL;
}

int hk_rules_set(struct hk_rules *rules, const char *name, const char *value, char *error, unsigned size)
{
  static const struct {
    const char *name;
    size_t offset;
  } paths[] = {
    { "tls_certificate", offsetof(struct hk_rules, certificate) },
    { "tls_key", offsetof(struct hk_rules, key) },
    { "tls_client_ca", offsetof(struct hk_rules, client_ca) },
    { "crl", offsetof(struct hk_rules, crl) },
    { "tokens", offsetof(struct hk_rules, tokens) },
  };
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (strcmp(paths[i].name, name) != 0)
      continue;
    if (value[0] == 0 || strlen(value) >= HK_PATH_MAX) {
      snprintf(error, size, "%s: the path of a file is needed, of %d bytes at most", name, HK_PATH_MAX - 1);
      return -EINVAL;
    }
    snprintf((char *)rules + paths[i].offset, HK_PATH_MAX, "%s", value);
    return 0;
  }
  if (strcmp(name, "insecure") == 0)
    return set_flag(&rules->insecure, name, value, error, size);
  if (strcmp(name, "mac") == 0)
    return set_flag(&rules->mac, name, value, error, size);
  if (strcmp(name, "scopes") != 0)
    return 1;
  if (hk_scopes_parse(value, &rules->scopes) == 0)
    return 0;
  snprintf(error, size, "scopes = %.64s: not a list of feed, subscribe, admin with commas between them", value);
  hk_suggest_of(value, "feed, subscribe, admin", error, size);
  return -EINVAL;
}

int hk_rules_no_key(const char *name, char *error, unsigned size)
{
  static const char *const names[] = { "protocol", "transport",       "address", "precision",     "insecure", "mac",
                                       "scopes",   "tls_certificate", "tls_key", "tls_client_ca", "crl",      "tokens" };
  return hk_section_no_key("listen", name, names, sizeof names / sizeof *names, sizeof *names, error, size);
}

void hk_rules_finish(struct hk_rules *r, const struct sockaddr_storage *address, bool udp, bool binary,
                     void (*fault)(void *arg, const char *message), void *arg)
{
  const bool tls = r->certificate[0] || r->key[0] || r->client_ca[0] || r->crl[0], near = hk_loopback(address);
#ifndef HK_HAVE_TLS
  if (tls || r->tokens[0] || r->mac)
    fault(arg,
          "tls_certificate, tls_key, tls_client_ca, crl, tokens and mac need a hankeld that is built with OpenSSL; this one is "
          "not (meson option tls)");
#endif
  if (udp && (tls || r->tokens[0]))
    fault(arg, "tls_certificate, tls_key, tls_client_ca, crl and tokens are for transport = tcp");
  if (udp && r->scopes)
    fault(arg, "scopes is for transport = tcp: over UDP there are only points");
  if (!udp && tls && (!r->certificate[0] || !r->key[0]))
    fault(arg, "TLS needs tls_certificate and tls_key");
  if (!udp && r->crl[0] && !r->client_ca[0])
    fault(arg, "crl has certificates that tls_client_ca has revoked: it needs tls_client_ca");
  if (r->mac && !(udp && binary))
    fault(arg, "mac is for protocol = binary, transport = udp");
  if (!near && !r->insecure) {
    if (udp && binary && !r->mac)
      fault(arg,
            "beyond loopback datagrams need mac = yes, or anyone who can see them can forge them; insecure = yes does without");
    else if (udp && !binary)
      fault(arg, "the line protocol over UDP has no authentication: beyond loopback that needs insecure = yes");
    else if (!udp && (!tls || !hk_rules_demand(r)))
      fault(arg, "beyond loopback a listener needs TLS (tls_certificate, tls_key) and authentication (tls_client_ca, tokens or "
                 "both); insecure = yes does without");
  }
  if (r->scopes == 0)
    r->scopes = near && !hk_rules_demand(r) ? HK_SCOPE_ALL : HK_SCOPE_FEED | HK_SCOPE_SUBSCRIBE;
}
