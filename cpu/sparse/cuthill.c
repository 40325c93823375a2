/* Reverse Cuthill-McKee order: see cuthill.h. */
#include "cpu/sparse/cuthill.h"

#include <errno.h>
#include <stdlib.h>

struct cuthill_graph {
  uint32_t n;
  const uint32_t *at, *neighbour;
};

/* Breadth first from one equation, neighbours by their number of neighbours (E. Cuthill, J. McKee, 1969). order: those that are
 * reached; seen: of equations, set to `mark`. Returns how many are reached. last: where the last level begins. */
static uint32_t cuthill_sweep(const struct cuthill_graph *p, uint32_t from, uint32_t *order, uint32_t *seen, uint32_t mark,
                              uint32_t *last)
{
  uint32_t n = 1, level = 1;
  order[0] = from;
  seen[from] = mark;
  *last = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i == level) {
      *last = level;
      level = n;
    }
    const uint32_t first = n;
    for (uint32_t k = p->at[order[i]]; k < p->at[order[i] + 1]; k++) {
      const uint32_t next = p->neighbour[k], degree = p->at[next + 1] - p->at[next];
      if (seen[next] == mark)
        continue;
      seen[next] = mark;
      uint32_t j = n++;
      for (; j > first && p->at[order[j - 1] + 1] - p->at[order[j - 1]] > degree; j--) /* few are new at once */
        order[j] = order[j - 1];
      order[j] = next;
    }
  }
  return n;
}

/* Begins at an equation far from the others (A. George, J. Liu, 1979): that with fewest neighbours among the last reached, until
 * it is no farther. */
static uint32_t sweep_from_afar(const struct cuthill_graph *p, uint32_t from, uint32_t *order, uint32_t *seen, uint32_t *mark)
{
  uint32_t last, n = cuthill_sweep(p, from, order, seen, ++*mark, &last);
  for (uint32_t k = 0, width = n + 1; k < 8 && n - last < width; k++) {
    uint32_t best = order[last];
    width = n - last;
    for (uint32_t i = last; i < n; i++)
      if (p->at[order[i] + 1] - p->at[order[i]] < p->at[best + 1] - p->at[best])
        best = order[i];
    n = cuthill_sweep(p, best, order, seen, ++*mark, &last);
  }
  return n;
}

int hk_cuthill_order(uint32_t *place, uint32_t equations, const uint32_t *at, const uint32_t *neighbour)
{
  const struct cuthill_graph graph = { equations, at, neighbour }, *p = &graph;
  uint32_t *order = malloc(p->n * sizeof *order), *seen = calloc(p->n, sizeof *seen), mark = 0, done = 0;
  const int status = order && seen ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < p->n && status == 0; i++) {
    if (seen[i] != 0)
      continue;
    const uint32_t n = sweep_from_afar(p, i, order, seen, &mark);
    for (uint32_t k = 0; k < n; k++)
      place[order[k]] = p->n - 1 - (done + k);
    done += n;
  }
  free(order);
  free(seen);
  return status;
}
