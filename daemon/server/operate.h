/* Operators' requests over the binary protocol: acknowledge an alert, mark an incident, begin or end a maintenance window. One
 * request at a time for each connection, which is parked until the answer is available.
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

/* Begins an operation. NULL: no memory. m: has been checked by its reader. */
struct hk_operation *hk_operate_begin(struct hk_connection *c, const struct hk_operate *m);
/* False: not done yet. True: done, and freed; *taken and one line of text are the result. */
bool hk_operate_result(struct hk_operation *operation, bool *taken, struct hk_buffer *text);
/* The result is no longer needed. NULL is allowed. */
void hk_operate_abandon(struct hk_operation *operation);

/* Logs an operation, if the daemon keeps an event log. Thread: any. */
uint64_t hk_operate_log(struct hk_server *server, const struct hk_logged_operation *operation);
/* Does what an operator has asked any machine of a cluster for, which this one reads in their shared log: maintenance. What was
 * asked of this one is done already. arg: the server. Thread: the cluster's. */
void hk_operate_take(void *arg, const struct hk_logged_operation *operation);

#endif
