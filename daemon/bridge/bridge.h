/* Bridges: brokers of messages, [mqtt NAME] of the configuration, that points come from.
 *
 * Each is a bridge, on a thread and with a connection to the broker of its own. It is a peer of the daemon by inner connections
 * (net/inner.h): points go in as lines, with the same limits, counters and back-pressure as those of any other peer.
 *
 * Thread: main, but for what says otherwise. */
#ifndef HK_BRIDGE_H
#define HK_BRIDGE_H

#include "daemon/config/config.h"
#include "daemon/net/net.h"

struct hk_bridges;

enum hk_bridge_state { HK_BRIDGE_CONNECTING, HK_BRIDGE_CONNECTED, HK_BRIDGE_FAILING };
enum hk_bridge_way { HK_BRIDGE_IN, HK_BRIDGE_OUT };

#define HK_BRIDGES_MAX (2 * HK_CONFIG_MQTT_MAX)
#define HK_BRIDGE_WHY 192 /* bytes of a reason, with the 0 */

/* What a bridge has done. Messages are the broker's. */
struct hk_bridge_look {
  char name[HK_CONFIG_NAME_MAX];
  enum hk_bridge_way way;
  enum hk_bridge_state state;
  bool held;                  /* in: nothing is acknowledged now, since durability is degraded */
  char why[HK_BRIDGE_WHY];    /* why it is failing, or was last; "": it never was */
  int64_t since;              /* ns, wall clock: of the state */
  uint64_t connected;         /* times */
  uint64_t messages;          /* in: that came; out: that the broker has taken */
  uint64_t points;            /* in: that were taken of them */
  uint64_t bad;               /* in: messages with nothing in them that can be read */
  uint64_t refused;           /* in: points whose sensor or time was refused */
  uint64_t retained;          /* in: messages that were passed over, since the broker had kept them and they say no time */
  uint64_t unmatched;         /* in: messages of topics that are not subscribed to any more */
  uint64_t position, waiting; /* out: place in the event log; messages that the broker has not taken */
  uint64_t lost;              /* out: results that were left out, as the broker was too slow for them or away */
};

/* None yet. 0 and *out, or -ENOMEM. net: outlives them. */
int hk_bridges_new(struct hk_bridges **out, struct hk_net *net);
/* A configuration is in force, and loops run: what is new begins, what is changed goes on with it once it has finished what it
 * does, and what is gone ends, for which nobody waits. 0, or -ENOMEM: something new has no bridge. NULL is fine, here and below.
 */
int hk_bridges_adopt(struct hk_bridges *bridges, const struct hk_config *config);
/* The daemon ends: they finish what they do. */
void hk_bridges_end(struct hk_bridges *bridges);
bool hk_bridges_ended(const struct hk_bridges *bridges); /* all have */
/* False: one hangs. */
bool hk_bridges_stop(struct hk_bridges *bridges);
void hk_bridges_free(struct hk_bridges *bridges); /* once stopped, and when all connections are closed */
/* Those that there are. Thread: any. */
uint32_t hk_bridges_look(struct hk_bridges *bridges, struct hk_bridge_look out[HK_BRIDGES_MAX]);

#endif
