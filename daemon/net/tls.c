/* OpenSSL reads the bytes given to it and writes into a buffer, through a BIO of our own. So no bytes are copied in between,
 * and an idle connection holds no buffers. See tls.h. */
#include "daemon/net/tls.h"

#include "daemon/net/tls_files.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_HEAD 5
#define RECORD_MOST 16384     /* maximum bytes of a record with a ClientHello */
#define RECORD_OVERHEAD 64    /* above what any cipher adds */
#define CHAIN_MOST (32 << 10) /* maximum bytes of a client's certificates */
#define CIPHERS_OF_1_2                                                                                                           \
  "ECDHE+AESGCM:ECDHE+CHACHA20" /* with forward secrecy and authenticated encryption; TLS 1.3 has no                             \
                                 * others */

struct hk_tls_context {
  atomic_uint references; /* references: connections, and the creator */
  SSL_CTX *ssl;
  BIO_METHOD *method;
  STACK_OF(X509_CRL) * lists; /* lists of revoked certificates; NULL: none configured */
};

struct hk_tls {
  struct hk_tls_context *context;
  SSL *ssl;          /* NULL until the first record is complete, and after the end */
  const uint8_t *in; /* unread input: the caller's memory, or in `own` */
  size_t in_size;
  uint8_t *own;
  bool lent;              /* the memory is the caller's */
  struct hk_buffer out;   /* records that TLS itself makes */
  struct hk_buffer *sink; /* destination of records */
  bool through, failed, ended;
  char whose[HK_TLS_WHOSE]; /* the rejected certificate */
  char fault[384];
};

/* --- the BIO ---------------------------------------------------------------------------------------------------------- */

static int tls_bio_read(BIO *bio, char *data, int size)
{
  struct hk_tls *t = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  const size_t n = (size_t)size < t->in_size ? (size_t)size : t->in_size;
  if (n == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  memcpy(data, t->in, n);
  t->in += n;
  t->in_size -= n;
  return (int)n;
}

static int tls_bio_write(BIO *bio, const char *data, int size)
{
  struct hk_tls *t = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  hk_buffer_put(t->sink, data, (size_t)size);
  return t->sink->failed ? -1 : size;
}

static long tls_bio_control(BIO *bio, int command, long number, void *pointer)
{
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method_new(void)
{
  /* Without a number of BIO_get_new_index: nothing looks for it by that, and a process has only some 127 of them. */
  BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "hankeld");
  if (method && BIO_meth_set_read(method, tls_bio_read) == 1 && BIO_meth_set_write(method, tls_bio_write) == 1 &&
      BIO_meth_set_ctrl(method, tls_bio_control) == 1)
    return method;
  BIO_meth_free(method);
  return NULL;
}

/* --- contexts --------------------------------------------------------------------------------------------------------- */

/* Returns the peer's alert, if OpenSSL's first error is that the peer gave up; otherwise NULL. */
static const char *peers_reason(void)
{
  const unsigned long code = ERR_peek_error();
  const int alert = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET : -1;
  return alert >= 0 && alert < 256 ? SSL_alert_desc_string_long(alert) : NULL;
}

/* Returns the reason of OpenSSL's first error; clears all errors. */
static const char *tls_reason(void)
{
  const unsigned long code = ERR_get_error();
  const char *words = code ? ERR_reason_error_string(code) : NULL;
  ERR_clear_error();
  return words ? words : "no memory, or not a file of the expected kind";
}

/* Records the subject of a rejected certificate. An expired list of revoked certificates is still applied: other certificates
 * are accepted, and the operator is warned (hk_tls_context_crl_left). */
static int on_verify(int good, X509_STORE_CTX *store)
{
  const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  struct hk_tls *t = ssl ? BIO_get_data(SSL_get_rbio(ssl)) : NULL;
  const X509 *certificate = X509_STORE_CTX_get_current_cert(store);
  if (!good && X509_STORE_CTX_get_error(store) == X509_V_ERR_CRL_HAS_EXPIRED) {
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
  }
  if (!good && t && certificate)
    hk_tls_files_whose(certificate, t->whose);
  return good;
}

int hk_tls_context_new(struct hk_tls_context **out, const struct hk_rules *rules, char *error, size_t size)
{
  *out = NULL;
  if (!rules->certificate[0])
    return 0;
  struct hk_tls_context *c = calloc(1, sizeof *c);
  if (c)
    c->references = 1;
  if (!c || !(c->method = method_new()) || !(c->ssl = SSL_CTX_new(TLS_server_method())) ||
      SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION) != 1 || SSL_CTX_set_cipher_list(c->ssl, CIPHERS_OF_1_2) != 1) {
    hk_tls_context_free(c);
    snprintf(error, size, "TLS: no memory, or the OpenSSL of this system is not configured for TLS 1.2: %s", tls_reason());
    return -ENOMEM;
  }
  SSL_CTX_set_options(c->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
  (void)SSL_CTX_set_num_tickets(c->ssl, 0); /* every connection authenticates again */
  SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c->ssl, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(c->ssl, CHAIN_MOST);
  const int status = hk_tls_files_load(c->ssl, &c->lists, rules, error, size);
  if (status != 0) {
    hk_tls_context_free(c);
    return status;
  }
  if (rules->client_ca[0])
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verify);
  *out = c;
  return 0;
}

void hk_tls_context_free(struct hk_tls_context *c)
{
  if (!c || atomic_fetch_sub(&c->references, 1) > 1)
    return;
  sk_X509_CRL_pop_free(c->lists, X509_CRL_free);
  SSL_CTX_free(c->ssl);
  BIO_meth_free(c->method);
  free(c);
}

int64_t hk_tls_context_left(const struct hk_tls_context *c)
{
  const X509 *certificate = SSL_CTX_get0_certificate(c->ssl);
  return certificate ? hk_tls_files_left(X509_get0_notAfter(certificate)) : 0;
}

bool hk_tls_context_crl_left(const struct hk_tls_context *c, int64_t *left)
{
  *left = INT64_MAX;
  for (int i = 0; c->lists && i < sk_X509_CRL_num(c->lists); i++) {
    const ASN1_TIME *next = X509_CRL_get0_nextUpdate(sk_X509_CRL_value(c->lists, i));
    const int64_t of_this = next ? hk_tls_files_left(next) : INT64_MAX;
    *left = of_this < *left ? of_this : *left;
  }
  return c->lists != NULL;
}

bool hk_tls_revoked(const struct hk_tls *t, const struct hk_tls_context *c, char *why, size_t size)
{
  char whose[HK_TLS_WHOSE];
  const X509 *certificate = t->ssl ? SSL_get0_peer_certificate(t->ssl) : NULL;
  if (!certificate || !hk_tls_files_revoked(c->lists, certificate))
    return false;
  hk_tls_files_whose(certificate, whose);
  snprintf(why, size, "its certificate (%s) was refused: certificate revoked", whose);
  return true;
}

/* --- connections ------------------------------------------------------------------------------------------------------ */

struct hk_tls *hk_tls_new(struct hk_tls_context *context)
{
  struct hk_tls *t = calloc(1, sizeof *t);
  if (!t)
    return NULL;
  atomic_fetch_add(&context->references, 1);
  t->context = context;
  t->sink = &t->out;
  return t;
}

void hk_tls_free(struct hk_tls *t)
{
  if (!t)
    return;
  SSL_free(t->ssl);
  hk_tls_context_free(t->context);
  hk_buffer_free(&t->out);
  free(t->own);
  free(t);
}

static int tls_failed(struct hk_tls *t, const char *why)
{
  if (!t->failed)
    snprintf(t->fault, sizeof t->fault, "%s", why);
  t->failed = true;
  return HK_TLS_FAILED;
}

void hk_tls_feed(struct hk_tls *t, const void *data, size_t size)
{
  if (t->in_size == 0) {
    t->in = data;
    t->in_size = size;
    t->lent = true;
    return;
  }
  /* Adds bytes to an incomplete first record. */
  uint8_t *joined = malloc(t->in_size + size);
  if (!joined) {
    (void)tls_failed(t, "no memory");
    return;
  }
  memcpy(joined, t->in, t->in_size);
  memcpy(joined + t->in_size, data, size);
  free(t->own);
  t->in = t->own = joined;
  t->in_size += size;
  t->lent = false;
}

int hk_tls_settle(struct hk_tls *t)
{
  if (t->in_size > 0 && !t->lent)
    return 0;
  uint8_t *own = t->in_size > 0 ? malloc(t->in_size) : NULL;
  const int status = t->in_size > 0 && !own ? -ENOMEM : 0;
  if (own)
    memcpy(own, t->in, t->in_size);
  else
    t->in_size = 0;
  free(t->own);
  t->in = t->own = own;
  t->lent = false;
  return status;
}

/* Begins when the first record is complete. Over 0: it has begun. */
static int tls_begin(struct hk_tls *t)
{
  if (t->in_size == 0)
    return HK_TLS_MORE;
  if (t->in[0] != SSL3_RT_HANDSHAKE || (t->in_size > 1 && t->in[1] != SSL3_VERSION_MAJOR))
    return tls_failed(t, "what came is not TLS");
  if (t->in_size < RECORD_HEAD)
    return HK_TLS_MORE;
  const size_t length = (size_t)t->in[3] << 8 | t->in[4];
  if (length == 0 || length > RECORD_MOST)
    return tls_failed(t, "not TLS: the first record has an impossible length");
  if (t->in_size < RECORD_HEAD + length)
    return HK_TLS_MORE;
  t->ssl = SSL_new(t->context->ssl);
  BIO *bio = t->ssl ? BIO_new(t->context->method) : NULL;
  if (!bio)
    return tls_failed(t, "no memory");
  BIO_set_data(bio, t);
  BIO_set_init(bio, 1);
  SSL_set_bio(t->ssl, bio, bio);
  SSL_set_accept_state(t->ssl);
  return 1;
}

/* Finds the meaning of a call of OpenSSL that returned no data. */
static int tls_judge(struct hk_tls *t, int result)
{
  switch (SSL_get_error(t->ssl, result)) {
  case SSL_ERROR_WANT_READ:
    ERR_clear_error();
    return HK_TLS_MORE;
  case SSL_ERROR_ZERO_RETURN:
    t->ended = true;
    return HK_TLS_ENDED;
  default:
    break;
  }
  const long verified = SSL_get_verify_result(t->ssl);
  char why[sizeof t->fault];
  if (verified != X509_V_OK)
    snprintf(why, sizeof why, "its certificate (%s) was refused: %s", t->whose[0] ? t->whose : "?",
             X509_verify_cert_error_string(verified));
  else if (peers_reason())
    snprintf(why, sizeof why, "TLS: the peer sent the alert: %s", peers_reason());
  else
    snprintf(why, sizeof why, "TLS: %s", tls_reason());
  ERR_clear_error();
  return tls_failed(t, t->sink->failed ? "no memory" : why);
}

int hk_tls_handshake(struct hk_tls *t)
{
  if (t->failed || t->ended)
    return t->failed ? HK_TLS_FAILED : HK_TLS_ENDED;
  if (t->through)
    return 1;
  const int begun = t->ssl ? 1 : tls_begin(t);
  if (begun <= 0)
    return begun;
  ERR_clear_error();
  const int result = SSL_do_handshake(t->ssl);
  t->through = result == 1;
  return t->through ? 1 : tls_judge(t, result);
}

bool hk_tls_through(const struct hk_tls *t)
{
  return t->through;
}

ssize_t hk_tls_read(struct hk_tls *t, void *data, size_t size)
{
  size_t n = 0;
  if (t->failed || t->ended || !t->ssl)
    return t->failed ? HK_TLS_FAILED : HK_TLS_ENDED;
  ERR_clear_error();
  const int result = SSL_read_ex(t->ssl, data, size, &n);
  return result == 1 ? (ssize_t)n : tls_judge(t, result);
}

int hk_tls_write(struct hk_tls *t, const void *data, size_t size, struct hk_buffer *records)
{
  size_t n = 0;
  if (t->failed || !t->through || !t->ssl)
    return -EPIPE;
  if (size == 0)
    return 0;
  /* Allocated first, so that no stream breaks because of missing memory. */
  if (!hk_buffer_room(records, size + (size / RECORD_MOST + 2) * RECORD_OVERHEAD))
    return -ENOMEM;
  ERR_clear_error();
  t->sink = records;
  const int result = SSL_write_ex(t->ssl, data, size, &n);
  t->sink = &t->out;
  if (result == 1)
    return 0;
  (void)tls_judge(t, result);
  (void)tls_failed(t, "TLS: a record could not be made");
  return -ENOMEM;
}

struct hk_buffer *hk_tls_output(struct hk_tls *t)
{
  return &t->out;
}

void hk_tls_end(struct hk_tls *t)
{
  ERR_clear_error();
  if (t->ssl && t->through && !t->failed)
    (void)SSL_shutdown(t->ssl);
  ERR_clear_error();
  SSL_free(t->ssl);
  t->ssl = NULL;
  t->ended = true;
}

const char *hk_tls_fault(const struct hk_tls *t)
{
  return t->fault;
}

bool hk_tls_peer(const struct hk_tls *t, char name[HK_TLS_NAME_MAX])
{
  X509 *certificate = t->ssl ? SSL_get0_peer_certificate(t->ssl) : NULL;
  if (!certificate || SSL_get_verify_result(t->ssl) != X509_V_OK)
    return false;
  const X509_NAME *subject = X509_get_subject_name(certificate);
  const int length = X509_NAME_get_text_by_NID(subject, NID_commonName, NULL, 0);
  if (length <= 0 || length >= HK_TLS_NAME_MAX) /* the beginning of a longer name may be the name of another peer */
    return false;
  if (X509_NAME_get_text_by_NID(subject, NID_commonName, name, HK_TLS_NAME_MAX) != length || (size_t)length != strlen(name))
    return false;
  for (const char *c = name; *c; c++)
    if (*c <= ' ' || *c > '~')
      return false;
  return true;
}

const char *hk_tls_version(const struct hk_tls *t)
{
  return t->ssl ? SSL_get_version(t->ssl) : "";
}
