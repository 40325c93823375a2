/* Networks and bands as sparse matrices: see sparse_network.h. */
#include "tests/bench/programs/sparse_network.h"
#include "tests/backend/band_cases.h"

#include <stdio.h>

void *room(size_t bytes)
{
  void *there = calloc(1, bytes);
  if (!there) {
    fprintf(stderr, "bench_sparse: no memory\n");
    exit(1);
  }
  return there;
}

static int root_of(int *root, int i)
{
  while (root[i] != i)
    i = root[i] = root[root[i]];
  return i;
}

/* Takes the edges of the grid in random order: an edge that joins two parts becomes a pipe, and so do some of the
 * others. */
static void join_nodes(struct network *w, int side, int loops)
{
  const int edges = 2 * side * (side - 1);
  int *edge = room((size_t)edges * sizeof *edge), *root = room((size_t)w->nodes * sizeof *root);
  uint64_t seed = 7;
  for (int i = 0; i < edges; i++)
    edge[i] = i;
  for (int i = edges - 1; i > 0; i--) {
    const int j = (int)((band_uniform(&seed) + 1) / 2 * i), keep = edge[i];
    edge[i] = edge[j];
    edge[j] = keep;
  }
  for (int i = 0; i < w->nodes; i++)
    root[i] = i;
  for (int k = 0; k < edges; k++) {
    const bool down = edge[k] >= edges / 2;
    const int at = edge[k] % (edges / 2), a = down ? at : at / (side - 1) * side + at % (side - 1), b = a + (down ? side : 1);
    const int ra = root_of(root, a), rb = root_of(root, b);
    if (ra == rb && (band_uniform(&seed) + 1) * 500 >= loops)
      continue;
    root[ra] = rb;
    w->from[w->pipes] = a;
    w->to[w->pipes++] = b;
  }
  free(edge);
  free(root);
}

static void put(struct network *w, int *filled, int row, int column, double value)
{
  w->row[column * ROW_MAX + filled[column]] = row;
  w->value[column * ROW_MAX + filled[column]++] = value;
}

static void pack(struct network *w, const int *filled)
{
  int at = 0;
  for (int c = 0; c < w->n; c++) {
    const int count = filled[c], first = c * ROW_MAX;
    w->begin[c] = at;
    for (int k = 0; k < count; k++, at++) {
      w->row[at] = w->row[first + k];
      w->value[at] = w->value[first + k];
    }
    for (int k = w->begin[c] + 1; k < at; k++) /* rows in order, as UMFPACK wants them */
      for (int j = k; j > w->begin[c] && w->row[j] < w->row[j - 1]; j--) {
        const int r = w->row[j];
        const double v = w->value[j];
        w->row[j] = w->row[j - 1], w->value[j] = w->value[j - 1];
        w->row[j - 1] = r, w->value[j - 1] = v;
      }
  }
  w->begin[w->n] = at;
}

struct network *make_network(int side, int loops)
{
  struct network *w = room(sizeof *w);
  const int most = 2 * side * side;
  w->runs = RUNS;
  w->nodes = side * side;
  w->from = room((size_t)most * sizeof(int));
  w->to = room((size_t)most * sizeof(int));
  join_nodes(w, side, loops);
  w->n = w->nodes + 2 * w->pipes;
  int *filled = room((size_t)w->n * sizeof *filled);
  w->begin = room((size_t)(w->n + 1) * sizeof(int));
  w->row = room((size_t)w->n * ROW_MAX * 2 * sizeof(int));
  w->value = room((size_t)w->n * ROW_MAX * 2 * sizeof(double));
  w->right = room((size_t)w->n * sizeof(double));
  for (int i = 0; i < w->nodes; i++) {
    put(w, filled, i, i, i == 0 ? 1 : 1e-3); /* a source; elsewhere a little storage */
    w->right[i] = i == 0 ? 50 : -1e-2;
  }
  for (int e = 0; e < w->pipes; e++) {
    const int in = w->nodes + 2 * e, out = in + 1, a = w->from[e], b = w->to[e];
    const double wave = 5 + e % 7, drag = 1 + 0.1 * (e % 5);
    put(w, filled, in, a, 1), put(w, filled, in, b, 1), put(w, filled, in, out, wave), put(w, filled, in, in, -wave);
    put(w, filled, out, a, -1), put(w, filled, out, b, 1), put(w, filled, out, in, drag), put(w, filled, out, out, drag);
    if (a != 0)
      put(w, filled, a, in, -1);
    if (b != 0)
      put(w, filled, b, out, 1);
  }
  pack(w, filled);
  free(filled);
  return w;
}

double weight_of(int pipe)
{
  return 1 / (1 + 0.1 * (pipe % 5));
}

struct network *make_nodes(const struct network *all)
{
  struct network *w = room(sizeof *w);
  *w = *all;
  w->n = w->nodes;
  int *filled = room((size_t)w->n * sizeof *filled);
  w->begin = room((size_t)(w->n + 1) * sizeof(int));
  w->row = room((size_t)w->n * ROW_MAX * 2 * sizeof(int));
  w->value = room((size_t)w->n * ROW_MAX * 2 * sizeof(double));
  for (int i = 0; i < w->n; i++)
    put(w, filled, i, i, i == 0 ? 1 : 1e-3);
  for (int e = 0; e < w->pipes; e++) {
    const int end[2] = { w->from[e], w->to[e] };
    for (int k = 0; k < 2; k++) {
      w->value[end[k] * ROW_MAX] += weight_of(e);
      put(w, filled, end[k], end[1 - k], -weight_of(e));
    }
  }
  pack(w, filled);
  free(filled);
  return w;
}

struct network *make_full_band(int n, int half)
{
  struct network *w = room(sizeof *w);
  const size_t width = 2 * (size_t)half + 1;
  uint64_t seed = 1;
  *w = (struct network){ .n = n, .runs = 1 };
  w->begin = room(((size_t)n + 1) * sizeof *w->begin);
  w->row = room((size_t)n * width * sizeof *w->row);
  w->value = room((size_t)n * width * sizeof *w->value);
  w->right = room((size_t)n * sizeof *w->right);
  for (int c = 0; c < n; c++) {
    int at = w->begin[c];
    for (int r = c > half ? c - half : 0; r < n && r <= c + half; r++) {
      w->row[at] = r;
      w->value[at++] = band_uniform(&seed);
    }
    w->begin[c + 1] = at;
    w->right[c] = sin(c);
  }
  return w;
}

void drop_matrix(struct network *w)
{
  free(w->begin);
  free(w->row);
  free(w->value);
  free(w);
}
