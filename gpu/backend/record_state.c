#include "gpu/backend/record_state.h"

#include "cpu/graph/state.h"
#include "cpu/limit/state.h"
#include "cpu/novelty/state.h"
#include "cpu/shift/state.h"
#include "cpu/sst/kernels.h"
#include "cpu/sst/score.h"

#include <string.h>

/* The graph of a record on the host. The device empties it with the first point: what stands there before is nothing. */
static struct hk_graph_view graph_of(struct hk_cuda_record *record, const struct hk_detector *d)
{
  struct hk_graph_view v = hk_cuda_graph(record, d);
  if (!record->window.started)
    hk_graph_reset_numbers(&v, false);
  return v;
}

/* And its shift. */
static struct hk_shift_view shift_of(struct hk_cuda_record *record, const struct hk_detector *d)
{
  const struct hk_shift_view v = hk_cuda_shift(record, d);
  if (!record->window.started)
    hk_shift_reset(&v);
  return v;
}

/* And its novelty. */
static struct hk_novelty_view novelty_of(struct hk_cuda_record *record, const struct hk_detector *d)
{
  const struct hk_novelty_view v = hk_cuda_novelty(record, d);
  if (!record->window.started)
    hk_novelty_reset(&v);
  return v;
}

/* And its limit. */
static struct hk_limit_view limit_of(struct hk_cuda_record *record, const struct hk_detector *d)
{
  const struct hk_limit_view v = hk_cuda_limit(record, d);
  if (!record->window.started)
    hk_limit_reset(&v);
  return v;
}

/* The device makes the feedback vector with the first score: what stands there before is nothing. */
size_t hk_cuda_record_export(struct hk_cuda_record *record, const struct hk_detector *d, void *state, size_t size)
{
  const float *const ring = hk_cuda_ring(record, d);
  if (d->algorithm == HK_ALGORITHM_GRAPH) {
    const struct hk_graph_view v = graph_of(record, d);
    return (size_t)hk_graph_export(&record->window, &record->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_SHIFT) {
    const struct hk_shift_view v = shift_of(record, d);
    return (size_t)hk_shift_export(&record->window, &record->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_NOVELTY) {
    const struct hk_novelty_view v = novelty_of(record, d);
    if (record->window.started)
      hk_lag_groups_bring(&v, hk_cuda_lag_groups(record, d), ring, record->window.head, hk_kernels()->novelty_bring);
    return (size_t)hk_novelty_export(&record->window, &record->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_LIMIT) {
    const struct hk_limit_view v = limit_of(record, d);
    return (size_t)hk_limit_export(&record->window, &record->alert, &v, ring, state, size);
  }
  const size_t bytes = hk_state_size(d, record->window.count);
  if (bytes > size)
    return bytes;
  if (!record->window.started || record->anew)
    hk_feedback_reset(hk_cuda_feedback(record), record->window.seed, d->window);
  hk_state_write(state, d, &record->window, &record->alert, ring, hk_cuda_feedback(record));
  return bytes;
}

int hk_cuda_record_import(struct hk_cuda_record *record, const struct hk_detector *d, const void *state, size_t size)
{
  float *const ring = hk_cuda_ring(record, d);
  if (d->algorithm == HK_ALGORITHM_GRAPH) {
    const struct hk_graph_view v = hk_cuda_graph(record, d);
    return hk_graph_import(&record->window, &record->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_SHIFT) {
    const struct hk_shift_view v = hk_cuda_shift(record, d);
    const int status = hk_shift_import(&record->window, &record->alert, &v, ring, state, size);
    if (status == 0)
      hk_shift_spans(&v, &record->window, ring);
    return status;
  }
  if (d->algorithm == HK_ALGORITHM_NOVELTY) {
    const struct hk_novelty_view v = hk_cuda_novelty(record, d);
    const int status = hk_novelty_import(&record->window, &record->alert, &v, ring, state, size);
    for (uint32_t g = 0; g < hk_lag_groups(d); g++)
      hk_cuda_lag_groups(record, d)[g] = (struct hk_lag_group){ 0, record->window.head };
    return status;
  }
  if (d->algorithm == HK_ALGORITHM_LIMIT) {
    const struct hk_limit_view v = hk_cuda_limit(record, d);
    return hk_limit_import(&record->window, &record->alert, &v, ring, state, size);
  }
  const int status = hk_state_read(state, size, d, &record->window, &record->alert, ring, hk_cuda_feedback(record));
  float first[HK_WINDOW_MAX];
  if (!status) { /* what was not fed back yet is made by the device again, so that a sensor which moves goes on bit by bit */
    hk_feedback_reset(first, record->window.seed, d->window);
    record->anew = memcmp(first, hk_cuda_feedback(record), d->window * sizeof *first) == 0;
  }
  return status;
}
