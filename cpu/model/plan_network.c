/* Networks in model files: see plan_network.h. */
#include "cpu/model/plan_network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS UINT32_MAX /* of `driven` */

struct hk_plan_node_name {
  struct hk_model_word name;
  uint32_t seen; /* 2 edge + end, where the name stands first; then */
  uint32_t node; /* its number */
};

/* --- nodes -------------------------------------------------------------------------------------------------------------- */

static int plan_network_compare(const struct hk_model_word *a, const struct hk_model_word *b)
{
  const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_nodes(const void *a, const void *b)
{
  const struct hk_plan_node_name *x = a, *y = b;
  const int order = plan_network_compare(&x->name, &y->name);
  return order ? order : (x->seen > y->seen) - (x->seen < y->seen);
}

static int compare_seen(const void *a, const void *b)
{
  const struct hk_plan_node_name *x = a, *y = b;
  return (x->seen > y->seen) - (x->seen < y->seen);
}

static int plan_network_find(const struct hk_plan_network *n, const struct hk_plan_lines *r, const struct hk_plan_word *w,
                             uint32_t *out)
{
  uint32_t low = 0, high = n->nodes;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const int order = plan_network_compare(&w->is, &n->by_name[middle].name);
    if (order == 0) {
      *out = n->by_name[middle].node;
      return 0;
    }
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return hk_plan_complain(r, w, "no pipe begins or ends at this node");
}

/* Each name once, with its number: in the order of the file. */
static void number_nodes(struct hk_plan_network *n, const struct hk_plan_lines *r)
{
  struct hk_plan_node_name *all = n->by_name;
  for (uint32_t i = 0; i < 2 * r->edges; i++)
    all[i] = (struct hk_plan_node_name){ .name = (i % 2 ? r->edge[i / 2].to : r->edge[i / 2].from).is, .seen = i };
  qsort(all, 2 * (size_t)r->edges, sizeof *all, compare_nodes);
  for (uint32_t i = 0; i < 2 * r->edges; i++)
    if (i == 0 || plan_network_compare(&all[i].name, &all[n->nodes - 1].name) != 0)
      all[n->nodes++] = all[i];
  qsort(all, n->nodes, sizeof *all, compare_seen);
  for (uint32_t i = 0; i < n->nodes; i++) {
    n->node[i] = all[i].name;
    all[i].node = i;
  }
  qsort(all, n->nodes, sizeof *all, compare_nodes);
}

/* Finds the nodes of each edge, and the edges of each node. */
static int join_edges(struct hk_plan_network *n, const struct hk_plan_lines *r)
{
  int status = 0;
  for (uint32_t i = 0; i < r->edges && status == 0; i++) {
    status = plan_network_find(n, r, &r->edge[i].from, &n->from[i]);
    status = status ? status : plan_network_find(n, r, &r->edge[i].to, &n->to[i]);
    if (status == 0) {
      n->at[n->from[i] + 1]++;
      n->at[n->to[i] + 1]++;
    }
  }
  for (uint32_t i = 0; i < n->nodes; i++)
    n->at[i + 1] += n->at[i];
  for (uint32_t i = 0; i < r->edges && status == 0; i++) {
    n->edge[n->at[n->from[i]]++] = i;
    n->edge[n->at[n->to[i]]++] = i;
  }
  for (uint32_t i = n->nodes; i > 0; i--) /* each has become the begin of the next one */
    n->at[i] = n->at[i - 1];
  n->at[0] = 0;
  return status;
}

int hk_plan_network_nodes(struct hk_plan_network *n, const struct hk_plan_lines *r, double *rise)
{
  const size_t most = 2 * (size_t)r->edges;
  n->node = calloc(most, sizeof *n->node);
  n->by_name = calloc(most, sizeof *n->by_name);
  n->from = calloc(r->edges, sizeof *n->from);
  n->to = calloc(r->edges, sizeof *n->to);
  n->at = calloc(most + 1, sizeof *n->at);
  n->edge = calloc(most, sizeof *n->edge);
  n->driven = calloc(most, sizeof *n->driven);
  double *height = calloc(most, sizeof *height);
  int status = n->node && n->by_name && n->from && n->to && n->at && n->edge && n->driven && height ? 0 : hk_plan_no_memory(r);
  if (status == 0) {
    number_nodes(n, r);
    status = join_edges(n, r);
  }
  for (uint32_t i = 0, node = 0; i < r->heights && status == 0; i++)
    if ((status = plan_network_find(n, r, &r->height[i].node, &node)) == 0)
      height[node] = r->height[i].value;
  for (uint32_t i = 0; i < r->edges && status == 0; i++)
    rise[i] = height[n->to[i]] - height[n->from[i]];
  free(height);
  return status;
}

/* --- points ------------------------------------------------------------------------------------------------------------- */

int hk_plan_network_points(struct hk_plan_network *n, const struct hk_plan_lines *r, const struct hk_model_pipe *pipe,
                           const struct hk_pipeline_cell *cell, uint32_t cells)
{
  const uint32_t points = n->nodes + cells - r->edges;
  uint32_t next = n->nodes;
  int status = 0;
  n->end = calloc(cells, sizeof *n->end);
  n->demand = calloc(points, sizeof *n->demand);
  n->drive = calloc((size_t)r->sensors + 1, sizeof *n->drive);
  n->place = calloc((size_t)r->sensors + 1, sizeof *n->place);
  if (!n->end || !n->demand || !n->drive || !n->place)
    return hk_plan_no_memory(r);
  for (uint32_t i = 0; i < r->edges; i++)
    for (uint32_t k = 0; k < pipe[i].cells; k++) {
      n->end[pipe[i].first + k][0] = k == 0 ? n->from[i] : next - 1;
      n->end[pipe[i].first + k][1] = k + 1 == pipe[i].cells ? n->to[i] : next++;
    }
  for (uint32_t i = 0, node = 0; i < r->demands && status == 0; i++)
    if ((status = plan_network_find(n, r, &r->demand[i].node, &node)) == 0)
      n->demand[node] += r->demand[i].value * r->flow;
  n->shape = (struct hk_network_shape){
    .points = points, .cells = cells, .cell = cell, .end = (const uint32_t(*)[2])n->end, .drive = n->drive, .demand = n->demand
  };
  return status;
}

/* --- sensors ------------------------------------------------------------------------------------------------------------ */

/* A flow in the only pipe between two nodes. */
static int put_in_pipe(const struct hk_plan_network *n, const struct hk_plan_lines *r, const struct hk_model_pipe *pipe,
                       const struct hk_plan_sensor *s, uint32_t from, struct hk_network_place *out)
{
  uint32_t to = 0, found = 0;
  const int status = plan_network_find(n, r, &s->to, &to);
  for (uint32_t k = n->at[from]; k < n->at[from + 1] && status == 0; k++) {
    const uint32_t i = n->edge[k];
    if (n->from[i] == from && n->to[i] == to)
      *out = (struct hk_network_place){ HK_NETWORK_FROM, pipe[i].first };
    else if (n->from[i] == to && n->to[i] == from)
      *out = (struct hk_network_place){ HK_NETWORK_INTO, pipe[i].first + pipe[i].cells - 1 };
    else
      continue;
    found++;
  }
  if (status != 0 || found == 1)
    return status;
  return hk_plan_complain(r, &s->to,
                          found == 0 ? "no pipe joins this node to the one before"
                                     : "several pipes join this node to the one before; put a node into the one that is meant");
}

static int drive_by(struct hk_plan_network *n, const struct hk_plan_lines *r, const struct hk_plan_sensor *s, uint32_t node)
{
  if (n->driven[node] != 0 && !(s->flow && n->driven[node] == FLOWS))
    return hk_plan_complain(
        r, &s->name,
        "a boundary gives the pressure at that node already, or its flow; make one of them a check, at best the flow");
  n->driven[node] = s->flow ? FLOWS : 1 + n->shape.drives;
  n->drive[n->shape.drives++] = (struct hk_network_drive){ node, s->flow };
  return 0;
}

int hk_plan_network_sensor(struct hk_plan_network *n, const struct hk_plan_lines *r, const struct hk_model_pipe *pipe, uint32_t i,
                           struct hk_model_sensor *out)
{
  const struct hk_plan_sensor *s = &r->sensor[i];
  uint32_t node = 0;
  int status = plan_network_find(n, r, &s->node, &node);
  out->point = node;
  out->unit *= s->in ? -1 : 1;
  n->place[i] = (struct hk_network_place){ s->flow ? HK_NETWORK_OUT : HK_NETWORK_PRESSURE, node };
  if (status == 0 && s->to.is.length > 0)
    return put_in_pipe(n, r, pipe, s, node, &n->place[i]);
  return status == 0 && s->boundary ? drive_by(n, r, s, node) : status;
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

/* Checks of what enters or leaves stand where the model computes it. */
static int check_outflows(const struct hk_plan_network *n, const struct hk_plan_lines *r)
{
  for (uint32_t i = 0; i < r->sensors; i++)
    if (!r->sensor[i].boundary && n->place[i].what == HK_NETWORK_OUT &&
        (n->driven[n->place[i].at] == 0 || n->driven[n->place[i].at] == FLOWS))
      return hk_plan_complain(
          r, &r->sensor[i].name,
          "the model is given what enters or leaves at that node; such a check stands where a pressure is the boundary");
  return 0;
}

int hk_plan_network_end(struct hk_plan_network *n, const struct hk_plan_lines *r, double *transit)
{
  uint32_t *queue = calloc(n->nodes, sizeof *queue), waiting = 0;
  double *time = calloc(n->nodes, sizeof *time); /* 1 + s of a wave by way of the fewest pipes; 0: not reached */
  int status = queue && time ? check_outflows(n, r) : hk_plan_no_memory(r);
  for (uint32_t i = 0; i < n->nodes && status == 0; i++)
    if (n->driven[i] != 0 && n->driven[i] != FLOWS) {
      queue[waiting++] = i;
      time[i] = 1;
    }
  *transit = 0;
  for (uint32_t k = 0; k < waiting && status == 0; k++) {
    const uint32_t node = queue[k];
    *transit = fmax(*transit, 2 * (time[node] - 1));
    for (uint32_t j = n->at[node]; j < n->at[node + 1]; j++) {
      const uint32_t i = n->edge[j], next = n->from[i] == node ? n->to[i] : n->from[i];
      if (time[next] > 0)
        continue;
      time[next] = time[node] + r->edge[i].length / r->edge[i].wave;
      queue[waiting++] = next;
    }
  }
  for (uint32_t i = 0; i < r->edges && status == 0; i++)
    if (!(time[n->from[i]] > 0))
      status = hk_plan_complain(r, &r->edge[i].from,
                                waiting == 0 ? "no pressure is a boundary; each connected part of the network needs one"
                                             : "no way leads from here to a pressure that is a boundary; each connected part "
                                               "of the network needs one");
  free(queue);
  free(time);
  return status;
}

void hk_plan_network_free(struct hk_plan_network *n)
{
  free(n->node);
  free(n->by_name);
  free(n->from);
  free(n->to);
  free(n->at);
  free(n->edge);
  free(n->end);
  free(n->demand);
  free(n->drive);
  free(n->place);
  free(n->driven);
}
