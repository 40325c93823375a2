/* The memory of a machine (groups.h), for a snapshot: its rows of points (cpu/group/group.h), its standing alert, and changes
 * that are not published yet. */
#ifndef HK_GROUP_MEMORY_H
#define HK_GROUP_MEMORY_H

#include "cpu/backend.h"

#include <stdbool.h>
#include <stdint.h>

/* An unpublished change: it is published with the first point of its series that is not before it. */
struct hk_machine_change {
  int64_t time, from, instant;
  double before, after, statistic;
  double unit; /* the threshold of the statistic, over 0; below 0: less it, and the standing alert is corrected; 0: the standing
                  alert ends, and all members but `time` and a severity are unused */
  float spread_before, spread_after; /* of a group's novelty the latter is the severity */
};
_Static_assert(sizeof(struct hk_machine_change) == 64, "no padding: it is written as it is");

struct hk_machine_member {
  uint32_t handle; /* of the sensor */
  uint32_t number; /* in the rows */
};

struct hk_machine_memory {
  uint32_t slot;   /* of its series: the registry's */
  uint32_t number; /* of its last alert */
  bool told;       /* a score was made */
  bool stands;     /* an alert stands: */
  struct hk_event standing;
  uint32_t n_changes, n_members;
  const struct hk_machine_change *changes; /* in order */
  const struct hk_machine_member *members;
  const void *rows; /* as written by hk_group_write */
  uint32_t rows_size;
};

#endif
