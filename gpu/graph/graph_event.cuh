/* What an event of a neighbour graph needs besides the alert rule, by a warp: rare passes over the kept samples. All lanes of a
 * warp call each function together, and its results are visible to all of them on return. */
#ifndef HK_GRAPH_EVENT_CUH
#define HK_GRAPH_EVENT_CUH

#include "cpu/graph/alert.h"

/* Call if hk_graph_looks_again. Returns to all lanes by how much the change instant moves, hk_graph_moved. nearest: room for
 * HK_AGAIN_ROWS numbers, shared by the lanes. */
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

/* Call if hk_graph_has_sketches: computes the sketches of an event shared by the lanes. */
static __device__ __noinline__ void hk_warp_sketch(struct hk_event *e, const struct hk_graph_view *v, const struct hk_window *w,
                                                   const float *ring, struct hk_graph_sides sides)
{
  if (threadIdx.x % 32 < HK_GRAPH_SKETCHES)
    hk_graph_sketch(e, v, w, ring, sides, threadIdx.x % 32);
  __syncwarp();
}

#endif
