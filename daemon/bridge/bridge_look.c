#include "daemon/bridge/bridge_look.h"

#include <stddef.h>

#define AT(member) offsetof(struct hk_bridge_look, member)

const struct hk_counter_row hk_bridge_counter_table[] = {
  { "mqtt_in", "connected", AT(connected), "Connections that the broker has accepted." },
  { "mqtt_in", "messages", AT(messages), "Messages that came from the broker." },
  { "mqtt_in", "points", AT(points), "Points that were taken of messages." },
  { "mqtt_in", "bad", AT(bad), "Messages with nothing in them that can be read." },
  { "mqtt_in", "refused", AT(refused), "Points of messages whose sensor or time was refused." },
  { "mqtt_in", "retained", AT(retained), "Messages passed over, since the broker had kept them and they say no time." },
  { "mqtt_in", "unmatched", AT(unmatched), "Messages of topics that are not subscribed to any more." },
  { "mqtt_out", "connected", AT(connected), "Connections that the broker has accepted." },
  { "mqtt_out", "messages", AT(messages), "Messages that the broker has taken." },
  { "mqtt_out", "lost", AT(lost), "Results that were left out, as the broker was too slow for them or away." },
  { NULL, NULL, 0, NULL },
};

const char *hk_bridge_section(enum hk_bridge_way way)
{
  return way == HK_BRIDGE_IN ? "mqtt_in" : "mqtt_out";
}
