/* Maps the names of a graph to members of a field: see binding.h. */
#include "cpu/field/binding.h"
#include "cpu/field/residual.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Number of nodes of the graph, or of sensors of the model. */
static uint32_t nodes_of(const struct hk_field_file *file)
{
  return file->graph ? hk_field_graph_nodes(file->graph) : file->plan ? file->plan->sensors : 0;
}

static uint32_t find(const struct hk_field_file *file, const char *name, size_t length)
{
  if (file->graph)
    return hk_field_graph_find(file->graph, name, length);
  const uint32_t sensor = file->plan ? hk_model_plan_find(file->plan, name, length) : HK_MODEL_NONE;
  return sensor == HK_MODEL_NONE ? HK_RESIDUAL_NONE : sensor;
}

int hk_field_binding_of(struct hk_field_binding *out, const struct hk_field_rule *rule, const struct hk_field_file *file,
                        const struct hk_field *field)
{
  const uint32_t nodes = nodes_of(file);
  *out = (struct hk_field_binding){ .q = rule->q };
  if (!file->graph && !file->plan)
    return 0;
  out->member = malloc((nodes + 1) * sizeof *out->member);
  if (!out->member)
    return -ENOMEM;
  for (uint32_t i = 0; i < nodes; i++)
    out->member[i] = HK_RESIDUAL_NONE;
  for (uint32_t i = 0; field && i < hk_field_top(field); i++)
    if (hk_field_node(field, i) < nodes)
      out->member[hk_field_node(field, i)] = i;
  out->file = hk_field_file_hold(file);
  return 0;
}

int hk_field_binding_open(struct hk_field_binding *out, const struct hk_field_rule *rule, char *error, size_t size)
{
  struct hk_field_file file;
  int status = hk_field_file_read(&file, rule, error, size);
  if (status == 0 && (status = hk_field_binding_of(out, rule, &file, NULL)) != 0)
    snprintf(error, size, "out of memory");
  hk_field_file_release(&file);
  return status;
}

void hk_field_binding_close(struct hk_field_binding *b)
{
  hk_field_file_release(&b->file);
  free(b->member);
  *b = (struct hk_field_binding){ 0 };
}

/* Binds all neighbours of a node that are members. */
static void bind_own(const struct hk_field_binding *b, struct hk_field *f, uint32_t node)
{
  for (uint32_t k = 0; k < b->q; k++) {
    const uint32_t to = hk_field_graph_neighbour(b->file.graph, node, k);
    const uint32_t member = to == HK_RESIDUAL_NONE ? to : b->member[to];
    if (member != HK_RESIDUAL_NONE)
      hk_field_bind(f, b->member[node], k, member);
  }
}

void hk_field_binding_join(struct hk_field_binding *b, struct hk_field *f, uint32_t member, const char *name, size_t length)
{
  const uint32_t node = find(&b->file, name, length);
  uint32_t n;
  if (node == HK_RESIDUAL_NONE)
    return;
  b->member[node] = member;
  hk_field_set_node(f, member, node);
  if (!b->file.graph)
    return;
  bind_own(b, f, node);
  const uint32_t *user = hk_field_graph_users(b->file.graph, node, &n);
  for (uint32_t i = 0; i < n; i++)
    if (b->member[user[i]] != HK_RESIDUAL_NONE)
      for (uint32_t k = 0; k < b->q; k++)
        if (hk_field_graph_neighbour(b->file.graph, user[i], k) == node)
          hk_field_bind(f, b->member[user[i]], k, member);
}

void hk_field_binding_leave(struct hk_field_binding *b, const struct hk_field *f, uint32_t member)
{
  const uint32_t node = hk_field_node(f, member);
  if (b->member && node != HK_RESIDUAL_NONE && b->member[node] == member)
    b->member[node] = HK_RESIDUAL_NONE;
}

bool hk_field_binding_has(const struct hk_field_binding *b, const char *name, size_t length)
{
  const uint32_t node = find(&b->file, name, length);
  if (b->file.plan)
    return node != HK_RESIDUAL_NONE && !b->file.plan->sensor[node].boundary;
  if (b->file.graph && hk_field_graph_positions(b->file.graph))
    return node != HK_RESIDUAL_NONE;
  return !b->file.graph || (node != HK_RESIDUAL_NONE && hk_field_graph_neighbour(b->file.graph, node, 1) != HK_RESIDUAL_NONE);
}
