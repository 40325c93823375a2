/* Gate: a listener's access rules, with its certificate, key, authorities and tokens. These are read at the start and can be read
 * again while the daemon runs: all of them or, if one is invalid, none. Putting them in force is a separate step, so that a
 * reload can still be given up.
 *
 * Thread: any; a gate's credentials are taken under its lock, when a connection opens or authenticates. */
#ifndef HK_CREDENTIALS_H
#define HK_CREDENTIALS_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/config/tokens.h"
#include "daemon/net/tls.h"

#include <pthread.h>
#include <stdatomic.h>

/* Contents of a gate's files. */
struct hk_credentials {
  atomic_uint references;
  struct hk_tls_context *tls; /* NULL: no TLS */
  struct hk_tokens *tokens;   /* NULL: no tokens are required */
};

struct hk_gate {
  char name[HK_CONFIG_NAME_MAX]; /* of the listener */
  struct hk_rules rules;
  pthread_mutex_t lock;
  struct hk_credentials *now; /* under lock */
};

struct hk_gates {
  struct hk_gate *gate; /* of each listener, in the order of the configuration */
  uint32_t n;
  bool any_tls, any_files; /* a listener has TLS; a listener has files to be read */
  int64_t watched;         /* ns, hk_now: the last check of certificates */
};

/* Opens the gates of all listeners. Returns 0, or a negative errno with a message that names the file. gates: zeroed; must be
 * closed in either case. log: NULL for none. */
int hk_gates_open(struct hk_gates *gates, const struct hk_config *config, struct hk_log *log, char *error, size_t size);
void hk_gates_close(struct hk_gates *gates);

/* Reads all files again without changing anything: *out receives each gate's new credentials, for hk_gates_adopt or
 * hk_gates_discard. Returns 0, or a negative errno with a message. Thread: main. */
int hk_gates_read(const struct hk_gates *gates, struct hk_credentials ***out, char *error, size_t size);
/* Puts new credentials in force for new connections; frees the array. */
void hk_gates_adopt(struct hk_gates *gates, struct hk_credentials **fresh, struct hk_log *log);
/* Discards new credentials. fresh: may be NULL. */
void hk_gates_discard(const struct hk_gates *gates, struct hk_credentials **fresh);

/* Returns the present credentials, which the caller must release with hk_credentials_release. */
struct hk_credentials *hk_gate_credentials(struct hk_gate *gate);
void hk_credentials_release(struct hk_credentials *credentials); /* NULL is allowed */

/* hk_gate_expires: writes a warning that a gate's certificate has expired, or expires within two weeks; false: no warning.
 * hk_gate_left: gets the s until the certificate expires; false: no certificate. */
bool hk_gate_expires(struct hk_gate *gate, char *line, size_t size);
bool hk_gate_left(struct hk_gate *gate, int64_t *left);
/* Likewise for its revocation list: a warning that it has expired; the s until it expires. */
bool hk_gate_crl_expired(struct hk_gate *gate, char *line, size_t size);
bool hk_gate_crl_left(struct hk_gate *gate, int64_t *left);
/* Logs these warnings once a day. now: hk_now. Thread: main. */
void hk_gates_watch(struct hk_gates *gates, int64_t now, struct hk_log *log);

/* Whether a peer must authenticate or complete a TLS handshake before it is admitted. */
static inline bool hk_gate_shut(const struct hk_gate *gate)
{
  return gate->rules.certificate[0] || hk_rules_demand(&gate->rules);
}

#endif
