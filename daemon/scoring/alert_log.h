/* Events of a shard on their way into the event log. */
#ifndef HK_ALERT_LOG_H
#define HK_ALERT_LOG_H

#include "daemon/scoring/shard.h"

/* Passes an event of the backend through the flap limit, and marks it if its sensor is in maintenance. False: it is not to be
 * published. Its slot is within the shard. */
bool hk_shard_pass_event(struct hk_shard *shard, struct hk_event *event);
/* Logs an event or a notice that is about to be published; its slot is within the shard. True: it is in the event log, and is
 * published from there. delivery: its source. by: who acknowledged; "": another kind of event. */
bool hk_shard_log_event(struct hk_shard *shard, struct hk_delivery *delivery, const struct hk_event *event, struct hk_string by);
/* After the replay of journals: sensors continue the numbers of their events and alerts in the log. An alert that is raised in
 * the log and no longer stands is published as cleared. */
void hk_shard_events_replayed(struct hk_shard *shard);
/* After the above: alerts that are raised in the log, of sensors that no longer exist, are published as cleared. 0 or -ENOMEM. */
int hk_shards_clear_orphans(struct hk_shards *shards);
/* During replay: a sensor is forgotten, or was about to be. Ends its alert; publishes `cleared` if not yet published. */
void hk_shard_forget_replayed(struct hk_shard *shard, uint32_t slot);

#endif
