/* Fleet list: the list of sensors of all machines of a cluster.
 *
 * Each machine is asked for its part, in the order that is wanted, as rows:
 *
 *     KEY SLOT {...}       a sensor: its place in the order of its machine (sensor_choice.h), and its object, without a comma
 *     . COUNT [KEY SLOT]   the end: the number of all its sensors; where its next part begins, if there is one
 *
 * The order of all is by key, then by the machine's name, then by slot. The next part of the whole begins at a place at a
 * machine, KEY-SLOT@MACHINE, or, unsorted, SLOT@MACHINE: those before it have been shown, of whichever machine. Unsorted lists go
 * on from machine to machine, a part at a time. A machine that does not answer is named in `away`, and its sensors are missing.
 *
 * Over the binary protocol the place is a number: a hash of the machine's name, and the slot.
 *
 * Thread: one for each list. */
#ifndef HK_FLEET_LIST_H
#define HK_FLEET_LIST_H

#include "daemon/base/buffer.h"
#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

#include <stdbool.h>

struct hk_fleet_list;
struct hk_server;

/* Whether machines of a cluster are known that score sensors, this one among them. Thread: any. */
bool hk_fleet_is_known(struct hk_server *server);
/* As hk_web_answers.list: returns the error of the request, or NULL; *out NULL: no memory. */
const char *hk_fleet_list_ask(struct hk_server *server, const struct hk_web_sensors *asked, void (*ready)(void *arg),
                              void *ready_arg, struct hk_fleet_list **out);
/* The same for SENSORS of the binary protocol. NULL: no memory, or the machine at which it is to begin has gone. */
struct hk_fleet_list *hk_fleet_list_begin(struct hk_server *server, const struct hk_sensors_asked *asked,
                                          void (*ready)(void *arg), void *ready_arg);
/* False: not done yet. True: a JSON object was appended. */
bool hk_fleet_list_result(struct hk_fleet_list *list, struct hk_buffer *out);
void hk_fleet_list_free(struct hk_fleet_list *list); /* NULL is allowed */

#endif
