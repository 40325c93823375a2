/* Takes runs of points of grown sensors, by a warp: a lane for each sensor.
 *
 * What a sensor's points change stands in shared memory meanwhile, and points are copied to their runs by all lanes: in place,
 * each number of each lane would be a transaction of its own. */
#ifndef HK_NOVELTY_RUN_TAKE_CUH
#define HK_NOVELTY_RUN_TAKE_CUH

#include "gpu/backend/work_sharing.cuh"
#include "gpu/novelty/run.cuh"

#define HK_WORDS(bytes) ((uint32_t)(bytes) / 8)
#define HK_HEAD HK_WORDS(offsetof(struct hk_novelty, tail)) /* of a sensor's novelty, what points change while they are taken */
#define HK_WINDOW HK_WORDS(sizeof(struct hk_window))
#define HK_POINT HK_WORDS(sizeof(struct taken))
static_assert(offsetof(struct hk_novelty, tail) % 8 == 0 && sizeof(struct hk_window) % 8 == 0 && sizeof(struct taken) % 8 == 0,
              "copied in words");

/* Shared memory of a warp: of each lane, the sensor's window and head, and the point. An odd number of words, for the banks. */
struct take_desk {
  uint64_t word[HK_WARP][(HK_WINDOW + HK_HEAD + HK_POINT) | 1];
  uint64_t *to[HK_WARP]; /* where the point belongs; NULL: nowhere */
};

/* Whether a point at a time begins after a hole that makes means and lags begin anew: see hk_novelty_begins. */
static __device__ __forceinline__ bool take_begins(const struct hk_window *w, const struct hk_detector *d, int64_t time)
{
  return time > w->last_time && hk_window_missing(w, d, time) > HK_NOVELTY_HOLE && w->holes + 1 < HK_HOLES_MANY;
}

/* Copies the windows and heads of the lanes' sensors to the desk, or back: one sensor after the other by all lanes, as each lies
 * in a page of its own. mine: whether this lane has one. */
static __device__ __forceinline__ void take_copy(struct take_desk *desk, bool mine, struct hk_cuda_record *record,
                                                 const struct hk_detector *d, bool back)
{
  uint64_t *const window = mine ? (uint64_t *)&record->window : NULL, *const head =
                                                                          mine ? (uint64_t *)hk_cuda_novelty(record, d).novelty
                                                                               : NULL;
#pragma unroll 4
  for (uint32_t from = 0; from < HK_WARP; from++) {
    uint64_t *const w = (uint64_t *)__shfl_sync(HK_ALL, (unsigned long long)window, from), *const h = (uint64_t *)__shfl_sync(
                                                                                               HK_ALL, (unsigned long long)head,
                                                                                               from);
    if (w)
      for (uint32_t i = threadIdx.x % HK_WARP; i < HK_WINDOW + HK_HEAD; i += HK_WARP) {
        uint64_t *const at = i < HK_WINDOW ? &w[i] : &h[i - HK_WINDOW], *const word = &desk->word[from][i];
        if (back)
          *at = *word;
        else
          *word = *at;
      }
  }
  __syncwarp();
}

static __device__ __forceinline__ struct hk_window *take_window(struct take_desk *desk)
{
  return (struct hk_window *)desk->word[threadIdx.x % HK_WARP];
}

/* Of the sensor's novelty, the head alone. */
static __device__ __forceinline__ struct hk_novelty *take_novelty(struct take_desk *desk)
{
  return (struct hk_novelty *)(desk->word[threadIdx.x % HK_WARP] + HK_WINDOW);
}

/* Whether the next points of a sensor that is on the desk make a run: it is grown, also at the first. */
static __device__ __forceinline__ bool take_fits(struct take_desk *desk, const struct hk_cuda_launch &l,
                                                 const struct hk_cuda_task &task, const struct hk_detector *d)
{
  const struct hk_window *const w = take_window(desk);
  struct hk_novelty_point p;
  p.before = min(w->count, hk_detector_span(d) - 1);
  p.age = take_novelty(desk)->age;
  return w->started && !w->anew && turn_grown(d, &p) && !take_begins(w, d, hk_share_point(l, task, 0).time);
}

/* Puts the samples of the lanes' runs into the rings, those of a run by all lanes. ring: NULL where there is none. */
static __device__ __forceinline__ void take_put(const struct run *run, float *ring, uint32_t n)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
#pragma unroll 4
  for (uint32_t from = 0; from < HK_WARP; from++) {
    const struct run *const r = (const struct run *)__shfl_sync(HK_ALL, (unsigned long long)run, from);
    float *const to = (float *)__shfl_sync(HK_ALL, (unsigned long long)ring, from);
    const uint32_t points = __shfl_sync(HK_ALL, n, from);
    if (to && lane < points)
      to[r->point[lane].at] = r->point[lane].value;
  }
}

/* Takes a run of each lane's sensor, which is on the desk, up to HK_RUN points or to a hole. mine: whether this lane has one.
 * Returns how many points were taken, including those that do not count. */
static __device__ __forceinline__ uint32_t take_runs(struct take_desk *desk, const struct hk_cuda_launch &l, bool mine,
                                                     const struct hk_cuda_task &task, const struct hk_detector *d,
                                                     struct run *run)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_window *const window = take_window(desk);
  struct taken *const p = (struct taken *)(desk->word[lane] + HK_WINDOW + HK_HEAD);
  struct hk_novelty_view v = {};
  float *ring = NULL;
  uint32_t n = 0, at = 0;
  if (mine) {
    v = hk_cuda_novelty(task.record, d);
    v.novelty = take_novelty(desk); /* no point begins anew, so nothing after the head is touched */
    ring = hk_cuda_ring(task.record, d);
  }
  struct hk_point next = {};
  if (mine)
    next = hk_share_point(l, task, 0);
#pragma unroll 1
  for (bool goes = mine; __any_sync(HK_ALL, goes);) {
    uint64_t *to = NULL;
    if (goes) {
      const struct hk_point point = next;
      if (at + 1 < task.count)
        next = hk_share_point(l, task, at + 1);
      if (take_begins(window, d, point.time)) { /* also after points that do not count */
        goes = false;
      } else {
        const struct hk_step step = hk_novelty_take(&v, window, NULL, point.time, point.value, l.columns.arrival, p);
        l.columns.state[point.index] = step.state;
        l.columns.score[point.index] = NAN;
        at++;
        if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED) {
          to = (uint64_t *)&run->point[n];
          p->step = step;
          p->index = point.index;
          n++;
        }
        goes = at < task.count && n < HK_RUN && !window->anew;
      }
    }
    desk->to[lane] = to;
    __syncwarp();
#pragma unroll 4
    for (uint32_t i = lane; i < HK_WARP * HK_POINT; i += HK_WARP)
      if (desk->to[i / HK_POINT])
        desk->to[i / HK_POINT][i % HK_POINT] = desk->word[i / HK_POINT][HK_WINDOW + HK_HEAD + i % HK_POINT];
    __syncwarp();
  }
  if (mine) {
    run->record = task.record;
    run->detector = d;
    run->n = n;
  }
  take_put(run, ring, n);
  take_copy(desk, mine, task.record, d, true);
  return at;
}

#endif
