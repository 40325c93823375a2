/* Points that come from a broker: messages become lines of the line protocol, and a batch of these goes to the daemon by an inner
 * connection. What came is acknowledged when the daemon has dealt with all points of it, with a journal: when they are committed.
 * A message that cannot be read is counted, told, and acknowledged like any other: it would be no better the next time.
 * Thread: the bridge's. */
#ifndef HK_MQTT_IN_H
#define HK_MQTT_IN_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/mqtt_link.h"
#include "daemon/bridge/sparkplug.h"

#define HK_MQTT_BATCH (1u << 20) /* bytes of lines, after which no more is read before they are fed */

struct hk_mqtt_in {
  struct hk_mqtt_link link; /* first */
  struct hk_mqtt_topics topics;
  struct hk_sparkplug *sparkplug;
  struct hk_buffer lines;
  struct hk_buffer names; /* topics of the batch, each with a 0 behind it */
  uint32_t *origin;       /* of each line: where its topic begins in `names` */
  uint32_t n_lines, capacity;
  struct hk_buffer key, field;                 /* of the message that is read */
  uint32_t topic;                              /* where its topic begins in `names` */
  size_t key_field;                            /* bytes of `field` that the template gives */
  int64_t time;                                /* ns: of it, */
  int64_t last;                                /* and the last one that stood for an arrival */
  uint64_t messages, bad, retained, unmatched; /* of the batch */
  uint64_t waiting;                            /* messages that came and are not acknowledged */
  bool acknowledges;                           /* what waits to be sent may hold acknowledgements */
  bool failed;                                 /* there was no memory for something of it */
};

extern const struct hk_bridge_kind hk_mqtt_in_kind;

#endif
