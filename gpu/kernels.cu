/* The score kernel, a block to a sensor, and its launcher.
 *
 * A block takes its sensor's points in order: one thread applies the window rules, all threads score, one thread decides.
 * The score of a point depends on nothing but the sensor's record and the detector. */
#include "gpu/ika.h"
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

__global__ void hk_score_kernel(const struct hk_detector d, unsigned char *scratch, const struct hk_cuda_task *tasks,
                                const uint32_t *n_tasks, const struct hk_cuda_columns columns)
{
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ struct hk_step step;
  __shared__ bool anew; /* the window has just begun: the feedback vector starts at a0 */
  const struct hk_room room = hk_room_make(&d, shared, scratch);
  for HK_EACH (i, hk_shared_floats(&d))
    room.past[i] = 0;

  const uint32_t n = *columns.refused ? 0 : *n_tasks;
  for (uint32_t t = blockIdx.x; t < n; t += gridDim.x) {
    const struct hk_cuda_task task = tasks[t];
    struct hk_cuda_record *const record = task.record;
    float *const feedback = hk_cuda_feedback(record), *const ring = hk_cuda_ring(record, &d);
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
        if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
            hk_alert_decide(&record->alert, &record->window, ring, &d, step, result.z, result.share, &event)) {
          event.index = index;
          event.slot = record->slot;
          const uint32_t place = atomicAdd(columns.n_events, 1u);
          if (place < columns.capacity)
            columns.event[place] = event;
        }
      }
    }
    __syncthreads();
  }
}

int hk_cuda_plan(const struct hk_detector *d, struct hk_cuda_plan *plan)
{
  if (d->algorithm == HK_ALGORITHM_IKA)
    return hk_ika_plan(d, plan);
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

int hk_cuda_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                  const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns)
{
  if (d->algorithm == HK_ALGORITHM_IKA)
    return hk_ika_score(stream, d, plan, scratch, tasks, n_tasks, most, columns);
  hk_score_kernel<<<most < plan->resident ? most : plan->resident, plan->threads, plan->shared, stream>>>(
      *d, (unsigned char *)scratch, tasks, n_tasks, *columns);
  return (int)cudaGetLastError();
}
