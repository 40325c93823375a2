/* Partitions: chooses the log of a cluster that a sensor's points go to. PROTOCOL.md (Messages between machines) has the rule
 * for programs that publish points themselves; proto/vectors/partitions.json has examples. Thread: any. */
#ifndef HK_PARTITION_H
#define HK_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#define HK_PARTITIONS_MAX 1024u

/* Returns the partition, 0..partitions-1, of a key: the name of a sensor, or of a set of sensors that must stay together. The
 * result is the same on every machine and in every version. partitions: 1..HK_PARTITIONS_MAX. */
uint32_t hk_partition(const char *key, size_t length, uint32_t partitions);

#endif
