/* The partition of a sensor ([cluster]), by PROTOCOL.md, "Messages between machines". Thread: any. */
#ifndef HK_PARTITION_OF_H
#define HK_PARTITION_OF_H

#include "daemon/sensors/detector_rules.h"
#include "proto/wire/message.h"

/* The partition of a sensor that peers feed, by its name; partitions: their number. */
uint32_t hk_partition_of(const struct hk_sections *sections, struct hk_string name, uint32_t partitions);
/* Likewise of any series: one that is derived from a sensor is where the sensor is, and a machine's where its sensors are. */
uint32_t hk_partition_of_series(const struct hk_sections *sections, struct hk_string name, uint32_t partitions);

#endif
