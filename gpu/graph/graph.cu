/* The kernel of neighbour graphs: a warp scores a few sensors of one detector, and takes one waiting point of each in turn.
 *
 * A point goes through the window rules, passes over the nodes (graph.cuh), and the alert rule. Rules are long sequential
 * computations: each lane does them for one sensor, side by side with the others. The whole warp does the passes. */
#include <cuda_pipeline_primitives.h>

#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/graph/graph.cuh"
#include "gpu/graph/graph_event.cuh"

#define HK_TOGETHER 8u /* maximum number of sensors that a warp takes together */
#define HK_WARPS 4u    /* warps of a block */
#define HK_THREADS (HK_WARPS * HK_WARP)
#define HK_BLOCKS 6 /* blocks of a multiprocessor, as registers allow */

/* Shared memory of a warp; chunks or counts follow it. */
struct room {
  struct hk_share tasks;
  struct hk_graph_sensor sensor[HK_TOGETHER];
  struct hk_graph graph[HK_TOGETHER]; /* theirs, but for the columns; returned to the records behind the last point */
  union {
    struct hk_event event; /* of one of the sensors */
    struct hk_graph_desk desk;
  };
};
#define HK_ROOM_BYTES ((uint32_t)((sizeof(struct room) + 15) & ~(size_t)15))

/* Bytes of counts, and of chunks in their place. size: samples of a ring. */
static __host__ __device__ uint32_t counts_bytes(uint32_t size)
{
  const uint32_t counts = (size + 8 + 3) / 4 * 16, chunks = HK_CHUNKS * sizeof(struct hk_graph_chunk);
  return counts > chunks ? counts : chunks;
}

/* Applies the window rules, in the sensor's own lane. */
static __device__ __forceinline__ struct hk_graph_brought graph_take(const struct hk_graph_sensor *sensor,
                                                                     struct hk_cuda_record *record,
                                                                     const struct hk_cuda_columns *columns,
                                                                     const struct hk_point *point)
{
  const struct hk_graph_view *v = &sensor->view;
  return hk_graph_accept(v, &record->window, hk_cuda_ring(record, v->detector), point->time, point->value, columns->arrival,
                         record->alert.raised);
}

/* Writes the results of a point and applies the alert rule, in the sensor's own lane. Without an event, event->kind is 0. */
static __device__ __forceinline__ void graph_decide(const struct hk_graph_sensor *sensor, struct hk_cuda_record *record,
                                                    const struct hk_cuda_columns *columns, uint32_t index, struct hk_step step,
                                                    int32_t moved, struct hk_graph_sides *sides, struct hk_event *event)
{
  const struct hk_graph_view *v = &sensor->view;
  columns->score[index] = step.score ? (float)hk_graph_score(sensor->split.z, v->window) : NAN;
  columns->state[index] = step.state;
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED ||
      !hk_graph_decide(&record->alert, v, &record->window, hk_cuda_ring(record, v->detector), step, &sensor->split, moved, sides,
                       event))
    event->kind = 0;
}

/* Changes the graph before a point adds nodes; rarely needed. */
static __device__ __noinline__ void graph_prepare(struct hk_graph_sensor *sensor, struct hk_cuda_record *record,
                                                  struct hk_graph_brought b, uint32_t *counts)
{
  const struct hk_graph_view *v = &sensor->view;
  if (b.fresh)
    hk_warp_reset(sensor, b.again);
  if (v->mean)
    for (uint32_t lag = hk_lane(); lag < v->graph->live; lag += HK_WARP)
      v->mean[hk_graph_place(v, lag)] -= b.shift;
  if (b.search)
    hk_warp_find_window(sensor, hk_cuda_ring(record, v->detector), counts);
  __syncwarp();
}

/* Computes the splits of sensors that have a score. Memory is told of the medians of the next one meanwhile. */
static __device__ __forceinline__ void graph_profile(struct hk_graph_sensor *sensors, uint32_t which, uint32_t *counts)
{
  while (which != 0) {
    struct hk_graph_sensor *const sensor = &sensors[__ffs(which) - 1];
    which &= which - 1;
    if (which != 0) {
      const struct hk_graph_view *const next = &sensors[__ffs(which) - 1].view;
      hk_tick_later(next->median, next->room * sizeof *next->median, hk_lane(), HK_WARP);
    }
    hk_warp_profile(sensor, counts);
  }
}

/* Writes the event of sensor number `who`, with its details; rarely needed. */
static __device__ __noinline__ void graph_tell(struct room *room, uint32_t who, struct hk_graph_sides sides,
                                               const struct hk_cuda_columns *columns, uint32_t index)
{
  struct hk_cuda_record *const record = room->tasks.tasks[who].record;
  struct hk_graph_sensor *const sensor = &room->sensor[who];
  if (hk_graph_has_sketches(&room->event))
    hk_warp_sketch(&room->event, &sensor->view, &record->window, hk_cuda_ring(record, sensor->view.detector), sides);
  if (hk_lane() == 0)
    hk_tick_event(columns, record, index, &room->event);
  if (room->event.kind == HK_EVENT_RAISED)
    hk_warp_cut(sensor);
  __syncwarp();
}

/* Processes a point of each sensor for which `here` is true, in its own lane. */
static __device__ __forceinline__ void graph_tick(struct room *room, struct hk_cuda_record *record,
                                                  const struct hk_cuda_columns *columns, const struct hk_point *point, bool here,
                                                  uint32_t *counts)
{
  struct hk_graph_sensor *const sensors = room->sensor, *const own = &sensors[hk_lane()]; /* lanes that have a point */
  struct hk_graph_brought b = {};
  if (here)
    b = graph_take(own, record, columns, point);
  __syncwarp();
  for (uint32_t rest = __ballot_sync(HK_ALL, b.fresh || b.search || b.shift != 0); rest != 0; rest &= rest - 1) {
    const uint32_t who = __ffs(rest) - 1;
    struct hk_graph_brought its;
    its.fresh = __shfl_sync(HK_ALL, b.fresh, who);
    its.again = __shfl_sync(HK_ALL, b.again, who);
    its.search = __shfl_sync(HK_ALL, b.search, who);
    its.shift = __shfl_sync(HK_ALL, b.shift, who);
    graph_prepare(&sensors[who], room->tasks.tasks[who].record, its, counts);
  }
  for (uint32_t later = __reduce_max_sync(HK_ALL, b.nodes); later-- > 0;) {
    bool adds = false;
    if (later < b.nodes)
      adds = hk_graph_samples(&own->view, &record->window, hk_cuda_ring(record, own->view.detector), later, &own->samples);
    __syncwarp();
    hk_warp_add(sensors, __ballot_sync(HK_ALL, adds), &room->desk, (struct hk_graph_chunk *)counts);
  }
  struct hk_step step = b.step;
  bool scored = false, again = false;
  if (here && step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED) {
    step = hk_graph_step(&own->view, &record->window, step);
    scored = step.score;
    again = hk_graph_looks_again(&record->alert, &own->view, &record->window, step);
  }
  graph_profile(sensors, __ballot_sync(HK_ALL, scored), counts);
  int32_t moved = 0;
  for (uint32_t rest = __ballot_sync(HK_ALL, again); rest != 0; rest &= rest - 1) {
    const uint32_t who = __ffs(rest) - 1;
    struct hk_cuda_record *const its = room->tasks.tasks[who].record;
    const struct hk_graph_view *v = &sensors[who].view;
    const int32_t by = hk_warp_look_again(&its->alert, v, &its->window, hk_cuda_ring(its, v->detector), (int32_t *)counts);
    moved = hk_lane() == who ? by : moved;
  }
  struct hk_graph_sides sides = { 0, 0 };
  struct hk_event event;
  event.kind = 0;
  if (here)
    graph_decide(own, record, columns, point->index, step, moved, &sides, &event);
  for (uint32_t rest = __ballot_sync(HK_ALL, event.kind != 0); rest != 0; rest &= rest - 1) {
    const uint32_t who = __ffs(rest) - 1;
    if (hk_lane() == who)
      room->event = event;
    const struct hk_graph_sides its = { __shfl_sync(HK_ALL, sides.older, who), __shfl_sync(HK_ALL, sides.newer, who) };
    __syncwarp();
    graph_tell(room, who, its, columns, __shfl_sync(HK_ALL, point->index, who));
  }
}

static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    hk_graph_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(16) unsigned char shared[];
  /* the warp's number by a shuffle: otherwise it, and with it all addresses, is computed anew for each chunk */
  const uint32_t lane = hk_lane(), warp = __shfl_sync(HK_ALL, threadIdx.x / HK_WARP, 0);
  struct room *const room = (struct room *)(shared + warp * (HK_ROOM_BYTES + counts_bytes(launch.size)));
  uint32_t *const counts = (uint32_t *)((unsigned char *)room + HK_ROOM_BYTES);
  hk_share_begin<1>(&room->tasks, &launch, blockIdx.x * HK_WARPS + warp);
  while (hk_share_next<1, HK_TOGETHER>(&room->tasks, &launch)) {
    struct hk_cuda_task task = {};
    struct hk_graph *graph = NULL;
    if (lane < room->tasks.n) {
      task = room->tasks.tasks[lane];
      task.record = hk_global(task.record);
      hk_tick_later(task.record, sizeof *task.record, 0, 1);
      struct hk_graph_view view = hk_cuda_graph(task.record, &room->tasks.detector);
      graph = hk_global(view.graph);
      room->graph[lane] = *graph;
      view.graph = &room->graph[lane];
      room->sensor[lane].view = view;
    }
    __syncwarp();
    const uint32_t most = __reduce_max_sync(HK_ALL, task.count);
    for (uint32_t p = 0; p < most; p++) {
      struct hk_point point = {};
      if (p < task.count)
        point = hk_share_point(launch, task, p);
      graph_tick(room, task.record, &launch.columns, &point, p < task.count, counts);
    }
    __syncwarp();
    if (graph)
      *graph = room->graph[lane];
  }
  hk_share_end(launch);
}

static uint32_t graph_shared_bytes(uint32_t size)
{
  return HK_WARPS * (HK_ROOM_BYTES + counts_bytes(size));
}

/* Blocks use shared memory only. The size is not 0, because kernel_choice.c divides by it. */
static uint64_t graph_scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

static int graph_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_graph_score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_graph_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int graph_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_graph_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_graph_kernel;
const struct hk_cuda_kernel hk_cuda_graph_kernel = { HK_WINDOW_MAX + 1,   1,         HK_WARPS,    graph_shared_bytes,
                                                     graph_scratch_bytes, graph_fit, graph_launch };
