/* A message of a cluster's logs: names of sensors, then points of them; PROTOCOL.md (Messages between machines) describes it. It
 * is a REGISTER and a POINTS frame, one behind the other. Thread: any. */
#ifndef HK_LOG_MESSAGE_H
#define HK_LOG_MESSAGE_H

#include "proto/wire/message.h"

#define HK_LOG_POINTS_MAX 8192u /* of a message: a power of two; handles count its names from 0 on */
_Static_assert(HK_LOG_POINTS_MAX <= HK_REGISTER_MAX, "each point may have another sensor");

/* Appends one. points: with handles that are places in `names`. As the writers of message.h; nothing is appended with an error.
 */
int hk_log_message_write(struct hk_writer *w, uint32_t n, const struct hk_string *names, const struct hk_points *points);
/* Reads one that is all of the data: 0, with views into it; names: to be walked with hk_name_next, each is to be checked by
 * whoever registers it. Every handle is less than names->n, and every point has a time. Or *why, in words, and -EBADMSG. */
int hk_log_message_read(const void *data, size_t size, struct hk_list *names, struct hk_points *points, const char **why);

#endif
