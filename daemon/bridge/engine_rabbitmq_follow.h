/* Streams of RabbitMQ that are read.
 *
 * Found by experiment, with RabbitMQ 3.10:
 *  - Consumers of a stream need a limit of unacknowledged messages; acknowledging moves no position.
 *  - When a stream's leader or its copy on the broker changes, a consumer may get nothing more, although its connection and the
 *    stream are well (seen with three brokers, for minutes). So a stream that has been silent for some seconds is asked for again
 *    from the next offset on: it goes on then, or the broker says why not, and the connection is lost.
 *  - A consumer that requests an offset that a stream does not have yet waits for it, and gets no earlier messages. So a stream
 *    that was deleted and made anew keeps silent until it is as long as the old one. So while a followed stream is silent, a
 *    second consumer reads its end, the watch. All messages before the wanted offset were read before, so they were sent before:
 *    one of them that was sent after we asked, by clocks that agree within 2 s, is of a stream that was made anew, and this is
 *    read from its first message on. What the end has at first was perhaps sent by gateways whose clocks are ahead, so it is no
 *    sign: a message must also come well behind the first.
 *
 * Thread, errors: as in engine_rabbitmq_connection.h. */
#ifndef HK_ENGINE_RABBITMQ_FOLLOW_H
#define HK_ENGINE_RABBITMQ_FOLLOW_H

#include "daemon/bridge/engine_rabbitmq_connection.h"

#define HK_RABBITMQ_WATCH "watch " /* begins the tags of watches */

/* As hk_broker_engine_kind.follow. */
int hk_rabbitmq_follow(struct hk_broker_engine *engine, uint32_t partition, uint64_t offset, int64_t since);
/* Whether a message came before: it was on its way when its log was asked for again. */
bool hk_rabbitmq_repeats(const struct hk_rabbitmq *r, const struct hk_rabbitmq_message *message);
/* A message of a log has come, and is no such earlier one. */
int hk_rabbitmq_heard(struct hk_rabbitmq *r, const struct hk_rabbitmq_message *message);
/* A message of a watch has come. */
int hk_rabbitmq_watched(struct hk_rabbitmq *r, const struct hk_rabbitmq_message *message);
/* Asks again for logs that have been silent for some seconds, unless we owe acknowledgements. To call at least every second. */
int hk_rabbitmq_ask_again(struct hk_rabbitmq *r);

#endif
