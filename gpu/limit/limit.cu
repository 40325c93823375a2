/* The kernel of algorithm = limit: one lane for each sensor, which computes cpu/limit/limit.h point by point. Once for each
 * block of a sensor, of about 30 points, its lane sorts 276 slopes in local memory, while the other lanes wait. */
#include "cpu/limit/alert.h"
#include "gpu/backend/lane_kernel.cuh"

struct limit_rule {
  static __device__ __noinline__ void tick(const struct hk_detector *d, struct hk_cuda_record *record,
                                           const struct hk_cuda_columns *columns, const struct hk_point *point)
  {
    const struct hk_limit_view v = hk_cuda_limit(record, d);
    float *const ring = hk_cuda_ring(record, d);
    struct hk_limit_check check;
    const struct hk_step step =
        hk_limit_take(&v, &record->window, ring, point->time, point->value, columns->arrival, record->alert.raised, &check);
    columns->state[point->index] = step.state;
    columns->score[point->index] = step.score ? (float)hk_limit_score(d, &check.outlook) : NAN;
    struct hk_event event;
    if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
        hk_limit_decide(&record->alert, &v, &record->window, step, &check, &event))
      hk_tick_event(columns, record, point->index, &event);
  }
};

HK_LANE_KERNEL(hk_cuda_limit_kernel, limit_rule);
