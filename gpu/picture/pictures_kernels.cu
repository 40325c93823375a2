/* Pictures in two passes: the first reads the pixels once, filters them and sums up the columns of each tile, the second one sums
 * up the columns.
 *
 * Of the first, a warp goes down a strip of 128 columns, four of them a lane, row by row. Medians, sums and differences of
 * neighbouring columns come from the lanes beside by shuffles; a few lanes on both sides have no results, and the strips overlap
 * by these. Rows that are still needed lie in shared memory, where a lane reads nothing but what it has written itself. So no
 * warp waits for another.
 *
 * Pixels of 8 and 16 bits are sorted as pairs of 16 bits in a word; their sums are exact, so they may be taken down the columns
 * first, with one number added and one subtracted, and in any order across. Others are added in the host's order. */
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "gpu/picture/pictures_kernels.h"
#include "gpu/picture/strip.cuh"

#define THREADS 64u
#define WARPS (THREADS / 32u)
#define ENOUGH (132u * 10u) /* warps that a launch should have */

template <typename P, int MEDIAN, int SUBTRACT>
static __global__ void __launch_bounds__(THREADS)
    picture_filter(const __grid_constant__ struct hk_pictures_task t, const __grid_constant__ struct deal deal)
{
  static __shared__ typename rows_kept<P, SUBTRACT>::memory memory[WARPS];
  filter_strip<P, MEDIAN, SUBTRACT>(t, deal, blockIdx.x * WARPS + threadIdx.x / 32, &memory[threadIdx.x / 32]);
}

static __global__ void __launch_bounds__(THREADS) picture_tiles(const __grid_constant__ struct hk_pictures_task t)
{
  sum_up_tile(t, blockIdx.x * THREADS + threadIdx.x);
}

/* --- launch -------------------------------------------------------------------------------------------------------------- */

template <typename P, int MEDIAN, int SUBTRACT> static void filter(const struct hk_pictures_task *t, cudaStream_t stream)
{
  const struct deal deal = deal_out<MEDIAN, SUBTRACT>(t, ENOUGH);
  const uint32_t warps = t->pictures * deal.strips * deal.groups;
  picture_filter<P, MEDIAN, SUBTRACT><<<(warps + WARPS - 1) / WARPS, THREADS, 0, stream>>>(*t, deal);
}

template <typename P, int MEDIAN> static void filter_less(const struct hk_pictures_task *t, cudaStream_t stream)
{
  if (t->rule.subtract == HK_PICTURE_BOX)
    filter<P, MEDIAN, HK_PICTURE_BOX>(t, stream);
  else if (t->rule.subtract == HK_PICTURE_LAPLACIAN)
    filter<P, MEDIAN, HK_PICTURE_LAPLACIAN>(t, stream);
  else
    filter<P, MEDIAN, HK_PICTURE_NOTHING>(t, stream);
}

template <typename P> static void filter_median(const struct hk_pictures_task *t, cudaStream_t stream)
{
  if (t->rule.median == 3)
    filter_less<P, 3>(t, stream);
  else if (t->rule.median == 5)
    filter_less<P, 5>(t, stream);
  else
    filter_less<P, 0>(t, stream);
}

int hk_pictures_launch(const struct hk_pictures_task *t, cudaStream_t stream)
{
  const uint32_t tiles =
      t->pictures * hk_picture_tiles_over(t->height, t->rule.tile) * hk_picture_tiles_over(t->width, t->rule.tile);
  switch ((enum hk_picture_pixel)t->kind) {
  case HK_PICTURE_U8:
    filter_median<whole<1>>(t, stream);
    break;
  case HK_PICTURE_U16:
    filter_median<whole<2>>(t, stream);
    break;
  case HK_PICTURE_F16:
    filter_median<real<2>>(t, stream);
    break;
  case HK_PICTURE_F32:
    filter_median<real<4>>(t, stream);
    break;
  }
  picture_tiles<<<(tiles + THREADS - 1) / THREADS, THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}
