#include "daemon/config/mqtt_address.h"

#include <stdlib.h>
#include <string.h>

bool hk_mqtt_address_parse(const char *url, struct hk_mqtt_address *out)
{
  const bool tls = strncmp(url, "mqtts://", 8) == 0;
  memset(out, 0, sizeof *out);
  if (!tls && strncmp(url, "mqtt://", 7) != 0)
    return false;
  const char *host = url + (tls ? 8 : 7), *end = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":");
  if (!end || strpbrk(host, "/@?# "))
    return false;
  const char *port = end + (host[0] == '[');
  host += host[0] == '[';
  if (end == host || (size_t)(end - host) >= sizeof out->host || (*port && *port != ':'))
    return false;
  const char *digits = *port ? port + 1 : tls ? "8883" : "1883";
  const unsigned long number = strtoul(digits, NULL, 10);
  if (strspn(digits, "0123456789") != strlen(digits) || number == 0 || number > UINT16_MAX)
    return false;
  memcpy(out->host, host, (size_t)(end - host));
  out->port = (uint16_t)number;
  out->tls = tls;
  return true;
}

bool hk_mqtt_address_is_here(const struct hk_mqtt_address *a)
{
  return strcmp(a->host, "localhost") == 0 || strcmp(a->host, "::1") == 0 ||
         (strncmp(a->host, "127.", 4) == 0 && a->host[strspn(a->host, "0123456789.")] == 0);
}
