/* From rings to lanes and back: centring and scaling as hk_span_prepare defines them, feedback vectors, a0. Plain loops over
 * the lanes, which compilers turn into vectors. */
#include "cpu/lanes.h"

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

/* Numbers first..first+count-1 of a span into lane l of x. */
static void read_ring(float *x, uint32_t l, const struct hk_task *task, uint32_t span, uint32_t first, uint32_t count)
{
  uint32_t from = task->window->head + first;
  from -= from >= span ? span : 0;
  const uint32_t straight = count < span - from ? count : span - from;
  float *out = x + l;
  for (uint32_t i = 0; i < straight; i++, out += HK_LANES)
    *out = task->ring[from + i];
  for (uint32_t i = 0; i < count - straight; i++, out += HK_LANES)
    *out = task->ring[i];
}

/* Centres and scales x, `reach` numbers a lane. mean is NULL where each lane has its own, of these numbers. zero: the largest
 * magnitude that is taken as nothing. Returns the lanes that are. */
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
  double zero[HK_LANES], mean[HK_LANES];
  memset(work->past, 0, whole * sizeof(vec));
  memset(work->present, 0, whole * sizeof(vec));
  EACH_LANE
  {
    zero[l] = HK_ZERO_ABSOLUTE;
    mean[l] = 0;
    if (l < n) {
      read_ring(work->past, l, task + l, span, 0, reach);
      read_ring(work->present, l, task + l, span, d->gap, reach);
      mean[l] = d->scale == HK_SCALE_BASELINE ? task[l].window->mean : -task[l].window->reference;
      zero[l] = fmax(zero[l], (double)ring_top(task[l].ring, span) * HK_ZERO_RELATIVE);
    }
  }
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

void feedback_load(struct hk_work *work, const struct hk_task *task, uint32_t n)
{
  memset(work->q, 0, work->shape.padded * sizeof(vec));
  for (uint32_t l = 0; l < n; l++)
    for (uint32_t i = 0; i < work->shape.window; i++)
      work->q[i * HK_LANES + l] = task[l].feedback[i];
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
  for (uint32_t l = 0; l < n; l++) {
    if (stays[l])
      continue;
    for (uint32_t i = 0; i < w; i++)
      task[l].feedback[i] = work->u[i * HK_LANES + l];
  }
}
