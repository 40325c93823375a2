/* Names of a graph to members of a field: see binding.h. */
#include "cpu/field/binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int hk_field_binding_of(struct hk_field_binding *out, const struct hk_field_rule *rule, struct hk_field_graph *graph)
{
  *out = (struct hk_field_binding){ .q = rule->q };
  if (!graph)
    return 0;
  const uint32_t nodes = hk_field_graph_nodes(graph);
  out->member = malloc((nodes + 1) * sizeof *out->member);
  if (!out->member)
    return -ENOMEM;
  for (uint32_t i = 0; i < nodes; i++)
    out->member[i] = HK_RESIDUAL_NONE;
  out->graph = hk_field_graph_hold(graph);
  return 0;
}

int hk_field_binding_open(struct hk_field_binding *out, const struct hk_field_rule *rule, char *error, size_t size)
{
  struct hk_field_graph *graph = NULL;
  int status =
      rule->neighbours == HK_FIELD_AUTO ? 0 : hk_field_graph_read(&graph, rule->neighbours, rule->q, rule->file, error, size);
  if (status == 0 && (status = hk_field_binding_of(out, rule, graph)) != 0)
    snprintf(error, size, "out of memory");
  hk_field_graph_release(graph);
  return status;
}

void hk_field_binding_close(struct hk_field_binding *b)
{
  hk_field_graph_release(b->graph);
  free(b->member);
  free(b->node);
  *b = (struct hk_field_binding){ 0 };
}

static int note(struct hk_field_binding *b, uint32_t member, uint32_t node)
{
  if (member >= b->n) {
    const uint32_t n = 2 * member + 8;
    uint32_t *nodes = realloc(b->node, n * sizeof *nodes);
    if (!nodes)
      return -ENOMEM;
    for (uint32_t i = b->n; i < n; i++)
      nodes[i] = HK_RESIDUAL_NONE;
    b->node = nodes;
    b->n = n;
  }
  b->node[member] = node;
  return 0;
}

/* Binds all neighbours of a node that are there. */
static void bind_own(const struct hk_field_binding *b, struct hk_field *f, uint32_t node)
{
  for (uint32_t k = 0; k < b->q; k++) {
    const uint32_t to = hk_field_graph_neighbour(b->graph, node, k);
    const uint32_t member = to == HK_RESIDUAL_NONE ? to : b->member[to];
    if (member != HK_RESIDUAL_NONE)
      hk_field_bind(f, b->member[node], k, member);
  }
}

int hk_field_binding_join(struct hk_field_binding *b, struct hk_field *f, uint32_t member, const char *name, size_t length)
{
  const uint32_t node = b->graph ? hk_field_graph_find(b->graph, name, length) : HK_RESIDUAL_NONE;
  uint32_t n;
  if (!b->graph)
    return 0;
  if (note(b, member, node) != 0)
    return -ENOMEM;
  if (node == HK_RESIDUAL_NONE)
    return 0;
  b->member[node] = member;
  bind_own(b, f, node);
  const uint32_t *user = hk_field_graph_users(b->graph, node, &n);
  for (uint32_t i = 0; i < n; i++)
    if (b->member[user[i]] != HK_RESIDUAL_NONE)
      for (uint32_t k = 0; k < b->q; k++)
        if (hk_field_graph_neighbour(b->graph, user[i], k) == node)
          hk_field_bind(f, b->member[user[i]], k, member);
  return 0;
}

void hk_field_binding_leave(struct hk_field_binding *b, uint32_t member)
{
  const uint32_t node = member < b->n ? b->node[member] : HK_RESIDUAL_NONE;
  if (node == HK_RESIDUAL_NONE)
    return;
  b->node[member] = HK_RESIDUAL_NONE;
  if (b->member[node] == member)
    b->member[node] = HK_RESIDUAL_NONE;
}
