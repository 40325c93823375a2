/* How a wide band matrix is cut into segments, and where their numbers lie: see wide_layout.h for what they are. Pure. */
#ifndef HK_WIDE_PLAN_H
#define HK_WIDE_PLAN_H

#include "cpu/band/band.h"
#include "gpu/band/wide_layout.h"

struct hk_wide_plan {
  struct hk_wide_layout parts, whole;                   /* whole.segments = 0: there are no separators */
  struct hk_wide_segment segment[HK_WIDE_SEGMENTS + 1]; /* the segments of `parts`, then that of `whole` */
  uint32_t block, whole_block;                          /* columns of a block */
  size_t numbers;                                       /* that lie at `numbers` of hk_wide_plan_place */
};

/* Plans for a valid shape of one system. way: zeros, and values that do not fit, are replaced. clusters: the device has clusters
 * of thread blocks. */
void hk_wide_plan_make(struct hk_wide_plan *plan, const struct hk_band_shape *shape, const struct hk_band_wide_way *way,
                       bool clusters);
/* Sets the addresses of plan->numbers numbers, from `numbers` on; segments: plan->segment in device memory. */
void hk_wide_plan_place(struct hk_wide_plan *plan, double *numbers, const struct hk_wide_segment *segments);

#endif
