/* Partitions: which of the logs of a cluster a sensor's points go to. PROTOCOL.md (Messages between machines) has the rule for
 * programs that publish points themselves; proto/vectors/partitions.json has examples. Thread: any. */
#ifndef HK_PARTITION_H
#define HK_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#define HK_PARTITIONS_MAX 1024u

/* The partition, 0..partitions-1, of a key: the name of a sensor, or what stands for all sensors that must stay together. The
 * same on every machine, in every version. partitions: 1..HK_PARTITIONS_MAX. */
uint32_t hk_partition(const char *key, size_t length, uint32_t partitions);

#endif
