#include "daemon/config/broker_address.h"

#include <stdlib.h>
#include <string.h>

const struct hk_broker_scheme hk_scheme_mqtt = { "mqtt", "1883", "8883" }, hk_scheme_amqp = { "amqp", "5672", "5671" },
                              hk_scheme_kafka = { "kafka", "9092", "9093" };

bool hk_broker_address_parse(const struct hk_broker_scheme *scheme, const char *url, struct hk_broker_address *out)
{
  const size_t length = strlen(scheme->name);
  const bool named = strncmp(url, scheme->name, length) == 0, tls = named && url[length] == 's';
  memset(out, 0, sizeof *out);
  if (!named || strncmp(url + length + tls, "://", 3) != 0)
    return false;
  const char *host = url + length + tls + 3, *end = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":");
  if (!end || strpbrk(host, "/@?# "))
    return false;
  const char *port = end + (host[0] == '[');
  host += host[0] == '[';
  if (end == host || (size_t)(end - host) >= sizeof out->host || (*port && *port != ':'))
    return false;
  const char *digits = *port ? port + 1 : tls ? scheme->tls_port : scheme->port;
  const unsigned long number = strtoul(digits, NULL, 10);
  if (strspn(digits, "0123456789") != strlen(digits) || number == 0 || number > UINT16_MAX)
    return false;
  memcpy(out->host, host, (size_t)(end - host));
  out->port = (uint16_t)number;
  out->tls = tls;
  return true;
}

bool hk_broker_address_is_here(const struct hk_broker_address *a)
{
  return strcmp(a->host, "localhost") == 0 || strcmp(a->host, "::1") == 0 ||
         (strncmp(a->host, "127.", 4) == 0 && a->host[strspn(a->host, "0123456789.")] == 0);
}
