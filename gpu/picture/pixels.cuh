/* Pixels of a strip, four a lane, as the filters have them. */
#ifndef HK_PICTURE_PIXELS_CUH
#define HK_PICTURE_PIXELS_CUH

#include "cpu/picture/tile_sums.h"
#include "gpu/picture/task.h"

#define ALL 0xffffffffu /* lanes */

/* Four pixels of a row as they lie in memory, of BYTES bytes each. */
template <int BYTES> struct raw;
template <> struct raw<1> {
  uint32_t all;
};
template <> struct raw<2> {
  uint2 all;
};
template <> struct raw<4> {
  uint4 all;
};

static __device__ __forceinline__ uint32_t pixel_at(const uint8_t *x, int32_t i)
{
  return __ldg(x + i);
}
static __device__ __forceinline__ uint32_t pixel_at(const uint16_t *x, int32_t i)
{
  return __ldg(x + i);
}

/* The four pixels from column c on, a multiple of 4; `whole`: they lie together, at a multiple of their size. Beyond the edges
 * the nearest pixel repeats. */
static __device__ __forceinline__ void fetch_four(raw<1> &out, const char *row, int32_t c, int32_t last, bool whole)
{
  const uint8_t *x = (const uint8_t *)row;
  if (whole)
    out.all = __ldg((const uint32_t *)(x + c));
  else
    out.all = pixel_at(x, min(max(c, 0), last)) | pixel_at(x, min(max(c + 1, 0), last)) << 8 |
              pixel_at(x, min(max(c + 2, 0), last)) << 16 | pixel_at(x, min(max(c + 3, 0), last)) << 24;
}
static __device__ __forceinline__ void fetch_four(raw<2> &out, const char *row, int32_t c, int32_t last, bool whole)
{
  const uint16_t *x = (const uint16_t *)row;
  if (whole) {
    out.all = __ldg((const uint2 *)(x + c));
  } else {
    out.all.x = pixel_at(x, min(max(c, 0), last)) | pixel_at(x, min(max(c + 1, 0), last)) << 16;
    out.all.y = pixel_at(x, min(max(c + 2, 0), last)) | pixel_at(x, min(max(c + 3, 0), last)) << 16;
  }
}
static __device__ __forceinline__ void fetch_four(raw<4> &out, const char *row, int32_t c, int32_t last, bool whole)
{
  const uint32_t *x = (const uint32_t *)row;
  if (whole) {
    out.all = __ldg((const uint4 *)(x + c));
  } else {
    out.all.x = __ldg(x + min(max(c, 0), last));
    out.all.y = __ldg(x + min(max(c + 1, 0), last));
    out.all.z = __ldg(x + min(max(c + 2, 0), last));
    out.all.w = __ldg(x + min(max(c + 3, 0), last));
  }
}

/* Pixels of whole numbers of 8 or 16 bits, two in a word. */
template <int BYTES_OF> struct whole {
  typedef uint32_t number; /* two pixels */
  enum { WORDS = 2, ALL_THERE = 1, BYTES = BYTES_OF };
  static __device__ __forceinline__ void widen(uint32_t (&x)[2], const raw<1> &raw)
  {
    x[0] = __byte_perm(raw.all, 0, 0x4140);
    x[1] = __byte_perm(raw.all, 0, 0x4342);
  }
  static __device__ __forceinline__ void widen(uint32_t (&x)[2], const raw<2> &raw)
  {
    x[0] = raw.all.x;
    x[1] = raw.all.y;
  }
  /* A number with the upper half of 2^23 in front of it is a float that much larger. */
  static __device__ __forceinline__ void as_floats(float (&y)[4], const uint32_t (&x)[2])
  {
#pragma unroll
    for (int k = 0; k < 2; k++) {
      y[2 * k] = __uint_as_float(__byte_perm(x[k], 0x4b000000, 0x7610)) - 8388608.0f;
      y[2 * k + 1] = __uint_as_float(__byte_perm(x[k], 0x4b000000, 0x7632)) - 8388608.0f;
    }
  }
};

/* Pixels that are halves or floats; missing ones are NaN. */
template <int BYTES_OF> struct real {
  typedef float number;
  enum { WORDS = 4, ALL_THERE = 0, BYTES = BYTES_OF };
  static __device__ __forceinline__ float there(float v) { return hk_picture_there(v) ? v + 0.0f : __int_as_float(0x7fffffff); }
  static __device__ __forceinline__ float half(uint32_t bits) { return there(__half2float(__ushort_as_half((uint16_t)bits))); }
  static __device__ __forceinline__ void widen(float (&x)[4], const raw<2> &raw)
  {
    x[0] = half(raw.all.x & 0xffff);
    x[1] = half(raw.all.x >> 16);
    x[2] = half(raw.all.y & 0xffff);
    x[3] = half(raw.all.y >> 16);
  }
  static __device__ __forceinline__ void widen(float (&x)[4], const raw<4> &raw)
  {
    x[0] = there(__uint_as_float(raw.all.x));
    x[1] = there(__uint_as_float(raw.all.y));
    x[2] = there(__uint_as_float(raw.all.z));
    x[3] = there(__uint_as_float(raw.all.w));
  }
  static __device__ __forceinline__ void as_floats(float (&y)[4], const float (&x)[4])
  {
#pragma unroll
    for (int j = 0; j < 4; j++)
      y[j] = x[j];
  }
};

#define AHEAD 4 /* rows that are on their way */

/* The last rows of pixels that were read. */
template <typename P, int ROWS> struct rows_read {
  typename P::number x[ROWS][P::WORDS];
  raw<P::BYTES> ahead[AHEAD];
  const char *at; /* the row that is fetched next, of number `row`, and the lane's first column */
  int32_t row, c, height, width;
  bool whole;

  /* Before the first `next`, after which x has the rows from `first` on. */
  __device__ __forceinline__ void begin(const struct hk_pictures_task &t, const char *picture, int32_t first, int32_t column)
  {
    row = first;
    c = column;
    height = (int32_t)t.height;
    width = (int32_t)t.width;
    whole = width % 4 == 0 && c >= 0 && c < width;
    at = picture + (size_t)(first > 0 ? first : 0) * t.width * P::BYTES;
#pragma unroll
    for (int k = 1; k < ROWS; k++) {
      fetch(ahead[0]);
      P::widen(x[k], ahead[0]);
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
      fetch(ahead[k]);
  }
  /* Fetches the next row; before the first and behind the last one these repeat. */
  __device__ __forceinline__ void fetch(raw<P::BYTES> &out)
  {
    fetch_four(out, at, c, width - 1, whole);
    at += row >= 0 && row + 1 < height ? (size_t)width * P::BYTES : 0;
    row++;
  }
  __device__ __forceinline__ void next()
  {
#pragma unroll
    for (int k = 0; k + 1 < ROWS; k++)
#pragma unroll
      for (int j = 0; j < P::WORDS; j++)
        x[k][j] = x[k + 1][j];
    P::widen(x[ROWS - 1], ahead[0]);
#pragma unroll
    for (int k = 0; k + 1 < AHEAD; k++)
      ahead[k] = ahead[k + 1];
    fetch(ahead[AHEAD - 1]);
  }
};

#endif
