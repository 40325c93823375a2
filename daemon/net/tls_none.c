/* A build without OpenSSL: no listener has TLS, because the configuration refuses its keys. See tls.h. */
#include "daemon/net/tls.h"

#include <errno.h>
#include <stdio.h>

int hk_tls_context_new(struct hk_tls_context **out, const struct hk_rules *rules, char *error, size_t size)
{
  *out = NULL;
  if (!rules->certificate[0])
    return 0;
  snprintf(error, size, "TLS needs a hankeld that is built with OpenSSL");
  return -ENOSYS;
}
void hk_tls_context_free(struct hk_tls_context *context)
{
  (void)context;
}
int64_t hk_tls_context_left(const struct hk_tls_context *context)
{
  (void)context;
  return 0;
}
bool hk_tls_context_crl_left(const struct hk_tls_context *context, int64_t *left)
{
  (void)context, (void)left;
  return false;
}
bool hk_tls_revoked(const struct hk_tls *tls, const struct hk_tls_context *context, char *why, size_t size)
{
  (void)tls, (void)context, (void)why, (void)size;
  return false;
}
struct hk_tls *hk_tls_new(struct hk_tls_context *context)
{
  (void)context;
  return NULL;
}
void hk_tls_free(struct hk_tls *tls)
{
  (void)tls;
}
void hk_tls_feed(struct hk_tls *tls, const void *data, size_t size)
{
  (void)tls, (void)data, (void)size;
}
int hk_tls_settle(struct hk_tls *tls)
{
  (void)tls;
  return 0;
}
int hk_tls_handshake(struct hk_tls *tls)
{
  (void)tls;
  return HK_TLS_FAILED;
}
bool hk_tls_through(const struct hk_tls *tls)
{
  (void)tls;
  return false;
}
ssize_t hk_tls_read(struct hk_tls *tls, void *data, size_t size)
{
  (void)tls, (void)data, (void)size;
  return HK_TLS_FAILED;
}
int hk_tls_write(struct hk_tls *tls, const void *data, size_t size, struct hk_buffer *records)
{
  (void)tls, (void)data, (void)size, (void)records;
  return -EPIPE;
}
struct hk_buffer *hk_tls_output(struct hk_tls *tls)
{
  (void)tls;
  return NULL;
}
void hk_tls_end(struct hk_tls *tls)
{
  (void)tls;
}
const char *hk_tls_fault(const struct hk_tls *tls)
{
  (void)tls;
  return "";
}
bool hk_tls_peer(const struct hk_tls *tls, char name[HK_TLS_NAME_MAX])
{
  (void)tls, (void)name;
  return false;
}
const char *hk_tls_version(const struct hk_tls *tls)
{
  (void)tls;
  return "";
}
