/* For tests that only the CUDA backend has. */
#ifndef HK_CUDA_ALONE_H
#define HK_CUDA_ALONE_H

#include "gpu/cuda.h"
#include "tests/backend/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SECOND 1000000000ll

static bool sanitize; /* the program runs under a sanitizer for the GPU: it does less */

static inline struct hk_backend *open_with(const struct hk_backend_config *config)
{
  char error[256] = "";
  struct hk_backend *b;
  if (hk_cuda_open(&b, config, error, sizeof error) != 0)
    fail_msg("%s", error);
  return b;
}

/* Whether the CUDA backend opens with such a detector. */
static inline bool cuda_present(const struct hk_detector *detector)
{
  char error[256] = "";
  struct hk_backend *b;
  const struct hk_backend_config config = { .detectors = detector, .n_detectors = 1, .max_sensors = 1 };
  if (hk_cuda_open(&b, &config, error, sizeof error) != 0)
    return false;
  b->ops->close(b);
  return true;
}

static inline int run(struct hk_backend *b, struct hk_batch *batch)
{
  assert_int_equal(b->ops->submit(b, batch), 0);
  b->ops->wait(b);
  assert_ptr_equal(b->ops->reap(b), batch);
  return batch->status;
}

/* Points first..first+n-1 of `sensors` slots in turn. */
static inline void fill_noise(struct hk_batch *batch, uint32_t first, uint32_t n, uint32_t sensors)
{
  batch->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t slot = (first + i) % sensors, time = (first + i) / sensors;
    batch->slot[i] = slot;
    batch->time[i] = (1 + (int64_t)time) * SECOND;
    batch->value[i] = hk_random_element(slot, time);
  }
}

#endif
