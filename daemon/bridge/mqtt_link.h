/* Link: a connection to a broker, and the turns of the thread that has it: connect -> greeted -> (bytes come and go) -> lost, and
 * again, later and later. libmosquitto speaks MQTT; it is driven from here.
 *
 * Acknowledgements: libmosquitto has its PUBACK for a message ready when the message is handed over, but it writes nothing until
 * mosquitto_loop_write, as its user claims to be threaded (mosquitto_threaded_set). So whatever came is acknowledged when
 * `settle` has said that it may be, and not before.
 *
 * Thread: the bridge's. */
#ifndef HK_MQTT_LINK_H
#define HK_MQTT_LINK_H

#include "daemon/bridge/bridge_thread.h"

#include <mosquitto.h>

#define HK_MQTT_RECEIVE                                                                                                          \
  4096u /* messages that wait for an acknowledgement, and that are taken before something is done with them */

struct hk_mqtt_link;

struct hk_mqtt_link_kind {
  const char *suffix; /* of the client id */
  /* The session begins: subscribes, says that it is there. */
  void (*greeted)(struct hk_mqtt_link *link);
  /* A message came. False: no more are to be read before `settle`. */
  bool (*message)(struct hk_mqtt_link *link, const struct mosquitto_message *message);
  /* Does something with what came. False: it failed, and nothing of it may be acknowledged: the connection is given up, so that
   * it comes again. *held: not yet; it is asked again soon. */
  bool (*settle)(struct hk_mqtt_link *link, bool *held);
  /* A subscription was answered: with the QoS granted, or with 128 or more. Number of it in `greeted`. */
  void (*subscribed)(struct hk_mqtt_link *link, uint32_t number, int granted);
  void (*taken)(struct hk_mqtt_link *link, int id);       /* the broker has what was published, or will never */
  void (*refused)(struct hk_mqtt_link *link, int reason); /* it does not take what was; `taken` follows */
  /* Before a wait: *fd (-1: none) is waited for, too, and *timeout ms at most. */
  void (*waits)(struct hk_mqtt_link *link, int *fd, short *events, int *timeout);
  void (*woken)(struct hk_mqtt_link *link);   /* fd was ready, or the time is over */
  void (*parting)(struct hk_mqtt_link *link); /* it is about to be closed in order */
};

struct hk_mqtt_link {
  struct hk_bridge *bridge;
  const struct hk_mqtt_link_kind *kind;
  struct mosquitto *mosq;
  bool connected;          /* the socket is, */
  bool greeted;            /* and the broker has said yes; */
  bool kept;               /* it had our session from before */
  bool came;               /* a message, with what was read last */
  bool full;               /* no more is read before it is settled */
  bool writes;             /* libmosquitto does now */
  int64_t deadline;        /* ns: for the broker to say yes */
  int64_t since;           /* ns: when it said yes */
  int64_t retry;           /* ns: when to connect again */
  int64_t pause;           /* ns */
  int64_t misc;            /* ns: when libmosquitto was last told of the time */
  char why[HK_BRIDGE_WHY]; /* why it was lost, as the broker or a call said */
  bool told;               /* its failure was logged */
  uint32_t n_subscribed;
  int subscription[HK_MQTT_TOPICS_MAX]; /* ids of what was subscribed to */
};

/* Serves it until the bridge is interrupted. will: what the broker publishes when we are lost; NULL: nothing. */
void hk_mqtt_link_run(struct hk_mqtt_link *link, const char *will);
/* Subscribes; its answer comes with the number of calls before. */
void hk_mqtt_link_subscribe(struct hk_mqtt_link *link, const char *filter, int qos);
/* 0, or a negative errno. *id: what `taken` will say. */
int hk_mqtt_link_publish(struct hk_mqtt_link *link, const char *topic, const void *data, size_t size, int qos, bool retain,
                         int *id);
/* The connection is of no use: closes it, and connects again later. */
void hk_mqtt_link_give_up(struct hk_mqtt_link *link, const char *why);

#endif
