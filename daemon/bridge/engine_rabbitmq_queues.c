/* See engine_rabbitmq_queues.h. A lease is the message of a queue; a group is the consumers of a queue without messages; a
 * mailbox is a queue that only its machine's connection may use, and that is deleted with it. It is bound to the exchange
 * NAME.machines, which passes messages for all machines on to each. A message without a receiver is returned. */
#include "daemon/bridge/engine_rabbitmq_queues.h"

#include "daemon/base/log.h"

#include <stdio.h>
#include <string.h>

#define LETTERS 1000    /* of a mailbox that is not read, the oldest of which go */
#define EXPIRES 10000   /* ms: older messages are of no use */
#define NAME_LIMIT 255u /* bytes of a name that the broker takes */

static amqp_bytes_t lease_of(const struct hk_rabbitmq *r, uint32_t partition, char name[HK_RABBITMQ_NAME])
{
  char tag[16];
  snprintf(name, HK_RABBITMQ_NAME, "%s.lease.%s", r->rule->name, hk_rabbitmq_tag(partition, tag));
  return amqp_cstring_bytes(name);
}

int hk_rabbitmq_renew(struct hk_broker_engine *e, uint32_t partition)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME];
  return hk_rabbitmq_send(r, HK_RABBITMQ_CHANNEL, lease_of(r, partition, name), amqp_cstring_bytes(HK_RABBITMQ_LEASE));
}

int hk_rabbitmq_lease(struct hk_broker_engine *e, uint32_t partition)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME];
  amqp_table_entry_t entries[] = { hk_rabbitmq_word("x-queue-type", "quorum"),
                                   hk_rabbitmq_number("x-max-length", 1),
                                   { amqp_cstring_bytes("x-single-active-consumer"),
                                     { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } } };
  r->waits = true;
  r->lease = partition;
  const amqp_bytes_t queue = lease_of(r, partition, name), lease = amqp_cstring_bytes(HK_RABBITMQ_LEASE);
  if (hk_rabbitmq_declare(r, queue, entries, 3) == NULL ||
      amqp_basic_consume(r->amqp, HK_RABBITMQ_CHANNEL, queue, lease, 0, 0, 0, amqp_empty_table) == NULL)
    return hk_rabbitmq_reply(r, name, amqp_get_rpc_reply(r->amqp));
  return 0;
}

int hk_rabbitmq_lease_came(struct hk_rabbitmq *r, uint64_t tag)
{
  const uint64_t before = r->token;
  const bool held = r->leased;
  r->leased = true;
  r->token = tag;
  r->renewed = hk_now();
  const int status = held ? hk_rabbitmq_status(r, "", amqp_basic_ack(r->amqp, HK_RABBITMQ_CHANNEL, before, 0)) : 0;
  return status == 0 ? held : status;
}

int hk_rabbitmq_lease_renew(struct hk_rabbitmq *r)
{
  const int64_t now = hk_now();
  if (!r->leased || r->followed || now - r->renewed < HK_ENGINE_RENEWAL * 1000000000ll)
    return 0;
  r->renewed = now; /* whether or not the last one has come: the queue keeps one */
  return hk_rabbitmq_renew(&r->engine, r->lease);
}

int hk_rabbitmq_count(struct hk_broker_engine *e, enum hk_engine_group group, bool in, uint32_t *out)
{
  static const char *const names[] = { "members", "lacking", "listeners" };
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME];
  snprintf(name, sizeof name, "%s.%s", r->rule->name, names[group]);
  amqp_table_entry_t entries[] = { hk_rabbitmq_word("x-queue-type", "quorum"), hk_rabbitmq_number("x-max-length", 1) };
  const amqp_bytes_t queue = amqp_cstring_bytes(name), tag = amqp_cstring_bytes(names[group]);
  const amqp_queue_declare_ok_t *there = hk_rabbitmq_declare(r, queue, entries, 2);
  if (!there)
    return hk_rabbitmq_reply(r, name, amqp_get_rpc_reply(r->amqp));
  *out = there->consumer_count < r->in[group] ? 0 : there->consumer_count - r->in[group] + in;
  if (in == r->in[group])
    return 0;
  const bool done = in ? amqp_basic_consume(r->amqp, HK_RABBITMQ_CHANNEL, queue, tag, 0, 0, 0, amqp_empty_table) != NULL
                       : amqp_basic_cancel(r->amqp, HK_RABBITMQ_CHANNEL, tag) != NULL;
  if (!done)
    return hk_rabbitmq_reply(r, name, amqp_get_rpc_reply(r->amqp));
  r->in[group] = in;
  return 0;
}

/* --- mail --------------------------------------------------------------------------------------------------------------- */

static amqp_bytes_t mailbox_of(const struct hk_rabbitmq *r, const char *machine, char name[HK_RABBITMQ_NAME])
{
  const int length = snprintf(name, HK_RABBITMQ_NAME, "%s.mail.%s", r->rule->name, machine);
  return (amqp_bytes_t){ (size_t)length < NAME_LIMIT ? (size_t)length : NAME_LIMIT, name };
}

static amqp_bytes_t machines_of(const struct hk_rabbitmq *r, char name[HK_RABBITMQ_NAME])
{
  snprintf(name, HK_RABBITMQ_NAME, "%s.machines", r->rule->name);
  return amqp_cstring_bytes(name);
}

/* The queue is exclusive: the broker refuses it while another connection has it. */
int hk_rabbitmq_mailbox(struct hk_broker_engine *e, const char *machine)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME], all[HK_RABBITMQ_NAME];
  amqp_table_entry_t entries[] = { hk_rabbitmq_number("x-max-length", LETTERS), hk_rabbitmq_number("x-message-ttl", EXPIRES) };
  const amqp_bytes_t queue = mailbox_of(r, machine, name), exchange = machines_of(r, all);
  r->mail = true;
  if (amqp_exchange_declare(r->amqp, HK_RABBITMQ_CHANNEL, exchange, amqp_cstring_bytes("fanout"), 0, 0, 1, 0, amqp_empty_table) &&
      amqp_queue_declare(r->amqp, HK_RABBITMQ_CHANNEL, queue, 0, 0, 1, 1, (amqp_table_t){ 2, entries }) &&
      amqp_queue_bind(r->amqp, HK_RABBITMQ_CHANNEL, queue, exchange, amqp_empty_bytes, amqp_empty_table) &&
      amqp_basic_consume(r->amqp, HK_RABBITMQ_CHANNEL, queue, amqp_cstring_bytes(HK_RABBITMQ_MAIL), 0, 1, 1, amqp_empty_table))
    return 0;
  const int status = hk_rabbitmq_reply(r, "mailbox", amqp_get_rpc_reply(r->amqp));
  if (strstr(r->engine.why, "RESOURCE_LOCKED"))
    return hk_rabbitmq_lost(r, "",
                            "another process has the name of this machine (address), or its last connection is not closed yet");
  return status;
}

int hk_rabbitmq_post(struct hk_broker_engine *e, const char *machine, const void *data, size_t size)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME];
  const amqp_bytes_t body = { size, (void *)(uintptr_t)data };
  const int status =
      machine ? amqp_basic_publish(r->amqp, HK_RABBITMQ_CHANNEL, amqp_empty_bytes, mailbox_of(r, machine, name), 1, 0, NULL, body)
              : amqp_basic_publish(r->amqp, HK_RABBITMQ_CHANNEL, machines_of(r, name), amqp_empty_bytes, 0, 0, NULL, body);
  return hk_rabbitmq_status(r, "", status);
}
