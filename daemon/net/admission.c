/* See admission.h. */
#include "daemon/net/admission.h"

#include "daemon/base/address.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "proto/line/split.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <xxhash.h>

/* Kinds of owners. Files contain hashes of them, so they must not change. */
#define OWNER_NAMED 1u
#define OWNER_ADDRESS 2u

#define REVOKED 256 /* bytes of a log line that names a certificate */

/* --- coming and going ------------------------------------------------------------------------------------------------- */

static struct hk_address_limits_most admission_most(const struct hk_config *config)
{
  return (struct hk_address_limits_most){ config->max_connections_per_address, config->max_newcomers, config->max_failures };
}

bool hk_admission_enter(struct hk_net *net, const struct hk_gate *gate, int fd, struct hk_log_quota *quota,
                        struct hk_address_limits_place **out)
{
  struct sockaddr_storage address = { 0 };
  socklen_t length = sizeof address;
  if (getpeername(fd, (struct sockaddr *)&address, &length) != 0)
    return false; /* the connection is closed already */
  const struct hk_address_limits_most limits = admission_most(net->loops[0].config);
  const enum hk_address_limits_verdict verdict =
      hk_address_limits_enter(net->limits, &limits, &address, hk_gate_shut(gate), hk_now(), out);
  if (verdict == HK_ADDRESS_LIMITS_FINE)
    return true;
  char peer[HK_ADDRESS_MAX];
  hk_address_format((const struct sockaddr *)&address, peer);
  atomic_fetch_add_explicit(&net->turned_away, 1, memory_order_relaxed);
  hk_audit_refused(&net->audit, quota, peer, gate->name, "%s", hk_address_limits_words(verdict));
  return false;
}

void hk_admission_leave(struct hk_connection *c)
{
  hk_address_limits_leave(c->net->limits, c->identity.place, c->identity.newcomer && hk_gate_shut(c->identity.gate));
  c->identity.place = NULL;
  hk_log_peer_gone(&c->net->audit.log, &c->identity.audit, c->peer);
  hk_tls_free(c->tls);
  c->tls = NULL;
}

/* --- refusing --------------------------------------------------------------------------------------------------------- */

/* Counts a failure to authenticate, for a newcomer also against its address, and writes it to the audit log. */
static void admission_fail(struct hk_connection *c, const char *why)
{
  struct hk_net *net = c->net;
  hk_count(&c->loop->counters.unauthorized, 1);
  hk_audit_refused(&net->audit, &c->identity.audit, c->peer, c->identity.gate->name, "%s", why);
  c->identity.failed = true;
  if (!c->identity.newcomer || !hk_gate_shut(c->identity.gate))
    return;
  const struct hk_address_limits_most limits = admission_most(c->loop->config);
  if (hk_address_limits_fail(net->limits, &limits, c->identity.place, hk_now()))
    hk_audit_refused(&net->audit, &c->identity.audit, c->peer, c->identity.gate->name,
                     "its address failed to authenticate %u times within a minute and is blocked for the rest of it",
                     limits.failures);
}

/* Refuses a newcomer that has failed to authenticate. */
static void admission_refuse(struct hk_connection *c, uint16_t code, const char *why)
{
  if (c->state != HK_OPEN)
    return;
  admission_fail(c, why);
  hk_connection_refuse(c, code, why);
}

void hk_admission_dropped(struct hk_connection *c)
{
  /* A peer that sent nothing only checked whether the port is open. */
  if (c->tls && c->identity.newcomer && !c->identity.failed && c->identity.unproven > 0 && !c->flow.draining)
    admission_fail(c, "the connection closed before the peer authenticated");
}

/* Whether its credentials allow a feed of this name. */
static bool feed_is_its(const struct hk_connection *c, const struct hk_tokens *tokens, struct hk_string name)
{
  const struct hk_token *token = tokens ? hk_tokens_again(tokens, &c->identity.shown) : NULL;
  return token && hk_tokens_may_feed(tokens, token, name.data, name.length);
}

void hk_admission_forbidden(struct hk_connection *c, const char *what, uint32_t need, char answer[HK_AUDIT_LACK_TEXT])
{
  const struct hk_audit_lack lack = { what, c->identity.shown.name, need, c->identity.scopes };
  hk_count(&c->loop->counters.forbidden, 1);
  hk_audit_forbidden(&c->net->audit, &c->identity.audit, c->peer, c->identity.gate->name, &lack, answer);
}

bool hk_admission_feed(struct hk_connection *c, struct hk_string name)
{
  const bool ours = name.length >= sizeof HK_OUR_FEEDS - 1 && memcmp(name.data, HK_OUR_FEEDS, sizeof HK_OUR_FEEDS - 1) == 0;
  if (ours && c->inner)
    return true;
  if (!ours && c->identity.shown.scopes == 0) /* no token file names it */
    return true;
  if (!ours) {
    struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
    const bool may = feed_is_its(c, credentials->tokens, name);
    hk_credentials_release(credentials);
    if (may)
      return true;
  }
  hk_count(&c->loop->counters.forbidden, 1);
  hk_audit_refused(&c->net->audit, &c->identity.audit, c->peer, c->identity.gate->name, "feed %.*s is not allowed for %s",
                   (int)name.length, name.data, c->identity.shown.name);
  return false;
}

static uint64_t admission_owner_of(const void *what, size_t size, uint64_t kind)
{
  const uint64_t owner = XXH3_64bits_withSeed(what, size, kind);
  return owner ? owner : 1;
}

uint64_t hk_admission_owner_at(const struct sockaddr *peer)
{
  uint8_t address[HK_ADDRESS_LIMITS_ADDRESS];
  hk_address_limits_normalise(peer, address);
  return admission_owner_of(address, sizeof address, OWNER_ADDRESS);
}

uint64_t hk_admission_owner(const struct hk_connection *c)
{
  uint8_t address[HK_ADDRESS_LIMITS_ADDRESS];
  struct sockaddr_storage inner;
  if (c->identity.shown.name[0])
    return admission_owner_of(c->identity.shown.name, strlen(c->identity.shown.name), OWNER_NAMED);
  if (c->identity.place)
    hk_address_limits_address(c->identity.place, address);
  else if (hk_address_parse(c->peer, &inner) == 0)
    return hk_admission_owner_at((const struct sockaddr *)&inner);
  else
    memset(address, 0, sizeof address);
  return admission_owner_of(address, sizeof address, OWNER_ADDRESS);
}

bool hk_admission_spent(struct hk_connection *c)
{
  if (!c->identity.newcomer || c->identity.unproven <= HK_ADMISSION_BYTES)
    return false;
  admission_refuse(c, HANKEL_UNAUTHORIZED, "too many bytes before authentication");
  return true;
}

bool hk_admission_late(struct hk_connection *c, int64_t now)
{
  if (!c->identity.newcomer)
    return false;
  const struct hk_net *net = c->net;
  const int64_t open = now - c->opened;
  if (open <= c->loop->config->handshake &&
      (open <= HK_ADMISSION_HURRY ||
       hk_peer_feeds_taken(&c->net->peer_feeds) <= net->capacity.connections - net->capacity.connections / 4))
    return false;
  hk_count(&c->loop->counters.timed_out, 1);
  if (hk_gate_shut(c->identity.gate))
    admission_refuse(c, HANKEL_TIMEOUT, c->kind->late_newcomer);
  else
    hk_connection_refuse(c, HANKEL_TIMEOUT, c->kind->late_newcomer);
  return true;
}

/* --- admitting -------------------------------------------------------------------------------------------------------- */

bool hk_admission_allows(const struct hk_connection *c, uint32_t scopes)
{
  return scopes & c->kind->scopes;
}

static void end_limits(struct hk_connection *c)
{
  c->identity.newcomer = false;
  if (c->kind->admitted)
    c->kind->admitted(c);
}

/* Whether its certificate has been revoked since it was accepted. */
static bool admission_revoked(const struct hk_connection *c, char *why, size_t size)
{
  if (!c->tls)
    return false;
  struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
  const bool is = credentials->tls && hk_tls_revoked(c->tls, credentials->tls, why, size);
  hk_credentials_release(credentials);
  return is;
}

/* token: the entry of its token; NULL: it gets the scopes that the listener gives to all. False: it was refused. */
static bool admit(struct hk_connection *c, const struct hk_token *token, const char *name)
{
  struct hk_net *net = c->net;
  char why[REVOKED];
  if (admission_revoked(c, why, sizeof why)) {
    admission_refuse(c, HANKEL_UNAUTHORIZED, why);
    return false;
  }
  c->identity.scopes = token ? token->scopes : c->identity.gate->rules.scopes;
  if (token)
    c->identity.shown = *token;
  else
    snprintf(c->identity.shown.name, sizeof c->identity.shown.name, "%s", name);
  if (!hk_admission_allows(c, c->identity.scopes)) {
    admission_refuse(c, HANKEL_FORBIDDEN, "its credentials have no scope that this listener accepts");
    return false;
  }
  if (c->identity.newcomer && hk_gate_shut(c->identity.gate)) {
    char scopes[HK_SCOPES_TEXT];
    hk_address_limits_admit(net->limits, c->identity.place);
    hk_scopes_format(c->identity.scopes, scopes);
    hk_log(net->log, HK_LOG_DEBUG, "%s: admitted at [listen %s] as %s: %s%s%s", c->peer, c->identity.gate->name,
           c->identity.shown.name[0] ? c->identity.shown.name : "anybody", scopes, c->tls ? ", " : "",
           c->tls ? hk_tls_version(c->tls) : "");
  }
  end_limits(c);
  if (c->kind->greet)
    c->kind->greet(c);
  return true;
}

/* After the handshake, admits a peer that needs no token. True: it was admitted, or refused; false: it needs a token. */
static bool admit_without(struct hk_connection *c)
{
  char name[HK_TLS_NAME_MAX] = "";
  struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
  const bool named = c->tls && hk_tls_peer(c->tls, name);
  const struct hk_token *token = named && credentials->tokens ? hk_tokens_certificate(credentials->tokens, name) : NULL;
  const bool enough = token || !credentials->tokens;
  if (enough)
    (void)admit(c, token, name);
  hk_credentials_release(credentials);
  return enough;
}

static bool admit_token(struct hk_connection *c, const char *text, size_t length)
{
  struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
  const struct hk_token *token =
      length > 0 && length <= HK_TOKEN_MAX && credentials->tokens ? hk_tokens_find(credentials->tokens, text, length) : NULL;
  const bool done = token && admit(c, token, "");
  hk_credentials_release(credentials);
  if (!token)
    admission_refuse(c, HANKEL_UNAUTHORIZED, length > 0 ? "unknown token" : "a token is required, and none was sent");
  return done;
}

static int admission_seal(void *tls, const void *data, size_t size, struct hk_buffer *records)
{
  return hk_tls_write(tls, data, size, records);
}

void hk_admission_begin(struct hk_connection *c)
{
  if (c->inner) { /* admitted by its creator */
    end_limits(c);
    return;
  }
  if (c->identity.gate->rules.certificate[0]) {
    struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
    c->tls = hk_tls_new(credentials->tls);
    hk_credentials_release(credentials);
    c->subscriber.seal = c->others.seal = c->tls ? admission_seal : NULL;
    c->subscriber.seal_arg = c->others.seal_arg = c->tls;
    if (!c->tls)
      hk_connection_close(c);
    return;
  }
  if (c->kind->authenticate)
    (void)admit_without(c);
}

bool hk_admission_hello(struct hk_connection *c, const char *token, size_t length)
{
  return c->inner || admit_without(c) ? c->state == HK_OPEN : admit_token(c, token, length);
}

enum hk_turn hk_admission_first_line(struct hk_connection *c)
{
  const char *text;
  size_t length;
  const int status = hk_line_buffer_next(&c->lines.buffer, &text, &length);
  if (status == HK_LINE_NONE)
    return HK_TURN_NEED;
  if (hk_splitter_http(text, length, status)) {
    c->flow.http = true;
    admission_refuse(c, HANKEL_UNAUTHORIZED, "this is HTTP, which this listener does not accept");
    return HK_TURN_OVER;
  }
  if (status != HK_LINE_WHOLE)
    length = 0;
  while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == ' '))
    length--;
  for (; length > 0 && (text[0] == '#' || text[0] == ' '); length--)
    text++;
  static const char word[] = "token ";
  const size_t before = sizeof word - 1;
  const bool is_token = length > before && memcmp(text, word, before) == 0;
  return admit_token(c, is_token ? text + before : text, is_token ? length - before : 0) ? HK_TURN_MORE : HK_TURN_OVER;
}

/* --- TLS -------------------------------------------------------------------------------------------------------------- */

/* Sends the records that TLS itself has made. */
static void admission_flush(struct hk_connection *c)
{
  struct hk_buffer *out = hk_tls_output(c->tls);
  if (out->size > 0 && c->state != HK_CLOSED && hk_send_records(&c->subscriber, out->data, out->size) != 0)
    hk_connection_close(c);
  hk_buffer_free(out);
}

void hk_admission_farewell(struct hk_connection *c)
{
  hk_tls_end(c->tls);
  admission_flush(c);
}

static bool admission_cut(struct hk_connection *c)
{
  if (!c->flow.ended)
    return false;
  hk_admission_dropped(c);
  /* The socket's stream ended without the peer's close_notify: anyone may have truncated the data. */
  hk_log_peer(c->net->log, &c->quota, HK_LOG_INFO, c->peer, "the connection ended without a TLS close_notify");
  hk_connection_finish(c);
  return true;
}

static bool admission_fault(struct hk_connection *c)
{
  admission_flush(c); /* the alert */
  if (c->identity.newcomer) {
    admission_refuse(c, HANKEL_UNAUTHORIZED, hk_tls_fault(c->tls));
  } else {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer, "closed: %s", hk_tls_fault(c->tls));
    hk_connection_finish(c);
  }
  return true;
}

/* Continues the handshake. Over 0: it is complete, now or before. */
static int shake(struct hk_connection *c)
{
  if (hk_tls_through(c->tls))
    return 1;
  const int status = hk_tls_handshake(c->tls);
  if (status != HK_TLS_FAILED)
    admission_flush(c);
  if (status > 0 && c->state == HK_OPEN && c->kind->authenticate)
    (void)admit_without(c);
  return status;
}

bool hk_admission_decrypt(struct hk_connection *c)
{
  size_t size = HK_LOOP_BUFFER, n = 0;
  ssize_t status = shake(c);
  if (c->state != HK_OPEN)
    return true;
  if (status > 0) {
    if (hk_connection_settle(c) != 0)
      return true;
    char *space = c->kind->space(c, &size);
    if (!space) {
      hk_connection_close(c);
      return true;
    }
    while (n < size && (status = hk_tls_read(c->tls, space + n, size - n)) > 0)
      n += (size_t)status;
    admission_flush(c);
    if (n > 0 && c->state == HK_OPEN) {
      c->kind->wrote(c, n);
      return true; /* further data is reported when this data was taken */
    }
  }
  if (status == HK_TLS_FAILED)
    return admission_fault(c);
  if (status == HK_TLS_ENDED) {
    c->flow.ended = true;
    return false;
  }
  return admission_cut(c);
}

/* --- reading again ---------------------------------------------------------------------------------------------------- */

void hk_admission_again(struct hk_connection *c)
{
  char why[REVOKED] = "its credentials were revoked or have expired";
  if (c->state != HK_OPEN || c->identity.newcomer)
    return;
  const bool gone = admission_revoked(c, why, sizeof why);
  if (c->identity.shown.scopes == 0 && !gone) /* no token file names it */
    return;
  struct hk_credentials *credentials = hk_gate_credentials(c->identity.gate);
  const struct hk_token *token = credentials->tokens ? hk_tokens_again(credentials->tokens, &c->identity.shown) : NULL;
  const bool good = !gone && token && hk_admission_allows(c, token->scopes) &&
                    (!c->feeding.feed || feed_is_its(c, credentials->tokens, c->feeding.feed->name));
  /* A peer that requested the reload gets its answer first, may do nothing else until then, and is checked again afterwards. */
  const bool asked = c->kind->awaits_reload && c->kind->awaits_reload(c);
  if (good || asked) {
    c->identity.scopes = good ? token->scopes : 0;
    if (good)
      c->identity.shown = *token;
    if (!(c->identity.scopes & HK_SCOPE_SUBSCRIBE))
      hk_loop_unsubscribe(c->loop, c);
    if (!(c->identity.scopes & HK_SCOPE_FEED))
      hk_peer_feed_shut(c->peer_feed);
  }
  hk_credentials_release(credentials);
  if (!good && !asked)
    admission_refuse(c, HANKEL_UNAUTHORIZED, why);
}
