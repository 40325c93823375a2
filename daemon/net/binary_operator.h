/* Operators' requests over the binary protocol: STATUS, SENSORS, RELOAD, OPERATE. All but the first take a while: the connection
 * takes no other frame until it has the answer. Thread: the loop's. */
#ifndef HK_BINARY_OPERATOR_H
#define HK_BINARY_OPERATOR_H

#include "daemon/net/connection.h"

/* Takes the frame. */
enum hk_turn hk_binary_status(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_sensors(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_reload(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_operate(struct hk_connection *c, const struct hk_frame *f);

/* Whether a request is not answered yet. */
static inline bool hk_binary_asks(const struct hk_connection *c)
{
  return c->binary.reload != 0 || c->binary.operation || c->binary.listing;
}
/* Answers it, if that can be done now. */
enum hk_turn hk_binary_answer(struct hk_connection *c);
/* Nobody waits for it any more. */
void hk_binary_abandon(struct hk_connection *c);

#endif
