/* Gate: what a listener demands of its peers, and the certificate, key, authority and tokens that it goes by. These are read at
 * the start and can be read again while the daemon runs: all of them or, when anything is wrong with one, none; what was read is
 * put in force apart from that, so that whoever reads them can still think better of it.
 *
 * Thread: any; a gate's credentials are had under its lock, when a connection comes or shows something. */
#ifndef HK_GATE_H
#define HK_GATE_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/config/tokens.h"
#include "daemon/net/tls.h"

#include <pthread.h>
#include <stdatomic.h>

/* What was read of a gate's files. */
struct hk_credentials {
  atomic_uint references;
  struct hk_tls_context *tls; /* NULL: no TLS */
  struct hk_tokens *tokens;   /* NULL: none are asked for */
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
  bool any_tls, any_files; /* one has TLS; one has files to be read */
  int64_t watched;         /* ns, hk_now: when certificates were last looked at */
};

/* 0, or a negative errno with a message that names the file. gates: zeroed; to be closed in either case. log: NULL for none. */
int hk_gates_open(struct hk_gates *gates, const struct hk_config *config, struct hk_log *log, char *error, size_t size);
void hk_gates_close(struct hk_gates *gates);

/* Reads all files again, and changes nothing yet: *out has what was read for each gate, for one of the two below. 0; or a
 * negative errno with a message. Thread: main. */
int hk_gates_read(const struct hk_gates *gates, struct hk_credentials ***out, char *error, size_t size);
/* They are in force from now on, for whoever comes; frees the array. */
void hk_gates_adopt(struct hk_gates *gates, struct hk_credentials **fresh, struct hk_log *log);
/* They never will be. fresh: NULL is fine. */
void hk_gates_discard(const struct hk_gates *gates, struct hk_credentials **fresh);

/* The present credentials; the caller's until hk_credentials_release. */
struct hk_credentials *hk_gate_credentials(struct hk_gate *gate);
void hk_credentials_release(struct hk_credentials *credentials); /* NULL is fine */

/* What an operator has to know of a gate's certificate: that it has expired, or does so within two weeks. False: nothing. Of the
 * other, s until it expires; false: there is none. */
bool hk_gate_expires(struct hk_gate *gate, char *line, size_t size);
bool hk_gate_left(struct hk_gate *gate, int64_t *left);
/* The same of its list of revoked certificates: that it has expired; s until it does. */
bool hk_gate_crl_expired(struct hk_gate *gate, char *line, size_t size);
bool hk_gate_crl_left(struct hk_gate *gate, int64_t *left);
/* Warns of these once a day; now: hk_now. Thread: main. */
void hk_gates_watch(struct hk_gates *gates, int64_t now, struct hk_log *log);

/* Whether a peer is admitted only after it has shown something or shaken hands. */
static inline bool hk_gate_shut(const struct hk_gate *gate)
{
  return gate->rules.certificate[0] || hk_rules_demand(&gate->rules);
}

#endif
