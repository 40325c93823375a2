/* Limits: compares the process's limits with the needs of its configuration.
 *
 * Descriptors: the soft limit (RLIMIT_NOFILE) is set to what the configuration needs, and the hard one raised if allowed. Memory:
 * a key limits everything that a peer can make grow. A limit of the process (RLIMIT_AS, RLIMIT_DATA) would also count address
 * space that tables and the GPU's driver reserve and never use. So the sum of the keys is compared with the service's limit
 * (MemoryMax=) and the machine's memory, and a larger sum is logged, before the kernel kills the daemon. */
#ifndef HK_RESOURCE_LIMITS_H
#define HK_RESOURCE_LIMITS_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/scoring/backends.h"

/* The number of connections that the configuration and the limit of descriptors allow, with `spare` descriptors for other uses;
 * logs if it is fewer than configured. */
uint32_t hk_rlimit_connections(const struct hk_config *config, uint32_t spare, struct hk_log *log);

/* Compares the memory that the configuration allows (host: sensors are in the host's memory) with the available memory. */
void hk_rlimit_memory(const struct hk_config *config, uint32_t n_loops, bool host, struct hk_log *log);

/* Number of event loops, and of shards. There is a shard for each GPU that the configuration allows, and one if there is no GPU
 * or nothing is scored; a GPU that does not exist is reported when it is opened. */
uint32_t hk_rlimit_loops(const struct hk_config *config);
uint32_t hk_rlimit_shards(const struct hk_config *config, const struct hk_backend_kind *kinds);

#endif
