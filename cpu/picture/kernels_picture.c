/* Filters of picture rows: see rows.h. Lanes are pixels beside each other. Compiled without contraction of products and sums, so
 * that every instruction set gives the same bits. */
#include "cpu/picture/rows.h"
#include "cpu/picture/tile_sums.h"
#include "cpu/sst/lanes.h"

#define REACH 7 /* of the box of 15 x 15 */

ALWAYS_INLINE void picture_store(float *x, vec v)
{
  *(loose *)x = v;
}

/* Of a NaN either may come out, since pixels near NaNs are computed again. */
#define HK_MEDIAN_TYPE vec
#define HK_MEDIAN_MIN smaller
#define HK_MEDIAN_MAX larger
#include "cpu/picture/median.h"

static void median_3(float *out, const float *const *row, uint32_t w, float *const *work)
{
  for (int32_t i = -(int32_t)HK_LANES; i < (int32_t)w + 1; i += HK_LANES) {
    vec x[3];
    for (int k = 0; k < 3; k++)
      x[k] = load(row[k] + i);
    HK_SORT_3(x);
    for (int k = 0; k < 3; k++)
      picture_store(work[k] + i, x[k]);
  }
  for (uint32_t i = 0; i < w; i += HK_LANES) {
    vec x[3][3];
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++)
        x[j][k] = load(work[k] + i + j - 1);
    picture_store(out + i, HK_MEDIAN_9(x[0], x[1], x[2]));
  }
}

static void median_5(float *out, const float *const *row, uint32_t w, float *const *work)
{
  for (int32_t i = -(int32_t)HK_LANES; i < (int32_t)w + 2; i += HK_LANES) {
    vec x[5];
    for (int k = 0; k < 5; k++)
      x[k] = load(row[k] + i);
    HK_SORT_5(x);
    for (int k = 0; k < 5; k++)
      picture_store(work[k] + i, x[k]);
  }
  for (uint32_t i = 0; i < w; i += HK_LANES) {
    vec x[25];
    UNROLL for (int k = 0; k < 5; k++) UNROLL for (int j = 0; j < 5; j++) x[5 * k + j] = load(work[k] + i + j - 2);
    HK_MEDIAN_25(x);
    picture_store(out + i, x[12]);
  }
}

/* Sums of 15 by sums of 2, 4 and 8. */
static void kernels_picture_across(float *out, const float *in, uint32_t w)
{
  for (uint32_t i = 0; i < w; i += HK_LANES) {
    const float *x = in + i - REACH;
#define TWO(at) (load(x + (at)) + load(x + (at) + 1))
#define FOUR(at) (TWO(at) + TWO((at) + 2))
    picture_store(out + i, ((FOUR(0) + FOUR(4)) + FOUR(8)) + (TWO(12) + load(x + 14)));
  }
}

static void less_mean(float *out, const float *in, const float *const *sum, const float *const *count, uint32_t w)
{
  for (uint32_t i = 0; i < w; i += HK_LANES) {
    vec total = load(sum[0] + i), n = every(225);
    for (int k = 1; k < 2 * REACH + 1; k++)
      total += load(sum[k] + i);
    if (count) {
      n = load(count[0] + i);
      for (int k = 1; k < 2 * REACH + 1; k++)
        n += load(count[k] + i);
    }
    picture_store(out + i, load(in + i) - total / n);
  }
}

static void laplacian(float *out, const float *in, const float *above, const float *below, uint32_t w)
{
  for (uint32_t i = 0; i < w; i += HK_LANES)
    picture_store(out + i, (4 * load(in + i) - (load(above + i) + load(below + i))) - (load(in + i - 1) + load(in + i + 1)));
}

static void kernels_picture_add(const struct hk_picture_columns *c, const float *in, uint32_t w, uint32_t begins)
{
  for (uint32_t i = 0; i < w; i += HK_LANES) {
    const vec x = load(in + i), none = every(0);
    const mask there = x == x;
    vec n = begins ? none : load(c->n + i), first = begins ? none : load(c->first + i);
    const vec greatest = begins ? every(-INFINITY) : load(c->most + i);
    first = pick(there & (n == 0), x, first);
    const vec d = keep(there, x - first);
    n += keep(there, every(1));
    picture_store(c->n + i, n);
    picture_store(c->first + i, first);
    picture_store(c->most + i, pick(there & (x > greatest), x, greatest));
    picture_store(c->sum + i, d + (begins ? none : load(c->sum + i)));
    picture_store(c->square + i, d * d + (begins ? none : load(c->square + i)));
  }
}

const struct hk_picture_rows picture_rows = { median_3,  median_5,  kernels_picture_across,
                                              less_mean, laplacian, kernels_picture_add };
