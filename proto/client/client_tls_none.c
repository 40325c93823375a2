/* libhankel without OpenSSL. See client_tls.h. */
#include "proto/client/client_tls.h"

#include <errno.h>
#include <stdio.h>

int hk_client_tls_new(struct hk_client_tls **out, const struct hankel_security *security, const char *host, int fd, char *error,
                      size_t size)
{
  (void)out, (void)security, (void)host, (void)fd;
  snprintf(error, size, "this libhankel was built without OpenSSLand has no TLS");
  return -EACCES;
}
void hk_client_tls_free(struct hk_client_tls *tls)
{
  (void)tls;
}
int hk_client_tls_shake(struct hk_client_tls *tls)
{
  (void)tls;
  return -EPROTO;
}
ssize_t hk_client_tls_read(struct hk_client_tls *tls, void *data, size_t size)
{
  (void)tls, (void)data, (void)size;
  errno = EPROTO;
  return -1;
}
ssize_t hk_client_tls_write(struct hk_client_tls *tls, const void *data, size_t size)
{
  (void)tls, (void)data, (void)size;
  errno = EPROTO;
  return -1;
}
bool hk_client_tls_wants_room(const struct hk_client_tls *tls)
{
  (void)tls;
  return false;
}
bool hk_client_tls_pending(const struct hk_client_tls *tls)
{
  (void)tls;
  return false;
}
void hk_client_tls_end(struct hk_client_tls *tls)
{
  (void)tls;
}
const char *hk_client_tls_fault(const struct hk_client_tls *tls)
{
  (void)tls;
  return "";
}
