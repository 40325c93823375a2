/* A client of Kafka's (librdkafka): one of the library's handles, with the addresses, the secrets and the limits of a rule. The
 * library connects, reconnects and retries on threads of its own; what it has for us comes over queues. Thread: the engine's. */
#ifndef HK_ENGINE_KAFKA_CLIENT_H
#define HK_ENGINE_KAFKA_CLIENT_H

#include "daemon/bridge/engine.h"
#include "daemon/bridge/engine_kafka_calls.h"

enum hk_kafka_what {
  HK_KAFKA_WRITER, /* publishes; confirmations come over its queue */
  HK_KAFKA_READER, /* reads partitions of topics, each from an offset of ours */
  HK_KAFKA_MEMBER  /* of a group, which shares partitions out */
};

struct hk_kafka_client {
  rd_kafka_t *rk;           /* NULL: there is none */
  rd_kafka_queue_t *queue;  /* of its events */
  int status;               /* 0, or -EPIPE: no broker can be reached, or none ever will be */
  char said[HK_ENGINE_WHY]; /* the reason; before that, the last error that the library deals with by itself; "": none yet */
};

/* What is given to a member of a group, or taken from it; the library's callback, with the client. */
typedef void hk_kafka_rebalance(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *client);

/* How a client is made. */
struct hk_kafka_setup {
  enum hk_kafka_what what;
  const struct hk_cluster_rule *rule;
  uint32_t broker;               /* by which it finds the others */
  int wake;                      /* eventfd, which becomes readable when events come */
  const char *group;             /* of a member */
  hk_kafka_rebalance *rebalance; /* of a member */
};

/* Makes a client, which connects by itself. Returns 0, or a negative errno with the reason in `said`. */
int hk_kafka_client_open(struct hk_kafka_client *out, const struct hk_kafka_setup *setup);
/* Drops messages that were not sent or not read. Waits for the library's threads. */
void hk_kafka_client_close(struct hk_kafka_client *client);
/* Takes an error of the library; returns the client's status. */
int hk_kafka_client_error(struct hk_kafka_client *client, rd_kafka_resp_err_t error, const char *text);
/* Writes a reason, without what differs from one time to the next. Returns -EPIPE. */
int hk_kafka_why(char why[HK_ENGINE_WHY], const char *what, const char *text);

#endif
