/* The work space of a warp for a sensor of algorithm = novelty whose points are processed one by one: while it is young, a few
 * together. */
#ifndef HK_NOVELTY_STATION_CUH
#define HK_NOVELTY_STATION_CUH

#include "gpu/novelty/lags.cuh"
#include "gpu/novelty/rate.cuh"

#define HK_WARPS 7u /* warps of a block, each with a sensor of its own */
#define HK_THREADS (HK_WARPS * HK_WARP)
#define HK_BLOCKS 4 /* blocks of a multiprocessor */
#define HK_YOUNG 4u /* maximum points of a young sensor that are processed together */
static_assert(HK_YOUNG <= HK_RUN, "points that are rated together");

/* The current sensor, and its points. */
struct station {
  struct hk_cuda_task task;
  uint32_t at; /* its next point */
  bool held;   /* the point after these was already accepted */
  struct turn turn;
  struct taken point[HK_YOUNG + 1];
  union {
    struct lags_desk<2> lags;
    struct rate_desk<HK_YOUNG> rates;
  };
};

#endif
