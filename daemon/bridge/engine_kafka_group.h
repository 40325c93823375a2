/* Leases of Kafka: those of a topic's partitions belong to one group of consumers, in which the broker knows who is alive, and
 * which shares the partitions out evenly (cooperative-sticky: who has a partition keeps it, unless the shares change). The member
 * reads nothing: who holds a lease reads the log from its own offset, by another client.
 *
 *     waits -> (the partition is ours) -> offered -> LEASED: held -> (it is to be another's) recalled -> given back
 *                                                             \-> (we were silent for longer than the session) lost
 *
 * A machine is a member while it waits for any lease of the group. Thread: the engine's. */
#ifndef HK_ENGINE_KAFKA_GROUP_H
#define HK_ENGINE_KAFKA_GROUP_H

#include "daemon/bridge/engine_kafka_client.h"

struct hk_kafka_group;

/* One lease, as its holder sees it. */
struct hk_kafka_lease {
  int wake; /* eventfd, which becomes readable when the lease changes */
  enum { HK_KAFKA_WAITS, HK_KAFKA_OFFERED, HK_KAFKA_HELD, HK_KAFKA_RECALLED, HK_KAFKA_RETURNS, HK_KAFKA_LOST } state;
};

/* Joins a group that shares out the partitions of a topic. wake: as for a client. Returns 0, or a negative errno with why. */
int hk_kafka_group_open(struct hk_kafka_group **out, const struct hk_cluster_rule *rule, uint32_t broker, int wake,
                        const char *name, const char *topic, uint32_t partitions, char why[HK_ENGINE_WHY]);
/* Leaves it: its leases are another's at once, unless the broker cannot be reached. NULL is allowed. */
void hk_kafka_group_close(struct hk_kafka_group *group);
/* Waits for the lease of a partition, for which no other connection of this machine waits. */
void hk_kafka_group_wait(struct hk_kafka_group *group, uint32_t partition, struct hk_kafka_lease *lease);
/* Gives it back, or no longer waits. Returns the number of leases that are still waited for, or held. */
uint32_t hk_kafka_group_leave(struct hk_kafka_group *group, uint32_t partition);
/* Processes the broker's messages; to call every few seconds. Returns 0, or -EPIPE with why. */
int hk_kafka_group_serve(struct hk_kafka_group *group, char why[HK_ENGINE_WHY]);

#endif
