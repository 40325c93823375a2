/* Transfers between rings and lanes: centring and scaling as defined by hk_span_prepare, feedback vectors, a0. Plain loops over
 * the lanes, which compilers vectorise. */
#include "cpu/sst/lanes.h"

#define EACH_LANE for (uint32_t l = 0; l < HK_LANES; l++)

/* Largest magnitude of a ring. */
static float ring_top(const float *ring, uint32_t span)
{
  int32_t top = 0;
  for (uint32_t i = 0; i < span; i++) {
    int32_t bits;
    memcpy(&bits, ring + i, sizeof bits);
    bits &= INT32_MAX;
    top = bits > top ? bits : top;
  }
  float x;
  memcpy(&x, &top, sizeof x);
  return x;
}

typedef float four __attribute__((vector_size(16), aligned(4)));

/* Rows a, b, c, d become columns. */
ALWAYS_INLINE void transpose(four *a, four *b, four *c, four *d)
{
  const four ab = __builtin_shufflevector(*a, *b, 0, 4, 1, 5), cd = __builtin_shufflevector(*c, *d, 0, 4, 1, 5);
  const four ab2 = __builtin_shufflevector(*a, *b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(*c, *d, 2, 6, 3, 7);
  *a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *c = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
  *d = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

/* `count` numbers from a line for each lane to a block, and back to the first n lines. */
static void to_block(float *block, const float *const *line, uint32_t count)
{
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (uint32_t l = 0; l < HK_LANES; l += 4) {
      four a = *(const four *)(line[l] + i), b = *(const four *)(line[l + 1] + i);
      four c = *(const four *)(line[l + 2] + i), d = *(const four *)(line[l + 3] + i);
      transpose(&a, &b, &c, &d);
      float *const out = block + i * HK_LANES + l;
      *(four *)out = a;
      *(four *)(out + HK_LANES) = b;
      *(four *)(out + 2 * HK_LANES) = c;
      *(four *)(out + 3 * HK_LANES) = d;
    }
  }
  for (; i < count; i++)
    EACH_LANE block[i * HK_LANES + l] = line[l][i];
}

static void to_lines(float *const *line, const float *block, uint32_t count)
{
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (uint32_t l = 0; l < HK_LANES; l += 4) {
      const float *const in = block + i * HK_LANES + l;
      four a = *(const four *)in, b = *(const four *)(in + HK_LANES);
      four c = *(const four *)(in + 2 * HK_LANES), d = *(const four *)(in + 3 * HK_LANES);
      transpose(&a, &b, &c, &d);
      *(four *)(line[l] + i) = a;
      *(four *)(line[l + 1] + i) = b;
      *(four *)(line[l + 2] + i) = c;
      *(four *)(line[l + 3] + i) = d;
    }
  }
  for (; i < count; i++)
    EACH_LANE line[l][i] = block[i * HK_LANES + l];
}

/* Centres and scales x, `reach` numbers in each lane. mean: NULL if each lane has its own mean, of these numbers. zero: the
 * largest magnitude that counts as zero. Returns the lanes that are zero. */
static mask centre(float *x, uint32_t reach, const double *given, const double *zero)
{
  double mean[HK_LANES] = { 0 };
  if (given) {
    memcpy(mean, given, sizeof mean);
  } else {
    for (uint32_t i = 0; i < reach; i++)
      EACH_LANE mean[l] += (double)x[i * HK_LANES + l];
    EACH_LANE mean[l] /= reach;
  }
  vec top = { 0 };
  for (uint32_t i = 0; i < reach; i++) {
    float *const xi = x + i * HK_LANES;
    EACH_LANE xi[l] = (float)((double)xi[l] - mean[l]);
    top = larger(top, magnitude(*(const vec *)xi));
  }
  mask nothing, factor;
  EACH_LANE nothing[l] = (double)top[l] <= zero[l] ? -1 : 0;
  /* 2^-e, where frexp gives e: the exponent field of top is e + 126. */
  factor = (253 - ((mask)top >> 23)) << 23;
  const vec by = keep(~nothing, (vec)factor);
  for (uint32_t i = 0; i < reach; i++)
    ((vec *)x)[i] *= by;
  return nothing;
}

struct spans spans_load(struct hk_work *work, const struct hk_detector *d, const struct hk_task *task, uint32_t n)
{
  const uint32_t span = hk_detector_span(d), reach = 2 * d->window - 1, whole = 2 * work->shape.padded - 1;
  const float *past[HK_LANES], *present[HK_LANES];
  double zero[HK_LANES], mean[HK_LANES];
  EACH_LANE
  {
    float *const line = work->lines + (size_t)l * span;
    past[l] = line;
    present[l] = line + d->gap;
    zero[l] = HK_ZERO_ABSOLUTE;
    mean[l] = 0;
    if (l < n) {
      hk_window_copy(task[l].window, task[l].ring, span, line);
      mean[l] = d->scale == HK_SCALE_BASELINE ? task[l].window->mean : -task[l].window->reference;
      zero[l] = fmax(zero[l], (double)ring_top(line, span) * HK_ZERO_RELATIVE);
    } else {
      memset(line, 0, span * sizeof *line);
    }
  }
  to_block(work->past, past, reach);
  to_block(work->present, present, reach);
  memset(work->past + reach * HK_LANES, 0, (whole - reach) * sizeof(vec));
  memset(work->present + reach * HK_LANES, 0, (whole - reach) * sizeof(vec));
  const double *const given = d->scale == HK_SCALE_WINDOW ? NULL : mean;
  struct spans spans;
  spans.past_zero = centre(work->past, reach, given, zero);
  spans.present_zero = centre(work->present, reach, given, zero);
  return spans;
}

void spans_load_only(struct hk_work *work, const struct hk_detector *d, const struct hk_task *task, uint32_t n)
{
  (void)spans_load(work, d, task, n);
}

vec spans_energy(const float *x, uint32_t w)
{
  const vec *const v = (const vec *)x;
  vec up = { 0 }, down = { 0 };
  for (uint32_t m = 0; m + 1 < w; m++) {
    up += v[m] * v[m] * (float)(m + 1);
    down += v[2 * w - 2 - m] * v[2 * w - 2 - m] * (float)(m + 1);
  }
  return up + down + v[w - 1] * v[w - 1] * (float)w;
}

/* The lines hold zeros for lanes without a task, since spans_load. */
void feedback_load(struct hk_work *work, const struct hk_task *task, uint32_t n, uint32_t span)
{
  const uint32_t w = work->shape.window;
  const float *line[HK_LANES];
  EACH_LANE line[l] = l < n ? task[l].feedback : work->lines + (size_t)l * span;
  to_block(work->q, line, w);
  memset(work->q + w * HK_LANES, 0, (work->shape.padded - w) * sizeof(vec));
}

/* a0 needs few digits here, as only a thousandth of it is added: 32 bits of each element, and sums in float. */
void feedback_store(struct hk_work *work, struct hk_task *task, uint32_t n, mask stays)
{
  const uint32_t w = work->shape.window;
  const vec *const mu = (const vec *)work->mu;
  vec *const a = (vec *)work->u;
  uint64_t seed[HK_LANES];
  EACH_LANE seed[l] = l < n ? task[l].window->seed : 0;
  for (uint32_t i = 0; i < w; i++) {
    float *const out = (float *)(a + i);
    EACH_LANE
    {
      uint64_t z = seed[l] + i + 0x9e3779b97f4a7c15u;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      z ^= z >> 31;
      out[l] = (float)(int32_t)((uint32_t)(z >> 32) ^ 0x80000000u);
    }
  }
  const vec by = 1e-3f / root(dot(a, a, w));
  for (uint32_t i = 0; i < w; i++)
    a[i] = mu[i] + by * a[i];
  const vec unit = inverse(root(dot(a, a, w)));
  for (uint32_t i = 0; i < w; i++)
    a[i] *= unit;
  float *line[HK_LANES];
  EACH_LANE line[l] = l < n && !stays[l] ? task[l].feedback : work->lines + (size_t)l * w;
  to_lines(line, work->u, w);
}
