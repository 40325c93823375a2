/* A handle of libmosquitto's, set up as each of the daemon's connections to brokers needs it. Thread: any. */
#ifndef HK_MQTT_CLIENT_H
#define HK_MQTT_CLIENT_H

#include <mosquitto.h>

struct hk_mqtt_client {
  const char *id;
  bool clean;                         /* the broker keeps nothing for it */
  int version;                        /* MQTT_PROTOCOL_V5 or MQTT_PROTOCOL_V311 */
  bool tls;                           /* with: */
  const char *ca, *certificate, *key; /* paths; "": whom this machine trusts, and no certificate of its own */
};

/* Makes one, and begins the library with the first of the process; whose count of its users is not for several threads, so it is
 * not ended. arg: of its callbacks. MOSQ_ERR_SUCCESS and *out, for mosquitto_destroy; or another error, and NULL. */
int hk_mqtt_client_new(struct mosquitto **out, const struct hk_mqtt_client *wanted, void *arg);

#endif
