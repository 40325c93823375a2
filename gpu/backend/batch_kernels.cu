/* The kernels of a batch, except those of the scores: commands of the host, grouping of points by sensor, sweeps, the answer; and
 * their launchers.
 *
 * Grouping. Each sensor's points form a linked list (a chain) through `next`; the slot's entry of `last` is its newest point. The
 * thread of that point owns the chain: it takes it out of `last`, sorts the points (at most HK_BATCH_PER_SENSOR, so a chain is
 * short), and appends the sensor's task to its detector's list. The order of tasks in a list depends on chance; no result does.
 *
 * Failure modes: if a slot is not bound, or a sensor has too many points, the batch is refused: every chain is taken out of
 * `last` nevertheless, and nothing is scored. */
#include "gpu/backend/batch_kernels.h"
#include "gpu/backend/work_sharing.cuh"

#include <cuda_runtime_api.h>

#define HK_THREADS 256u
#define HK_BLOCK_MOST 1024u /* maximum threads of a block */
#define HK_WARP 32u
#define HK_ALL 0xffffffffu

/* Copies bytes, a multiple of 16, with the threads of a warp. */
static __device__ void hk_copy(void *to, const void *from, uint32_t bytes)
{
  for (uint32_t i = threadIdx.x % HK_WARP; i < bytes / 16; i += HK_WARP)
    ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

/* Carries out commands, one a warp. */
__global__ void hk_apply_kernel(const struct hk_cuda_directory directory, const unsigned char *memory, uint32_t first, uint32_t n)
{
  const uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / HK_WARP, lane = threadIdx.x % HK_WARP;
  if (i >= n)
    return;
  const struct hk_cuda_command command = ((const struct hk_cuda_command *)memory)[first + i];
  if (command.slot == HK_CUDA_NONE) {
    if (lane == 0)
      directory.list[command.detector] = (uint32_t)command.seed;
    return;
  }
  if (command.record && command.image) {
    hk_copy(command.record, memory + command.image, command.bytes);
  } else if (command.record) {
    for (uint32_t k = lane; k < sizeof *command.record / 16; k += HK_WARP)
      ((uint4 *)command.record)[k] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    if (lane == 0) {
      command.record->window.seed = command.seed;
      command.record->slot = command.slot;
    }
  }
  if (lane == 0) {
    directory.record[command.slot] = command.record;
    directory.detector[command.slot] = command.detector;
  }
}

static __device__ bool hk_bound(const struct hk_cuda_directory *directory, uint32_t slot)
{
  return slot < directory->max && directory->record[slot];
}

/* Adds point i to its sensor's chain. */
static __device__ void hk_link(const struct hk_cuda_directory *directory, const struct hk_cuda_work *work, uint32_t slot,
                               uint32_t i)
{
  if (hk_bound(directory, slot))
    work->next[i] = atomicExch(&directory->last[slot], i);
  else
    work->counters->refused = HK_CUDA_UNBOUND;
}

/* Sorts the chain that begins with point i. Returns the number of its points, or 0 if there are too many. */
static __device__ uint32_t hk_unchain(const uint32_t *next, uint32_t i, uint32_t *point)
{
  uint32_t count = 0;
  for (uint32_t at = i; at != HK_CUDA_NONE; at = next[at]) {
    if (count == HK_BATCH_PER_SENSOR)
      return 0;
    uint32_t k = count++; /* latest first: chains are nearly in this order */
    for (; k > 0 && point[k - 1] < at; k--)
      point[k] = point[k - 1];
    point[k] = at;
  }
  return count;
}

/* Makes the task of the sensor whose chain begins with point i. Called by whole warps; owner: whether this thread has such a
 * point. */
static __device__ void hk_list(const struct hk_cuda_directory *directory, const struct hk_cuda_work *work, uint32_t slot,
                               uint32_t i, bool owner)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  uint32_t point[HK_BATCH_PER_SENSOR], count = 0;
  if (owner) {
    directory->last[slot] = HK_CUDA_NONE;
    count = 1;
    if (work->next[i] != HK_CUDA_NONE) {
      count = hk_unchain(work->next, i, point);
      if (count == 0)
        work->counters->refused = HK_CUDA_TOO_MANY;
    }
  }
  /* reserves places for the warp's points: one atomic operation a warp */
  uint32_t upto = count;
  for (uint32_t far = 1; far < HK_WARP; far *= 2) {
    const uint32_t other = __shfl_up_sync(HK_ALL, upto, far);
    upto += lane >= far ? other : 0;
  }
  const uint32_t all = __shfl_sync(HK_ALL, upto, HK_WARP - 1);
  uint32_t first = 0;
  if (lane == 0 && all > 0)
    first = atomicAdd(&work->counters->ordered, all);
  first = __shfl_sync(HK_ALL, first, 0) + upto - count;
  if (count == 1)
    work->order[first] = i;
  else
    for (uint32_t k = 0; k < count; k++)
      work->order[first + k] = point[count - 1 - k];

  /* reserves places in the lists: one atomic operation a warp and detector */
  const uint32_t detector = count > 0 ? directory->detector[slot] : HK_CUDA_NONE;
  const uint32_t same = __match_any_sync(HK_ALL, detector), leader = __ffs(same) - 1;
  uint32_t place = 0;
  if (lane == leader && count > 0)
    place = atomicAdd(&work->n_tasks[detector], __popc(same));
  place = __shfl_sync(HK_ALL, place, leader) + __popc(same & ((1u << lane) - 1));
  if (count > 0) {
    const struct hk_cuda_task task = { directory->record[slot], first, count };
    work->tasks[directory->list[detector] + place] = task;
  }
}

/* Copies point i to the device, if it is not there. Returns its slot. */
static __device__ uint32_t hk_bring(const struct hk_cuda_points *from, const struct hk_cuda_points *points, uint32_t i)
{
  if (!from->slot)
    return points->slot[i];
  const uint32_t slot = from->slot[i];
  points->slot[i] = slot;
  points->time[i] = from->time[i];
  points->value[i] = from->value[i];
  return slot;
}

static __device__ bool hk_owner(const struct hk_cuda_directory *directory, uint32_t slot, uint32_t i)
{
  return slot < directory->max && directory->last[slot] == i;
}

__global__ void hk_link_kernel(const struct hk_cuda_directory directory, const struct hk_cuda_work work,
                               const struct hk_cuda_points from, const struct hk_cuda_points points, uint32_t n)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    hk_link(&directory, &work, hk_bring(&from, &points, i), i);
}

__global__ void hk_list_kernel(const struct hk_cuda_directory directory, const struct hk_cuda_work work, const uint32_t *slot,
                               uint32_t n)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, at = i < n ? slot[i] : HK_CUDA_NONE;
  hk_list(&directory, &work, at, i, hk_owner(&directory, at, i));
}

/* Chains and tasks of a batch that fits into one block. */
__global__ void hk_group_kernel(const struct hk_cuda_directory directory, const struct hk_cuda_work work,
                                const struct hk_cuda_points from, const struct hk_cuda_points points, uint32_t n)
{
  const uint32_t i = threadIdx.x, at = i < n ? hk_bring(&from, &points, i) : HK_CUDA_NONE;
  if (i < n)
    hk_link(&directory, &work, at, i);
  __syncthreads();
  hk_list(&directory, &work, at, i, hk_owner(&directory, at, i));
}

__global__ void hk_finish_kernel(const struct hk_cuda_work work, const struct hk_cuda_end end)
{
  __threadfence_system(); /* the host sees the writes of earlier kernels before it sees the answer */
  hk_end(work, end);
}

/* Sends a notice to the host, which sorts notices. Returns whether there was a place. */
static __device__ bool hk_notice(const struct hk_cuda_columns *columns, const struct hk_cuda_record *record, uint8_t kind)
{
  const uint32_t place = atomicAdd(columns->n_events, 1u);
  if (place >= columns->capacity)
    return false;
  struct hk_event event;
  memset(&event, 0, sizeof event);
  event.index = UINT32_MAX;
  event.slot = record->slot;
  event.time = record->window.last_time;
  event.kind = kind;
  columns->event[place] = event;
  return true;
}

__global__ void hk_sweep_kernel(const struct hk_detector d, const struct hk_cuda_directory directory, unsigned char *records,
                                uint64_t record_bytes, uint32_t n, int64_t idle, const struct hk_cuda_columns columns)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  struct hk_cuda_record *const record = (struct hk_cuda_record *)(records + record_bytes * i);
  if (directory.record[record->slot] != record) /* the record is no sensor's */
    return;
  struct hk_window window = record->window;
  const int turn = hk_window_sweep(&window, &d, columns.arrival);
  if (turn != 0 && hk_notice(&columns, record, turn > 0 ? HK_EVENT_STALE : HK_EVENT_BACK))
    record->window.stale = window.stale;
  if (!window.started && window.seen == 0) /* a sensor that never sends a point must not keep its place for ever */
    record->window.seen = window.seen = columns.arrival;
  if (idle > 0 && columns.arrival - window.seen > idle)
    (void)hk_notice(&columns, record, HK_EVENT_IDLE);
}

/* Sweeps records, one a warp. */
__global__ void hk_fetch_kernel(const struct hk_image *images, uint32_t n, unsigned char *to)
{
  const uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / HK_WARP;
  if (i < n)
    hk_copy(to + images[i].at, images[i].record, images[i].size);
}

static uint32_t hk_blocks(uint64_t threads)
{
  return (uint32_t)((threads + HK_THREADS - 1) / HK_THREADS);
}

int hk_cuda_road_load(void)
{
  const void *const kernels[] = { (const void *)hk_apply_kernel, (const void *)hk_link_kernel,   (const void *)hk_list_kernel,
                                  (const void *)hk_group_kernel, (const void *)hk_finish_kernel, (const void *)hk_sweep_kernel,
                                  (const void *)hk_fetch_kernel };
  struct cudaFuncAttributes attributes;
  cudaError_t error = cudaSuccess;
  for (uint32_t i = 0; i < sizeof kernels / sizeof *kernels && !error; i++)
    error = cudaFuncGetAttributes(&attributes, kernels[i]);
  return (int)error;
}

int hk_cuda_apply(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const void *memory, uint32_t first,
                  uint32_t n)
{
  hk_apply_kernel<<<hk_blocks((uint64_t)n * HK_WARP), HK_THREADS, 0, stream>>>(*directory, (const unsigned char *)memory, first,
                                                                               n);
  return (int)cudaGetLastError();
}

int hk_cuda_group(struct CUstream_st *stream, const struct hk_cuda_directory *directory, const struct hk_cuda_work *work,
                  const struct hk_cuda_points *from, const struct hk_cuda_points *points, uint32_t n)
{
  const struct hk_cuda_points none = { NULL, NULL, NULL };
  if (n <= HK_BLOCK_MOST) {
    const uint32_t threads = (n + HK_WARP - 1) / HK_WARP * HK_WARP;
    hk_group_kernel<<<1, threads, 0, stream>>>(*directory, *work, from ? *from : none, *points, n);
  } else {
    hk_link_kernel<<<hk_blocks(n), HK_THREADS, 0, stream>>>(*directory, *work, from ? *from : none, *points, n);
    hk_list_kernel<<<hk_blocks(n), HK_THREADS, 0, stream>>>(*directory, *work, points->slot, n);
  }
  return (int)cudaGetLastError();
}

int hk_cuda_finish(struct CUstream_st *stream, const struct hk_cuda_work *work, const struct hk_cuda_end *end)
{
  hk_finish_kernel<<<1, HK_WARP, 0, stream>>>(*work, *end);
  return (int)cudaGetLastError();
}

int hk_cuda_sweep(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_directory *directory,
                  void *records, uint32_t n, int64_t idle, const struct hk_cuda_columns *columns)
{
  hk_sweep_kernel<<<hk_blocks(n), HK_THREADS, 0, stream>>>(*d, *directory, (unsigned char *)records, hk_cuda_record_bytes(d), n,
                                                           idle, *columns);
  return (int)cudaGetLastError();
}

int hk_cuda_fetch(struct CUstream_st *stream, const struct hk_image *images, uint32_t n, void *to)
{
  hk_fetch_kernel<<<hk_blocks((uint64_t)n * HK_WARP), HK_THREADS, 0, stream>>>(images, n, (unsigned char *)to);
  return (int)cudaGetLastError();
}
