/* A strip of a picture: filtered row by row, and summed up by the columns of its tiles. */
#ifndef HK_PICTURE_STRIP_CUH
#define HK_PICTURE_STRIP_CUH

#include "gpu/picture/kept_rows.cuh"
#include "gpu/picture/medians.cuh"

/* How pictures are dealt to warps. */
struct deal {
  uint32_t strips, groups; /* of a picture: warps beside each other, and below each other */
  uint32_t span;           /* rows of a warp: a multiple of the tile */
};

/* Lanes on each side without results. */
template <int MEDIAN, int SUBTRACT>
static constexpr int lost_lanes = SUBTRACT == HK_PICTURE_BOX                       ? (MEDIAN == 5 ? 3 : 2)
                                  : SUBTRACT == HK_PICTURE_LAPLACIAN || MEDIAN > 0 ? 1
                                                                                   : 0;

/* Of four columns of a tile so far: see struct hk_picture_columns. */
struct columns {
  float n[4], first[4], most[4], sum[4], square[4];
};

static __device__ __forceinline__ void begin_columns(struct columns *c)
{
#pragma unroll
  for (int j = 0; j < 4; j++) {
    c->n[j] = c->first[j] = c->sum[j] = c->square[j] = 0;
    c->most[j] = __int_as_float(0xff800000);
  }
}

template <bool WHOLE> static __device__ __forceinline__ void add_row(struct columns *c, const float (&h)[4], bool begins)
{
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const bool there = WHOLE || h[j] == h[j];
    c->first[j] = (WHOLE ? begins : there && c->n[j] == 0) ? h[j] : c->first[j];
    const float d = there ? h[j] - c->first[j] : 0;
    c->n[j] += there ? 1.0f : 0.0f;
    c->most[j] = fmaxf(h[j], c->most[j]); /* neither is -0 */
    c->sum[j] += d;
    c->square[j] += d * d;
  }
}

static __device__ __forceinline__ float4 *as_four(float *x)
{
  return (float4 *)x;
}

/* Writes the columns of a tile; `to` is where the first number of its row of tiles is, of this lane. */
static __device__ __forceinline__ void store_columns(const struct columns &c, float *to, uint32_t pitch)
{
  *as_four(to) = make_float4(c.n[0], c.n[1], c.n[2], c.n[3]);
  *as_four(to + pitch) = make_float4(c.first[0], c.first[1], c.first[2], c.first[3]);
  *as_four(to + 2 * (size_t)pitch) = make_float4(c.most[0], c.most[1], c.most[2], c.most[3]);
  *as_four(to + 3 * (size_t)pitch) = make_float4(c.sum[0], c.sum[1], c.sum[2], c.sum[3]);
  *as_four(to + 4 * (size_t)pitch) = make_float4(c.square[0], c.square[1], c.square[2], c.square[3]);
}

/* Repeats the pixels of the picture's edges in the columns beyond. c: the lane's first column. */
template <int LOST> static __device__ __forceinline__ void repeat_columns(float (&y)[4], int32_t c, uint32_t lane, int32_t width)
{
  const int32_t strip = c - 4 * (int32_t)lane, last = width - 1 - strip;
  if (LOST > 0 && strip < 0) {
    const float edge = __shfl_sync(ALL, y[0], LOST);
#pragma unroll
    for (int j = 0; j < 4; j++)
      y[j] = c < 0 ? edge : y[j];
  }
  if (LOST > 0 && last < 127) {
    const float mine = last % 4 == 0 ? y[0] : last % 4 == 1 ? y[1] : last % 4 == 2 ? y[2] : y[3];
    const float edge = __shfl_sync(ALL, mine, last / 4);
#pragma unroll
    for (int j = 0; j < 4; j++)
      y[j] = c + j >= width ? edge : y[j];
  }
}

/* Deals pictures to about `enough` warps: more of them have to read more rows twice. */
template <int MEDIAN, int SUBTRACT> static struct deal deal_out(const struct hk_pictures_task *t, uint32_t enough)
{
  const uint32_t rows = hk_picture_tiles_over(t->height, t->rule.tile), width = 4 * (32 - 2 * lost_lanes<MEDIAN, SUBTRACT>);
  const uint32_t strips = (t->width + width - 1) / width, wanted = (enough + t->pictures * strips - 1) / (t->pictures * strips);
  const uint32_t each = wanted < rows ? rows / wanted : 1; /* rows of tiles of a warp */
  return { strips, (rows + each - 1) / each, each * t->rule.tile };
}

/* y of a row, from those around it. */
template <typename P, int MEDIAN, int ROWS>
static __device__ __forceinline__ void filtered_row(float (&out)[4], const typename P::number (&x)[ROWS][P::WORDS])
{
  if constexpr (MEDIAN > 0) {
    typename P::number y[P::WORDS];
    strip_medians<P, MEDIAN>(y, x);
    medians_mend<MEDIAN>(y, x);
    P::as_floats(out, y);
  } else {
    P::as_floats(out, x[0]);
  }
}

/* Filters the strip of warp number `warp`, and writes the columns of its tiles. */
template <typename P, int MEDIAN, int SUBTRACT>
static __device__ __forceinline__ void filter_strip(const struct hk_pictures_task &t, const struct deal &deal, uint32_t warp,
                                                    typename rows_kept<P, SUBTRACT>::memory *memory)
{
  constexpr int ROWS = MEDIAN > 0 ? MEDIAN : 1, LOST = lost_lanes<MEDIAN, SUBTRACT>;
  constexpr int SIDE = SUBTRACT == HK_PICTURE_BOX ? REACH : SUBTRACT == HK_PICTURE_LAPLACIAN ? 1 : 0;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t picture = warp / (deal.strips * deal.groups), of = warp % (deal.strips * deal.groups);
  if (picture >= t.pictures)
    return;
  const int32_t height = (int32_t)t.height, row = (int32_t)(of / deal.strips * deal.span),
                end = min(row + (int32_t)deal.span, height);
  const int32_t c = (int32_t)(of % deal.strips) * 4 * (32 - 2 * LOST) + 4 * ((int32_t)lane - LOST);
  const uint32_t pitch = hk_pictures_pitch(t.width), tile_rows = hk_picture_tiles_over(t.height, t.rule.tile);
  const bool gives = (int32_t)lane >= LOST && (int32_t)lane < 32 - LOST && c < (int32_t)t.width;
  float *to = t.columns + (size_t)(picture * tile_rows + (uint32_t)row / t.rule.tile) * HK_PICTURES_COLUMNS * pitch + c;
  struct rows_kept<P, SUBTRACT> kept;
  struct columns sums;
  struct rows_read<P, ROWS> read;
  float value[4], h[4];
  uint32_t within = 0;
  kept.begin(memory, lane);
  begin_columns(&sums);
  read.begin(t, t.pixels + picture * t.apart, max(row - SIDE, 0) - ROWS / 2, c);
  for (int32_t q = row - SIDE; q < end + SIDE; q++) {
    if (q == row - SIDE || (q > 0 && q < height)) {
      read.next();
      filtered_row<P, MEDIAN>(value, read.x);
      repeat_columns<LOST>(value, c, lane, (int32_t)t.width);
    }
    const int32_t at = q - SIDE;
    kept.put(h, value, q, at >= row);
    if (at < row)
      continue;
    add_row<P::ALL_THERE>(&sums, h, within == 0);
    if (++within < t.rule.tile && at + 1 < height)
      continue;
    within = 0;
    if (gives)
      store_columns(sums, to, pitch);
    begin_columns(&sums);
    to += HK_PICTURES_COLUMNS * (size_t)pitch;
  }
}

/* Sums up the columns of tile `number` of all pictures, as the host does. */
static __device__ __forceinline__ void sum_up_tile(const struct hk_pictures_task &t, uint32_t number)
{
  const uint32_t tile = t.rule.tile, down = hk_picture_tiles_over(t.height, tile), across = hk_picture_tiles_over(t.width, tile);
  const uint32_t row = number / across, from = number % across * tile, to = min(from + tile, t.width);
  if (number >= t.pictures * down * across)
    return;
  const uint32_t pitch = hk_pictures_pitch(t.width);
  float *n = t.columns + (size_t)row * HK_PICTURES_COLUMNS * pitch;
  const struct hk_picture_columns c = { n, n + pitch, n + 2 * (size_t)pitch, n + 3 * (size_t)pitch, n + 4 * (size_t)pitch };
  t.tiles[number] = hk_picture_sum_up(&c, from, to, min(tile, t.height - row % down * tile));
}

#endif
