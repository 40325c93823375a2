/* The kernel of algorithm = shift: one lane for each sensor, which computes cpu/shift/shift.h point by point. */
#include "cpu/shift/alert.h"
#include "gpu/backend/lane_kernel.cuh"

struct shift_rule {
  static __device__ __noinline__ void tick(const struct hk_detector *d, struct hk_cuda_record *record,
                                           const struct hk_cuda_columns *columns, const struct hk_point *point)
  {
    const struct hk_shift_view v = hk_cuda_shift(record, d);
    float *const ring = hk_cuda_ring(record, d);
    double above;
    const struct hk_step step =
        hk_shift_take(&v, &record->window, ring, point->time, point->value, columns->arrival, record->alert.raised, &above);
    columns->state[point->index] = step.state;
    columns->score[point->index] = step.score ? (float)hk_shift_score(above) : NAN;
    struct hk_event event;
    if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
        hk_shift_decide(&record->alert, &v, &record->window, ring, step, above, &event))
      hk_tick_event(columns, record, point->index, &event);
  }
};

HK_LANE_KERNEL(hk_cuda_shift_kernel, shift_rule);
