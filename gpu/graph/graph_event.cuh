/* What an event of a neighbour graph asks for beside the alert rule, by a warp: passes over the samples that are kept, seldom
 * made.
 *
 * Every function here is called by all lanes of a warp, and ends with what it wrote seen by all of them. */
#ifndef HK_GRAPH_EVENT_CUH
#define HK_GRAPH_EVENT_CUH

#include "cpu/graph/alert.h"

/* Where hk_graph_looks_again says so: by how much the change instant moves, hk_graph_moved; all lanes get it. nearest: room for
 * HK_AGAIN_ROWS that the lanes share. */
static __device__ __noinline__ int32_t hk_warp_look_again(const struct hk_alert *a, const struct hk_graph_view *v,
                                                          const struct hk_window *w, const float *ring, int32_t *nearest)
{
  const struct hk_graph_sides sides = hk_graph_sides(a, v, w);
  for (uint32_t row = threadIdx.x % 32; row < hk_again_rows(v); row += 32)
    nearest[row] = hk_graph_nearest(v, w, ring, sides, row);
  __syncwarp();
  const int32_t moved = hk_graph_moved(v, nearest);
  __syncwarp();
  return moved;
}

/* Where hk_graph_has_sketches says so: the sketches of an event that the lanes share. */
static __device__ __noinline__ void hk_warp_sketch(struct hk_event *e, const struct hk_graph_view *v, const struct hk_window *w,
                                                   const float *ring, struct hk_graph_sides sides)
{
  if (threadIdx.x % 32 < HK_GRAPH_SKETCHES)
    hk_graph_sketch(e, v, w, ring, sides, threadIdx.x % 32);
  __syncwarp();
}

#endif
