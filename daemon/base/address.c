#include "daemon/base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_address_parse(const char *text, struct sockaddr_storage *out)
{
  const char *colon = strrchr(text, ':');
  char host[INET6_ADDRSTRLEN + 2];
  if (!colon || colon == text || (size_t)(colon - text) >= sizeof host)
    return -EINVAL;
  memcpy(host, text, (size_t)(colon - text));
  host[colon - text] = 0;

  const size_t digits = strspn(colon + 1, "0123456789");
  const unsigned long port = strtoul(colon + 1, NULL, 10);
  if (digits == 0 || digits > 5 || colon[1 + digits] != 0 || port > 65535)
    return -EINVAL;

  memset(out, 0, sizeof *out);
  struct sockaddr_in *v4 = (struct sockaddr_in *)out;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
  const size_t length = strlen(host);
  if (host[0] == '[' && host[length - 1] == ']') {
    host[length - 1] = 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
  }
  v4->sin_family = AF_INET;
  v4->sin_port = htons((uint16_t)port);
  return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

void hk_address_format(const struct sockaddr *address, char out[HK_ADDRESS_MAX])
{
  char host[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    snprintf(out, HK_ADDRESS_MAX, "[%s]:%u", host, ntohs(v6->sin6_port));
  } else {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    snprintf(out, HK_ADDRESS_MAX, "%s:%u", host, ntohs(v4->sin_port));
  }
}
