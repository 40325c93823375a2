/* libhankel: reads the token, and decides where it may be sent. See client_tls.h. */
#include "proto/client/client_token.h"
#include "proto/client/client_tls.h"

#include "proto/wire/secret_file.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define HK_TOKEN_FILE_MOST (64u << 10) /* most bytes of a token file */

int hk_client_token(const struct hankel_security *s, char token[HK_CLIENT_TOKEN], char *error, size_t size)
{
  token[0] = 0;
  if (s->token) {
    if (snprintf(token, HK_CLIENT_TOKEN, "%s", s->token) >= HK_CLIENT_TOKEN) {
      snprintf(error, size, "the token is longer than %d bytes", HK_CLIENT_TOKEN - 1);
      return -EACCES;
    }
    return 0;
  }
  if (!s->token_file)
    return 0;
  char *data, why[HK_SECRET_WHY];
  size_t length;
  const int status = hk_secret_read(s->token_file, HK_TOKEN_FILE_MOST, HK_SECRET_PIPE, &data, &length, why);
  if (status == 0) {
    const size_t n = strcspn(data, "\r\n \t");
    if (n < HK_CLIENT_TOKEN)
      memcpy(token, data, n);
    token[n < HK_CLIENT_TOKEN ? n : 0] = 0;
    hk_secret_free(data, length);
  }
  if (status == 0 && token[0])
    return 0;
  snprintf(error, size, "%.200s: %s", s->token_file, status != 0 ? why : "there is no token in its first line");
  return -EACCES;
}

static bool loopback(const struct sockaddr *to)
{
  if (to->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)to)->sin_addr.s_addr) >> 24 == 127;
  const struct in6_addr *address = &((const struct sockaddr_in6 *)to)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

int hk_client_token_may_go(const struct hankel_security *s, const struct sockaddr *to, char *error, size_t size)
{
  if (s->token_in_clear || loopback(to))
    return 0;
  snprintf(error, size,
           "the token was not sent: without TLS anyone on the path can read it. Use TLS (--tls); "
           "or, where you trust all of the network, allow it (--token-in-clear)");
  return -EPERM;
}
