/* What the kernels of algorithm = novelty share: the points of a sensor that are processed together, minima over lanes and
 * groups of four numbers, and places of a ring. */
#ifndef HK_NOVELTY_TURN_CUH
#define HK_NOVELTY_TURN_CUH

#include "cpu/novelty/tail.h"
#include "gpu/backend/device_types.h"
#include "gpu/backend/global.cuh"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_RUN 16u /* maximum points of a sensor that share a pass; a multiple of four */
#define HK_FEW 4u  /* of these, up to so many wait for the lags that matter only */
#define HK_LISTS (2 * HK_NOVELTY_CHANNELS)

static_assert(sizeof(struct hk_novelty) % 16 == 0 && sizeof(struct hk_cuda_record) % 16 == 0, "columns begin at 16 bytes");
static_assert(HK_RUN <= HK_NOVELTY_BLOCK, "a run closes at most one block of a list");

/* A point that was taken. An array of these is never one of struct hk_novelty_point, which is shorter. */
struct taken : hk_novelty_point {
  struct hk_step step;
  uint32_t index; /* in the batch */
};

/* A sensor, and points of it that are processed together by a warp. */
struct turn {
  struct hk_cuda_record *record;
  struct hk_novelty_view view;
  struct taken *point;
  uint32_t n; /* points */
};

/* Whether a point is compared with all that is resident: it reaches all lags, or with channels = value all values. A later point
 * has at least the past of an earlier one. */
static __device__ __forceinline__ bool turn_grown(const struct hk_detector *d, const struct hk_novelty_point *p)
{
  return hk_novelty_value_alone(d) ? hk_novelty_values(d, p) == hk_novelty_resident(d)
                                   : hk_novelty_lags_counted(d, p) == hk_novelty_lags(d);
}

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

/* The groups of four places that all points are compared with whole. */
struct fours {
  uint32_t first, count, groups;

  __device__ __forceinline__ explicit fours(const struct places &p)
  {
    const int32_t begin = p.common + (-(p.origin + p.common) & 3);
    first = (uint32_t)p.place(begin) / 4;
    count = (uint32_t)max(p.shared - begin + 1, 0) / 4;
    groups = (uint32_t)p.room / 4;
  }

  /* Group number i; behind the end the last once more: a minimum does not mind. */
  __device__ __forceinline__ uint32_t operator[](uint32_t i) const
  {
    const uint32_t group = first + min(i, max(count, 1u) - 1);
    return group - (group >= groups ? groups : 0);
  }
};

#endif
