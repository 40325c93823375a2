/* Events of a shard on their way into the event log. */
#ifndef HK_ALERT_LOG_H
#define HK_ALERT_LOG_H

#include "daemon/scoring/shard.h"

/* An event of the backend: what is to be told of it, after the flap limit and with a mark if its sensor is in maintenance.
 * False: nothing. Its slot is within the shard. */
bool hk_shard_pass_event(struct hk_shard *shard, struct hk_event *event);
/* An event, or a notice, is about to be told; its slot is within the shard. True: it is in the event log, and to be told
 * from there. delivery: that it came of. by: who acknowledged; "": it is about other things. */
bool hk_shard_log_event(struct hk_shard *shard, struct hk_delivery *delivery, const struct hk_event *event, struct hk_string by);
/* The journals are replayed, or there is none: sensors go on behind the events, and the numbers of alerts, of theirs that are in
 * the log. An alert that it has as raised, and that does not stand any more, is told cleared. */
void hk_shard_events_replayed(struct hk_shard *shard);
/* Alerts that the log has as raised, of sensors that are not there any more, are told cleared. Behind the above. 0 or -ENOMEM. */
int hk_shards_clear_orphans(struct hk_shards *shards);
/* During replay: a sensor is forgotten, or was about to be. Ends its alert; publishes `cleared` if not yet published. */
void hk_shard_forget_replayed(struct hk_shard *shard, uint32_t slot);

#endif
