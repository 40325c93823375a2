/* Operators' requests over the binary protocol: STATUS, SENSORS, RELOAD, OPERATE. All except STATUS are answered later; until
 * then the connection takes no further frame. Thread: the loop's. */
#ifndef HK_BINARY_OPERATOR_H
#define HK_BINARY_OPERATOR_H

#include "daemon/net/connection.h"

/* Handles the frame. */
enum hk_turn hk_binary_status(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_sensors(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_reload(struct hk_connection *c, const struct hk_frame *f);
enum hk_turn hk_binary_operate(struct hk_connection *c, const struct hk_frame *f);

/* Whether a request is not answered yet. */
static inline bool hk_binary_asks(const struct hk_connection *c)
{
  return c->binary.reload != 0 || c->binary.operation || c->binary.listing;
}
/* Sends the answer, if it is ready. */
enum hk_turn hk_binary_answer(struct hk_connection *c);
/* Abandons the request, because the connection closes. */
void hk_binary_abandon(struct hk_connection *c);

#endif
