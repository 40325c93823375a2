/* Queues of RabbitMQ that are no logs: leases, groups, and mailboxes. */
#ifndef HK_ENGINE_RABBITMQ_QUEUES_H
#define HK_ENGINE_RABBITMQ_QUEUES_H

#include "daemon/bridge/engine_rabbitmq_connection.h"

/* Tags of their consumers; those of streams are numbers, or words that differ. */
#define HK_RABBITMQ_LEASE "lease"
#define HK_RABBITMQ_MAIL "mail"

/* As in struct hk_broker_engine_kind. */
int hk_rabbitmq_lease(struct hk_broker_engine *engine, uint32_t partition);
int hk_rabbitmq_count(struct hk_broker_engine *engine, enum hk_engine_group group, bool in, uint32_t *out);
int hk_rabbitmq_mailbox(struct hk_broker_engine *engine, const char *machine);
int hk_rabbitmq_post(struct hk_broker_engine *engine, const char *machine, const void *data, size_t size);

#endif
