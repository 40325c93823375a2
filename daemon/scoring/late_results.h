/* What results say of late and rejected points: their sources count them, and a sensor of which all are late is named in the log
 * (late_points.h). Thread: the shard's. */
#ifndef HK_LATE_RESULTS_H
#define HK_LATE_RESULTS_H

#include <stdint.h>

struct hk_shard;
struct hk_delivery;

/* Notes the results of a delivery, whose slots are the shard's. Returns how many of its late points are derived. */
uint32_t hk_late_note(struct hk_shard *shard, const struct hk_delivery *delivery);

#endif
