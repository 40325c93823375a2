/* The messages of a connection that its broker has not confirmed yet. Thread: the connection's. */
#ifndef HK_CONFIRMS_H
#define HK_CONFIRMS_H

#include "daemon/bridge/engine.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_CONFIRMS_MAX 16384u /* maximum number of unconfirmed messages */

struct hk_confirms {
  uint64_t sent;                   /* messages on this connection, numbered from 1 */
  uint64_t low;                    /* all before this one are confirmed */
  int64_t progress;                /* ns, hk_now: when the oldest message was last confirmed, or none was unconfirmed */
  bool confirmed[HK_CONFIRMS_MAX]; /* for numbers from `low` on, modulo HK_CONFIRMS_MAX */
};

/* A new connection has no messages. */
void hk_confirms_begin(struct hk_confirms *confirms);

static inline uint32_t hk_confirms_open(const struct hk_confirms *c)
{
  return (uint32_t)(c->sent + 1 - c->low);
}

/* Takes an event HK_ENGINE_CONFIRMED. each: is called with each message that is confirmed for the first time; NULL: none. Returns
 * whether `low` has moved. A confirmation that repeats one, or that nothing was sent for, is ignored. */
bool hk_confirms_take(struct hk_confirms *confirms, const struct hk_broker_engine_event *event,
                      void (*each)(void *arg, uint64_t number), void *arg);

/* Checks that the broker confirms the oldest message, while it is not blocked. Returns 0; -ETIMEDOUT, with the reason: that was
 * missing for 10 s, whatever else was confirmed (RabbitMQ may forget messages that arrive while a stream starts), and all are to
 * be published again. */
int hk_confirms_check(struct hk_confirms *confirms, bool blocked, char why[HK_ENGINE_WHY]);

#endif
