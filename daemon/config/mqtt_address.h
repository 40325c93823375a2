/* Where a broker of MQTT is: mqtt://HOST[:PORT], or mqtts:// for TLS. HOST may be [V6]. Thread: any. */
#ifndef HK_MQTT_ADDRESS_H
#define HK_MQTT_ADDRESS_H

#include "daemon/config/section_keys.h"

struct hk_mqtt_address {
  char host[HK_SECTION_TEXT]; /* without brackets */
  uint16_t port;              /* 1883 if none is named, 8883 with TLS */
  bool tls;
};

/* Reads an address of less than HK_SECTION_TEXT bytes. False: invalid; *out is zeroed. */
bool hk_mqtt_address_parse(const char *url, struct hk_mqtt_address *out);
/* Whether the address is on this machine. */
bool hk_mqtt_address_is_here(const struct hk_mqtt_address *address);

#endif
