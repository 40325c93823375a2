/* Rules: the security keys of a [listen] section, and which combinations of them are allowed. hankeld.conf(5) documents them.
 * Thread: any. */
#ifndef HK_RULES_H
#define HK_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define HK_PATH_MAX 200 /* bytes of a path in the configuration, with the 0: a line is no longer */

/* What a peer may do; added up. */
enum hk_scope {
  HK_SCOPE_FEED = 1,      /* register sensors, send points */
  HK_SCOPE_SUBSCRIBE = 2, /* results, events; the status */
  HK_SCOPE_ADMIN = 4,     /* the status; change how the daemon runs */
};
#define HK_SCOPE_ALL (HK_SCOPE_FEED | HK_SCOPE_SUBSCRIBE | HK_SCOPE_ADMIN)

/* Reads "feed", "feed,subscribe" and so on. 0, or -EINVAL. */
int hk_scopes_parse(const char *text, uint32_t *out);
/* The other way; "none" for 0. */
#define HK_SCOPES_TEXT 32
void hk_scopes_format(uint32_t scopes, char out[HK_SCOPES_TEXT]);

/* Part of a listener's configuration; all empty: no TLS, and nothing has to be shown. */
struct hk_rules {
  char certificate[HK_PATH_MAX]; /* PEM: the server's, and those of its issuers */
  char key[HK_PATH_MAX];         /* PEM */
  char client_ca[HK_PATH_MAX];   /* PEM: authorities of client certificates; with it they are required */
  char crl[HK_PATH_MAX];         /* PEM: lists of certificates that these have revoked */
  char tokens[HK_PATH_MAX];      /* the token file; given, a token is required (or a certificate that it names) */
  uint32_t scopes;               /* enum hk_scope: of a peer that no token file names; 0 = by the other keys */
  bool insecure;                 /* open to the network all the same */
  bool mac;                      /* datagrams carry a keyed checksum */
};

/* Sets a key of the section. 1: not one of these; 0; or -EINVAL with a message. */
int hk_rules_set(struct hk_rules *rules, const char *name, const char *value, char *error, unsigned size);
/* Says that [listen NAME] has no key of that name, and which may have been meant. -EINVAL. */
int hk_rules_no_key(const char *name, char *error, unsigned size);

/* Reports errors of a whole section, one message each; sets values that follow from other keys. udp, binary: the listener's kind.
 */
void hk_rules_finish(struct hk_rules *rules, const struct sockaddr_storage *address, bool udp, bool binary,
                     void (*fault)(void *arg, const char *message), void *arg);

bool hk_loopback(const struct sockaddr_storage *address);

/* Whether peers have to show something: a certificate or a token. */
static inline bool hk_rules_demand(const struct hk_rules *rules)
{
  return rules->client_ca[0] || rules->tokens[0];
}

#endif
