/* What results say of late and rejected points: their sources count them, and a sensor of which all are late is named in the log
 * (late_points.h). Thread: the shard's. */
#ifndef HK_LATE_RESULTS_H
#define HK_LATE_RESULTS_H

#include <stdint.h>

struct hk_shard;
struct hk_delivery;

/* Notes the results of a delivery, whose slots are the shard's, and sets how many of its late and rejected points are derived. */
void hk_late_note(struct hk_shard *shard, struct hk_delivery *delivery);

#endif
