/* The kernels: points of many sensors, a block to a sensor, and the sweep, a thread to a sensor; and their launchers.
 *
 * A block takes its sensor's points in order: one thread applies the window rules, all threads score, one thread decides.
 * The score of a point depends on nothing but the sensor's record and the detector. */
#include "gpu/score.cuh"

/* Doubles, then floats, that a block keeps in shared memory. */
HK_INLINE uint32_t hk_shared_doubles(const struct hk_detector *d)
{
  return 2 * ((hk_steps_max(d) + 1) & ~1u) + 3 * HK_RANK_MAX + 1 + HK_WARPS_MAX; /* even: what follows is 16-byte aligned */
}

/* A multiple of 4 for the coefficients too: the assembler unrolls loops over them by four and reads ahead of the loop's end. */
HK_INLINE uint32_t hk_shared_floats(const struct hk_detector *d)
{
  return 8 * hk_cuda_padded(d->window) + ((hk_steps_max(d) + 3) & ~3u);
}

/* Doubles of one of the two matrices in scratch memory, and all bytes of it. */
HK_INLINE uint64_t hk_scratch_doubles(const struct hk_detector *d) { return (uint64_t)((hk_steps_max(d) + 1) & ~1u) * d->rank; }

HK_INLINE uint64_t hk_scratch_bytes(const struct hk_detector *d)
{
  const uint64_t basis = (uint64_t)hk_steps_max(d) * hk_cuda_padded(d->window);
  return (2 * hk_scratch_doubles(d) * sizeof(double) + basis * sizeof(float) + 255) & ~(uint64_t)255;
}

/* The block's room in shared memory and in its part of scratch memory. */
static __device__ struct hk_room hk_room_make(const struct hk_detector *d, unsigned char *shared, unsigned char *scratch)
{
  const uint32_t padded = hk_cuda_padded(d->window), steps = (hk_steps_max(d) + 1) & ~1u;
  struct hk_room room;
  room.window = d->window;
  room.padded = padded;
  room.alpha = (double *)shared;
  room.beta = room.alpha + steps;
  room.theta = room.beta + steps;
  room.leading = room.theta + 2 * HK_RANK_MAX;
  room.partial = room.leading + HK_RANK_MAX;
  room.past = (float *)((double *)shared + hk_shared_doubles(d));
  room.present = room.past + 2 * padded;
  room.v = room.present + 2 * padded;
  room.t = room.v + padded;
  room.u = room.t + padded;
  room.mu = room.u + padded;
  room.c = room.mu + padded;
  room.y = (double *)(scratch + hk_scratch_bytes(d) * blockIdx.x);
  room.forward = room.y + hk_scratch_doubles(d);
  room.q = (float *)(room.forward + hk_scratch_doubles(d));
  return room;
}

/* An event of point or sensor goes to the host, where they are put in order. Returns whether there was a place. */
static __device__ bool hk_event_place(const struct hk_cuda_columns *columns, uint32_t *place)
{
  *place = atomicAdd(columns->n_events, 1u);
  return *place < columns->capacity;
}

__global__ void hk_score_kernel(const struct hk_detector d, unsigned char *scratch, const struct hk_cuda_task *tasks, uint32_t n,
                                const struct hk_cuda_columns columns)
{
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ struct hk_step step;
  __shared__ bool anew; /* the window has just begun: the feedback vector starts at a0 */
  const struct hk_room room = hk_room_make(&d, shared, scratch);
  for HK_EACH (i, hk_shared_floats(&d))
    room.past[i] = 0;

  for (uint32_t t = blockIdx.x; t < n; t += gridDim.x) {
    const struct hk_cuda_task task = tasks[t];
    struct hk_cuda_record *const record = task.record;
    float *const feedback = hk_cuda_feedback(record), *const ring = hk_cuda_ring(record, &d);
    if (threadIdx.x == 0 && task.fresh) {
      memset(record, 0, sizeof *record);
      record->window.seed = task.seed;
      record->slot = task.slot;
    }
    for (uint32_t p = 0; p < task.count; p++) {
      const uint32_t index = columns.order[task.first + p];
      __syncthreads(); /* `step` of the point before has been read by all */
      if (threadIdx.x == 0) {
        const bool started = record->window.started;
        step = hk_window_take(&record->window, ring, &d, columns.time[index], columns.value[index], columns.arrival,
                              record->alert.raised);
        anew = step.restarted || started != (bool)record->window.started;
      }
      __syncthreads();
      if (anew)
        hk_random_vector(&room, record->window.seed, 0, feedback);
      struct hk_result result = { NAN, NAN };
      if (step.score)
        result = hk_block_score(&room, &d, &record->window, ring, feedback);
      if (threadIdx.x == 0) {
        columns.score[index] = (float)result.z;
        columns.state[index] = step.state;
        struct hk_event event;
        uint32_t place;
        if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
            hk_alert_decide(&record->alert, &record->window, ring, &d, step, result.z, result.share, &event) &&
            hk_event_place(&columns, &place)) {
          event.index = index;
          event.slot = task.slot;
          columns.event[place] = event;
        }
      }
    }
    __syncthreads();
  }
}

__global__ void hk_sweep_kernel(const struct hk_detector d, unsigned char *records, uint64_t record_bytes, uint32_t n, int64_t idle,
                                const struct hk_cuda_columns columns)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  struct hk_cuda_record *const record = (struct hk_cuda_record *)(records + record_bytes * i);
  struct hk_window window = record->window;
  const int turn = hk_window_sweep(&window, &d, columns.arrival);
  struct hk_event event;
  memset(&event, 0, sizeof event);
  event.index = UINT32_MAX;
  event.slot = record->slot;
  event.time = window.last_time;
  uint32_t place;
  if (turn != 0 && hk_event_place(&columns, &place)) {
    record->window.stale = window.stale;
    event.kind = turn > 0 ? HK_EVENT_STALE : HK_EVENT_BACK;
    columns.event[place] = event;
  }
  if (idle > 0 && window.started && columns.arrival - window.seen > idle && hk_event_place(&columns, &place)) {
    event.kind = HK_EVENT_IDLE;
    columns.event[place] = event;
  }
}

int hk_cuda_plan(const struct hk_detector *d, struct hk_cuda_plan *plan)
{
  /* four rows of a product to a thread */
  const uint32_t warps = (hk_cuda_padded(d->window) / 4 + HK_WARP - 1) / HK_WARP;
  plan->threads = HK_WARP * (warps < HK_WARPS_MAX ? warps : HK_WARPS_MAX);
  plan->shared = hk_shared_doubles(d) * (uint32_t)sizeof(double) + hk_shared_floats(d) * (uint32_t)sizeof(float);
  plan->scratch = hk_scratch_bytes(d);
  int device, processors, each, most;
  cudaError_t error = cudaGetDevice(&device);
  if (!error)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (!error)
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (!error)
    error = cudaFuncSetAttribute(hk_score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - 1024);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_score_kernel, (int)plan->threads, plan->shared);
  if (!error)
    plan->resident = (uint32_t)(processors * each);
  return (int)error;
}

int hk_cuda_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, uint32_t blocks,
                          void *scratch, const struct hk_cuda_task *tasks, uint32_t n, const struct hk_cuda_columns *columns)
{
  hk_score_kernel<<<n < blocks ? n : blocks, plan->threads, plan->shared, stream>>>(*d, (unsigned char *)scratch, tasks, n, *columns);
  return (int)cudaGetLastError();
}

int hk_cuda_sweep(struct CUstream_st *stream, const struct hk_detector *d, void *records, uint32_t n, int64_t idle,
                          const struct hk_cuda_columns *columns)
{
  const uint32_t threads = 256;
  hk_sweep_kernel<<<(n + threads - 1) / threads, threads, 0, stream>>>(*d, (unsigned char *)records, hk_cuda_record_bytes(d), n, idle,
                                                                      *columns);
  return (int)cudaGetLastError();
}
