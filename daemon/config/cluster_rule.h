/* [cluster] of the configuration: machines that share sensors over the logs of a broker, and the role of this one. Thread: any.
 * */
#ifndef HK_CLUSTER_RULE_H
#define HK_CLUSTER_RULE_H

#include "daemon/config/broker_address.h"
#include "proto/wire/partition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CLUSTER_URLS 8u

enum hk_cluster_role {
  HK_CLUSTER_NONE,    /* there is no [cluster] */
  HK_CLUSTER_GATEWAY, /* takes points from peers and publishes them; scores nothing */
  HK_CLUSTER_SCORER,  /* reads partitions, and scores their points */
  HK_CLUSTER_ALL      /* both: its peers' points go to the broker, and it scores a share of all */
};

/* Kinds of brokers. */
enum hk_cluster_engine { HK_CLUSTER_RABBITMQ, HK_CLUSTER_KAFKA };

/* How a password is shown to Kafka. */
enum hk_cluster_sasl { HK_SASL_PLAIN, HK_SASL_SCRAM_256, HK_SASL_SCRAM_512 };

/* The partitions that a scorer reads. */
struct hk_cluster_read {
  bool some; /* only those in `bits`; else all */
  uint8_t bits[HK_PARTITIONS_MAX / 8];
};

/* To zero before hk_cluster_rule_begin, so that equal rules have equal bytes. */
struct hk_cluster_rule {
  uint32_t role;                                         /* enum hk_cluster_role */
  uint32_t engine;                                       /* enum hk_cluster_engine */
  char url[HK_SECTION_TEXT];                             /* as written */
  struct hk_broker_address broker[HK_CLUSTER_URLS];      /* from url; tried in turn */
  uint32_t n_brokers;                                    /* 1..HK_CLUSTER_URLS */
  char vhost[HK_SECTION_TEXT];                           /* of the broker; not of Kafka */
  char user[HK_SECTION_TEXT], password[HK_SECTION_TEXT]; /* password: path of a file; "": guest's, or none */
  uint32_t sasl;                                         /* enum hk_cluster_sasl */
  int64_t session; /* ns for which a scorer may be silent before it loses its partitions; 0: not of this engine */
  char ca[HK_SECTION_TEXT], certificate[HK_SECTION_TEXT], key[HK_SECTION_TEXT]; /* paths; "": none */
  bool insecure;                                                                /* the password may go unencrypted */
  char name[HK_SECTION_TEXT];                                                   /* of the cluster: prefix of the names of logs */
  uint32_t partitions;                                                          /* 1..HK_PARTITIONS_MAX */
  int64_t retention;                                                            /* minimum time that logs keep points, ns */
  struct hk_cluster_read read;
  char address[HK_SECTION_TEXT]; /* of this machine, for others: HOST:PORT; "": by its name and first binary listener */
  char state[HK_SECTION_TEXT]; /* of one that scores: folder shared by all scorers, with leased partitions; "": it reads `read` */
};

/* Sets defaults, and no role. */
void hk_cluster_rule_begin(struct hk_cluster_rule *rule);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_cluster_rule_key(struct hk_cluster_rule *rule, const char *name, const char *value, char *error, size_t size);
/* Checks the whole rule; sets values that follow from other keys. Returns 0, or -EINVAL with a message. */
int hk_cluster_rule_finish(struct hk_cluster_rule *rule, char *error, size_t size);

/* Whether it scores partitions, or publishes its peers' points; both with HK_CLUSTER_ALL. */
static inline bool hk_cluster_scores(const struct hk_cluster_rule *rule)
{
  return rule->role == HK_CLUSTER_SCORER || rule->role == HK_CLUSTER_ALL;
}
static inline bool hk_cluster_publishes(const struct hk_cluster_rule *rule)
{
  return rule->role == HK_CLUSTER_GATEWAY || rule->role == HK_CLUSTER_ALL;
}

/* Whether the machine shares the log of events; otherwise it has one of its own. */
static inline bool hk_cluster_shares_events(const struct hk_cluster_rule *rule)
{
  return hk_cluster_publishes(rule) || (rule->role == HK_CLUSTER_SCORER && rule->state[0]);
}

/* Whether a scorer reads a partition. */
static inline bool hk_cluster_reads(const struct hk_cluster_rule *rule, uint32_t partition)
{
  return partition < rule->partitions && (!rule->read.some || rule->read.bits[partition / 8] >> partition % 8 & 1);
}

#endif
