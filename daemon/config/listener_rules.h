/* Rules: the security keys of a [listen] section, and which combinations of them are allowed. hankeld.conf(5) documents them.
 * Thread: any. */
#ifndef HK_LISTENER_RULES_H
#define HK_LISTENER_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define HK_PATH_MAX 200 /* bytes of a path in the configuration, with the 0: a line is no longer */

/* Rights of a peer; bits. */
enum hk_scope {
  HK_SCOPE_FEED = 1,      /* register sensors, send points */
  HK_SCOPE_SUBSCRIBE = 2, /* read results, events and the status */
  HK_SCOPE_ADMIN = 4,     /* read the status; change how the daemon runs */
};
#define HK_SCOPE_ALL (HK_SCOPE_FEED | HK_SCOPE_SUBSCRIBE | HK_SCOPE_ADMIN)

/* Parses "feed", "feed,subscribe" and so on. Returns 0 or -EINVAL. */
int hk_scopes_parse(const char *text, uint32_t *out);
/* Writes scopes as hk_scopes_parse reads them; "none" for 0. */
#define HK_SCOPES_TEXT 32
void hk_scopes_format(uint32_t scopes, char out[HK_SCOPES_TEXT]);
/* Writes what a request of which one of the scopes is needed lacks: "scope admin", or "one of the scopes subscribe,admin". */
#define HK_SCOPES_NEED_TEXT (HK_SCOPES_TEXT + 20)
void hk_scopes_format_need(uint32_t wanted, char out[HK_SCOPES_NEED_TEXT]);

/* Part of a listener's configuration; all empty: no TLS, and no authentication. */
struct hk_rules {
  char certificate[HK_PATH_MAX]; /* PEM: the server's, and those of its issuers */
  char key[HK_PATH_MAX];         /* PEM */
  char client_ca[HK_PATH_MAX];   /* PEM: authorities of client certificates; if given, these are required */
  char crl[HK_PATH_MAX];         /* PEM: their certificate revocation lists */
  char tokens[HK_PATH_MAX];      /* the token file; if given, a token is required (or a certificate that it names) */
  uint32_t scopes;               /* enum hk_scope: of a peer that is in no token file; 0 = by the other keys */
  bool insecure;                 /* open to the network regardless */
  bool mac;                      /* datagrams carry a keyed checksum */
};

/* Sets a key of the section. Returns 1: not one of these; 0; or -EINVAL with a message. */
int hk_rules_set(struct hk_rules *rules, const char *name, const char *value, char *error, unsigned size);
/* Writes the message that [listen NAME] has no key of this name, with a suggestion. Returns -EINVAL. */
int hk_rules_no_key(const char *name, char *error, unsigned size);

/* Reports errors of a whole section, one message each; sets values that follow from other keys. udp, binary: the listener's kind.
 */
void hk_rules_finish(struct hk_rules *rules, const struct sockaddr_storage *address, bool udp, bool binary,
                     void (*fault)(void *arg, const char *message), void *arg);

bool hk_loopback(const struct sockaddr_storage *address);

/* Whether peers must authenticate, by a certificate or a token. */
static inline bool hk_rules_demand(const struct hk_rules *rules)
{
  return rules->client_ca[0] || rules->tokens[0];
}

#endif
