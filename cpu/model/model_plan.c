/* Model files: see model_plan.h. */
#include "cpu/model/plan_lines.h"
#include "cpu/whole_file.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define GRAVITY 9.80665 /* m/s^2 */

/* A plan, and what it points to. */
struct owned {
  struct hk_model_plan plan;
  atomic_uint references;
  char *text; /* of the file: names lie in it */
  struct hk_model_pipe *pipe;
  struct hk_model_sensor *sensor;
  struct hk_pipeline_cell *cell;
  uint32_t *by_name; /* sensors, in the order of their names */
};

/* --- nodes -------------------------------------------------------------------------------------------------------------- */

/* The number of a node: 0 is the first pipe's begin, k the end of pipe k - 1. */
static int find_node(const struct hk_plan_lines *r, const struct hk_plan_word *w, uint32_t *out)
{
  for (*out = 0; *out <= r->edges; ++*out)
    if (hk_plan_same(&w->is, *out == 0 ? &r->edge[0].from.is : &r->edge[*out - 1].to.is))
      return 0;
  return hk_plan_complain(r, w, "no pipe begins or ends at this node");
}

/* A node stands once on the line. */
static int check_nodes(const struct hk_plan_lines *r)
{
  for (uint32_t i = 0; i < r->edges; i++) {
    uint32_t node = 0;
    if (find_node(r, &r->edge[i].to, &node) != 0 || node != i + 1)
      return hk_plan_complain(r, &r->edge[i].to, "this node is on the line already; a line has no loops");
  }
  return 0;
}

/* The heights of all nodes, as what the pipes rise by. */
static int take_heights(const struct hk_plan_lines *r, double *rise)
{
  double *height = calloc(r->edges + 1, sizeof *height);
  int status = height ? 0 : hk_plan_no_memory(r);
  for (uint32_t i = 0; i < r->heights && status == 0; i++) {
    uint32_t node;
    status = find_node(r, &r->height[i].node, &node);
    if (status == 0)
      height[node] = r->height[i].height;
  }
  for (uint32_t i = 0; i < r->edges && status == 0; i++)
    rise[i] = height[i + 1] - height[i];
  free(height);
  return status;
}

/* --- the plan ----------------------------------------------------------------------------------------------------------- */

/* Cells and figures of pipe i, which rises by so much. */
static void make_pipe(struct owned *o, const struct hk_plan_lines *r, uint32_t i, double rise)
{
  struct hk_model_plan *p = &o->plan;
  const struct hk_plan_edge *pipe = &r->edge[i];
  const double area = PI / 4 * pipe->diameter * pipe->diameter, dx = pipe->length / pipe->cells;
  if (i == 0)
    p->impedance = r->density * pipe->wave / area;
  const struct hk_pipeline_cell cell = { .wave = r->density * pipe->wave * pipe->wave / (area * p->impedance * dx),
                                         .push = area * p->impedance / (r->density * dx),
                                         .friction = pipe->friction / (2 * pipe->diameter * area),
                                         .lift = area * GRAVITY * rise / pipe->length };
  p->loss += pipe->cells * cell.friction / cell.push * p->impedance;
  o->pipe[i] = (struct hk_model_pipe){ pipe->from.is, pipe->to.is, p->cells, pipe->cells, pipe->length, area, p->loss };
  for (uint32_t k = 0; k < pipe->cells; k++)
    o->cell[p->cells++] = cell;
  p->pipes++;
  p->transit += pipe->length / pipe->wave;
  p->shortest = fmin(p->shortest, dx / pipe->wave);
}

static int make_pipes(struct owned *o, const struct hk_plan_lines *r)
{
  double *rise = calloc(r->edges, sizeof *rise);
  o->pipe = calloc(r->edges, sizeof *o->pipe);
  o->cell = calloc(r->cells, sizeof *o->cell);
  int status = rise && o->pipe && o->cell ? 0 : hk_plan_no_memory(r);
  if (status == 0)
    status = check_nodes(r);
  if (status == 0)
    status = take_heights(r, rise);
  o->plan.shortest = INFINITY;
  for (uint32_t i = 0; i < r->edges && status == 0; i++)
    make_pipe(o, r, i, rise[i]);
  free(rise);
  return status;
}

static const char *boundary_fault(const struct owned *o, const struct hk_plan_lines *r, const struct hk_plan_sensor *s,
                                  uint32_t node)
{
  const struct hk_model_plan *p = &o->plan;
  if (node != 0 && node != r->edges)
    return "a boundary stands at an end of the line; make this one a check";
  return p->boundary[node != 0] != HK_MODEL_NONE ? "that end of the line has a boundary already; make one of them a check"
         : s->flow && p->boundary[node == 0] != HK_MODEL_NONE && o->sensor[p->boundary[node == 0]].flow
             ? "both boundaries are flows, and nothing sets the pressure; make one a pressure"
             : NULL;
}

static int make_sensor(struct owned *o, const struct hk_plan_lines *r, uint32_t i)
{
  const struct hk_plan_sensor *s = &r->sensor[i];
  uint32_t node = 0;
  const int status = find_node(r, &s->node, &node);
  if (status != 0)
    return status;
  const uint32_t point = node == 0 ? 0 : o->pipe[node - 1].first + o->pipe[node - 1].cells;
  const char *fault = s->boundary ? boundary_fault(o, r, s, node) : NULL;
  if (fault)
    return hk_plan_complain(r, &s->name, fault);
  if (s->boundary)
    o->plan.boundary[node != 0] = i;
  o->sensor[i] = (struct hk_model_sensor){
    s->name.is, point, s->flow, s->boundary, s->flow ? r->flow : r->pressure, node == 0 ? 0 : o->pipe[node - 1].loss
  };
  o->plan.sensors++;
  return 0;
}

static int compare_names(const struct hk_model_word *a, const struct hk_model_word *b)
{
  const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Puts sensor i among those before it by its name. */
static int make_name(struct owned *o, const struct hk_plan_lines *r, uint32_t i)
{
  uint32_t at = i;
  for (; at > 0 && compare_names(&o->sensor[i].name, &o->sensor[o->by_name[at - 1]].name) < 0; at--)
    o->by_name[at] = o->by_name[at - 1];
  o->by_name[at] = i;
  return at > 0 && hk_plan_same(&o->sensor[i].name, &o->sensor[o->by_name[at - 1]].name)
             ? hk_plan_complain(r, &r->sensor[i].name, "there is a sensor of that name already")
             : 0;
}

static int make_sensors(struct owned *o, const struct hk_plan_lines *r)
{
  uint32_t checks = 0;
  o->sensor = calloc(r->sensors + 1, sizeof *o->sensor);
  o->by_name = calloc(r->sensors + 1, sizeof *o->by_name);
  int status = o->sensor && o->by_name ? 0 : hk_plan_no_memory(r);
  o->plan.boundary[0] = o->plan.boundary[1] = HK_MODEL_NONE;
  for (uint32_t i = 0; i < r->sensors && status == 0; i++) {
    status = make_sensor(o, r, i);
    status = status ? status : make_name(o, r, i);
    checks += !r->sensor[i].boundary;
  }
  if (status != 0)
    return status;
  const bool first = o->plan.boundary[0] != HK_MODEL_NONE, last = o->plan.boundary[1] != HK_MODEL_NONE;
  const struct hk_plan_word *end = first ? &r->edge[r->edges - 1].to : &r->edge[0].from;
  if (!first || !last)
    return hk_plan_complain(r, end, "this end of the line has no boundary; a sensor there is needed, which drives the model");
  if (checks == 0) {
    snprintf(r->error, r->size, "no sensor is a check: there is nothing to compare the model with");
    return -EINVAL;
  }
  return 0;
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
  const uint8_t *byte = data;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ byte[i]) * 1099511628211u;
  return hash;
}

/* Of what a state depends on: cells and sensors. */
static uint32_t mark_of(const struct hk_model_plan *p)
{
  uint64_t hash = mix(14695981039346656037u, p->cell, p->cells * sizeof *p->cell);
  hash = mix(hash, &p->impedance, sizeof p->impedance);
  for (uint32_t i = 0; i < p->sensors; i++) {
    const struct hk_model_sensor *s = &p->sensor[i];
    const uint8_t kind[2] = { s->flow, s->boundary };
    hash = mix(mix(mix(mix(hash, s->name.text, s->name.length), kind, 2), &s->point, sizeof s->point), &s->unit, sizeof s->unit);
  }
  const uint32_t mark = (uint32_t)(hash >> 32 ^ hash);
  return mark ? mark : 1;
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

/* Makes the plan of a text that is its own. */
static int make(struct owned *o, struct hk_plan_lines *r, size_t length)
{
  int status = hk_plan_lines_read(r, o->text, length);
  status = status ? status : make_pipes(o, r);
  status = status ? status : make_sensors(o, r);
  hk_plan_lines_close(r);
  o->plan.pipe = o->pipe;
  o->plan.sensor = o->sensor;
  o->plan.cell = o->cell;
  return status;
}

int hk_model_plan_parse(const struct hk_model_plan **out, const char *text, size_t length, char *error, size_t size)
{
  struct owned *o = calloc(1, sizeof *o);
  struct hk_plan_lines lines = { .error = error, .size = size };
  char *own = malloc(length + 1);
  if (!o || !own) {
    free(o);
    free(own);
    return hk_plan_no_memory(&lines);
  }
  atomic_init(&o->references, 1);
  o->text = memcpy(own, text, length);
  const int status = make(o, &lines, length);
  if (status == 0) {
    o->plan.mark = mark_of(&o->plan);
    *out = &o->plan;
  } else {
    hk_model_plan_release(&o->plan);
  }
  return status;
}

int hk_model_plan_read(const struct hk_model_plan **out, const char *path, char *error, size_t size)
{
  char why[256], *text;
  size_t length;
  int status = hk_whole_file_read(path, HK_MODEL_BYTES, &text, &length);
  if (status != 0)
    snprintf(why, sizeof why, "%s", strerror(-status));
  else
    status = hk_model_plan_parse(out, text, length, why, sizeof why);
  free(text);
  if (status != 0)
    snprintf(error, size, "%s: %s", path, why);
  return status;
}

/* The plan is the first member of what owns it. */
static struct owned *owner_of(const struct hk_model_plan *plan)
{
  return (struct owned *)(uintptr_t)plan;
}

const struct hk_model_plan *hk_model_plan_hold(const struct hk_model_plan *plan)
{
  atomic_fetch_add_explicit(&owner_of(plan)->references, 1, memory_order_relaxed);
  return plan;
}

void hk_model_plan_release(const struct hk_model_plan *plan)
{
  struct owned *o = plan ? owner_of(plan) : NULL;
  if (!o || atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel) > 1)
    return;
  free(o->text);
  free(o->pipe);
  free(o->sensor);
  free(o->cell);
  free(o->by_name);
  free(o);
}

/* --- questions ---------------------------------------------------------------------------------------------------------- */

uint32_t hk_model_plan_find(const struct hk_model_plan *plan, const char *name, size_t length)
{
  const struct owned *o = owner_of(plan);
  const struct hk_model_word wanted = { name, (uint32_t)length };
  uint32_t low = 0, high = plan->sensors;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const int order = compare_names(&wanted, &plan->sensor[o->by_name[middle]].name);
    if (order == 0)
      return o->by_name[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return HK_MODEL_NONE;
}

const struct hk_model_pipe *hk_model_plan_pipe(const struct hk_model_plan *plan, uint32_t point)
{
  uint32_t i = 0;
  while (i + 1 < plan->pipes && point > plan->pipe[i].first + plan->pipe[i].cells)
    i++;
  return &plan->pipe[i];
}
