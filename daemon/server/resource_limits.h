/* Limits: what the process may take of the system, against what its configuration wants.
 *
 * Descriptors: the soft limit (RLIMIT_NOFILE) is set to what the configuration needs, and the hard one raised where we may.
 * Memory: all that a peer can make grow is bounded by a key, and a limit of the process on top (RLIMIT_AS, RLIMIT_DATA) would
 * count address space that is reserved for tables and by the GPU's driver, and never used. So the sum of the keys is compared
 * with what the service may have (MemoryMax=) and the machine has, and said when it is more: before the kernel ends the daemon
 * for it. */
#ifndef HK_RLIMIT_H
#define HK_RLIMIT_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"

/* As many connections as the configuration allows and there are descriptors for, beside `spare` for all else; says so when it is
 * fewer. */
uint32_t hk_rlimit_connections(const struct hk_config *config, uint32_t spare, struct hk_log *log);

/* Compares the memory that the configuration allows (host: sensors are in the host's memory) with what there is. */
void hk_rlimit_memory(const struct hk_config *config, uint32_t n_loops, bool host, struct hk_log *log);

#endif
