/* Fields from arbitrary bytes. The first byte selects the reader of the others:
 *
 *   0  the state of a field. An accepted one is written again with the same bytes, and continues with points while members come
 *      and go.
 *   1  edges, 2  places: the neighbours of each node, 2 + the second byte % 15 of them. An accepted graph is examined, and bound
 *      to a field whose members come and go.
 *   3  the state of a line of four sensors, of a focus; its mark is corrected. An accepted one is written again with the same
 *      bytes, and continues.
 *   4  positions on a line, from which a line is made. */
#include "cpu/field/binding.h"
#include "cpu/field/focus.h"
#include "cpu/field/residual.h"
#include "cpu/field/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(good)                                                                                                              \
  do                                                                                                                             \
    if (!(good))                                                                                                                 \
      abort(); /* of this very line */                                                                                           \
  while (0)

static void take_rows(struct hk_field *f)
{
  struct hk_field_row row;
  while (hk_field_next(f, &row))
    check(row.n <= hk_field_top(f) && row.said <= row.n && row.out <= row.said);
}

/* Points of all members, later than all that the field reports to have. */
static void feed(struct hk_field *f, int64_t interval, int64_t from)
{
  for (int64_t t = 0; t < 4; t++)
    for (uint32_t i = 0; i < hk_field_top(f); i++) {
      int64_t time;
      if (!hk_field_has(f, i) || __builtin_mul_overflow(interval, from + t, &time))
        continue;
      hk_field_put(f, i, time, (double)(t * 7 + i % 5));
      take_rows(f);
    }
}

static uint8_t *write_state(const struct hk_field *f, size_t *size)
{
  *size = hk_field_state_size(f);
  uint8_t *state = malloc(*size);
  check(state != NULL);
  hk_field_write(f, state);
  return state;
}

/* A model's state gets a plan, which it may be of or not. */
static void attach(struct hk_field *f)
{
  static const char text[] = "edge a b 2000 0.5 0.02 1000 2\nsensor x p a boundary\nsensor y p b boundary\nsensor z q a check\n";
  const struct hk_model_plan *plan;
  const struct hk_pipelines_place host = { &hk_pipelines_host, 1 };
  char error[256];
  check(hk_model_plan_parse(&plan, text, strlen(text), error, sizeof error) == 0);
  const int status = hk_field_attach(f, plan, &host, error, sizeof error);
  check(status == 0 || status == -EBADMSG);
  hk_model_plan_release(plan);
}

static void try_state(const uint8_t *data, size_t size)
{
  struct hk_field *f, *again;
  struct hk_field_rule rule = hk_field_default();
  uint8_t *state = malloc(size + 1); /* aligned, and its end is known */
  size_t same, twice;
  check(state != NULL);
  memcpy(state, data, size);
  const int other = hk_field_read(&f, &rule, state, size); /* hardly ever of this rule */
  if (other == 0)
    hk_field_free(f);
  const int status = hk_field_read(&f, NULL, state, size);
  const bool other_layout = size >= 4 && (data[2] | data[3]) != 0; /* state.c: struct head */
  check(status == 0 || status == -EBADMSG || status == -ENOMEM || (status == -EINVAL && other_layout));
  free(state);
  if (status != 0)
    return;
  uint8_t *first = write_state(f, &same);
  check(same == size && hk_field_read(&again, NULL, first, same) == 0);
  uint8_t *second = write_state(again, &twice);
  check(twice == same && memcmp(first, second, same) == 0);
  uint32_t member;
  attach(f);
  if (hk_field_members(f) < 512 && hk_field_join(f, &member) == 0)
    feed(f, 1000000000, 5);
  feed(f, 1000, 1000000000000);
  if (hk_field_top(f) > 0 && hk_field_has(f, 0))
    hk_field_leave(f, 0);
  take_rows(f);
  feed(f, 1000000000, 4000000000);
  free(write_state(f, &twice));
  free(first);
  free(second);
  hk_field_free(again);
  hk_field_free(f);
}

/* Each has neighbours from the first on, all others, each once; and those who have a node are those that say so. */
static void look(const struct hk_field_graph *g, uint32_t q)
{
  const uint32_t n = hk_field_graph_nodes(g);
  size_t bound = 0, used = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t users, had = 0;
    const uint32_t *user = hk_field_graph_users(g, i, &users);
    for (uint32_t k = 0; k < q; k++) {
      const uint32_t j = hk_field_graph_neighbour(g, i, k);
      if (j == HK_RESIDUAL_NONE)
        continue;
      check(j < n && j != i && had == k);
      had++;
      for (uint32_t l = 0; l < k; l++)
        check(hk_field_graph_neighbour(g, i, l) != j);
    }
    bound += had;
    used += users;
    for (uint32_t u = 0; u < users; u++) {
      bool says = false;
      for (uint32_t k = 0; k < q; k++)
        says |= hk_field_graph_neighbour(g, user[u], k) == i;
      check(user[u] < n && says);
    }
  }
  check(bound == used && hk_field_graph_lonely(g) <= n && hk_field_graph_mark(g) != 0);
}

/* Whether those that are members are bound to each other as the graph has it. */
static void look_at_binding(const struct hk_field_binding *b, const struct hk_field *f, uint32_t q)
{
  for (uint32_t i = 0; i < hk_field_top(f); i++)
    for (uint32_t k = 0; hk_field_has(f, i) && hk_field_node(f, i) != HK_RESIDUAL_NONE && k < q; k++) {
      const uint32_t to = hk_field_graph_neighbour(b->file.graph, hk_field_node(f, i), k);
      const uint32_t member = to == HK_RESIDUAL_NONE ? to : b->member[to];
      const uint32_t bound = hk_field_neighbour(f, i, k); /* one that has left goes with the next row, or the next that joins */
      check(bound == member || (member == HK_RESIDUAL_NONE && !hk_field_has(f, bound)));
    }
}

/* The words of the text, which may be names, join as members; every third leaves and joins again. */
static void try_binding(struct hk_field_graph *g, uint32_t kind, uint32_t q, const char *text, size_t length)
{
  struct hk_field_rule rule = hk_field_default();
  struct hk_field_binding b, later;
  const struct hk_field_file file = { .graph = g };
  struct hk_field *f;
  uint32_t member, n = 0;
  rule.neighbours = kind;
  rule.placed = kind == HK_FIELD_NEAREST;
  rule.q = q;
  snprintf(rule.file, sizeof rule.file, "-");
  rule.mark = hk_field_graph_mark(g);
  if (hk_field_new(&f, &rule) != 0 || hk_field_binding_of(&b, &rule, &file, NULL) != 0)
    abort();
  for (size_t at = 0; at < length && n < 64; n++) {
    const size_t apart = strspn(text + at, " \t,\r\n"), word = strcspn(text + at + apart, " \t,\r\n");
    const char *name = text + at + apart;
    at += apart + word;
    const uint32_t node = word > 0 ? hk_field_graph_find(g, name, word) : HK_RESIDUAL_NONE;
    if (word == 0 || (node != HK_RESIDUAL_NONE && b.member[node] != HK_RESIDUAL_NONE) || hk_field_join(f, &member) != 0)
      continue;
    check(!hk_field_binding_has(&b, name, word) || node != HK_RESIDUAL_NONE);
    hk_field_binding_join(&b, f, member, name, word);
    if (n % 3 == 2) {
      hk_field_binding_leave(&b, f, member);
      hk_field_leave(f, member);
    }
    feed(f, 1000000000, 10 * (int64_t)n);
    look_at_binding(&b, f, q);
  }
  if (hk_field_binding_of(&later, &rule, &file, f) != 0)
    abort();
  check(hk_field_graph_nodes(g) == 0 || memcmp(later.member, b.member, hk_field_graph_nodes(g) * sizeof *b.member) == 0);
  hk_field_binding_close(&later);
  hk_field_binding_close(&b);
  hk_field_free(f);
}

static void try_graph(uint32_t kind, uint32_t q, const uint8_t *data, size_t size)
{
  struct hk_field_graph *g;
  char error[256] = "", *text = malloc(size + 1);
  check(text != NULL);
  memcpy(text, data, size);
  text[size] = 0;
  const int status = hk_field_graph_parse(&g, kind, q, text, size, error, sizeof error);
  check(status == 0 || error[0] != 0);
  if (status == 0) {
    look(g, q);
    try_binding(g, kind, q, text, strlen(text));
    hk_field_graph_release(g);
  }
  free(text);
}

/* A line of these positions; NULL: they are refused, with a reason. */
static struct hk_focus_line *make_line(uint32_t n, const double *position, uint32_t travel)
{
  const struct hk_focus_rule rule = {
    .keys = { .speed = { 3 }, .speeds = 1, .travel = travel, .flow = 1, .reach = 25, .threshold = 2, .block = 2, .places = 2 },
    .interval = 1,
    .forget = 0.99f
  };
  struct hk_focus_line *line;
  char error[256] = "";
  const int status = hk_focus_new(&line, &rule, n, position, error, sizeof error);
  check(status == 0 || error[0] != 0);
  return status == 0 ? line : NULL;
}

static void go_on(struct hk_focus_line *line, int64_t row)
{
  double *x = calloc(line->f.n, sizeof *x);
  check(x != NULL);
  for (int64_t t = 0; t < 40; t++) {
    for (uint32_t j = 0; j < line->f.n; j++)
      x[j] = t % 7 == 3 && j % 2 ? NAN : (double)(t * t % 11) + j;
    hk_focus_row(line, row + t + (t > 20 ? 1000 : 0), x);
    check(!line->found.changed || line->found.sensor < line->f.n);
  }
  free(x);
}

static void try_line_state(const uint8_t *data, size_t size)
{
  static const double position[4] = { 0, 9, 21, 30 };
  struct hk_focus_line *line = make_line(4, position, HK_FOCUS_OUTWARD);
  check(line != NULL);
  const size_t whole = hk_focus_state_size(line);
  uint8_t *state = malloc(size + 8), *again = malloc(whole); /* aligned, and its end is known */
  check(state != NULL && again != NULL);
  memcpy(state, data, size);
  if (size >= 8)
    memcpy(state + 4, &line->mark, 4);
  const int status = hk_focus_read(line, state, size);
  check(status == 0 || status == -EBADMSG || status == -EINVAL);
  if (status == 0) {
    hk_focus_write(line, again);
    check(size == whole && memcmp(again, state, whole) == 0);
    go_on(line, line->f.row + 1);
  }
  free(again);
  free(state);
  hk_focus_free(line);
}

static void try_positions(uint32_t travel, const uint8_t *data, size_t size)
{
  struct hk_field_graph *g;
  char error[256] = "";
  const int status = hk_field_graph_parse(&g, HK_FIELD_LINE, 8, (const char *)data, size, error, sizeof error);
  check(status == 0 || error[0] != 0);
  if (status != 0)
    return;
  const uint32_t n = hk_field_graph_nodes(g);
  struct hk_focus_line *line = n > 0 && n < 500 ? make_line(n, hk_field_graph_positions(g), travel) : NULL;
  if (line)
    go_on(line, -20);
  check(hk_field_graph_mark(g) != 0);
  hk_focus_free(line);
  hk_field_graph_release(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size > 0 && data[0] == 0)
    try_state(data + 1, size - 1);
  if (size > 1 && (data[0] == 1 || data[0] == 2))
    try_graph(data[0] == 1 ? HK_FIELD_GRAPH : HK_FIELD_NEAREST, 2 + data[1] % 15, data + 2, size - 2);
  if (size > 0 && data[0] == 3)
    try_line_state(data + 1, size - 1);
  if (size > 1 && data[0] == 4)
    try_positions(data[1] % 2 ? HK_FOCUS_ONWARD : HK_FOCUS_OUTWARD, data + 2, size - 2);
  return 0;
}
