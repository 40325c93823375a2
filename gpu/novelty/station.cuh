/* The work space of a warp for a sensor of algorithm = novelty: the run of points that share a pass, the results of the passes,
 * and the result of each point. */
#ifndef HK_NOVELTY_STATION_CUH
#define HK_NOVELTY_STATION_CUH

#include "cpu/novelty/tail.h"
#include "gpu/backend/device_types.h"
#include "gpu/backend/global.cuh"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_WARPS 7u /* warps of a block, each with a sensor of its own */
#define HK_THREADS (HK_WARPS * HK_WARP)
#define HK_BLOCKS 4 /* blocks of a multiprocessor */
#define HK_RUN 16u  /* maximum points of a sensor that share a pass; a multiple of four */
#define HK_FEW 4u   /* of these, up to so many wait for the lags that matter only */
#define HK_LISTS (2 * HK_NOVELTY_CHANNELS)

static_assert(sizeof(struct hk_novelty) % 16 == 0 && sizeof(struct hk_cuda_record) % 16 == 0, "columns begin at 16 bytes");

/* Samples of a group of lags, which is at least HK_LINE_LEAST. */
#define HK_LINE_LEAST (HK_LAG_GROUP + HK_WARP)
#define HK_LINE (HK_LINE_LEAST + HK_LAG_LATE)
static_assert(HK_LINE_LEAST >= HK_LAG_GROUP + HK_RUN + 3, "the samples of a run");

/* Shared memory of the passes: for each point what is read of it, and the minima so far. Points are passed four at a time: what
 * is read of four stands together. */
struct __align__(16) findings
{
  float4 here[HK_RUN];    /* its slow means, then its value */
  float4 weight[HK_RUN];  /* of the means */
  float value[HK_RUN];    /* behind the last point stand copies of it, to a multiple of four */
  uint32_t place[HK_RUN]; /* of the least variance */
  union {
    struct {
      float4 least[HK_RUN / 4][HK_WARP]; /* each lane's: distances of values, or squares of those of rows; see run_least */
      float samples[2 * HK_LAG_GROUP];   /* of all lags: a group's, and the next one's */
      int32_t variance[HK_RUN];          /* the warp's: bits of the least */
    };
    struct {
      float line[2][HK_LINE];              /* samples that a group of lags compares points with, and those of the next group */
      float late[HK_LAG_LATE + HK_RUN];    /* points: those before the run, then the run's, */
      int32_t shape[HK_LAG_LATE + HK_RUN]; /* and the warp's bits of their least variances, -1 before the run */
    };
  };
};

/* The current sensor, and its run of points. */
struct station {
  struct hk_cuda_task task;
  uint32_t at; /* its next point */
  uint32_t n;  /* points of the current run */
  bool held;   /* the point after the run was already accepted */
  struct hk_novelty_view view;
  struct hk_novelty_point point[HK_RUN + 1];
  struct hk_step step[HK_RUN + 1];
  uint32_t index[HK_RUN + 1]; /* index in the batch */
  union {
    struct findings found;
    struct { /* what is made of them */
      float floored[HK_RUN][HK_NOVELTY_CHANNELS];
      uint32_t seen[HK_RUN][HK_NOVELTY_CHANNELS]; /* number of distances of the channel, including this one */
      struct hk_novelty_rating rating[HK_RUN][HK_LISTS];
      struct hk_novelty_fit fit[2][HK_LISTS]; /* of each list, before and after a block closes */
      uint32_t closes[HK_LISTS];              /* the point that closes a block of the list; n: none */
      union {
        double excess[2][HK_NOVELTY_TOP];
        struct hk_novelty_result result[HK_RUN];
      };
    };
  };
};

/* Stores in a point the minimum of the lanes' distances, none of which is negative. */
static __device__ __forceinline__ uint32_t least_tell(struct hk_novelty_point *p, uint32_t channel, float mine)
{
  const uint32_t least = __reduce_min_sync(HK_ALL, __float_as_uint(mine));
  if (threadIdx.x % HK_WARP == 0)
    p->nearest[channel] = __uint_as_float(least);
  return least;
}

/* The least distance of `value` to four others, or `best`. */
static __device__ __forceinline__ float nearer(float best, float4 x, float value)
{
  const float a = fminf(fabsf(x.x - value), fabsf(x.y - value)), b = fminf(fabsf(x.z - value), fabsf(x.w - value));
  return fminf(best, fminf(a, b));
}

/* CUDA 11 lacks the minimum of Hopper's own instructions. */
#if defined(CUDART_VERSION) && CUDART_VERSION < 12000
#define HK_LEAST_3(a, b, c) min(min(a, b), c)
#else
#define HK_LEAST_3 __vimin3_s32
#endif

/* The least of three numbers that are not negative, whose bits have their order. */
static __device__ __forceinline__ float least_of(float a, float b, float c)
{
  return __int_as_float(HK_LEAST_3(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}

/* The least of four distances, whose signs do not count, or `best`. */
static __device__ __forceinline__ float nearest_of(float best, float a, float b, float c, float d)
{
  return least_of(best, fminf(fabsf(a), fabsf(b)), fminf(fabsf(c), fabsf(d)));
}

/* The bits of the least of four variances. */
static __device__ __forceinline__ int32_t least_variance(float a, float b, float c, float d)
{
  return min(HK_LEAST_3(__float_as_int(a), __float_as_int(b), __float_as_int(c)), __float_as_int(d));
}

/* The places of a ring that points are compared with, relative to a place `origin`. */
struct places {
  int32_t origin, room, newest; /* what is over `newest` is as old as the room is long */
  int32_t lowest, highest;      /* of any point */
  int32_t common, shared;       /* lowest and highest of all points */

  __device__ __forceinline__ places(uint32_t at, uint32_t room, int32_t newest)
      : origin((int32_t)at), room((int32_t)room), newest(newest), lowest(INT32_MAX), highest(INT32_MIN), common(INT32_MIN),
        shared(INT32_MAX)
  {
  }

  __device__ __forceinline__ void take(int32_t from, int32_t to)
  {
    lowest = min(lowest, from);
    highest = max(highest, to);
    common = max(common, from);
    shared = min(shared, to);
  }

  __device__ __forceinline__ int32_t of(int32_t place) const
  {
    const int32_t o = place - origin;
    return o > newest ? o - room : o <= newest - room ? o + room : o;
  }

  __device__ __forceinline__ int32_t place(int32_t o) const
  {
    const int32_t at = origin + o;
    return at < 0 ? at + room : at >= room ? at - room : at;
  }

  /* Whether all points are compared with the whole group of four places that begins at o. */
  __device__ __forceinline__ bool whole(int32_t o) const { return o >= common && o + 3 <= shared; }

  /* The places of incomplete groups, one for each lane: at most 2 (HK_RUN - 1 + 3). False: none for this lane. */
  __device__ __forceinline__ bool rest(int32_t lane, int32_t *o) const
  {
    const int32_t first = common + (-(origin + common) & 3), n = shared - first + 1; /* room is a multiple of 4 */
    const int32_t behind = n >= 4 ? first + n / 4 * 4 : lowest, before = n >= 4 ? first - lowest : 0;
    *o = lane < before ? lowest + lane : behind + lane - before;
    return *o <= highest;
  }
};

#endif
