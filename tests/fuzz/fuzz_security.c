/* Fuzz target: access control. The first byte selects the meaning of the rest: a token file; a key and value of a [listen]
 * section; a token to look up in a table; or, with OpenSSL, bytes for a server's TLS handshake, cut into pieces. By the second
 * byte, these come at the start, in place of the client's n-th flight of a handshake that was valid until then, or after it. Any
 * input ends with an error message, or needs more bytes; memory is bounded, and the server writes valid records only. */
#include "daemon/config/listener_rules.h"
#include "daemon/config/tokens.h"
#include "daemon/net/tls.h"

#include <stdlib.h>
#include <string.h>

#ifdef HK_HAVE_TLS
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

static void read_token_file(const uint8_t *data, size_t size)
{
  struct hk_tokens *t;
  char error[256];
  FILE *file = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
  if (!file)
    return;
  const int status = hk_tokens_read(&t, file, "tokens", error, sizeof error);
  fclose(file);
  require(status == 0 || (error[0] && strlen(error) < sizeof error));
  if (status == 0) {
    (void)hk_tokens_find(t, (const char *)data, size);
    const struct hk_token *named = hk_tokens_certificate(t, "a");
    if (named)
      (void)hk_tokens_may_feed(t, named, (const char *)data, size);
    hk_tokens_free(t);
  }
}

static void note(void *arg, const char *message)
{
  *(size_t *)arg += strlen(message);
}

static void read_rule(const uint8_t *data, size_t size)
{
  struct hk_rules rules = { 0 };
  struct sockaddr_storage address = { .ss_family = AF_INET };
  char text[512], error[256] = "";
  size_t told = 0;
  const size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
  memcpy(text, data, n);
  text[n] = 0;
  char *value = strchr(text, '=');
  if (!value)
    return;
  *value++ = 0;
  if (hk_rules_set(&rules, text, value, error, sizeof error) < 0)
    require(error[0] != 0);
  hk_rules_finish(&rules, &address, n & 1, n & 2, note, &told);
  require(rules.scopes != 0 && !(rules.scopes & ~(uint32_t)HK_SCOPE_ALL));
}

#ifdef HK_HAVE_TLS

static struct hk_tls_context *context;
static SSL_CTX *client_context;

/* A key and a certificate of its own, in files, as the daemon reads them. */
static void make_context(void)
{
  struct hk_rules rules = { .certificate = "/tmp/hankel-fuzz-certificate-XXXXXX", .key = "/tmp/hankel-fuzz-key-XXXXXX" };
  char error[256];
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  require(key && certificate);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_NAME *name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"fuzz", -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  require(X509_sign(certificate, key, EVP_sha256()) > 0);
  FILE *to = fdopen(mkstemp(rules.certificate), "w");
  require(to && PEM_write_X509(to, certificate) == 1 && fclose(to) == 0);
  to = fdopen(mkstemp(rules.key), "w");
  require(to && PEM_write_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(to) == 0);
  memcpy(rules.client_ca, rules.certificate, sizeof rules.client_ca);
  require(hk_tls_context_new(&context, &rules, error, sizeof error) == 0);
  client_context = SSL_CTX_new(TLS_client_method());
  require(client_context && SSL_CTX_use_certificate(client_context, certificate) == 1 &&
          SSL_CTX_use_PrivateKey(client_context, key) == 1);
  unlink(rules.certificate);
  unlink(rules.key);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

/* The server's output must be whole records. Only a refusal (an alert) may carry another version than TLS's: OpenSSL repeats in
 * it what the peer claimed. */
static void check_records(struct hk_buffer *out)
{
  size_t at = 0;
  while (at < out->size) {
    require(out->size - at >= 5 && out->data[at] >= 20 && out->data[at] <= 23);
    require(out->data[at + 1] == 3 || out->data[at] == SSL3_RT_ALERT);
    at += 5 + ((size_t)(uint8_t)out->data[at + 3] << 8 | (uint8_t)out->data[at + 4]);
  }
  require(at == out->size);
}

/* Gives the server bytes, its own piece of memory each time; takes what comes out of it. Below 0: it has failed or ended. */
static int give(struct hk_tls *t, const uint8_t *data, size_t size, BIO *to)
{
  uint8_t *piece = malloc(size + (size == 0)), plain[512];
  memcpy(piece, data, size);
  ssize_t status = HK_TLS_MORE;
  if (size > 0)
    hk_tls_feed(t, piece, size);
  if ((status = hk_tls_handshake(t)) > 0)
    while ((status = hk_tls_read(t, plain, sizeof plain)) > 0)
      ;
  struct hk_buffer *out = hk_tls_output(t);
  check_records(out);
  if (to && out->size > 0)
    BIO_write(to, out->data, (int)out->size);
  hk_buffer_free(out);
  require(status != HK_TLS_FAILED || hk_tls_fault(t)[0]);
  require(hk_tls_settle(t) == 0);
  free(piece);
  return (int)status;
}

/* A valid client for this number of flights. False: the server has refused one. */
static bool go_on(struct hk_tls *t, SSL *client, BIO *in, BIO *out, unsigned flights)
{
  uint8_t bytes[8192];
  for (unsigned i = 0; i < flights; i++) {
    (void)SSL_do_handshake(client);
    const int n = BIO_read(out, bytes, sizeof bytes);
    if (n > 0 && give(t, bytes, (size_t)n, in) < 0)
      return false;
  }
  return true;
}

static void shake_hands(const uint8_t *data, size_t size)
{
  if (size < 3)
    return;
  const unsigned flights = data[0] % 4, piece = 1 + data[1], old = data[0] & 128;
  struct hk_tls *t = hk_tls_new(context);
  SSL *client = SSL_new(client_context);
  BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
  require(t && client && in && out);
  if (old)
    SSL_set_max_proto_version(client, TLS1_2_VERSION);
  SSL_set_bio(client, in, out);
  SSL_set_connect_state(client);
  bool more = go_on(t, client, in, out, flights);
  for (size_t at = 2; at < size && more; at += piece)
    more = give(t, data + at, size - at < piece ? size - at : piece, in) >= 0;
  if (more && hk_tls_through(t)) {
    struct hk_buffer records = { 0 };
    require(hk_tls_write(t, data, size, &records) == 0);
    check_records(&records);
    hk_buffer_free(&records);
  }
  hk_tls_end(t);
  check_records(hk_tls_output(t));
  require(hk_tls_write(t, data, size, hk_tls_output(t)) != 0);
  hk_tls_free(t);
  SSL_free(client);
  ERR_clear_error();
}

#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 1 || size > 1 << 15)
    return 0;
  switch (data[0] % 4) {
  case 0:
    read_token_file(data + 1, size - 1);
    break;
  case 1:
    read_rule(data + 1, size - 1);
    break;
  default:
#ifdef HK_HAVE_TLS
    if (!context)
      make_context();
    shake_hands(data + 1, size - 1);
#endif
    break;
  }
  return 0;
}
