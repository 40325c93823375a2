/* Points from a broker: messages become lines of the line protocol, and a batch of lines goes to the daemon over an inner
 * connection. Messages are acknowledged when the daemon has processed all their points; with a journal, when they are committed.
 * A message that cannot be read is counted, logged, and acknowledged: it would be the same the next time. Thread: the bridge's.
 * */
#ifndef HK_MQTT_IN_H
#define HK_MQTT_IN_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/mqtt_link.h"
#include "daemon/bridge/sparkplug.h"

#define HK_MQTT_BATCH (1u << 20) /* bytes of lines after which they are fed before more is read */

struct hk_mqtt_in {
  struct hk_mqtt_link link; /* first */
  struct hk_mqtt_topics topics;
  struct hk_sparkplug *sparkplug;
  struct hk_buffer lines;
  struct hk_buffer names; /* topics of the batch, each followed by a 0 */
  uint32_t *origin;       /* of each line: the offset of its topic in `names` */
  uint32_t n_lines, capacity;
  struct hk_buffer key, field;                 /* of the current message */
  uint32_t topic;                              /* the offset of its topic in `names` */
  size_t key_field;                            /* bytes of `field` that the template gives */
  int64_t time;                                /* ns: time of the current message */
  int64_t last;                                /* the last time that was a time of arrival */
  uint64_t messages, bad, retained, unmatched; /* of the batch */
  uint64_t waiting;                            /* received messages that are not acknowledged */
  bool acknowledges;                           /* the send buffer may contain acknowledgements */
  bool failed;                                 /* no memory for a part of it */
};

extern const struct hk_bridge_kind hk_mqtt_in_kind;

#endif
