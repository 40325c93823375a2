/* Creates libmosquitto handles for the daemon's connections to brokers. Thread: any. */
#ifndef HK_MQTT_CLIENT_H
#define HK_MQTT_CLIENT_H

#include <mosquitto.h>

struct hk_mqtt_client {
  const char *id;
  bool clean;                         /* clean session: the broker keeps no state */
  int version;                        /* MQTT_PROTOCOL_V5 or MQTT_PROTOCOL_V311 */
  bool tls;                           /* with: */
  const char *ca, *certificate, *key; /* paths; "": the system's certificate authorities, no client certificate */
};

/* Creates a handle, and initialises the library on the first call. The library is never cleaned up, since its count of users is
 * not thread-safe. arg: argument of the callbacks. Returns MOSQ_ERR_SUCCESS and *out, which the caller frees with
 * mosquitto_destroy, or another error and NULL. */
int hk_mqtt_client_new(struct mosquitto **out, const struct hk_mqtt_client *wanted, void *arg);

#endif
