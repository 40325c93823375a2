/* The list of sensors with their states: one part of it for each SENSORS of the binary protocol, and for each request of HTTP.
 * sensor_choice.h chooses the sensors; their shards report the states (scoring/survey.h), while the connection is parked.
 *
 * Thread: one for each list, the loop's or the web's. */
#ifndef HK_SENSOR_LIST_H
#define HK_SENSOR_LIST_H

#include "daemon/base/buffer.h"
#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

struct hk_connection;
struct hk_sensor_list;

/* Begins a list. NULL: no memory. m: has been checked by its reader. */
struct hk_sensor_list *hk_sensor_list_begin(struct hk_connection *c, const struct hk_sensors_asked *m);
/* As hk_sensor_list_begin, for HTTP: as hk_web_answers.list. arg: the server. */
const char *hk_sensor_list_ask(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                               struct hk_sensor_list **out);
/* False: not done yet; when it can go on, parked connections are woken, or `ready` is called: call it again, with the same
 * buffer. True: done, and freed; a JSON object was appended. */
bool hk_sensor_list_result(struct hk_sensor_list *list, struct hk_buffer *json);
/* The result is no longer needed. NULL is allowed. */
void hk_sensor_list_abandon(struct hk_sensor_list *list);

#endif
