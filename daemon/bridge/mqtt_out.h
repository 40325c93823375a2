/* Results that go to a broker: lines of the text protocol, which an inner connection brings, become messages. Those of events are
 * published with QoS 1, from a place in the event log that moves on when the broker has them, and outlives the daemon
 * (durable/place.h): none is lost, one may come twice. Where the broker has no session of ours, the first time or since it lost
 * it, the states of all sensors that the log tells of are published anew. Thread: the bridge's. */
#ifndef HK_MQTT_OUT_H
#define HK_MQTT_OUT_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/mqtt_link.h"
#include "daemon/durable/place.h"

#define HK_MQTT_WAITING 1024u /* messages that the broker has not taken, at most */

struct hk_mqtt_out {
  struct hk_mqtt_link link; /* first */
  char status[HK_SECTION_TEXT + 16];
  int fd;                          /* of the inner connection; -1: there is none */
  int64_t retry;                   /* ns: when to open it again */
  struct hk_buffer lines;          /* that have come of it and are not dealt with */
  struct hk_buffer topic, payload; /* of the message that is made */
  bool logged;                     /* the daemon keeps an event log */
  struct hk_place place;           /* in it: what the broker has */
  uint64_t read;                   /* up to where it was read, */
  uint64_t quiet;                  /* and up to where only states are published */
  uint64_t written;                /* place that is on the disk */
  int64_t wrote;                   /* ns: when */
  struct {
    int id;            /* of the message */
    bool taken;        /* the broker has it */
    uint64_t position; /* that is reached with it; 0: none */
  } waiting[HK_MQTT_WAITING];
  uint32_t first, n;    /* of these */
  uint64_t taken, lost; /* that are not counted yet */
  uint64_t *known;      /* hashes of sensors whose discovery was published */
  uint32_t n_known, known_room;
};

extern const struct hk_bridge_kind hk_mqtt_out_kind;

#endif
