/* The order of a process's unknowns: see matrix_shape.h. */
#include "cpu/model/matrix_shape.h"
#include "cpu/sparse/cuthill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The neighbours of each unknown, of S and its transpose. at: n + 1 numbers. NULL: no memory. */
static uint32_t *neighbours_of(const struct hk_matrix_shape *s, uint32_t *at)
{
  const struct hk_market *a = &s->equations;
  memset(at, 0, ((size_t)s->n + 1) * sizeof *at);
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++)
      if (a->column[k] != i && hk_matrix_counts(s, i, a->column[k])) {
        at[i + 1]++;
        at[a->column[k] + 1]++;
      }
  for (uint32_t i = 0; i < s->n; i++)
    at[i + 1] += at[i];
  uint32_t *neighbour = malloc(((size_t)at[s->n] + 1) * sizeof *neighbour);
  for (uint32_t i = 0; i < s->n && neighbour; i++)
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++)
      if (a->column[k] != i && hk_matrix_counts(s, i, a->column[k])) {
        neighbour[at[i]++] = a->column[k];
        neighbour[at[a->column[k]]++] = i;
      }
  for (uint32_t i = s->n; i > 0; i--) /* each has become the begin of the next one */
    at[i] = at[i - 1];
  at[0] = 0;
  return neighbour;
}

/* Finds whether S is symmetric for every dt, and how many numbers it has above its diagonal. */
static void look_at_symmetry(struct hk_matrix_shape *s)
{
  const struct hk_market *a = &s->equations;
  s->edges = 0;
  s->symmetric = true;
  for (uint32_t i = 0; i < s->n && s->symmetric; i++) {
    const uint32_t own = hk_market_place(a, i, i);
    s->symmetric = s->given[i] || (own != UINT32_MAX && a->value[own] >= 0 &&
                                   a->value[own] + (s->storage && s->storage[own] > 0 ? s->storage[own] : 0) > 0);
    for (uint32_t k = a->at[i]; k < a->at[i + 1] && s->symmetric; k++) {
      const uint32_t j = a->column[k], there = j == i || !hk_matrix_counts(s, i, j) ? k : hk_market_place(a, j, i);
      s->symmetric =
          there != UINT32_MAX && (j == i || !hk_matrix_counts(s, i, j) ||
                                  (memcmp(&a->value[k], &a->value[there], sizeof *a->value) == 0 &&
                                   (!s->storage || memcmp(&s->storage[k], &s->storage[there], sizeof *a->value) == 0)));
      s->edges += j > i && hk_matrix_counts(s, i, j);
    }
  }
}

int hk_matrix_order(struct hk_matrix_shape *s, uint32_t **order)
{
  const struct hk_market *a = &s->equations;
  uint32_t *at = malloc(((size_t)s->n + 1) * sizeof *at), *neighbour = at ? neighbours_of(s, at) : NULL;
  *order = malloc(s->n * sizeof **order);
  const int status = neighbour && *order ? hk_cuthill_order(*order, s->n, at, neighbour) : -ENOMEM;
  free(at);
  free(neighbour);
  if (status != 0)
    return status;
  s->order = *order;
  s->below = s->above = 0;
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++) {
      const uint32_t row = s->order[i], column = s->order[a->column[k]];
      if (!hk_matrix_counts(s, i, a->column[k]))
        continue;
      s->below = row > column && row - column > s->below ? row - column : s->below;
      s->above = column > row && column - row > s->above ? column - row : s->above;
    }
  look_at_symmetry(s);
  return 0;
}
