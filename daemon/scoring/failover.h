/* Replaces a lost device of a shard. Thread: the shard's, unless stated otherwise. */
#ifndef HK_FAILOVER_H
#define HK_FAILOVER_H

#include "daemon/scoring/shard.h"

/* The condition of a shard's device. */
struct hk_device_condition {
  struct hk_loss loss;
  bool own; /* a device is in use, and it is a separate one */
};

/* failover: zeroed. hk_failover_close waits at most `seconds` for an abandoned device to be closed; false: it hangs
 * (hk_device_bury). Thread: main, before the shard's thread starts, and after its end. */
void hk_failover_open(struct hk_failover *failover);
bool hk_failover_close(struct hk_failover *failover, unsigned seconds);

/* Clears standing alerts, and publishes that; returns their number. */
uint32_t hk_shard_clear_alerts(struct hk_shard *shard);
/* The device is lost, for this reason. */
void hk_shard_lose(struct hk_shard *shard, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts points and batches in flight that were lost with the device. */
void hk_shard_count_lost(struct hk_shard *shard, uint32_t batches, uint32_t points);
/* Abandons a device with batches in flight, as hk_device_abandon does, until hk_failover_close. */
void hk_shard_abandon(struct hk_shard *shard, struct hk_device *device, uint32_t in_flight);
/* Loses the device if another thread found it failing (hk_shard_failed). Returns whether it did. */
bool hk_shard_heed_failure(struct hk_shard *shard);

/* The device failed at a request of another thread; NULL: there was none. Returns when there is a replacement, or when there will
 * be none. Thread: a loop's, which holds no lock. */
void hk_shard_failed(struct hk_shard *shard, const struct hk_slot_binding *device, const char *why);

/* --- for any thread -------------------------------------------------------------------------------------------------- */

/* Whether nothing is computed any more. */
bool hk_shard_lost(struct hk_shard *shard);
/* Whether a device was lost, replaced or not. */
bool hk_shard_has_lost(struct hk_shard *shard);
struct hk_device_condition hk_shard_condition(struct hk_shard *shard);
/* Why the CPU computes and not the GPU, if the daemon chose; else "". */
const char *hk_shard_excuse(const struct hk_shard *shard);

#endif
