/* Address of a broker: mqtt://HOST[:PORT], or mqtts:// for TLS, and likewise amqp and kafka. HOST may be [V6]. Thread: any. */
#ifndef HK_BROKER_ADDRESS_H
#define HK_BROKER_ADDRESS_H

#include "daemon/config/section_keys.h"

struct hk_broker_address {
  char host[HK_SECTION_TEXT]; /* without brackets */
  uint16_t port;              /* the scheme's default if none is given */
  bool tls;
};

/* A scheme of URLs, without TLS, and its default ports. */
struct hk_broker_scheme {
  const char *name;
  const char *port, *tls_port;
};
extern const struct hk_broker_scheme hk_scheme_mqtt, hk_scheme_amqp, hk_scheme_kafka;

/* Parses an address of less than HK_SECTION_TEXT bytes. False: invalid; *out is zeroed. */
bool hk_broker_address_parse(const struct hk_broker_scheme *scheme, const char *url, struct hk_broker_address *out);
/* Whether the address is on this machine. */
bool hk_broker_address_is_here(const struct hk_broker_address *address);

#endif
