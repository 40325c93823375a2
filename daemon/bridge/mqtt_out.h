/* Results to a broker: lines of the text protocol, from an inner connection, become messages. Events are published with QoS 1,
 * from a place in the event log that advances when the broker has them, and survives restarts (durable/place.h): no event is
 * lost, but one may be repeated. If the broker has no session of the daemon, at first or after losing it, the states of all
 * sensors in the log are published again. Thread: the bridge's. */
#ifndef HK_MQTT_OUT_H
#define HK_MQTT_OUT_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/mqtt_link.h"
#include "daemon/durable/place.h"

#define HK_MQTT_WAITING 1024u /* maximum number of messages that the broker has not taken */

struct hk_mqtt_out {
  struct hk_mqtt_link link; /* first */
  char status[HK_SECTION_TEXT + 16];
  int fd;                          /* of the inner connection; -1: none */
  int64_t retry;                   /* ns: when to open it again */
  struct hk_buffer lines;          /* received bytes that are not processed */
  struct hk_buffer topic, payload; /* of the current message */
  bool logged;                     /* the daemon keeps an event log */
  struct hk_place place;           /* in the event log: position up to which the broker has taken events */
  uint64_t read;                   /* position up to which the log was read, */
  uint64_t quiet;                  /* and up to which only states are published */
  uint64_t written;                /* place on the disk */
  int64_t wrote;                   /* ns: when it was written */
  struct {
    int id;            /* of the message */
    bool taken;        /* the broker has it */
    uint64_t position; /* position that the place reaches with the message; 0: none */
  } waiting[HK_MQTT_WAITING];
  uint32_t first, n;    /* of the ring `waiting` */
  uint64_t taken, lost; /* not counted yet */
  uint64_t *known;      /* hashes of sensors whose discovery was published */
  uint32_t n_known, known_room;
};

extern const struct hk_bridge_kind hk_mqtt_out_kind;

#endif
