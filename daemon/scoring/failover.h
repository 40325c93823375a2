/* The device of a shard is lost. */
#ifndef HK_FAILOVER_H
#define HK_FAILOVER_H

#include "daemon/scoring/shard.h"

/* Clears the alerts that stand, and tells; returns how many. */
uint32_t hk_shard_clear_alerts(struct hk_shard *shard);
/* The device is lost. */
void hk_shard_lose(struct hk_shard *shard, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
