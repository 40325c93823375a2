/* Queues of RabbitMQ that are no logs: leases, groups, and mailboxes. */
#ifndef HK_ENGINE_RABBITMQ_QUEUES_H
#define HK_ENGINE_RABBITMQ_QUEUES_H

#include "daemon/bridge/engine_rabbitmq_connection.h"

/* Tags of their consumers; those of streams are numbers, or words that differ. */
#define HK_RABBITMQ_LEASE "lease"
#define HK_RABBITMQ_MAIL "mail"

/* As in struct hk_broker_engine_kind. */
int hk_rabbitmq_lease(struct hk_broker_engine *engine, uint32_t partition);
int hk_rabbitmq_renew(struct hk_broker_engine *engine, uint32_t partition);
/* The message of the lease has come, with that delivery tag. Returns 0 if we hold the lease only now, and 1 if we held it, and
 * the message before this one is acknowledged. */
int hk_rabbitmq_lease_came(struct hk_rabbitmq *r, uint64_t tag);
/* Renews the lease that this connection holds, if it reads no log and the lease is old. To call at least every few seconds. */
int hk_rabbitmq_lease_renew(struct hk_rabbitmq *r);
int hk_rabbitmq_count(struct hk_broker_engine *engine, enum hk_engine_group group, bool in, uint32_t *out);
int hk_rabbitmq_mailbox(struct hk_broker_engine *engine, const char *machine);
int hk_rabbitmq_post(struct hk_broker_engine *engine, const char *machine, const void *data, size_t size);

#endif
