/* One sensor for the web: what the device has of it, its detector's keys, and what they have learned. */
#ifndef HK_WEB_SENSOR_H
#define HK_WEB_SENSOR_H

#include "daemon/base/buffer.h"

#include <stdint.h>

struct hk_alert;
struct hk_detector;
struct hk_look;

/* Asks the sensor's shard for its state; ready(ready_arg) is called from the shard's thread once it is there. 0 and *out,
 * -ENOENT: there is no such sensor, or -ENOMEM. arg: the server. Thread: the web's. */
int hk_sensor_look(void *arg, const char *name, void (*ready)(void *arg), void *ready_arg, struct hk_look **out);
/* 1: it is not there yet; 0: it is, and was appended as an object of JSON; -ENOENT, -ENODEV, -EAGAIN or -ENOMEM. Thread: the
 * web's. */
int hk_sensor_seen(void *arg, const struct hk_look *look, struct hk_buffer *out);
/* Appends a comma and the member `threshold`: what a score, or its evidence, has to reach. Thread: any. */
void hk_sensor_threshold(struct hk_buffer *out, const struct hk_detector *d, const struct hk_alert *a);
/* It is not wanted any more. NULL is fine. */
void hk_sensor_unlook(struct hk_look *look);

#endif
