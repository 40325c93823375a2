/* Bridges to message brokers, [mqtt NAME] of the configuration: points come from them, and results go to them.
 *
 * Points and results have a bridge each, with its own thread and connection to the broker, so that neither delays the other. Both
 * are peers of the daemon over inner connections (net/inner.h): they feed points as lines and read results as text, with the same
 * limits, counters and back-pressure as any other peer.
 *
 * Thread: main, unless stated otherwise. */
#ifndef HK_BRIDGE_H
#define HK_BRIDGE_H

#include "daemon/bridge/bridge_look.h"
#include "daemon/net/net.h"

struct hk_bridges;

/* Makes an empty set. Returns 0 and *out, or -ENOMEM. net: outlives it. */
int hk_bridges_new(struct hk_bridges **out, struct hk_net *net);
/* Adopts a configuration while loops run: new bridges start, changed ones finish their current work and adopt the new rule,
 * removed ones are stopped without waiting for them. Returns 0, or -ENOMEM: a new section has no bridge. NULL is allowed, here
 * and below. */
int hk_bridges_adopt(struct hk_bridges *bridges, const struct hk_config *config);
/* The daemon is stopping: bridges finish their current work. */
void hk_bridges_end(struct hk_bridges *bridges);
bool hk_bridges_ended(const struct hk_bridges *bridges); /* whether all bridges have finished */
/* Stops the bridges. False: one hangs. */
bool hk_bridges_stop(struct hk_bridges *bridges);
void hk_bridges_free(struct hk_bridges *bridges); /* once stopped, and all connections are closed */
/* Copies the counters of all bridges; returns their number. Thread: any. */
uint32_t hk_bridges_look(struct hk_bridges *bridges, struct hk_bridge_look out[HK_BRIDGES_MAX]);

#endif
