/* Files of neighbours: see graph.h. Names are sorted for binary search; edges are sorted by their first node, then by the
 * distance of the other one. */
#include "cpu/field/graph.h"
#include "cpu/field/residual.h"
#include "cpu/state_mark.h"
#include "cpu/whole_file.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4 /* maximum number of words in a line */

struct word {
  const char *text;
  size_t length;
};

struct edge {
  uint32_t from, to;
  double far; /* a distance: smaller is nearer */
  size_t line;
};

struct hk_field_graph {
  atomic_uint references;
  uint32_t q, n;
  char *text; /* text of the names */
  struct word *name;
  double *position;    /* by node; NULL: not those of a line */
  uint32_t *neighbour; /* q for each node */
  uint32_t *users;     /* those of node i are at users_at[i] .. users_at[i + 1] - 1 */
  uint32_t *users_at;
};

/* State of the parser. */
struct reading {
  struct hk_field_graph *graph;
  uint32_t kind;
  const char *at, *end;
  size_t line;
  struct word *named; /* all words that are names, in the order of the file */
  size_t n_named, room_named;
  double *number; /* graph: a weight for each line; nearest: X Y Z; line: X */
  size_t n_numbers, room_numbers;
  char *error;
  size_t size;
};

static int complain(const struct reading *r, const char *what)
{
  snprintf(r->error, r->size, "line %zu: %s", r->line, what);
  return -EINVAL;
}

static int no_memory(const struct reading *r)
{
  snprintf(r->error, r->size, "out of memory");
  return -ENOMEM;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static bool is_apart(char c)
{
  return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

/* Splits the next line into words. Returns their number, at most WORDS + 1. */
static uint32_t next_line(struct reading *r, struct word out[WORDS + 1])
{
  uint32_t n = 0;
  r->line++;
  while (r->at < r->end && *r->at != '\n') {
    const char *from = r->at;
    while (r->at < r->end && *r->at != '\n' && !is_apart(*r->at))
      r->at++;
    if (r->at > from && n <= WORDS)
      out[n++] = (struct word){ from, (size_t)(r->at - from) };
    while (r->at < r->end && is_apart(*r->at))
      r->at++;
  }
  r->at += r->at < r->end;
  return n > 0 && out[0].text[0] == '#' ? 0 : n;
}

static bool add_name(struct reading *r, struct word w)
{
  if (r->n_named == r->room_named) {
    const size_t room = r->room_named ? 2 * r->room_named : 256;
    struct word *named = realloc(r->named, room * sizeof *named);
    if (!named)
      return false;
    r->named = named;
    r->room_named = room;
  }
  r->named[r->n_named++] = w;
  return true;
}

static bool add_number(struct reading *r, double number)
{
  if (r->n_numbers == r->room_numbers) {
    const size_t room = r->room_numbers ? 2 * r->room_numbers : 256;
    double *all = realloc(r->number, room * sizeof *all);
    if (!all)
      return false;
    r->number = all;
    r->room_numbers = room;
  }
  r->number[r->n_numbers++] = number;
  return true;
}

/* Parses a number. False: it is not a number. */
static bool to_number(struct word w, double *out)
{
  char copy[64], *end;
  if (w.length >= sizeof copy)
    return false;
  memcpy(copy, w.text, w.length);
  copy[w.length] = 0;
  *out = strtod(copy, &end);
  return *end == 0 && isfinite(*out);
}

static int take_edge(struct reading *r, const struct word *w, uint32_t n)
{
  double weight = 1;
  if (n < 2 || n > 3)
    return complain(r, "not A B, or A B weight");
  if (n == 3 && (!to_number(w[2], &weight) || !(weight > 0)))
    return complain(r, "the weight is not a number over 0");
  if (w[0].length == w[1].length && memcmp(w[0].text, w[1].text, w[0].length) == 0)
    return complain(r, "a sensor is no neighbour of itself");
  return add_name(r, w[0]) && add_name(r, w[1]) && add_number(r, weight) ? 0 : no_memory(r);
}

static int take_place(struct reading *r, const struct word *w, uint32_t n)
{
  double at[3] = { 0 };
  if (n < 3 || n > 4)
    return complain(r, "not NAME X Y, or NAME X Y Z");
  for (uint32_t k = 1; k < n; k++)
    if (!to_number(w[k], &at[k - 1]) || fabs(at[k - 1]) > 1e100)
      return complain(r, "a coordinate is not a number");
  if (r->n_named == HK_FIELD_PLACES_MAX)
    return complain(r, "over 65536 places; give the edges instead (neighbours = FILE)");
  return add_name(r, w[0]) && add_number(r, at[0]) && add_number(r, at[1]) && add_number(r, at[2]) ? 0 : no_memory(r);
}

static int take_position(struct reading *r, const struct word *w, uint32_t n)
{
  double at;
  if (n != 2)
    return complain(r, "not NAME X");
  if (!to_number(w[1], &at) || fabs(at) > 1e100)
    return complain(r, "the position is not a number");
  return add_name(r, w[0]) && add_number(r, at) ? 0 : no_memory(r);
}

static int take_line(struct reading *r, const struct word *w, uint32_t n)
{
  return r->kind == HK_FIELD_GRAPH ? take_edge(r, w, n) : r->kind == HK_FIELD_LINE ? take_position(r, w, n) : take_place(r, w, n);
}

static int take_lines(struct reading *r)
{
  int status = 0;
  while (r->at < r->end && status == 0) {
    struct word words[WORDS + 1];
    const uint32_t n = next_line(r, words);
    if (n > 0)
      status = take_line(r, words, n);
  }
  return status;
}

/* --- names ------------------------------------------------------------------------------------------------------------ */

static int compare_words(const void *a, const void *b)
{
  const struct word *x = a, *y = b;
  const int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
  return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Collects the names, each once and sorted, with copies of their text. */
static int take_names(struct reading *r)
{
  struct hk_field_graph *g = r->graph;
  size_t bytes = 0, n = 0;
  g->name = malloc((r->n_named + 1) * sizeof *g->name);
  if (!g->name)
    return no_memory(r);
  if (r->n_named > 0)
    memcpy(g->name, r->named, r->n_named * sizeof *g->name);
  qsort(g->name, r->n_named, sizeof *g->name, compare_words);
  for (size_t i = 0; i < r->n_named; i++) {
    if (n > 0 && compare_words(&g->name[n - 1], &g->name[i]) == 0) {
      if (r->kind == HK_FIELD_GRAPH)
        continue;
      snprintf(r->error, r->size, "%.*s has two positions", (int)(g->name[i].length < 200 ? g->name[i].length : 200),
               g->name[i].text);
      return -EINVAL;
    }
    g->name[n++] = g->name[i];
    bytes += g->name[n - 1].length;
  }
  if (n > HK_FIELD_MEMBERS_MAX) {
    snprintf(r->error, r->size, "over %d sensors", HK_FIELD_MEMBERS_MAX);
    return -EINVAL;
  }
  char *at = g->text = malloc(bytes + 1);
  if (!at)
    return no_memory(r);
  for (size_t i = 0; i < n; at += g->name[i++].length)
    g->name[i].text = memcpy(at, g->name[i].text, g->name[i].length);
  g->n = (uint32_t)n;
  return 0;
}

uint32_t hk_field_graph_find(const struct hk_field_graph *g, const char *name, size_t length)
{
  const struct word wanted = { name, length };
  const struct word *found = g->n > 0 ? bsearch(&wanted, g->name, g->n, sizeof *g->name, compare_words) : NULL;
  return found ? (uint32_t)(found - g->name) : HK_RESIDUAL_NONE;
}

/* --- neighbours ------------------------------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
  const struct edge *x = a, *y = b;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  if (x->far != y->far)
    return x->far < y->far ? -1 : 1;
  return (x->line > y->line) - (x->line < y->line);
}

/* Inserts a node into the n known nearest of another one; a duplicate is ignored. Returns their number. */
static uint32_t put_near(uint32_t *neighbour, uint32_t n, uint32_t q, uint32_t to)
{
  for (uint32_t k = 0; k < n; k++)
    if (neighbour[k] == to)
      return n;
  if (n < q)
    neighbour[n++] = to;
  return n;
}

static int take_edges(struct reading *r)
{
  struct hk_field_graph *g = r->graph;
  const size_t lines = r->n_numbers;
  struct edge *edge = malloc((2 * lines + 1) * sizeof *edge);
  if (!edge)
    return no_memory(r);
  for (size_t i = 0; i < lines; i++) {
    const struct word *a = &r->named[2 * i], *b = a + 1;
    const uint32_t from = hk_field_graph_find(g, a->text, a->length), to = hk_field_graph_find(g, b->text, b->length);
    edge[2 * i] = (struct edge){ from, to, -r->number[i], i };
    edge[2 * i + 1] = (struct edge){ to, from, -r->number[i], i };
  }
  qsort(edge, 2 * lines, sizeof *edge, compare_edges);
  for (size_t i = 0; i < 2 * lines;) {
    const uint32_t from = edge[i].from;
    uint32_t n = 0;
    for (; i < 2 * lines && edge[i].from == from; i++)
      n = put_near(g->neighbour + (size_t)from * g->q, n, g->q, edge[i].to);
  }
  free(edge);
  return 0;
}

/* Finds the nearest places of place i. */
static void find_nearest(const struct reading *r, const uint32_t *node, size_t i)
{
  struct hk_field_graph *g = r->graph;
  uint32_t *nearest = g->neighbour + (size_t)node[i] * g->q, n = 0;
  double far[HK_RESIDUAL_NEIGHBOURS_MAX];
  for (size_t j = 0; j < r->n_named; j++) {
    double square = 0;
    for (uint32_t k = 0; k < 3; k++)
      square += (r->number[3 * i + k] - r->number[3 * j + k]) * (r->number[3 * i + k] - r->number[3 * j + k]);
    if (j == i || (n == g->q && !(square < far[n - 1])))
      continue;
    uint32_t at = n < g->q ? n++ : n - 1;
    for (; at > 0 && square < far[at - 1]; at--) {
      far[at] = far[at - 1];
      nearest[at] = nearest[at - 1];
    }
    far[at] = square;
    nearest[at] = node[j];
  }
}

static int take_places(struct reading *r)
{
  uint32_t *node = malloc((r->n_named + 1) * sizeof *node);
  if (!node)
    return no_memory(r);
  for (size_t i = 0; i < r->n_named; i++)
    node[i] = hk_field_graph_find(r->graph, r->named[i].text, r->named[i].length);
  for (size_t i = 0; i < r->n_named; i++)
    find_nearest(r, node, i);
  free(node);
  return 0;
}

/* Finds the position of each node. */
static int take_positions(struct reading *r)
{
  struct hk_field_graph *g = r->graph;
  g->position = malloc((r->n_named + 1) * sizeof *g->position);
  if (!g->position)
    return no_memory(r);
  for (size_t i = 0; i < r->n_named; i++)
    g->position[hk_field_graph_find(g, r->named[i].text, r->named[i].length)] = r->number[i];
  return 0;
}

/* Makes the table of users: by node, the nodes that have it as neighbour. */
static int take_users(struct reading *r)
{
  struct hk_field_graph *g = r->graph;
  const size_t all = (size_t)g->n * g->q;
  g->users_at = calloc(g->n + 2, sizeof *g->users_at);
  g->users = malloc((all + 1) * sizeof *g->users);
  if (!g->users_at || !g->users)
    return no_memory(r);
  for (size_t i = 0; i < all; i++)
    if (g->neighbour[i] != HK_RESIDUAL_NONE)
      g->users_at[g->neighbour[i] + 2]++;
  for (uint32_t i = 2; i < g->n + 2; i++)
    g->users_at[i] += g->users_at[i - 1];
  for (size_t i = 0; i < all; i++)
    if (g->neighbour[i] != HK_RESIDUAL_NONE)
      g->users[g->users_at[g->neighbour[i] + 1]++] = (uint32_t)(i / g->q);
  return 0;
}

static int take_neighbours(struct reading *r)
{
  struct hk_field_graph *g = r->graph;
  g->neighbour = malloc(((size_t)g->n * g->q + 1) * sizeof *g->neighbour);
  if (!g->neighbour)
    return no_memory(r);
  for (size_t i = 0; i < (size_t)g->n * g->q; i++)
    g->neighbour[i] = HK_RESIDUAL_NONE;
  const int status = r->kind == HK_FIELD_GRAPH ? take_edges(r) : r->kind == HK_FIELD_LINE ? take_positions(r) : take_places(r);
  return status == 0 ? take_users(r) : status;
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

int hk_field_graph_parse(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *text, size_t length, char *error,
                         size_t size)
{
  struct hk_field_graph *g = calloc(1, sizeof *g);
  struct reading r = { .graph = g, .kind = kind, .at = text, .end = text + length, .error = error, .size = size };
  if (!g)
    return no_memory(&r);
  atomic_init(&g->references, 1);
  g->q = kind == HK_FIELD_LINE ? 0 : q;
  int status = take_lines(&r);
  if (status == 0 && r.n_named == 0) {
    snprintf(error, size, "names no sensor: empty, or comments only");
    status = -EINVAL;
  }
  if (status == 0)
    status = take_names(&r);
  if (status == 0)
    status = take_neighbours(&r);
  free(r.named);
  free(r.number);
  if (status == 0)
    *out = g;
  else
    hk_field_graph_release(g);
  return status;
}

int hk_field_graph_read(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *path, char *error, size_t size)
{
  char why[256], *text;
  size_t length;
  int status = hk_whole_file_read(path, HK_FIELD_GRAPH_BYTES, &text, &length);
  if (status != 0)
    snprintf(why, sizeof why, "%s", strerror(-status));
  else
    status = hk_field_graph_parse(out, kind, q, text, length, why, sizeof why);
  free(text);
  if (status != 0)
    snprintf(error, size, "%s: %s", path, why);
  return status;
}

struct hk_field_graph *hk_field_graph_hold(struct hk_field_graph *g)
{
  atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
  return g;
}

void hk_field_graph_release(struct hk_field_graph *g)
{
  if (!g || atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) > 1)
    return;
  free(g->text);
  free(g->name);
  free(g->position);
  free(g->neighbour);
  free(g->users);
  free(g->users_at);
  free(g);
}

/* --- questions -------------------------------------------------------------------------------------------------------- */

uint32_t hk_field_graph_nodes(const struct hk_field_graph *g)
{
  return g->n;
}

const double *hk_field_graph_positions(const struct hk_field_graph *g)
{
  return g->position;
}

uint32_t hk_field_graph_neighbour(const struct hk_field_graph *g, uint32_t node, uint32_t k)
{
  return k < g->q ? g->neighbour[(size_t)node * g->q + k] : HK_RESIDUAL_NONE;
}

const uint32_t *hk_field_graph_users(const struct hk_field_graph *g, uint32_t node, uint32_t *n)
{
  *n = g->users_at[node + 1] - g->users_at[node];
  return g->users + g->users_at[node];
}

uint32_t hk_field_graph_lonely(const struct hk_field_graph *g)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n; i++)
    n += hk_field_graph_neighbour(g, i, 1) == HK_RESIDUAL_NONE;
  return n;
}

uint32_t hk_field_graph_mark(const struct hk_field_graph *g)
{
  uint64_t hash = hk_state_mark_mix(HK_STATE_MARK_BEGIN, &g->q, sizeof g->q);
  hash = hk_state_mark_mix(hash, g->neighbour, (size_t)g->n * g->q * sizeof *g->neighbour);
  hash = g->position ? hk_state_mark_mix(hash, g->position, g->n * sizeof *g->position) : hash;
  for (uint32_t i = 0; i < g->n; i++)
    hash = hk_state_mark_mix(hk_state_mark_mix(hash, g->name[i].text, g->name[i].length), "", 1);
  return hk_state_mark_of(hash);
}
