/* Graphs of neighbours: a file compared with a plain search; its errors, with their lines; and the members of a field that the
 * neighbours become, while members come and go. */
#include "cpu/field/binding.h"
#include "cpu/field/residual.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE HK_RESIDUAL_NONE

static uint64_t seed;

static uint32_t below(uint32_t n)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((seed >> 33) % n);
}

static struct hk_field_graph *parsed(uint32_t kind, uint32_t q, const char *text)
{
  struct hk_field_graph *g;
  char error[256] = "";
  if (hk_field_graph_parse(&g, kind, q, text, strlen(text), error, sizeof error) != 0)
    fail_msg("%s", error);
  return g;
}

static uint32_t node(const struct hk_field_graph *g, const char *name)
{
  return hk_field_graph_find(g, name, strlen(name));
}

/* The neighbours of a node are these, in this order, and no more. */
static void expect(const struct hk_field_graph *g, uint32_t q, const char *of, const char *const *names)
{
  uint32_t k = 0;
  assert_int_not_equal(node(g, of), NONE);
  for (; names[k]; k++)
    assert_int_equal(hk_field_graph_neighbour(g, node(g, of), k), node(g, names[k]));
  for (; k < q + 2; k++)
    assert_int_equal(hk_field_graph_neighbour(g, node(g, of), k), NONE);
}
#define EXPECT(g, q, of, ...) expect(g, q, of, (const char *const[]){ __VA_ARGS__, NULL })

static void edges(void **state)
{
  (void)state;
  struct hk_field_graph *g = parsed(HK_FIELD_GRAPH, 3,
                                    "# who is whose\n"
                                    "a b\n"
                                    "a\tc 2\r\n"
                                    "\n"
                                    "  c,b , .5\n"
                                    "b a 3\n" /* once more: by its greatest weight */
                                    "a d 1\n"
                                    "a e 1\n"
                                    "f f2"); /* no end of the line */
  uint32_t n;
  assert_int_equal(hk_field_graph_nodes(g), 7);
  assert_int_equal(node(g, "g"), NONE);
  assert_int_equal(node(g, ""), NONE);
  assert_int_equal(hk_field_graph_find(g, "f2", 1), node(g, "f"));
  EXPECT(g, 3, "a", "b", "c", "d"); /* e comes after d, which has the same weight */
  EXPECT(g, 3, "b", "a", "c");
  EXPECT(g, 3, "c", "a", "b");
  EXPECT(g, 3, "d", "a");
  EXPECT(g, 3, "f2", "f");
  const uint32_t *users = hk_field_graph_users(g, node(g, "a"), &n);
  assert_int_equal(n, 4); /* e, too, though it is not a's */
  for (uint32_t i = 0; i < n; i++)
    assert_int_not_equal(users[i], node(g, "a"));
  assert_int_equal(hk_field_graph_lonely(g), 4); /* d, e, f, f2 */
  hk_field_graph_release(g);
}

static void places(void **state)
{
  (void)state;
  struct hk_field_graph *g = parsed(HK_FIELD_NEAREST, 2, "a 0 0\nb 1 0\nc 0 -2\nd 1e90 1e90 5\n#e 0 0\nf 0 0 .5\n");
  assert_int_equal(hk_field_graph_nodes(g), 5);
  EXPECT(g, 2, "a", "f", "b");
  EXPECT(g, 2, "b", "a", "f");
  EXPECT(g, 2, "c", "a", "f");
  EXPECT(g, 2, "d", "a", "b"); /* all equally far within rounding: the first ones */
  assert_int_equal(hk_field_graph_lonely(g), 0);
  hk_field_graph_release(g);
}

/* The q nearest of random places, found by sorting all. */
static void places_by_sorting(void **state)
{
  (void)state;
  enum { N = 120, Q = 5 };
  int x[N], y[N], z[N];
  char *text = calloc(N, 64), name[8];
  size_t length = 0;
  assert_non_null(text);
  seed = 9;
  for (int i = 0; i < N; i++) { /* on a small grid: many are equally far */
    x[i] = (int)below(12);
    y[i] = (int)below(12);
    z[i] = (int)below(3);
    length += (size_t)sprintf(text + length, "s%03d %d %d %d\n", (i * 37) % N, x[i], y[i], z[i]);
  }
  struct hk_field_graph *g = parsed(HK_FIELD_NEAREST, Q, text);
  for (int i = 0; i < N; i++) {
    bool taken[N] = { false };
    snprintf(name, sizeof name, "s%03d", (i * 37) % N);
    const uint32_t of = node(g, name);
    for (uint32_t k = 0; k < Q; k++) {
      int best = -1, least = 0;
      for (int j = 0; j < N; j++) {
        const int far = (x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]) + (z[i] - z[j]) * (z[i] - z[j]);
        if (j != i && !taken[j] && (best < 0 || far < least)) {
          best = j;
          least = far;
        }
      }
      taken[best] = true;
      snprintf(name, sizeof name, "s%03d", (best * 37) % N);
      assert_int_equal(hk_field_graph_neighbour(g, of, k), node(g, name));
    }
  }
  hk_field_graph_release(g);
  free(text);
}

static void errors(void **state)
{
  (void)state;
  static const struct {
    uint32_t kind;
    const char *text, *error;
  } cases[] = {
    { HK_FIELD_GRAPH, "a b\na\n", "line 2: not A B, or A B weight" },
    { HK_FIELD_GRAPH, "a b 1 2\n", "line 1: not A B, or A B weight" },
    { HK_FIELD_GRAPH, "\n#\na b x\n", "line 3: the weight is not a number over 0" },
    { HK_FIELD_GRAPH, "a b 0\n", "line 1: the weight is not a number over 0" },
    { HK_FIELD_GRAPH, "a b -1\n", "line 1: the weight is not a number over 0" },
    { HK_FIELD_GRAPH, "a b nan\n", "line 1: the weight is not a number over 0" },
    { HK_FIELD_GRAPH, "a b inf\n", "line 1: the weight is not a number over 0" },
    { HK_FIELD_GRAPH, "a a\n", "line 1: a sensor is no neighbour of itself" },
    { HK_FIELD_NEAREST, "a 1\n", "line 1: not NAME X Y, or NAME X Y Z" },
    { HK_FIELD_NEAREST, "a 1 2 3 4\n", "line 1: not NAME X Y, or NAME X Y Z" },
    { HK_FIELD_NEAREST, "a 1 y\n", "line 1: a coordinate is not a number" },
    { HK_FIELD_NEAREST, "a 1 1e101\n", "line 1: a coordinate is not a number" },
    { HK_FIELD_NEAREST, "a1 1 2\nb 1 2\na1 3 4\n", "a1 has two positions" },
    { HK_FIELD_GRAPH, "", "names no sensor: empty, or comments only" },
    { HK_FIELD_NEAREST, "# a 1 2\n\n \t\r\n", "names no sensor: empty, or comments only" },
    { HK_FIELD_LINE, "\n", "names no sensor: empty, or comments only" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_field_graph *g;
    char error[256] = "";
    assert_int_equal(hk_field_graph_parse(&g, cases[i].kind, 4, cases[i].text, strlen(cases[i].text), error, sizeof error),
                     -EINVAL);
    assert_string_equal(error, cases[i].error);
  }
}

static void files(void **state)
{
  (void)state;
  char path[] = "/tmp/hankel-graph-XXXXXX", error[512] = "", expected[512];
  struct hk_field_graph *g;
  const int file = mkstemp(path);
  assert_true(file >= 0 && write(file, "a b\nb c\nc\n", 10) == 10);
  assert_int_equal(hk_field_graph_read(&g, HK_FIELD_GRAPH, 2, path, error, sizeof error), -EINVAL);
  snprintf(expected, sizeof expected, "%s: line 3: not A B, or A B weight", path);
  assert_string_equal(error, expected);
  assert_true(ftruncate(file, 8) == 0);
  assert_int_equal(hk_field_graph_read(&g, HK_FIELD_GRAPH, 2, path, error, sizeof error), 0);
  assert_int_equal(hk_field_graph_nodes(g), 3);
  hk_field_graph_release(hk_field_graph_hold(g));
  assert_int_equal(hk_field_graph_nodes(g), 3);
  hk_field_graph_release(g);
  hk_field_graph_release(NULL);
  close(file);
  unlink(path);
  assert_int_equal(hk_field_graph_read(&g, HK_FIELD_GRAPH, 2, path, error, sizeof error), -ENOENT);
}

/* Files with the same contents have the same mark, however they are written; any difference changes the mark. */
static void marks(void **state)
{
  (void)state;
  static const char *const texts[] = { "a b\nb c\n", "a b\nb d\n", "a b\nb c\nc a\n", "a b 2\nb c\n", "b c\n" };
  uint32_t mark[6];
  struct hk_field_graph *g;
  for (size_t i = 0; i < 5; i++) {
    g = parsed(HK_FIELD_GRAPH, 2, texts[i]);
    mark[i] = hk_field_graph_mark(g);
    hk_field_graph_release(g);
  }
  g = parsed(HK_FIELD_GRAPH, 3, texts[0]);
  mark[5] = hk_field_graph_mark(g);
  hk_field_graph_release(g);
  assert_int_equal(mark[0], mark[3]); /* b has both, a first, as before */
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < i; k++)
      if (i != 3 || k != 0)
        assert_int_not_equal(mark[i], mark[k]);
  g = parsed(HK_FIELD_GRAPH, 2, "# the same\nb, a\n\nb\tc 1\n");
  assert_int_equal(hk_field_graph_mark(g), mark[0]);
  hk_field_graph_release(g);
}

/* --- members ------------------------------------------------------------------------------------------------------------- */

enum { NODES = 30, Q = 4 };

struct bound {
  struct hk_field_rule rule;
  struct hk_field_graph *graph;
  struct hk_field *field;
  struct hk_field_binding binding;
  uint32_t member[NODES]; /* by the number in its name; NONE: not a member */
};

static void come(struct bound *b, uint32_t i)
{
  char name[8];
  snprintf(name, sizeof name, "n%02u", i);
  assert_int_equal(hk_field_join(b->field, &b->member[i]), 0);
  hk_field_binding_join(&b->binding, b->field, b->member[i], name, strlen(name));
}

static void go(struct bound *b, uint32_t i)
{
  hk_field_binding_leave(&b->binding, b->field, b->member[i]);
  hk_field_leave(b->field, b->member[i]);
  b->member[i] = NONE;
}

/* A member's neighbours are the neighbouring nodes that are members, each in its place; a member that left is no neighbour. */
static void look(const struct bound *b)
{
  for (uint32_t i = 0; i < NODES; i++) {
    char name[8];
    snprintf(name, sizeof name, "n%02u", i);
    if (b->member[i] == NONE)
      continue;
    assert_int_equal(hk_field_node(b->field, b->member[i]), node(b->graph, name));
    for (uint32_t k = 0; k < Q; k++) {
      const uint32_t wanted = hk_field_graph_neighbour(b->graph, node(b->graph, name), k);
      uint32_t member = NONE;
      for (uint32_t j = 0; j < NODES; j++) {
        snprintf(name, sizeof name, "n%02u", j);
        if (wanted != NONE && node(b->graph, name) == wanted)
          member = b->member[j];
      }
      snprintf(name, sizeof name, "n%02u", i);
      assert_int_equal(hk_field_neighbour(b->field, b->member[i], k), member);
    }
  }
}

static void members_come_and_go(void **state)
{
  (void)state;
  struct bound b = { .rule = hk_field_default() };
  char text[NODES * 3 * 16], error[128];
  size_t length = 0;
  uint32_t stranger;
  seed = 4;
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t k = 1; k < 4; k++)
      length += (size_t)sprintf(text + length, "n%02u n%02u %u\n", i, (i + 1 + below(NODES - 1)) % NODES, 1 + below(5));
  b.graph = parsed(HK_FIELD_GRAPH, Q, text);
  b.rule.neighbours = HK_FIELD_GRAPH;
  b.rule.q = Q;
  b.rule.mark = hk_field_graph_mark(b.graph);
  snprintf(b.rule.file, sizeof b.rule.file, "graph");
  assert_int_equal(hk_field_check(&b.rule, error, sizeof error), 0);
  assert_int_equal(hk_field_new(&b.field, &b.rule), 0);
  assert_int_equal(hk_field_binding_of(&b.binding, &b.rule, &(struct hk_field_file){ .graph = b.graph }, NULL), 0);
  for (uint32_t i = 0; i < NODES; i++)
    b.member[i] = NONE;
  assert_int_equal(hk_field_join(b.field, &stranger), 0); /* its name is not in the file */
  hk_field_binding_join(&b.binding, b.field, stranger, "stranger", 8);
  assert_int_equal(hk_field_node(b.field, stranger), NONE);
  assert_false(hk_field_binding_has(&b.binding, "stranger", 8));
  assert_true(hk_field_binding_has(&b.binding, "n00", 3));
  for (uint32_t turn = 0; turn < 400; turn++) {
    const uint32_t i = below(NODES);
    if (b.member[i] == NONE)
      come(&b, i); /* this sweeps members that left before */
    else if (below(3) == 0)
      go(&b, i);
    else
      continue;
    if (b.member[i] != NONE)
      look(&b);
    for (uint32_t k = 0; k < Q; k++)
      assert_int_equal(hk_field_neighbour(b.field, stranger, k), NONE);
  }
  /* A restart from the field alone has the same result. */
  struct hk_field_binding again;
  assert_int_equal(hk_field_binding_of(&again, &b.rule, &(struct hk_field_file){ .graph = b.graph }, b.field), 0);
  assert_memory_equal(again.member, b.binding.member, hk_field_graph_nodes(b.graph) * sizeof *again.member);
  hk_field_binding_close(&again);
  assert_null(again.file.graph);
  hk_field_binding_close(&b.binding);
  hk_field_free(b.field);
  hk_field_graph_release(b.graph);
}

/* A field that finds its neighbours itself has no graph, and every member has neighbours. */
static void no_graph(void **state)
{
  (void)state;
  const struct hk_field_rule rule = hk_field_default();
  struct hk_field_binding b;
  struct hk_field *f;
  char error[128];
  uint32_t member;
  assert_int_equal(hk_field_binding_open(&b, &rule, error, sizeof error), 0);
  assert_null(b.file.graph);
  assert_int_equal(hk_field_new(&f, &rule), 0);
  assert_int_equal(hk_field_join(f, &member), 0);
  hk_field_binding_join(&b, f, member, "a", 1);
  assert_int_equal(hk_field_node(f, member), NONE);
  assert_true(hk_field_binding_has(&b, "a", 1));
  hk_field_binding_leave(&b, f, member);
  hk_field_free(f);
  hk_field_binding_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(edges), cmocka_unit_test(places), cmocka_unit_test(places_by_sorting),   cmocka_unit_test(errors),
    cmocka_unit_test(files), cmocka_unit_test(marks),  cmocka_unit_test(members_come_and_go), cmocka_unit_test(no_graph)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
