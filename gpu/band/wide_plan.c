/* Segments of wide bands: see wide_plan.h. */
#include "gpu/band/wide_plan.h"

#include <math.h>

/* Measured (tests/bench/results/band-wide.txt): what a step of a block takes hardly depends on the number of segments, and a row
 * of separators counts for two of segments; so the sum of both is least with about 0.7 sqrt(n / half) segments. From WIDE
 * diagonals on the products take the time, of which two segments have no more than one, and from WIDEST on blocks are the deeper
 * the better. */
#define WIDE 700u
#define WIDEST 1500u

static uint32_t wide_plan_smaller(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static uint32_t block_of(uint32_t half, uint32_t wanted)
{
  return wanted ? wanted : half < WIDEST ? 4 * HK_WIDE_PANEL : 8 * HK_WIDE_PANEL;
}

/* Diagonals below of the system of the separators. */
static uint32_t whole_below(uint32_t half, uint32_t segments)
{
  return segments == 2 ? half - 1 : 2 * half - 1;
}

static uint32_t segments_of(const struct hk_band_shape *s, uint32_t half, uint32_t wanted, bool clusters)
{
  uint32_t segments = wanted ? wanted : half < WIDE ? (uint32_t)(0.7 * sqrt((double)s->n / (half + 1.0))) : 2;
  segments = wide_plan_smaller(segments, HK_WIDE_SEGMENTS);
  while (segments > 1 &&
         (half == 0 || (s->n - (segments - 1) * (uint64_t)half) / segments < 2 * (uint64_t)half ||
          s->n < (segments - 1) * (uint64_t)half || hk_wide_panel_blocks(whole_below(half, segments), clusters) == 0))
    segments--;
  return segments == 0 ? 1 : segments;
}

static void lay_segments(struct hk_wide_plan *p, const struct hk_band_shape *s, uint32_t half, uint32_t segments)
{
  const uint32_t inner = s->n - (segments - 1) * half;
  uint32_t low = 0;
  for (uint32_t i = 0; i < segments; i++) {
    const uint32_t n = inner / segments + (i < inner % segments);
    const bool last = i + 1 == segments, turned = last && segments > 1;
    p->segment[i] = (struct hk_wide_segment){ .n = n,
                                              .after = segments > 1 ? half : 0,
                                              .border = i == 0 || last ? 0 : half,
                                              .low = turned ? s->n - 1 : low,
                                              .turned = turned };
    low += n + half;
  }
  p->parts.segments = segments;
  p->parts.longest = p->segment[0].n;
  p->parts.after = segments > 1 ? half : 0;
  p->parts.border = segments > 2 ? half : 0;
}

/* Columns are an even number of numbers apart and begin at an even one, so that pairs of rows are read together. */
static size_t stride_of(uint32_t below, uint32_t reach, uint32_t block)
{
  return (below + (size_t)reach + 2 * block + 3) / 4 * 4 + 5;
}

static size_t even(size_t at)
{
  return (at + 1) / 2 * 2;
}

void hk_wide_plan_make(struct hk_wide_plan *p, const struct hk_band_shape *s, const struct hk_band_wide_way *way, bool clusters)
{
  const uint32_t half = s->below > s->above ? s->below : s->above, wanted = way ? way->block : 0,
                 segments = segments_of(s, half, way ? way->segments : 0, clusters);
  *p = (struct hk_wide_plan){ .block = block_of(half, wanted) };
  lay_segments(p, s, half, segments);
  p->parts.below = segments > 1 ? half : s->below; /* a turned segment has diagonals below and above exchanged */
  p->parts.reach = segments > 1 ? 2 * half : s->below + s->above;
  p->parts.stride = stride_of(p->parts.below, p->parts.reach, p->block);
  p->parts.clusters = clusters;
  p->numbers = 0;
  if (segments > 1) {
    const uint32_t n = (segments - 1) * half, below = wide_plan_smaller(whole_below(half, segments), n - 1);
    p->segment[segments] = (struct hk_wide_segment){ .n = n };
    p->whole_block = block_of(below, wanted);
    p->whole = (struct hk_wide_layout){ .segments = 1,
                                        .longest = n,
                                        .below = below,
                                        .reach = 2 * below,
                                        .stride = stride_of(below, 2 * below, p->whole_block),
                                        .clusters = clusters };
  }
  hk_wide_plan_place(p, NULL, NULL);
}

/* Sets a segment's addresses. Returns the number after its last one. */
static size_t place(struct hk_wide_segment *s, const struct hk_wide_layout *l, uint32_t block, double *numbers, size_t at)
{
  const size_t rows = s->n + s->after, panels = (s->n + HK_WIDE_PANEL - 1) / HK_WIDE_PANEL;
  const size_t band = even(at + block + l->reach), columns = even(at + rows * l->stride),
               left = even(columns + rows * (s->border + 1)), corner = left + rows * s->border,
               x = corner + s->border * ((size_t)s->border + 1), exchange = x + rows;
  if (numbers) {
    s->band = numbers + band;
    s->columns = numbers + columns;
    s->left = s->border ? numbers + left : NULL;
    s->corner = numbers + corner;
    s->x = numbers + x;
    s->exchange = (struct hk_wide_exchange *)(void *)(numbers + exchange);
  }
  return exchange + panels * (sizeof(struct hk_wide_exchange) / sizeof(double));
}

void hk_wide_plan_place(struct hk_wide_plan *p, double *numbers, const struct hk_wide_segment *segments)
{
  size_t at = 0;
  for (uint32_t i = 0; i < p->parts.segments; i++)
    at = place(&p->segment[i], &p->parts, p->block, numbers, at);
  if (p->whole.segments)
    at = place(&p->segment[p->parts.segments], &p->whole, p->whole_block, numbers, at);
  p->numbers = at;
  p->parts.segment = segments;
  p->whole.segment = segments ? segments + p->parts.segments : NULL;
}
