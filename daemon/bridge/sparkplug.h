/* Sparkplug B: messages of edge nodes and their devices under spBv1.0/GROUP/TYPE/NODE[/DEVICE]. A birth names the metrics and
 * gives each an alias. Data messages have aliases only, and sequence numbers from 0 to 255, cyclically. After data without a
 * birth, or after a missing message, the owner asks the node for a rebirth.
 *
 * Memory: at most HK_SPARKPLUG_NODES nodes with HK_SPARKPLUG_METRICS metrics each. Thread: the owner's. */
#ifndef HK_SPARKPLUG_H
#define HK_SPARKPLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_SPARKPLUG_SPACE "spBv1.0/"
#define HK_SPARKPLUG_NODES 65536u
#define HK_SPARKPLUG_METRICS 65536u
#define HK_SPARKPLUG_TOPIC 1024 /* bytes of a topic, with the 0 */

struct hk_sparkplug;

struct hk_sparkplug *hk_sparkplug_new(void);            /* NULL: no memory, or no protobuf-c */
void hk_sparkplug_free(struct hk_sparkplug *sparkplug); /* NULL is allowed */

/* The parts of a topic; the strings end with 0. */
struct hk_sparkplug_topic {
  char group[HK_SPARKPLUG_TOPIC], type[16], node[HK_SPARKPLUG_TOPIC], device[HK_SPARKPLUG_TOPIC]; /* device: "" for the node */
};
/* Parses a topic. False: not a topic of Sparkplug. */
bool hk_sparkplug_topic_read(const char *topic, struct hk_sparkplug_topic *out);

/* A value of a metric; time: ns, or 0: none. metric: ends with 0, valid during the call. */
typedef void hk_sparkplug_take(void *arg, const char *metric, double value, int64_t time);

/* Takes the values of a message. *rebirth: ask the node for its birth (at most every 10 s of now, ns). Returns NULL, or the
 * error, a static string. */
const char *hk_sparkplug_read(struct hk_sparkplug *sparkplug, const struct hk_sparkplug_topic *topic, const void *data,
                              size_t size, int64_t now, bool *rebirth, hk_sparkplug_take *take, void *arg);
/* Writes the payload that asks a node for its birth; time: ns. Returns its length in bytes, 0: no room. */
size_t hk_sparkplug_rebirth(int64_t time, uint8_t out[128]);

#endif
