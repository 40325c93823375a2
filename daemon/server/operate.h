/* What people at a desk ask of the daemon over the binary protocol: to take note of an alert, and to open or close a window of
 * maintenance. One request at a time for each connection; it waits, parked, until the answer is there.
 *
 * Thread: the loop's. */
#ifndef HK_OPERATE_H
#define HK_OPERATE_H

#include "daemon/base/buffer.h"
#include "proto/wire/message.h"

struct hk_connection;
struct hk_logged_operation;
struct hk_operation;
struct hk_server;

/* Begins. NULL: no memory. m: has been checked by its reader. */
struct hk_operation *hk_operate_begin(struct hk_connection *c, const struct hk_operate *m);
/* False: it is not over. True: it is, and freed; *taken and one line of text say what came of it. */
bool hk_operate_result(struct hk_operation *operation, bool *taken, struct hk_buffer *text);
/* Nobody waits for it any more. NULL is fine. */
void hk_operate_abandon(struct hk_operation *operation);

/* Logs what was done, where the daemon keeps an event log. Thread: any. */
void hk_operate_log(struct hk_server *server, const struct hk_logged_operation *operation);

#endif
