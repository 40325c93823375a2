/* One sensor for the web: its state on the device, its detector's keys, and the learned values. */
#ifndef HK_WEB_SENSOR_H
#define HK_WEB_SENSOR_H

#include "daemon/base/buffer.h"
#include "daemon/durable/event_holders.h"

#include <stdint.h>

struct hk_alert;
struct hk_detector;
struct hk_look;
struct hk_server;
struct hk_window;

/* Requests the sensor's state, with at most `scores` past scores, from its shard, whose thread calls ready(ready_arg) when the
 * state is available. Returns 0 and *out, -ENOENT: no such sensor, or -ENOMEM. arg: the server. Thread: the web's. */
int hk_sensor_look(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg, struct hk_look **out);
/* Returns 1: not available yet; 0: appended as a JSON object; -ENOENT, -ENODEV, -EAGAIN or -ENOMEM. Thread: the web's. */
int hk_sensor_seen(void *arg, const struct hk_look *look, struct hk_buffer *out);
/* Appends a comma and the members `samples`, `span` and, unless only time decides, `first`: samples of the window, of how many,
 * and the number of the first point with a score, the last possible one. Thread: any. */
void hk_sensor_window(struct hk_buffer *out, const struct hk_detector *d, const struct hk_window *w);
/* Appends a comma and the member `threshold`, which a score, or its evidence, must reach. Thread: any. */
void hk_sensor_threshold(struct hk_buffer *out, const struct hk_detector *d, const struct hk_alert *a);
/* The machine of a cluster that scores a partition, by the log of events and by what machines say. False: none is known. Thread:
 * any. */
bool hk_sensor_where(struct hk_server *server, uint32_t partition, struct hk_holder *out);
/* The look is no longer needed. NULL is allowed. */
void hk_sensor_unlook(struct hk_look *look);

#endif
