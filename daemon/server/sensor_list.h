/* The list of sensors with how they are: one part of it for each SENSORS of the binary protocol, and for each request of HTTP.
 * Which are meant, sensor_choice.h chooses; how they are, their shards say (scoring/survey.h), and meanwhile a connection is
 * parked.
 *
 * Thread: one for each list, the loop's or the web's. */
#ifndef HK_SENSOR_LIST_H
#define HK_SENSOR_LIST_H

#include "daemon/base/buffer.h"
#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

struct hk_connection;
struct hk_sensor_list;

/* Begins. NULL: no memory. m: has been checked by its reader. */
struct hk_sensor_list *hk_sensor_list_begin(struct hk_connection *c, const struct hk_sensors_asked *m);
/* The same for HTTP: as hk_web_answers.list. arg: the server. */
const char *hk_sensor_list_ask(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                               struct hk_sensor_list **out);
/* False: it is not over; parked connections are woken, or `ready` is called, when it is. True: it is, and freed; an object of
 * JSON was appended. */
bool hk_sensor_list_result(struct hk_sensor_list *list, struct hk_buffer *json);
/* Nobody waits for it any more. NULL is fine. */
void hk_sensor_list_abandon(struct hk_sensor_list *list);

#endif
