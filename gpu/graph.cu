/* The kernel of neighbour graphs: a block to a sensor, whatever its detector. All points of a sensor that wait in a batch are taken
 * together; where they are several and the graph is small enough, it is brought into shared memory for them.
 *
 * A point goes through one thread's window rules, all threads' passes over the nodes (graph.cuh), and that thread's alert rule. */
#include "gpu/family.h"
#include "gpu/graph.cuh"
#include "gpu/graph_event.cuh"
#include "gpu/share.cuh"
#include "gpu/tick.cuh"

#define HK_BRING_MOST (64 * 1024u) /* bytes of a graph that is brought into shared memory: three blocks then fit an H100 or H200 */
#define HK_BRING_LEAST 3u          /* points that are worth it */

/* What the threads of a block share. */
struct room {
  struct hk_share tasks;
  struct hk_graph_room graph;
  struct hk_graph_brought brought; /* by the point under way */
  struct hk_step step;
  uint32_t cut; /* where the graph is to be cut after it; HK_CUDA_NONE: nowhere */
  struct hk_event event; /* of it; kind 0: there is none */
  struct hk_graph_sides sides;
};
#define HK_ROOM_BYTES ((uint32_t)((sizeof(struct room) + 15) & ~(size_t)15))

/* Bytes of counts: a node takes at least 28 of a graph's bytes. Graphs that are brought begin behind. */
static __host__ __device__ uint32_t counts_bytes(uint32_t size)
{
  return (size / 28 * 4 + 64 + 63) & ~63u;
}

/* Copies bytes, a multiple of 16. */
static __device__ void copy(void *to, const void *from, uint32_t bytes)
{
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < bytes / 16; i += HK_THREADS)
    ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

/* The window rules, by one thread. */
static __device__ __noinline__ void take(struct room *room, struct hk_cuda_record *record, const struct hk_point *point,
                                         int64_t arrival)
{
  room->brought = hk_graph_accept(&room->graph.view, &record->window, hk_cuda_ring(record, room->graph.view.detector), point->time,
                                  point->value, arrival, record->alert.raised);
}

/* The results of a point and the alert rule, by one thread. */
static __device__ __noinline__ void decide(struct room *room, struct hk_cuda_record *record, const struct hk_cuda_columns *columns,
                                           uint32_t index, int32_t moved)
{
  const struct hk_graph_view *v = &room->graph.view;
  const struct hk_step step = room->step;
  columns->score[index] = step.score ? (float)hk_graph_score(room->graph.split.z, v->window) : NAN;
  columns->state[index] = step.state;
  room->cut = HK_CUDA_NONE; /* not before here: others may still be looking at the last point's */
  if (!hk_graph_decide(&record->alert, v, &record->window, hk_cuda_ring(record, v->detector), step, &room->graph.split, moved,
                       &room->sides, &room->event))
    room->event.kind = 0;
  else if (room->event.kind == HK_EVENT_RAISED)
    room->cut = room->graph.split.at;
}

/* The same, with what goes with an event, by a warp. */
static __device__ void conclude(struct room *room, struct hk_cuda_record *record, const struct hk_cuda_columns *columns, uint32_t index,
                                uint32_t *counts)
{
  const struct hk_graph_view *v = &room->graph.view;
  const struct hk_window *w = &record->window;
  const float *ring = hk_cuda_ring(record, v->detector);
  const bool again = __any_sync(HK_ALL, hk_graph_looks_again(&record->alert, v, w, room->step));
  const int32_t moved = again ? hk_warp_look_again(&record->alert, v, w, ring, (int32_t *)counts) : 0;
  if (threadIdx.x == 0)
    decide(room, record, columns, index, moved);
  __syncwarp();
  if (hk_graph_has_sketches(&room->event))
    hk_warp_sketch(&room->event, v, w, ring, room->sides);
  if (threadIdx.x == 0 && room->event.kind != 0)
    hk_tick_event(columns, record, index, &room->event);
}

/* One point of the sensor in the room. */
static __device__ __forceinline__ void tick(struct room *room, struct hk_cuda_record *record, const struct hk_cuda_columns *columns,
                                            const struct hk_point *point, uint32_t *counts)
{
  struct hk_graph_room *const graph = &room->graph;
  if (threadIdx.x == 0)
    take(room, record, point, columns->arrival);
  __syncthreads();
  const struct hk_graph_brought b = room->brought;
  if (b.step.state == HK_STATE_LATE || b.step.state == HK_STATE_REJECTED) {
    if (threadIdx.x == 0) {
      columns->score[point->index] = NAN;
      columns->state[point->index] = b.step.state;
    }
    __syncthreads();
    return;
  }
  const float *const ring = hk_cuda_ring(record, graph->view.detector);
  if (b.fresh)
    hk_block_reset(graph, b.again);
  if (graph->view.mean && b.shift != 0)
    for (uint32_t lag = threadIdx.x; lag < graph->view.graph->live; lag += HK_THREADS)
      graph->view.mean[hk_graph_place(&graph->view, lag)] -= b.shift;
  if (b.search)
    hk_block_find_window(graph, ring, counts);
  for (uint32_t later = b.nodes; later-- > 0;) {
    bool enough = false;
    if (threadIdx.x == 0)
      enough = hk_graph_samples(&graph->view, &record->window, ring, later, &graph->samples);
    if (__syncthreads_or(enough))
      hk_block_add(graph);
  }
  if (threadIdx.x == 0)
    room->step = hk_graph_step(&graph->view, &record->window, b.step);
  __syncthreads();
  if (room->step.score)
    hk_block_profile(graph, counts);
  if (threadIdx.x < HK_WARP)
    conclude(room, record, columns, point->index, counts);
  __syncthreads();
  if (room->cut != HK_CUDA_NONE)
    hk_block_cut(graph, room->cut);
}

static __global__ void __launch_bounds__(HK_THREADS) hk_graph_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(64) unsigned char shared[];
  struct room *const room = (struct room *)shared;
  uint32_t *const counts = (uint32_t *)(shared + HK_ROOM_BYTES);
  unsigned char *const place = shared + HK_ROOM_BYTES + counts_bytes(launch.size);
  const uint32_t fits = min(launch.size, HK_BRING_MOST);
  if (threadIdx.x < HK_WARP)
    hk_share_begin<1>(&room->tasks, &launch, blockIdx.x, gridDim.x);
  for (;;) {
    bool any = false;
    if (threadIdx.x < HK_WARP)
      any = hk_share_next<1, 1>(&room->tasks, &launch);
    if (!__syncthreads_or(any))
      break;
    const struct hk_detector *const d = &room->tasks.detector;
    const struct hk_cuda_task task = *room->tasks.tasks;
    unsigned char *const kept = (unsigned char *)task.record + hk_cuda_own_at(d);
    const uint32_t bytes = (uint32_t)hk_cuda_own_bytes(d);
    const bool bring = task.count >= HK_BRING_LEAST && bytes <= fits;
    if (bring)
      copy(place, kept, bytes);
    __syncthreads();
    if (threadIdx.x == 0)
      room->graph.view = hk_graph_view_at(bring ? place : kept, d);
    __syncthreads();
    for (uint32_t p = 0; p < task.count; p++) {
      const struct hk_point point = hk_share_point(launch, task, p);
      tick(room, task.record, &launch.columns, &point, counts);
    }
    __syncthreads();
    if (bring)
      copy(kept, place, bytes);
    __syncthreads();
  }
  hk_share_end(launch);
}

static uint32_t shared_bytes(uint32_t size)
{
  return HK_ROOM_BYTES + counts_bytes(size) + (size < HK_BRING_MOST ? size : HK_BRING_MOST);
}

/* Blocks work in shared memory alone; that some takes part in the sharing out of scratch memory says that there is no less. */
static uint64_t scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

static int fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_graph_score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_graph_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_graph_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_graph_kernel;
const struct hk_cuda_kernel hk_cuda_graph_kernel = { HK_WINDOW_MAX + 1, 1, 1, shared_bytes, scratch_bytes, fit, launch };
