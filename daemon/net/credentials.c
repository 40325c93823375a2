/* See credentials.h. */
#include "daemon/net/credentials.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400
#define SOON 14 /* days before a certificate expires at which this is logged */
#define LINE 768

void hk_credentials_release(struct hk_credentials *c)
{
  if (!c || atomic_fetch_sub(&c->references, 1) > 1)
    return;
  hk_tls_context_free(c->tls);
  hk_tokens_free(c->tokens);
  free(c);
}

struct hk_credentials *hk_gate_credentials(struct hk_gate *g)
{
  pthread_mutex_lock(&g->lock);
  struct hk_credentials *c = g->now;
  atomic_fetch_add(&c->references, 1);
  pthread_mutex_unlock(&g->lock);
  return c;
}

/* Warns of a file that every user of this machine may read or write. The file is not refused: its mode alone does not decide
 * (the folder's mode and access control lists do, too), and a daemon that does not start watches no sensors. path: "": none. */
static void gate_watch(const struct hk_gate *g, const char *path, mode_t mask, const char *what_now, struct hk_log *log)
{
  struct stat about;
  if (!path[0] || stat(path, &about) != 0 || !(about.st_mode & mask))
    return;
  hk_log(log, HK_LOG_WARNING, "[listen %s]: every user of this machine can %s %s (mode %04o): %s", g->name,
         about.st_mode & mask & S_IWOTH ? "change" : "read", path, (unsigned)about.st_mode & 07777, what_now);
}

bool hk_gate_left(struct hk_gate *g, int64_t *left)
{
  struct hk_credentials *c = hk_gate_credentials(g);
  const bool any = c->tls != NULL;
  if (any)
    *left = hk_tls_context_left(c->tls);
  hk_credentials_release(c);
  return any;
}

bool hk_gate_expires(struct hk_gate *g, char *line, size_t size)
{
  int64_t left;
  if (!hk_gate_left(g, &left) || left >= SOON * DAY)
    return false;
  if (left <= 0)
    snprintf(line, size, "[listen %s]: the certificate in %s has expired: clients refuse it", g->name, g->rules.certificate);
  else
    snprintf(line, size, "[listen %s]: the certificate in %s expires in %d days", g->name, g->rules.certificate,
             (int)(left / DAY));
  return true;
}

bool hk_gate_crl_left(struct hk_gate *g, int64_t *left)
{
  struct hk_credentials *c = hk_gate_credentials(g);
  const bool any = c->tls && hk_tls_context_crl_left(c->tls, left);
  hk_credentials_release(c);
  return any;
}

bool hk_gate_crl_expired(struct hk_gate *g, char *line, size_t size)
{
  int64_t left;
  if (!hk_gate_crl_left(g, &left) || left > 0)
    return false;
  snprintf(line, size,
           "[listen %s]: a list of revoked certificates in %s has expired: certificates revoked since then are accepted; replace "
           "it with a newer one",
           g->name, g->rules.crl);
  return true;
}

void hk_gates_watch(struct hk_gates *gates, int64_t now, struct hk_log *log)
{
  char line[LINE];
  if (now - gates->watched < DAY * 1000000000ll)
    return;
  gates->watched = now;
  for (uint32_t i = 0; i < gates->n; i++) {
    if (hk_gate_expires(&gates->gate[i], line, sizeof line))
      hk_log(log, HK_LOG_WARNING, "%s", line);
    if (hk_gate_crl_expired(&gates->gate[i], line, sizeof line))
      hk_log(log, HK_LOG_WARNING, "%s", line);
  }
}

/* Logs facts about readable files that an operator should know. */
static void gate_tell(struct hk_gate *g, struct hk_log *log)
{
  const struct hk_credentials *c = g->now;
  const struct hk_rules *r = &g->rules;
  gate_watch(g, r->key, S_IROTH | S_IWOTH, "chmod o-rwx it, and make a new key", log);
  gate_watch(g, r->tokens, S_IWOTH, "so every user there can grant himself access; chmod o-w it, and look at its lines", log);
  gate_watch(g, r->client_ca, S_IWOTH, "so every user there can grant himself access; chmod o-w it, and look at its certificates",
             log);
  gate_watch(g, r->crl, S_IWOTH, "so every user there can admit revoked certificates; chmod o-w it, and look at its lists", log);
  char line[LINE];
  int64_t left;
  if (hk_gate_expires(g, line, sizeof line))
    hk_log(log, HK_LOG_WARNING, "%s", line);
  else if (hk_gate_left(g, &left))
    hk_log(log, HK_LOG_INFO, "[listen %s]: the certificate expires in %d days", g->name, (int)(left / DAY));
  if (hk_gate_crl_expired(g, line, sizeof line))
    hk_log(log, HK_LOG_WARNING, "%s", line);
  if (c->tokens)
    hk_log(log, hk_tokens_count(c->tokens) ? HK_LOG_INFO : HK_LOG_WARNING, "[listen %s]: tokens and certificates in %s: %u",
           g->name, g->rules.tokens, hk_tokens_count(c->tokens));
}

static int read_files(const struct hk_gate *g, struct hk_credentials **out, char *error, size_t size)
{
  char why[512];
  struct hk_credentials *c = calloc(1, sizeof *c);
  if (!c) {
    snprintf(error, size, "[listen %s]: no memory", g->name);
    return -ENOMEM;
  }
  c->references = 1;
  int status = hk_tls_context_new(&c->tls, &g->rules, why, sizeof why);
  if (status == 0 && g->rules.tokens[0])
    status = hk_tokens_load(&c->tokens, g->rules.tokens, why, sizeof why);
  if (status == 0) {
    *out = c;
    return 0;
  }
  if (status == -EACCES)
    snprintf(error, size, "[listen %s]: %s (this is user %u, group %u)", g->name, why, (unsigned)geteuid(), (unsigned)getegid());
  else
    snprintf(error, size, "[listen %s]: %s", g->name, why);
  hk_credentials_release(c);
  return status;
}

int hk_gates_open(struct hk_gates *gates, const struct hk_config *config, struct hk_log *log, char *error, size_t size)
{
  int status = 0;
  gates->gate = calloc(config->n_listeners, sizeof *gates->gate);
  if (!gates->gate) {
    snprintf(error, size, "start: no memory");
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < config->n_listeners && status == 0; i++) {
    struct hk_gate *g = &gates->gate[gates->n++];
    memcpy(g->name, config->listeners[i].name, sizeof g->name);
    g->rules = config->listeners[i].rules;
    gates->any_tls |= g->rules.certificate[0] != 0;
    gates->any_files |= g->rules.certificate[0] || g->rules.tokens[0];
    pthread_mutex_init(&g->lock, NULL);
    status = read_files(g, &g->now, error, size);
    if (status == 0 && log)
      gate_tell(g, log);
  }
  gates->watched = hk_now();
  return status;
}

void hk_gates_close(struct hk_gates *gates)
{
  for (uint32_t i = 0; i < gates->n; i++) {
    hk_credentials_release(gates->gate[i].now);
    pthread_mutex_destroy(&gates->gate[i].lock);
  }
  free(gates->gate);
  *gates = (struct hk_gates){ 0 };
}

int hk_gates_read(const struct hk_gates *gates, struct hk_credentials ***out, char *error, size_t size)
{
  struct hk_credentials **fresh = calloc(gates->n, sizeof *fresh);
  int status = fresh ? 0 : -ENOMEM;
  if (!fresh)
    snprintf(error, size, "no memory");
  for (uint32_t i = 0; i < gates->n && status == 0; i++)
    status = read_files(&gates->gate[i], &fresh[i], error, size);
  if (status == 0)
    *out = fresh;
  else
    hk_gates_discard(gates, fresh);
  return status;
}

void hk_gates_adopt(struct hk_gates *gates, struct hk_credentials **fresh, struct hk_log *log)
{
  for (uint32_t i = 0; i < gates->n; i++) {
    struct hk_gate *g = &gates->gate[i];
    pthread_mutex_lock(&g->lock);
    struct hk_credentials *old = g->now;
    g->now = fresh[i];
    pthread_mutex_unlock(&g->lock);
    fresh[i] = old;
    gate_tell(g, log);
  }
  hk_gates_discard(gates, fresh);
}

void hk_gates_discard(const struct hk_gates *gates, struct hk_credentials **fresh)
{
  for (uint32_t i = 0; fresh && i < gates->n; i++)
    hk_credentials_release(fresh[i]);
  free(fresh);
}
