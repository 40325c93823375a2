/* Groups few points by sensor: see small_batch.h. */
#include "gpu/backend/small_batch.h"

#include <assert.h>
#include <string.h>

#define TABLE 512 /* open addressing: a quarter full at most */
#define FREE UINT16_MAX

static_assert(TABLE >= 4 * HK_CUDA_SMALL_BATCH && (TABLE & (TABLE - 1)) == 0, "places are found by a mask");
static_assert(HK_CUDA_SMALL_BATCH <= UINT8_MAX, "indices are bytes");
static_assert(sizeof(struct hk_cuda_launch) <= 4096, "what older versions of CUDA pass to a kernel");

/* Returns the task of a sensor's record, a new one if necessary. */
static uint32_t task_of(struct hk_cuda_small_batch *small, uint16_t *table, struct hk_cuda_record *record)
{
  uint32_t at = (uint32_t)(((uintptr_t)record * 0x9e3779b97f4a7c15u) >> 40) & (TABLE - 1);
  for (; table[at] != FREE; at = (at + 1) & (TABLE - 1))
    if (small->task[table[at]].record == record)
      return table[at];
  table[at] = (uint16_t)small->n;
  small->task[small->n] = (struct hk_cuda_task){ .record = record };
  return small->n++;
}

bool hk_small_batch_make(struct hk_cuda_small_batch *small, const struct hk_records *records, const struct hk_batch *batch)
{
  uint16_t table[TABLE], task[HK_CUDA_SMALL_BATCH];
  small->n = 0;
  if (batch->n == 0 || batch->n > HK_CUDA_SMALL_BATCH)
    return false;
  memset(table, 0xff, sizeof table);
  for (uint32_t i = 0; i < batch->n; i++) {
    const struct hk_cuda_slot *entry = hk_records_at(records, batch->slot[i]);
    if (!entry)
      return false;
    task[i] = (uint16_t)task_of(small, table, entry->record);
    small->detector[task[i]] = entry->detector;
    if (++small->task[task[i]].count > HK_BATCH_PER_SENSOR)
      return false;
  }
  uint32_t first = 0;
  for (uint32_t t = 0; t < small->n; t++) {
    small->task[t].first = first;
    first += small->task[t].count;
    small->task[t].count = 0;
  }
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_cuda_task *t = &small->task[task[i]];
    const uint32_t at = t->first + t->count++;
    small->order[at] = (uint8_t)i;
    small->time[at] = batch->time[i];
    small->value[at] = batch->value[i];
  }
  return true;
}
