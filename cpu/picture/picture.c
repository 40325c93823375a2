/* Pictures: see picture.h. Vectors compute every pixel as if none were missing; those near a missing one are computed again, one
 * by one. */
#include "cpu/picture/picture.h"
#include "cpu/picture/rows.h"
#include "cpu/picture/tile_sums.h"
#include "cpu/sst/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define REACH 7      /* of the box */
#define BOX 15       /* rows of it */
#define WORK_ROWS 64 /* BOX rows of sums and of counts, twice BOX rows for these, 5 of sorted columns, 5 of tiles, one of h */

/* Rows with room for their edges, and `above` rows before the first and behind the last. */
struct plane {
  float *memory;
  size_t stride;
  uint32_t above;
};

struct hk_picture {
  struct hk_picture_rule rule;
  const struct hk_picture_rows *rows;
  uint32_t height, width;
  struct plane x, y, work; /* y.memory NULL: no median, y is x */
};

static int plane_open(struct plane *p, uint32_t rows, uint32_t width, uint32_t above)
{
  const size_t lanes = HK_PICTURE_BEYOND;
  p->stride = HK_PICTURE_EDGE + (width + lanes - 1) / lanes * lanes + HK_PICTURE_EDGE + HK_PICTURE_BEYOND;
  p->above = above;
  p->memory = calloc((rows + 2 * (size_t)above) * p->stride, sizeof *p->memory);
  return p->memory ? 0 : -ENOMEM;
}

static float *plane_row(const struct plane *p, int64_t r)
{
  return p->memory + (size_t)(r + p->above) * p->stride + HK_PICTURE_EDGE;
}

int hk_picture_new(struct hk_picture **out, const struct hk_picture_rule *rule, uint32_t height, uint32_t width)
{
  struct hk_picture *m = calloc(1, sizeof *m);
  if (!m)
    return -ENOMEM;
  m->rule = *rule;
  m->rows = hk_kernels()->picture;
  m->height = height;
  m->width = width;
  if (plane_open(&m->x, height, width, REACH) != 0 || plane_open(&m->work, WORK_ROWS, width, 0) != 0 ||
      (rule->median > 0 && plane_open(&m->y, height, width, REACH) != 0)) {
    hk_picture_free(m);
    return -ENOMEM;
  }
  *out = m;
  return 0;
}

void hk_picture_free(struct hk_picture *m)
{
  if (!m)
    return;
  free(m->x.memory);
  free(m->y.memory);
  free(m->work.memory);
  free(m);
}

float *hk_picture_row(struct hk_picture *m, uint32_t r)
{
  return plane_row(&m->x, r);
}

/* Repeats the pixels of the edges around a plane. Returns whether any pixel is missing. */
static bool repeat_edges(const struct hk_picture *m, const struct plane *p)
{
  const uint32_t w = m->width;
  const size_t behind = p->stride - HK_PICTURE_EDGE;
  bool missing = false;
  for (uint32_t r = 0; r < m->height; r++) {
    float *row = plane_row(p, r);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < w; i++) {
      wrong += !hk_picture_there(row[i]);
      row[i] += 0; /* of -0 and 0 the lesser is neither */
    }
    for (uint32_t i = 0; i < w && wrong > 0; i++)
      row[i] = hk_picture_there(row[i]) ? row[i] : NAN;
    missing |= wrong > 0;
    for (uint32_t i = 1; i <= HK_PICTURE_EDGE; i++)
      row[-(int64_t)i] = row[0];
    for (size_t i = w; i < behind; i++)
      row[i] = row[w - 1];
  }
  for (uint32_t k = 1; k <= p->above; k++) {
    memcpy(plane_row(p, -(int64_t)k) - HK_PICTURE_EDGE, plane_row(p, 0) - HK_PICTURE_EDGE, p->stride * sizeof *p->memory);
    memcpy(plane_row(p, m->height - 1 + (int64_t)k) - HK_PICTURE_EDGE, plane_row(p, m->height - 1) - HK_PICTURE_EDGE,
           p->stride * sizeof *p->memory);
  }
  return missing;
}

/* --- median ---------------------------------------------------------------------------------------------------------------- */

/* The median of the pixels that are there, around a pixel. */
static float median_around(const struct hk_picture *m, uint32_t r, uint32_t i)
{
  const int64_t reach = m->rule.median / 2;
  float sorted[25];
  uint32_t n = 0;
  for (int64_t dr = -reach; dr <= reach; dr++)
    for (int64_t di = -reach; di <= reach; di++) {
      const float x = plane_row(&m->x, r + dr)[i + di];
      uint32_t at = n;
      if (isnan(x))
        continue;
      for (; at > 0 && sorted[at - 1] > x; at--)
        sorted[at] = sorted[at - 1];
      sorted[at] = x;
      n++;
    }
  return n > 0 ? sorted[(n - 1) / 2] : NAN;
}

/* Computes the medians around missing pixels again. */
static void mend_medians(const struct hk_picture *m)
{
  const int64_t reach = m->rule.median / 2, h = m->height, w = m->width;
  for (int64_t r = 0; r < h; r++)
    for (int64_t i = 0; i < w; i++) {
      if (!isnan(plane_row(&m->x, r)[i]))
        continue;
      for (int64_t y = r > reach ? r - reach : 0; y <= r + reach && y < h; y++)
        for (int64_t z = i > reach ? i - reach : 0; z <= i + reach && z < w; z++)
          plane_row(&m->y, y)[z] = median_around(m, (uint32_t)y, (uint32_t)z);
    }
}

static void take_medians(const struct hk_picture *m, bool missing)
{
  const int64_t reach = m->rule.median / 2;
  float *work[5];
  for (uint32_t k = 0; k < 5; k++)
    work[k] = plane_row(&m->work, k);
  for (uint32_t r = 0; r < m->height; r++) {
    const float *row[5];
    for (int64_t k = 0; k <= 2 * reach; k++)
      row[k] = plane_row(&m->x, r + k - reach);
    (reach == 1 ? m->rows->median_3 : m->rows->median_5)(plane_row(&m->y, r), row, m->width, work);
  }
  if (missing)
    mend_medians(m);
}

/* --- what is subtracted ---------------------------------------------------------------------------------------------------- */

/* The ring of rows of sums across, and of counts; row r of y, from -REACH, is at (r + REACH) % BOX. */
static float *ring(const struct hk_picture *m, int64_t r, bool counts)
{
  return plane_row(&m->work, 5 + (counts ? BOX : 0) + (r + REACH) % BOX);
}

/* Sums row r of y across, over the pixels that are there. */
static void sum_across(const struct hk_picture *m, const struct plane *y, int64_t r, bool missing)
{
  const float *from = plane_row(y, r);
  if (!missing) {
    m->rows->across(ring(m, r, false), from, m->width);
    return;
  }
  float *there = plane_row(&m->work, 5 + 2 * BOX), *value = plane_row(&m->work, 6 + 2 * BOX);
  const int64_t end = (int64_t)(y->stride - HK_PICTURE_EDGE);
  for (int64_t i = -(int64_t)HK_PICTURE_EDGE; i < end; i++) {
    there[i] = isnan(from[i]) ? 0 : 1;
    value[i] = isnan(from[i]) ? 0 : from[i];
  }
  m->rows->across(ring(m, r, false), value, m->width);
  m->rows->across(ring(m, r, true), there, m->width);
}

/* Computes row r of h. Returns it. */
static const float *filter_row(const struct hk_picture *m, const struct plane *y, uint32_t r, bool missing)
{
  float *out = plane_row(&m->work, 7 + 2 * BOX);
  if (m->rule.subtract == HK_PICTURE_NOTHING)
    return plane_row(y, r);
  if (m->rule.subtract == HK_PICTURE_LAPLACIAN) {
    m->rows->laplacian(out, plane_row(y, r), plane_row(y, (int64_t)r - 1), plane_row(y, (int64_t)r + 1), m->width);
    return out;
  }
  const float *sum[BOX], *count[BOX];
  for (int64_t k = r == 0 ? -REACH : REACH; k <= REACH; k++)
    sum_across(m, y, r + k, missing);
  for (int64_t k = 0; k < BOX; k++) {
    sum[k] = ring(m, r + k - REACH, false);
    count[k] = ring(m, r + k - REACH, true);
  }
  m->rows->less_mean(out, plane_row(y, r), sum, missing ? count : NULL, m->width);
  return out;
}

/* --- tiles ----------------------------------------------------------------------------------------------------------------- */

void hk_picture_tiles(struct hk_picture *m, struct hk_picture_tile *out)
{
  const struct plane *y = m->rule.median > 0 ? &m->y : &m->x;
  const uint32_t tile = m->rule.tile, across = hk_picture_tiles_over(m->width, tile);
  bool missing = repeat_edges(m, &m->x);
  float *column[5];
  for (uint32_t k = 0; k < 5; k++)
    column[k] = plane_row(&m->work, 8 + 2 * BOX + k);
  const struct hk_picture_columns columns = { column[0], column[1], column[2], column[3], column[4] };
  if (m->rule.median > 0) {
    take_medians(m, missing);
    missing = repeat_edges(m, y);
  }
  for (uint32_t r = 0; r < m->height; r++) {
    const uint32_t within = r % tile;
    m->rows->add(&columns, filter_row(m, y, r, missing), m->width, within == 0);
    if (within + 1 < tile && r + 1 < m->height)
      continue;
    for (uint32_t k = 0; k < across; k++)
      *out++ = hk_picture_sum_up(&columns, k * tile, k + 1 < across ? (k + 1) * tile : m->width, within + 1);
  }
}
