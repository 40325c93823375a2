/* Points out of a line of the line protocol, over TCP or UDP. Thread: the loop's. */
#ifndef HK_LINES_H
#define HK_LINES_H

#include "daemon/log.h"

#include <stddef.h>
#include <stdint.h>

struct hk_loop;

/* Where a line comes from. */
struct hk_lines_from {
  const char *peer;
  const struct sockaddr *address; /* when not NULL it says who the peer is; made text of only when there is something to say */
  struct hk_log_quota *quota;
  int64_t unit;    /* ns of its times */
  uint32_t source; /* in the stage */
  uint64_t number; /* of the line, for messages */
};

/* The peer as text; room: HK_ADDRESS_MAX bytes that may hold it. */
const char *hk_lines_peer(const struct hk_lines_from *from, char *room);

/* Takes one line without its LF; there must be room for HK_LINE_FIELDS points. */
void hk_lines_take(struct hk_loop *loop, const struct hk_lines_from *from, const char *text, size_t length);

#endif
