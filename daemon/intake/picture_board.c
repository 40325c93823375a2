/* See picture_board.h. */
#include "daemon/intake/picture_board.h"
#include "daemon/base/log.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EVERY 1000000000 /* ns between pictures of a camera */
#define LOOKED_AT 8u     /* pixels on a side of a cell */

struct hk_picture_board {
  pthread_mutex_t lock;
  struct hk_board_picture *picture[HK_BOARD_CAMERAS]; /* by name, n of them */
  uint32_t n;
  uint64_t shown; /* pictures until now */
};

struct hk_picture_board *hk_picture_board_new(void)
{
  struct hk_picture_board *b = calloc(1, sizeof *b);
  if (b)
    pthread_mutex_init(&b->lock, NULL);
  return b;
}

void hk_picture_board_free(struct hk_picture_board *b)
{
  if (!b)
    return;
  for (uint32_t i = 0; i < b->n; i++)
    free(b->picture[i]);
  pthread_mutex_destroy(&b->lock);
  free(b);
}

bool hk_picture_board_due(const struct hk_picture_board *b, int64_t *last)
{
  const int64_t now = b ? hk_now() : 0;
  if (!b || (*last != 0 && now - *last < EVERY))
    return false;
  *last = now;
  return true;
}

/* --- making them small ---------------------------------------------------------------------------------------------------- */

/* The pixel to look at behind `at`, a step on, but the first one of each block is looked at. */
static uint32_t picture_board_look_on(uint32_t at, uint32_t step, uint32_t side)
{
  const uint32_t next = (at / side + 1) * side;
  return at + step < next ? at + step : next;
}

/* The greatest pixels of blocks of `side` on a side, in pixels' unit; NaN: all are missing. row: room for a row of pixels. */
static void greatest(const struct hk_picture_message *m, uint32_t side, uint32_t rows, uint32_t columns, float *row, float *out)
{
  const uint32_t step = (side + LOOKED_AT - 1) / LOOKED_AT;
  for (uint32_t i = 0; i < rows * columns; i++)
    out[i] = NAN;
  for (uint32_t r = 0; r < m->height; r = picture_board_look_on(r, step, side)) {
    float *cells = out + (size_t)(r / side) * columns;
    hk_picture_pixels(m, r, row);
    for (uint32_t i = 0; i < m->width; i = picture_board_look_on(i, step, side))
      if (isfinite(row[i]) && !(row[i] <= cells[i / side]))
        cells[i / side] = row[i];
  }
}

/* Writes cells as shades between the least and the greatest. */
static void shade(struct hk_board_picture *p, const struct hk_picture_message *m, const float *x)
{
  const uint32_t n = p->rows * p->columns;
  float low = INFINITY, high = -INFINITY;
  for (uint32_t i = 0; i < n; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  for (uint32_t i = 0; i < n; i++)
    p->cell[i] = isnan(x[i]) ? 0 : high > low ? (uint8_t)(1.5 + 254 * ((double)x[i] - low) / ((double)high - low)) : 128;
  p->low = low <= high ? (double)m->scale * (double)low + (double)m->offset : 0;
  p->high = low <= high ? (double)m->scale * (double)high + (double)m->offset : 0;
}

/* Makes a picture small; NULL: no memory. */
static struct hk_board_picture *make_small(const struct hk_pictures_rule *rule, const struct hk_picture_message *m, int64_t time)
{
  const uint32_t most = m->height > m->width ? m->height : m->width, side = (most + HK_BOARD_SIDE - 1) / HK_BOARD_SIDE;
  const uint32_t rows = (m->height + side - 1) / side, columns = (m->width + side - 1) / side;
  struct hk_board_picture *p = calloc(1, sizeof *p);
  float *row = malloc(m->width * sizeof *row), *x = malloc((size_t)rows * columns * sizeof *x);
  if (p && row && x) {
    p->time = time;
    p->height = m->height;
    p->width = m->width;
    p->tile = rule->of.tile;
    p->statistics = rule->statistics;
    p->rows = rows;
    p->columns = columns;
    memcpy(p->name, m->camera.data, m->camera.length);
    greatest(m, side, rows, columns, row, x);
    shade(p, m, x);
  } else {
    free(p);
    p = NULL;
  }
  free(row);
  free(x);
  return p;
}

/* --- the board ------------------------------------------------------------------------------------------------------------ */

/* Where a name is, or belongs. */
static uint32_t picture_board_place_of(const struct hk_picture_board *b, const char *name)
{
  uint32_t i = 0;
  while (i < b->n && strcmp(b->picture[i]->name, name) < 0)
    i++;
  return i;
}

static bool is_at(const struct hk_picture_board *b, uint32_t i, const char *name)
{
  return i < b->n && strcmp(b->picture[i]->name, name) == 0;
}

/* Takes away the picture that was shown before all others, whatever its camera's clock says. Returns it. */
static struct hk_board_picture *take_oldest(struct hk_picture_board *b)
{
  uint32_t oldest = 0;
  for (uint32_t i = 1; i < b->n; i++)
    oldest = b->picture[i]->shown < b->picture[oldest]->shown ? i : oldest;
  struct hk_board_picture *p = b->picture[oldest];
  b->n--;
  memmove(&b->picture[oldest], &b->picture[oldest + 1], (b->n - oldest) * sizeof *b->picture);
  return p;
}

void hk_picture_board_show(struct hk_picture_board *b, const struct hk_pictures_rule *rule, const struct hk_picture_message *m,
                           int64_t time)
{
  struct hk_board_picture *p = make_small(rule, m, time), *old = NULL;
  if (!p)
    return;
  pthread_mutex_lock(&b->lock);
  p->shown = b->shown++;
  if (!is_at(b, picture_board_place_of(b, p->name), p->name) && b->n == HK_BOARD_CAMERAS)
    old = take_oldest(b);
  const uint32_t at = picture_board_place_of(b, p->name);
  if (is_at(b, at, p->name)) {
    old = b->picture[at];
  } else {
    memmove(&b->picture[at + 1], &b->picture[at], (b->n - at) * sizeof *b->picture);
    b->n++;
  }
  b->picture[at] = p;
  pthread_mutex_unlock(&b->lock);
  free(old);
}

uint32_t hk_picture_board_list(struct hk_picture_board *b, struct hk_board_picture **heads)
{
  uint32_t n = 0;
  pthread_mutex_lock(&b->lock);
  *heads = b->n > 0 ? malloc(b->n * sizeof **heads) : NULL;
  for (; *heads && n < b->n; n++)
    memcpy(&(*heads)[n], b->picture[n], offsetof(struct hk_board_picture, cell));
  pthread_mutex_unlock(&b->lock);
  return n;
}

struct hk_board_picture *hk_picture_board_copy(struct hk_picture_board *b, const char *name)
{
  struct hk_board_picture *p = NULL;
  pthread_mutex_lock(&b->lock);
  const uint32_t at = picture_board_place_of(b, name);
  if (is_at(b, at, name) && (p = malloc(sizeof *p)))
    memcpy(p, b->picture[at], sizeof *p);
  pthread_mutex_unlock(&b->lock);
  return p;
}
