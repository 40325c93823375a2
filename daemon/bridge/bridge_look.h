/* The counters of a bridge, for other threads. */
#ifndef HK_BRIDGE_LOOK_H
#define HK_BRIDGE_LOOK_H

#include "daemon/base/counter_table.h"
#include "daemon/config/config.h"

#include <stdbool.h>
#include <stdint.h>

enum hk_bridge_state { HK_BRIDGE_CONNECTING, HK_BRIDGE_CONNECTED, HK_BRIDGE_FAILING };
enum hk_bridge_way { HK_BRIDGE_IN, HK_BRIDGE_OUT };

#define HK_BRIDGES_MAX (2 * HK_CONFIG_MQTT_MAX)
#define HK_BRIDGE_WHY 192 /* bytes of a reason, with the 0 */

/* The counters of a bridge. Messages are the broker's. */
struct hk_bridge_look {
  char name[HK_CONFIG_NAME_MAX];
  enum hk_bridge_way way;
  enum hk_bridge_state state;
  bool held;               /* in: nothing is acknowledged, because durability is degraded */
  char why[HK_BRIDGE_WHY]; /* reason of the present or last failure; "": none yet */
  int64_t since;           /* ns, wall clock: of the state */
  uint64_t connected;      /* number of connections so far */
  uint64_t messages;       /* in: received; out: taken by the broker */
  uint64_t points;         /* in: accepted points of these */
  uint64_t bad;            /* in: messages that cannot be read */
  uint64_t refused;        /* in: points whose sensor or time was refused */
  uint64_t retained;       /* in: retained messages without a time, which were skipped */
  uint64_t unmatched;      /* in: messages of topics without a subscription */
  uint64_t position;       /* out: place in the event log */
  uint64_t waiting;        /* in: received messages that are not acknowledged; out: messages that the broker has not taken */
  uint64_t lost;           /* out: results dropped because the broker was slow or unreachable */
};

/* Table of the counters, as in base/counter_table.h; offsets are in struct hk_bridge_look. Its sections are mqtt_in and mqtt_out,
 * by hk_bridge_section. */
extern const struct hk_counter_row hk_bridge_counter_table[];
const char *hk_bridge_section(enum hk_bridge_way way);
static inline uint64_t hk_bridge_counter_of(const struct hk_bridge_look *look, const struct hk_counter_row *row)
{
  return *(const uint64_t *)(const void *)((const char *)look + row->offset);
}

#endif
