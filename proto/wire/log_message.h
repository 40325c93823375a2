/* A message of a cluster's logs: names of sensors, then their points; PROTOCOL.md (Messages between machines) describes it. It
 * consists of a REGISTER frame followed by a POINTS frame. Thread: any. */
#ifndef HK_LOG_MESSAGE_H
#define HK_LOG_MESSAGE_H

#include "proto/wire/columns.h"
#include "proto/wire/message.h"

#define HK_LOG_POINTS_MAX 8192u /* in a message; a power of two. Handles number the message's names from 0 */
_Static_assert(HK_LOG_POINTS_MAX <= HK_REGISTER_MAX, "each point may have another sensor");

/* Appends a message. points: their handles are indices into `names`. Returns as the writers of message.h; on error nothing is
 * appended. */
int hk_log_message_write(struct hk_writer *w, uint32_t n, const struct hk_string *names, const struct hk_points *points);
/* Reads a message that fills the data. Returns 0, with views into the data; walk `names` with hk_name_next. The names are not
 * validated: whoever registers a name must check it. Every handle is less than names->n, and every point has a time. On error:
 * -EBADMSG, and *why describes it. */
int hk_log_message_read(const void *data, size_t size, struct hk_list *names, struct hk_points *points, const char **why);

#endif
