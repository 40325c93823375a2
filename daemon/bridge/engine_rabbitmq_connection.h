/* A connection to RabbitMQ: its state, its errors, and how queues are made. Shared by engine_rabbitmq.c (logs and events) and
 * engine_rabbitmq_queues.c (leases, groups, mailboxes). Thread: the one that opened it.
 *
 * Functions that return an int: 0, or -EPIPE with the reason in engine.why, and the connection is to be closed. */
#ifndef HK_ENGINE_RABBITMQ_CONNECTION_H
#define HK_ENGINE_RABBITMQ_CONNECTION_H

#include "daemon/bridge/engine.h"

#include <amqp.h>
#include <amqp_framing.h>

#define HK_RABBITMQ_CHANNEL 1 /* of all but what is published to partitions */
#define HK_RABBITMQ_AHEAD 16  /* messages of a partition that are sent before the first of them is processed */
#define HK_RABBITMQ_NAME 512  /* bytes of a queue's name, and more than the broker takes */

/* What a message is, by the consumer that it came to. */
enum hk_rabbitmq_kind {
  HK_RABBITMQ_OF_LOG,
  HK_RABBITMQ_WATCHED, /* of a log, for its watch alone */
  HK_RABBITMQ_TOKEN,
  HK_RABBITMQ_LETTER,
  HK_RABBITMQ_RETURNED
};

/* A log that is read (engine_rabbitmq_follow.h). */
struct hk_rabbitmq_followed {
  bool follows;
  uint64_t next;   /* offset of the next message; before the first one what was asked for */
  int64_t asked;   /* ns, wall clock: messages that came from then on are wanted, if next is HK_ENGINE_NEXT */
  int64_t heard;   /* ns, hk_now: when a message came, or it was asked for */
  uint64_t again;  /* the offset that was asked for again; UINT64_MAX: none was */
  bool watches;    /* no message has come yet: perhaps it is another log than that whose offset was asked for */
  int64_t begun;   /* ns, hk_now, when the first message of the watch came; 0: none did */
  uint64_t wanted; /* offset */
  int64_t since;   /* ns, wall clock: a message that was sent later, and has an earlier offset, is of another log */
};

/* A partition to which is published, on a channel of its own. */
struct hk_rabbitmq_out {
  bool open;
  uint64_t number; /* of its last message, on the connection; all earlier ones are confirmed */
};

struct hk_rabbitmq_message {
  enum hk_rabbitmq_kind kind;
  uint64_t tag;
  uint32_t partition;
  uint64_t offset;
  int64_t sent;
  uint64_t expected; /* total bytes of the message, */
  size_t size;       /* and the received ones */
  size_t capacity;
  char *body;
  bool delivers; /* it has begun and not ended */
};

struct hk_rabbitmq {
  struct hk_broker_engine engine;
  const struct hk_cluster_rule *rule;
  amqp_connection_state_t amqp;
  struct hk_rabbitmq_message message;    /* the last one */
  struct hk_rabbitmq_followed *followed; /* partitions, then scores, events; NULL: none was followed */
  int64_t looked;                        /* ns, hk_now: when it was last looked which of them are silent */
  struct hk_rabbitmq_out *out;           /* by partition; NULL: nothing was published to any */
  uint64_t sent;                         /* published messages */
  uint32_t lease;                        /* partition whose lease is waited for, if `waits` */
  bool waits;
  bool leased;     /* we hold the lease */
  uint64_t token;  /* delivery tag of its message, if so, */
  int64_t renewed; /* and when that came or was published again: ns, hk_now */
  bool mail;       /* it has a mailbox */
  bool in[HK_ENGINE_GROUPS];
  uint64_t owed[HK_RABBITMQ_AHEAD]; /* tags of messages that are not acknowledged, except the token's */
  uint32_t n_owed;
};

static inline struct hk_rabbitmq *hk_rabbitmq_of(struct hk_broker_engine *e)
{
  return (struct hk_rabbitmq *)e;
}

/* Sets the reason: what, a colon, and why. */
void hk_rabbitmq_say(struct hk_rabbitmq *r, const char *what, const char *why, size_t length);
/* Gives the connection up, for that reason. */
int hk_rabbitmq_lost(struct hk_rabbitmq *r, const char *what, const char *why);
/* For a status of the library. */
int hk_rabbitmq_status(struct hk_rabbitmq *r, const char *what, int status);
/* For the answer to a request. */
int hk_rabbitmq_reply(struct hk_rabbitmq *r, const char *what, amqp_rpc_reply_t reply);
/* After a login: keeps the broker's version, if it is none of those that were tried. */
void hk_rabbitmq_note_version(struct hk_rabbitmq *r);
/* For a method with which the broker closes the connection, or another one that is not expected. */
int hk_rabbitmq_closed(struct hk_rabbitmq *r, const char *what, const amqp_method_t *method);

/* Arguments of a queue. */
amqp_table_entry_t hk_rabbitmq_word(const char *key, const char *value);
amqp_table_entry_t hk_rabbitmq_number(const char *key, int64_t value);
/* Makes a durable queue, if there is none; NULL: the connection's error says why not. */
const amqp_queue_declare_ok_t *hk_rabbitmq_declare(struct hk_rabbitmq *r, amqp_bytes_t queue, amqp_table_entry_t *entries, int n);
/* Publishes a message that lasts to a queue; it is returned if there is none. */
int hk_rabbitmq_send(struct hk_rabbitmq *r, amqp_channel_t channel, amqp_bytes_t queue, amqp_bytes_t body);
/* End of the name of a stream or lease, and tag of its consumer. */
const char *hk_rabbitmq_tag(uint32_t partition, char tag[16]);
/* The name of a log's stream. */
amqp_bytes_t hk_rabbitmq_stream(const struct hk_rabbitmq *r, uint32_t partition, char name[HK_RABBITMQ_NAME]);

#endif
