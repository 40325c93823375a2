/* Common to all backends: batches, and the numbers of detectors. */
#include "cpu/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int hk_definitions_check(const struct hk_definition *definitions, uint32_t n, uint32_t n_detectors, uint32_t room,
                         uint32_t *n_after, char *error, size_t size)
{
  *n_after = n_detectors;
  for (uint32_t i = 0; i < n; i++) {
    if (definitions[i].number >= room) {
      snprintf(error, size, "detector number %u: there is room for %u", definitions[i].number, room);
      return -EINVAL;
    }
    if (definitions[i].number >= *n_after)
      *n_after = definitions[i].number + 1;
  }
  return 0;
}

struct hk_batch *hk_batch_new(struct hk_backend *b, uint32_t capacity)
{
  const size_t a_point =
      sizeof(int64_t) + sizeof(double) + sizeof(struct hk_event) + HK_BATCH_WORK + sizeof(uint32_t) + sizeof(float) + 1;
  struct hk_batch *batch = calloc(1, sizeof *batch);
  if (!batch)
    return NULL;
  batch->time = b->ops->alloc(b, capacity * a_point);
  if (!batch->time) {
    free(batch);
    return NULL;
  }
  /* widest elements first, so that every column is aligned */
  batch->value = (double *)(batch->time + capacity);
  batch->event = (struct hk_event *)(batch->value + capacity);
  batch->work = batch->event + capacity;
  batch->slot = (uint32_t *)((char *)batch->work + (size_t)capacity * HK_BATCH_WORK);
  batch->score = (float *)(batch->slot + capacity);
  batch->state = (uint8_t *)(batch->score + capacity);
  batch->capacity = capacity;
  batch->backend = b;
  return batch;
}

void hk_batch_free(struct hk_batch *batch)
{
  if (!batch)
    return;
  batch->backend->ops->free(batch->backend, batch->time);
  free(batch);
}
