/* Bridges: brokers of messages, [mqtt NAME] of the configuration, that points come from and that results go to.
 *
 * What comes in and what goes out are a bridge each, on a thread and with a connection to the broker of its own, so that neither
 * holds up the other. Both are peers of the daemon by inner connections (net/inner.h): points go in as lines, results come out as
 * text, with the same limits, counters and back-pressure as those of any other peer.
 *
 * Thread: main, but for what says otherwise. */
#ifndef HK_BRIDGE_H
#define HK_BRIDGE_H

#include "daemon/bridge/bridge_look.h"
#include "daemon/net/net.h"

struct hk_bridges;

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
