/* Host side of the choice of neighbours on the GPU: see correlate_gpu.h. */
#include "gpu/field/correlate_gpu.h"
#include "gpu/cuda_error.h"
#include "gpu/desk.h"
#include "gpu/field/correlate_kernels.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#define ALIGNED(bytes) (((bytes) + 255) / 256 * 256)
#define PAIRS ((uint64_t)1 << 31) /* members in one launch, which takes at most a few tenths of a second */

/* Copies the task to the device, chooses, and copies the result back. */
static int correlate_gpu_run(struct hk_desk *desk, const struct hk_correlate_task *task, struct hk_correlate_there *there)
{
  const struct hk_correlate_task *t = &there->task;
  uint64_t slice = PAIRS / task->n / HK_CORRELATE_TILE * HK_CORRELATE_TILE;
  slice = slice > 0 ? slice : HK_CORRELATE_TILE;
  int status = hk_desk_up(desk, (void *)(uintptr_t)t->ring, task->ring, (size_t)task->kept * task->room * sizeof *task->ring);
  if (status == 0)
    status = hk_desk_up(desk, (void *)(uintptr_t)t->due, task->due, task->n_due * sizeof *task->due);
  if (status == 0)
    status = hk_desk_wait(desk, hk_correlate_launch_normalise(there, desk->stream));
  for (uint64_t from = 0; status == 0 && from < task->n_due; from += slice) {
    const uint64_t n = task->n_due - from < slice ? task->n_due - from : slice;
    status = hk_desk_wait(desk, hk_correlate_launch(there, (uint32_t)from, (uint32_t)n, desk->stream));
  }
  return status == 0 ? hk_desk_down(desk, task->found, t->found, (size_t)task->n_due * task->q * sizeof *task->found) : status;
}

int hk_correlate_gpu(const struct hk_correlate_task *task, uint32_t device, char *error, size_t size)
{
  const uint32_t tiles = (task->n + HK_CORRELATE_TILE - 1) / HK_CORRELATE_TILE;
  const uint64_t ring = ALIGNED((uint64_t)task->kept * task->room * sizeof *task->ring),
                 z = (uint64_t)tiles * HK_CORRELATE_TILE * HK_FIELD_RESIDENT * sizeof(float),
                 fit = ALIGNED((uint64_t)tiles * HK_CORRELATE_TILE), due = ALIGNED((uint64_t)task->n_due * sizeof *task->due),
                 all = ring + z + fit + due + (uint64_t)task->n_due * task->q * sizeof *task->found;
  struct hk_desk desk = { 0 };
  char *memory = NULL;
  cudaError_t failed = (cudaError_t)hk_desk_open(&desk, (int)device, ring < 8 * HK_DESK_LEAST ? ring : 8 * HK_DESK_LEAST);
  if (!failed)
    failed = cudaMalloc((void **)&memory, all);
  if (failed) {
    hk_desk_close(&desk, memory);
    return hk_cuda_error(error, size, (int)failed, "the choice of neighbours needs", all);
  }
  struct hk_correlate_there there = { .task = *task, .tiles = tiles };
  there.task.ring = (const float *)(const void *)memory;
  there.z = (float *)(void *)(memory + ring);
  there.fit = (bool *)(memory + ring + z);
  there.task.due = (const uint32_t *)(const void *)(memory + ring + z + fit);
  there.task.found = (uint32_t *)(void *)(memory + ring + z + fit + due);
  const int status = correlate_gpu_run(&desk, task, &there);
  hk_desk_close(&desk, memory);
  return hk_desk_tell(status, error, size);
}
