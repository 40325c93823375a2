/* Link: a connection to a broker, and the loop of its thread: connect -> greeted -> (bytes are exchanged) -> lost, and again, at
 * growing intervals. libmosquitto implements MQTT; this file drives it.
 *
 * Acknowledgements: libmosquitto has its PUBACK for a message ready when it delivers the message, but writes nothing until
 * mosquitto_loop_write, because this file claims to use threads (mosquitto_threaded_set). So messages are acknowledged only when
 * `settle` allows it.
 *
 * Thread: the bridge's. */
#ifndef HK_MQTT_LINK_H
#define HK_MQTT_LINK_H

#include "daemon/bridge/bridge_thread.h"

#include <mosquitto.h>

#define HK_MQTT_RECEIVE 4096u /* maximum number of received messages that are not settled or acknowledged */

struct hk_mqtt_link;

struct hk_mqtt_link_kind {
  const char *suffix; /* of the client id */
  /* The session begins: subscribes, publishes the status. */
  void (*greeted)(struct hk_mqtt_link *link);
  /* Takes a message. False: stop reading until `settle`. */
  bool (*message)(struct hk_mqtt_link *link, const struct mosquitto_message *message);
  /* Processes the received messages. False: that failed, and none may be acknowledged: the connection is closed, so that they are
   * sent again. *held: not yet; called again soon. */
  bool (*settle)(struct hk_mqtt_link *link, bool *held);
  /* The answer to a subscription: the granted QoS, or 128 or more. number: of the call in `greeted`. */
  void (*subscribed)(struct hk_mqtt_link *link, uint32_t number, int granted);
  void (*taken)(struct hk_mqtt_link *link, int id);       /* the broker has the message, or will never take it */
  void (*refused)(struct hk_mqtt_link *link, int reason); /* the broker refuses the message; `taken` follows */
  /* Before a wait: sets *fd (-1: none), to wait for in addition, and *timeout in ms. */
  void (*waits)(struct hk_mqtt_link *link, int *fd, short *events, int *timeout);
  void (*woken)(struct hk_mqtt_link *link);   /* fd is ready, or the time is over */
  void (*parting)(struct hk_mqtt_link *link); /* the connection is about to be closed in order */
};

struct hk_mqtt_link {
  struct hk_bridge *bridge;
  const struct hk_mqtt_link_kind *kind;
  struct mosquitto *mosq;
  bool connected;          /* the socket is connected */
  bool greeted;            /* the broker has accepted the connection */
  bool kept;               /* the broker had our session already */
  bool came;               /* the last read brought a message */
  bool full;               /* no more is read before `settle` */
  bool writes;             /* libmosquitto is writing now */
  int64_t deadline;        /* ns: for the broker to accept */
  int64_t since;           /* ns: when it accepted */
  int64_t retry;           /* ns: when to connect again */
  int64_t pause;           /* ns */
  int64_t misc;            /* ns: the last call of mosquitto_loop_misc */
  char why[HK_BRIDGE_WHY]; /* the reason of the loss, from the broker or a call */
  bool told;               /* its failure was logged */
  uint32_t n_subscribed;
  int subscription[HK_MQTT_TOPICS_MAX]; /* ids of the subscriptions */
};

/* Serves the link until the bridge is interrupted. will: the last will, which the broker publishes when the connection is lost;
 * NULL: none. */
void hk_mqtt_link_run(struct hk_mqtt_link *link, const char *will);
/* Subscribes; the answer has the number of earlier calls. */
void hk_mqtt_link_subscribe(struct hk_mqtt_link *link, const char *filter, int qos);
/* Publishes a message. Returns 0, or a negative errno. *id: as in `taken`. */
int hk_mqtt_link_publish(struct hk_mqtt_link *link, const char *topic, const void *data, size_t size, int qos, bool retain,
                         int *id);

#endif
