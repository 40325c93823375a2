/* Replies of the binary protocol: one frame each. Thread: the loop's. */
#ifndef HK_BINARY_REPLIES_H
#define HK_BINARY_REPLIES_H

#include "daemon/net/connection.h"

/* Sends the written replies. */
void hk_binary_reply(struct hk_connection *c, const struct hk_writer *w);
/* Sends an ERROR, about a frame of a type with a tag (0 and 0: about none). */
void hk_binary_error(struct hk_connection *c, uint32_t tag, uint16_t code, uint8_t type, const char *message);
/* Sends an ERROR about a frame; ends the connection where the code says so. */
enum hk_turn hk_binary_fault(struct hk_connection *c, const struct hk_frame *f, uint16_t code, const char *message);
enum hk_turn hk_binary_bad_payload(struct hk_connection *c, const struct hk_frame *f);

#endif
