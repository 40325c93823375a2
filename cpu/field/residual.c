/* The graph residual on the host: see residual.h. */
#include "cpu/field/residual.h"
#include "cpu/field/residual_learn.h"
#include "cpu/field/residual_refit.h"

#include <errno.h>
#include <stdlib.h>

void hk_residual_columns(const struct hk_residual_rule *r, struct hk_residual_column out[HK_RESIDUAL_COLUMNS])
{
#define COLUMN(name, n)                                                                                                          \
  {                                                                                                                              \
    offsetof(struct hk_residual, name), sizeof *((const struct hk_residual *)0)->name, n                                         \
  }
  const size_t q = r->neighbours;
  const struct hk_residual_column all[HK_RESIDUAL_COLUMNS] = {
    COLUMN(neighbour, q),  COLUMN(weight, q + 1), COLUMN(product, (q + 1) * (q + 2) / 2),
    COLUMN(target, q + 1), COLUMN(total, 1),      COLUMN(mean, 1),
    COLUMN(spread, 1),     COLUMN(error, 1),      COLUMN(fast, 1),
    COLUMN(slow, 1),       COLUMN(loud, 1),       COLUMN(last, 1),
    COLUMN(settled, 1),    COLUMN(learned, 1),    COLUMN(errors, 1),
    COLUMN(refused, 1),    COLUMN(made, 1),       COLUMN(ripe, q),
    COLUMN(now.z, 1),      COLUMN(now.seen, 1),   COLUMN(now.lesson, 1),
  };
#undef COLUMN
  memcpy(out, all, sizeof all);
}

/* The memory of a column; every pointer to an object has the same form. */
void *hk_residual_get(const struct hk_residual *f, const struct hk_residual_column *c)
{
  void *memory;
  memcpy(&memory, (const char *)f + c->at, sizeof memory);
  return memory;
}

void hk_residual_set(struct hk_residual *f, const struct hk_residual_column *c, void *memory)
{
  memcpy((char *)f + c->at, &memory, sizeof memory);
}

/* Number k of node i. */
static char *number_at(const struct hk_residual *f, const struct hk_residual_column *c, uint32_t k, uint32_t i)
{
  return (char *)hk_residual_get(f, c) + hk_residual_at((uint32_t)c->numbers, k, i) * c->bytes;
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

/* Clears nodes from..room-1. */
static void clear(const struct hk_residual *f, uint32_t from)
{
  for (uint32_t i = from; i < f->room; i++)
    f->last[i] = f->now.z[i] = NAN;
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    for (uint32_t i = from; i < f->room; i++)
      f->neighbour[hk_residual_at(f->rule.neighbours, k, i)] = HK_RESIDUAL_NONE;
}

int hk_residual_open(struct hk_residual *f, const struct hk_residual_rule *rule, uint32_t room)
{
  *f = (struct hk_residual){ .rule = *rule };
  return hk_residual_grow(f, room);
}

void hk_residual_close(struct hk_residual *f)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  hk_residual_columns(&f->rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    free(hk_residual_get(f, &column[c]));
  *f = (struct hk_residual){ .rule = f->rule };
}

uint64_t hk_residual_need(const struct hk_residual_rule *rule, uint32_t room)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  uint64_t bytes = 0;
  hk_residual_columns(rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    bytes += column[c].bytes * column[c].numbers * room;
  return bytes;
}

int hk_residual_grow(struct hk_residual *f, uint32_t nodes)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  const uint32_t room = (nodes + HK_RESIDUAL_LANES - 1) / HK_RESIDUAL_LANES * HK_RESIDUAL_LANES, before = f->room;
  struct hk_residual grown = { .rule = f->rule, .room = room, .rows = f->rows, .shows = f->shows };
  hk_residual_columns(&f->rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++) {
    const size_t node = column[c].bytes * column[c].numbers;
    char *memory = calloc(room, node);
    if (!memory) {
      hk_residual_close(&grown);
      return -ENOMEM;
    }
    if (before > 0)
      memcpy(memory, hk_residual_get(f, &column[c]), before * node);
    hk_residual_set(&grown, &column[c], memory);
  }
  hk_residual_close(f);
  *f = grown;
  clear(f, before);
  return 0;
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

void hk_residual_row(struct hk_residual *f, const double *x, double *r)
{
  for (uint32_t i = 0; i < f->room; i++)
    hk_residual_standardise(f, x, i);
  for (uint32_t i = 0; i < f->room; i++)
    hk_residual_show(f, i);
  for (uint32_t i = 0; i < f->room; i++)
    r[i] = hk_residual_predict(f, i);
  f->out = 0;
  for (uint32_t i = 0; i < f->room; i++)
    f->out += hk_residual_learn(f, i);
  if (++f->rows % f->rule.refit == 0)
    for (uint32_t i = 0; i < f->room; i++)
      hk_residual_refit(f, i);
}

void hk_residual_bind(struct hk_residual *f, uint32_t i, uint32_t k, uint32_t j)
{
  const uint32_t q = f->rule.neighbours;
  const size_t at = hk_residual_at(q, k, i), with_level = hk_residual_at(q + 1, k, i);
  if (f->neighbour[at] == j)
    return;
  f->neighbour[at] = j;
  f->ripe[at] = 0;
  f->weight[with_level] = 0;
  f->target[with_level] = 0;
  for (uint32_t a = 0; a <= q; a++)
    f->product[hk_residual_at(hk_residual_products(&f->rule), hk_residual_packed(a > k ? a : k, a > k ? k : a), i)] = 0;
  hk_residual_refit(f, i);
}

void hk_residual_forget(struct hk_residual *f, uint32_t i)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  hk_residual_columns(&f->rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    for (uint32_t k = 0; k < column[c].numbers; k++)
      memset(number_at(f, &column[c], k, i), 0, column[c].bytes);
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    f->neighbour[hk_residual_at(f->rule.neighbours, k, i)] = HK_RESIDUAL_NONE;
  f->last[i] = f->now.z[i] = NAN;
}

/* --- state ----------------------------------------------------------------------------------------------------------- */

static size_t column_size(const struct hk_residual_column *c, uint32_t n)
{
  return (c->bytes * c->numbers * n + 7) / 8 * 8;
}

size_t hk_residual_state_size(const struct hk_residual_rule *rule, uint32_t n)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  size_t size = sizeof(uint64_t);
  hk_residual_columns(rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_STATE; c++)
    size += column_size(&column[c], n);
  return size;
}

/* Number of contiguous nodes, of n, from node i on; i is a multiple of HK_RESIDUAL_LANES. */
static uint32_t lanes(uint32_t n, uint32_t i)
{
  return n - i < HK_RESIDUAL_LANES ? n - i : HK_RESIDUAL_LANES;
}

void hk_residual_write(const struct hk_residual *f, uint32_t n, void *state)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  char *at = state;
  hk_residual_columns(&f->rule, column);
  memset(state, 0, hk_residual_state_size(&f->rule, n));
  memcpy(at, &f->rows, sizeof f->rows);
  at += sizeof f->rows;
  for (uint32_t c = 0; c < HK_RESIDUAL_STATE; at += column_size(&column[c], n), c++)
    for (uint32_t k = 0; k < column[c].numbers; k++)
      for (uint32_t i = 0; i < n; i += HK_RESIDUAL_LANES)
        memcpy(at + ((size_t)k * n + i) * column[c].bytes, number_at(f, &column[c], k, i), lanes(n, i) * column[c].bytes);
}

/* Whether a node that was read is valid. */
static bool residual_is_sound(const struct hk_residual *f, uint32_t i, uint32_t n)
{
  bool sound = f->settled[i] <= HK_RESIDUAL_SETTLE && f->made[i] <= 1 && isfinite(f->mean[i]) && isfinite(f->spread[i]) &&
               f->spread[i] >= 0 && (f->settled[i] < HK_RESIDUAL_SETTLE || f->spread[i] > 0) && !isinf(f->last[i]) &&
               !isnan(f->error[i]) && !isnan(f->fast[i]) && !isnan(f->slow[i]) && !isnan(f->loud[i]);
  for (uint32_t k = 0; k < f->rule.neighbours; k++) {
    const uint32_t j = f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
    sound = sound && (j == HK_RESIDUAL_NONE ? f->weight[hk_residual_at(f->rule.neighbours + 1, k, i)] == 0 : j < n) &&
            f->ripe[hk_residual_at(f->rule.neighbours, k, i)] <= HK_RESIDUAL_SETTLE;
  }
  for (uint32_t k = 0; k <= f->rule.neighbours; k++)
    sound = sound && isfinite(f->weight[hk_residual_at(f->rule.neighbours + 1, k, i)]);
  return sound;
}

bool hk_residual_read(struct hk_residual *f, uint32_t n, const void *state)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  const char *at = state;
  bool sound = true;
  hk_residual_columns(&f->rule, column);
  memcpy(&f->rows, at, sizeof f->rows);
  at += sizeof f->rows;
  for (uint32_t c = 0; c < HK_RESIDUAL_STATE; at += column_size(&column[c], n), c++)
    for (uint32_t k = 0; k < column[c].numbers; k++)
      for (uint32_t i = 0; i < n; i += HK_RESIDUAL_LANES)
        memcpy(number_at(f, &column[c], k, i), at + ((size_t)k * n + i) * column[c].bytes, lanes(n, i) * column[c].bytes);
  for (uint32_t i = 0; i < n; i++)
    sound = sound && residual_is_sound(f, i, n);
  return sound;
}
