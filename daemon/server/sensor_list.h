/* The list of sensors with how they are: one part of it for each SENSORS of the binary protocol, which HTTP asks with, too. The
 * shards say how their sensors are (scoring/survey.h); meanwhile the connection is parked.
 *
 * Thread: the loop's. */
#ifndef HK_SENSOR_LIST_H
#define HK_SENSOR_LIST_H

#include "daemon/base/buffer.h"
#include "proto/wire/message.h"

struct hk_connection;
struct hk_sensor_list;

/* Begins. NULL: no memory. m: has been checked by its reader. */
struct hk_sensor_list *hk_sensor_list_begin(struct hk_connection *c, const struct hk_sensors_asked *m);
/* False: it is not over, and parked connections are woken when it is. True: it is, and freed; an object of JSON was appended. */
bool hk_sensor_list_result(struct hk_sensor_list *list, struct hk_buffer *json);
/* Nobody waits for it any more. NULL is fine. */
void hk_sensor_list_abandon(struct hk_sensor_list *list);

#endif
