/* Copy: the event log of a machine of a cluster. One log has the events of all machines, the broker's, which all of them read;
 * each has a copy in memory, with the same records at the same positions. So a subscriber can go on at another machine where it
 * was, a receiver of alerts goes on wherever it runs, and nothing of it is on a disk.
 *
 *     shard, receiver, maker of incidents: hk_eventlog_append... -> outgoing -> (cluster's thread) published, confirmed
 *     the shared log, message by message -> hk_copy_take -> position = offset + 1
 *
 * What is appended has no position before it is read back; appending returns its number among the outgoing instead, for
 * hk_eventlog_safe. A machine that goes on with the sensors of another repeats events, and one that publishes again after a lost
 * connection, too: an event is known if its sensor has one of its sequence or a later one, at its time or later. A known one is
 * an empty record: positions have no gaps.
 *
 * Thread: the cluster's, unless stated otherwise. */
#ifndef HK_EVENT_COPY_H
#define HK_EVENT_COPY_H

#include "daemon/durable/event_log.h"

/* Makes an empty copy; most: limit for the bytes in memory. Returns 0 or a negative errno. Thread: main. */
int hk_copy_open(struct hk_eventlog **out, uint64_t most);
/* Calls `operated` with each operation that is taken, in their order, as this machine reads it: those of all machines, also
 * before its start. Set before any is taken. Thread of `operated`: the cluster's; it must not use the log. */
void hk_copy_on_operation(struct hk_eventlog *log, void (*operated)(void *arg, const struct hk_logged_operation *operation),
                          void *arg);
/* Takes a message of the shared log, at its offset. Offsets ascend. False, with a reason: it cannot be read, and is an empty
 * record. */
bool hk_copy_take(struct hk_eventlog *log, uint64_t offset, const void *message, size_t size, const char **why);
/* Positions of the last events of standing alerts, in order, at most `most`; returns the number of all that stand. sums:
 * acknowledged ones among all. Thread: any. */
uint32_t hk_copy_standing(struct hk_eventlog *log, uint64_t *positions, uint32_t most, uint32_t *acknowledged);
/* Acknowledges the standing alert of a sensor, or its alert `number` if that is not 0: appends the event; returns its number, for
 * hk_eventlog_safe, or a negative errno: -ENOENT: it does not stand; -EALREADY: `by` had, at `when`. *number: of the alert.
 * Thread: any. */
int64_t hk_copy_acknowledge(struct hk_eventlog *log, struct hk_string name, uint32_t *number, char by[HK_WHO_MAX + 1],
                            int64_t *when);
/* Who has acknowledged a standing alert, and when; as hk_eventlog_noted. Thread: any. */
bool hk_copy_noted(struct hk_eventlog *log, struct hk_string name, uint32_t number, char by[HK_WHO_MAX + 1], int64_t *when);

#endif
