/* OpenSSL with a custom BIO, because OpenSSL's socket BIO raises SIGPIPE. See client_tls.h. */
#include "proto/client/client_tls.h"

#include "proto/wire/pem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct hk_client_tls {
  SSL_CTX *context;
  BIO_METHOD *method;
  SSL *ssl;
  int fd;
  bool wants_room, through;
  char fault[256];
};

static int client_tls_bio_read(BIO *bio, char *data, int size)
{
  const struct hk_client_tls *t = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  const ssize_t n = recv(t->fd, data, (size_t)size, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_read(bio);
  return (int)n;
}

static int client_tls_bio_write(BIO *bio, const char *data, int size)
{
  const struct hk_client_tls *t = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  const ssize_t n = send(t->fd, data, (size_t)size, MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_write(bio);
  return (int)n;
}

static long client_tls_bio_control(BIO *bio, int command, long number, void *pointer)
{
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static const char *client_tls_reason(void)
{
  const unsigned long code = ERR_get_error();
  const char *words = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : code ? ERR_reason_error_string(code) : NULL;
  ERR_clear_error();
  return words ? words : "no memory, or not a file of the expected kind";
}

/* Loads the files, and sets the host to verify. Returns NULL, or what failed; why, *more: the reason, if OpenSSL does not know
 * it. */
static const char *client_tls_set_up(struct hk_client_tls *t, const struct hankel_security *s, const char *host,
                                     const char **more, char why[HK_SECRET_WHY])
{
  struct in6_addr address;
  t->context = SSL_CTX_new(TLS_client_method());
  /* Does not call BIO_get_new_index: nothing searches for the BIO by type, and a process has only some 127 types. */
  t->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "libhankel");
  if (!t->context || !t->method || BIO_meth_set_read(t->method, client_tls_bio_read) != 1 ||
      BIO_meth_set_write(t->method, client_tls_bio_write) != 1 || BIO_meth_set_ctrl(t->method, client_tls_bio_control) != 1 ||
      SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION) != 1)
    return "TLS";
  SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_mode(t->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (s->ca ? hk_pem_authorities(t->context, s->ca, HK_SECRET_PIPE, NULL, why) != 0
            : SSL_CTX_set_default_verify_paths(t->context) != 1)
    return s->ca ? s->ca : "the authorities of this system";
  if (s->certificate && hk_pem_chain(t->context, s->certificate, HK_SECRET_PIPE, why) != 0)
    return s->certificate;
  const char *key = s->key ? s->key : s->certificate;
  if (key && hk_pem_key(t->context, key, HK_SECRET_PIPE, why) != 0) {
    *more = s->key ? "" : "; the key is looked for there, too, since no other file is named for it";
    return key;
  }
  t->ssl = SSL_new(t->context);
  BIO *bio = t->ssl ? BIO_new(t->method) : NULL;
  if (!bio)
    return "TLS";
  BIO_set_data(bio, t);
  BIO_set_init(bio, 1);
  SSL_set_bio(t->ssl, bio, bio);
  SSL_set_connect_state(t->ssl);
  const bool numeric = inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
  if (numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), host) != 1
              : SSL_set1_host(t->ssl, host) != 1 || SSL_set_tlsext_host_name(t->ssl, host) != 1)
    return host;
  return NULL;
}

int hk_client_tls_new(struct hk_client_tls **out, const struct hankel_security *security, const char *host, int fd, char *error,
                      size_t size)
{
  struct hk_client_tls *t = calloc(1, sizeof *t);
  ERR_clear_error();
  char why[HK_SECRET_WHY] = "";
  const char *more = "", *wrong = t ? client_tls_set_up(t, security, host, &more, why) : "TLS";
  if (wrong) {
    snprintf(error, size, "%.200s: %s%s", wrong, why[0] ? why : client_tls_reason(), more);
    hk_client_tls_free(t);
    return -EACCES;
  }
  t->fd = fd;
  *out = t;
  return 0;
}

void hk_client_tls_free(struct hk_client_tls *t)
{
  if (!t)
    return;
  SSL_free(t->ssl);
  SSL_CTX_free(t->context);
  BIO_meth_free(t->method);
  free(t);
}

/* Cause of a failed call: an errno, EAGAIN: wait for the socket, 0: end of the stream. */
static int client_tls_judge(struct hk_client_tls *t, int result)
{
  const int kind = SSL_get_error(t->ssl, result), fault = errno;
  const long verified = SSL_get_verify_result(t->ssl);
  t->wants_room = kind == SSL_ERROR_WANT_WRITE;
  switch (kind) {
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE:
    ERR_clear_error();
    return EAGAIN;
  case SSL_ERROR_ZERO_RETURN:
    return 0;
  case SSL_ERROR_SYSCALL:
    ERR_clear_error();
    return result == 0 || fault == 0 ? ECONNRESET : fault;
  default:
    break;
  }
  if (verified != X509_V_OK)
    snprintf(t->fault, sizeof t->fault, "the daemon's certificate is not good: %s", X509_verify_cert_error_string(verified));
  else
    snprintf(t->fault, sizeof t->fault, "TLS: %s", client_tls_reason());
  ERR_clear_error();
  /* A connection that ends without TLS's close_notify has broken. */
  return strstr(t->fault, "unexpected eof") ? ECONNRESET : EPROTO;
}

int hk_client_tls_shake(struct hk_client_tls *t)
{
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(t->ssl);
  if (result == 1) {
    t->wants_room = false;
    t->through = true;
    return 1;
  }
  const int fault = client_tls_judge(t, result);
  return fault == EAGAIN ? 0 : fault == 0 ? -ECONNRESET : fault == EPROTO ? -EACCES : -fault;
}

ssize_t hk_client_tls_read(struct hk_client_tls *t, void *data, size_t size)
{
  size_t n = 0;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_read_ex(t->ssl, data, size, &n);
  if (result == 1)
    return (ssize_t)n;
  errno = client_tls_judge(t, result);
  return errno == 0 ? 0 : -1;
}

ssize_t hk_client_tls_write(struct hk_client_tls *t, const void *data, size_t size)
{
  size_t n = 0;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_write_ex(t->ssl, data, size, &n);
  if (result == 1) {
    t->wants_room = false;
    return (ssize_t)n;
  }
  errno = client_tls_judge(t, result);
  if (errno == 0)
    errno = EPIPE;
  return -1;
}

bool hk_client_tls_wants_room(const struct hk_client_tls *t)
{
  return t->wants_room;
}

bool hk_client_tls_pending(const struct hk_client_tls *t)
{
  return t->through && SSL_pending(t->ssl) > 0;
}

void hk_client_tls_end(struct hk_client_tls *t)
{
  ERR_clear_error();
  if (t->through && !t->fault[0])
    (void)SSL_shutdown(t->ssl);
  ERR_clear_error();
}

const char *hk_client_tls_fault(const struct hk_client_tls *t)
{
  return t->fault;
}
