/* The device of a shard is lost. Thread: the shard's, unless stated otherwise. */
#ifndef HK_FAILOVER_H
#define HK_FAILOVER_H

#include "daemon/scoring/shard.h"

/* What a shard says of its device. */
struct hk_device_condition {
  struct hk_loss loss;
  bool own; /* there is one, and it is a separate device */
};

/* failover: zeroed. close gives a device that was abandoned `seconds` to get closed; false: it hangs (hk_device_bury). Thread:
 * main, before the shard's thread is started, and after its end. */
void hk_failover_open(struct hk_failover *failover);
bool hk_failover_close(struct hk_failover *failover, unsigned seconds);

/* Clears standing alerts, and publishes that; returns how many. */
uint32_t hk_shard_clear_alerts(struct hk_shard *shard);
/* The device is lost. */
void hk_shard_lose(struct hk_shard *shard, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* So many points were lost with the device, and batches that were in flight. */
void hk_shard_count_lost(struct hk_shard *shard, uint32_t batches, uint32_t points);
/* Gives a device up with batches in flight, as hk_device_abandon does, until hk_failover_close. */
void hk_shard_abandon(struct hk_shard *shard, struct hk_device *device, uint32_t in_flight);
/* Loses the device if another thread found it failing (hk_shard_failed). True when it did. */
bool hk_shard_heed_failure(struct hk_shard *shard);

/* The device failed at something that another thread wanted of it; or (NULL) there was none. Returns when there is another one,
 * or none any more. Thread: a loop's, which holds no lock. */
void hk_shard_failed(struct hk_shard *shard, const struct hk_slot_binding *device, const char *why);

/* --- for any thread -------------------------------------------------------------------------------------------------- */

/* Whether nothing is computed any more. */
bool hk_shard_lost(struct hk_shard *shard);
/* Whether a device was lost, replaced or not. */
bool hk_shard_has_lost(struct hk_shard *shard);
struct hk_device_condition hk_shard_condition(struct hk_shard *shard);
/* Why the CPU computes and not the GPU, where the choice was the daemon's; else "". */
const char *hk_shard_excuse(const struct hk_shard *shard);

#endif
