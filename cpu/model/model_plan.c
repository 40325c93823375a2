/* Model files: see model_plan.h. */
#include "cpu/lapack.h"
#include "cpu/model/plan_matrix.h"
#include "cpu/model/plan_network.h"
#include "cpu/state_mark.h"
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
  char *text; /* of the file, to which names point */
  struct hk_model_line *line;
  struct hk_model_pipe *pipe;
  struct hk_model_sensor *sensor;
  struct hk_pipeline_cell *cell;
  struct hk_heat_cell *heat;
  uint32_t *boundary;
  struct hk_plan_network network;         /* empty: lines, */
  struct hk_plan_matrix matrix;           /* or a network; this is empty if there are pipes */
  const struct hk_model_sensor **by_name; /* sorted by name */
};

/* --- nodes -------------------------------------------------------------------------------------------------------------- */

/* Pipes of a line: the first, and the one after the last. */
struct range {
  uint32_t from, to;
};

static struct range pipes_of(const struct hk_plan_lines *r, uint32_t line)
{
  return (struct range){ r->line[line].edge, line + 1 < r->lines ? r->line[line + 1].edge : r->edges };
}

/* The number of a node on a line: 0 is the first pipe's begin, k the end of the pipe k - 1. */
static int find_node(const struct hk_plan_lines *r, uint32_t line, const struct hk_plan_word *w, uint32_t *out)
{
  const struct range pipes = pipes_of(r, line);
  for (*out = 0; *out <= pipes.to - pipes.from; ++*out)
    if (hk_plan_same(&w->is, *out == 0 ? &r->edge[pipes.from].from.is : &r->edge[pipes.from + *out - 1].to.is))
      return 0;
  return hk_plan_complain(r, w, "no pipe begins or ends at this node");
}

/* Checks that each node is on the line only once. */
static int check_nodes(const struct hk_plan_lines *r, uint32_t line)
{
  const struct range pipes = pipes_of(r, line);
  for (uint32_t i = pipes.from; i < pipes.to; i++) {
    uint32_t node = 0;
    if (find_node(r, line, &r->edge[i].to, &node) != 0 || node != i - pipes.from + 1)
      return hk_plan_complain(r, &r->edge[i].to, "this node is on the line already; a line has no loops");
  }
  return 0;
}

/* Converts the heights of all nodes to the rises of the pipes. Nodes of line k begin at its first edge plus k. */
static int take_heights(const struct hk_plan_lines *r, double *rise)
{
  double *height = calloc((size_t)r->edges + r->lines, sizeof *height);
  int status = height ? 0 : hk_plan_no_memory(r);
  for (uint32_t i = 0; i < r->heights && status == 0; i++) {
    uint32_t node;
    status = find_node(r, r->height[i].line, &r->height[i].node, &node);
    if (status == 0)
      height[r->line[r->height[i].line].edge + r->height[i].line + node] = r->height[i].value;
  }
  for (uint32_t line = 0; line < r->lines && status == 0; line++)
    for (uint32_t i = pipes_of(r, line).from; i < pipes_of(r, line).to; i++)
      rise[i] = height[i + line + 1] - height[i + line];
  free(height);
  return status;
}

/* --- the plan ----------------------------------------------------------------------------------------------------------- */

/* The same of a pipe that carries heat. */
static void make_warm(struct owned *o, const struct hk_plan_lines *r, struct hk_model_line *l, uint32_t i, double area)
{
  const struct hk_plan_edge *pipe = &r->edge[i];
  const double dx = pipe->length / pipe->cells;
  const struct hk_heat_cell cell = { area * dx, pipe->friction * dx / (r->density * r->heat) };
  l->impedance = 1;
  l->loss += pipe->cells * cell.loss;
  o->pipe[i] = (struct hk_model_pipe){ pipe->from.is, pipe->to.is, l->cells, pipe->cells, pipe->length, area, l->loss };
  for (uint32_t k = 0; k < pipe->cells; k++)
    o->heat[o->plan.cells++] = cell;
  l->cells += pipe->cells;
  l->pipes++;
  o->plan.pipes++;
  l->transit += area * pipe->length;
  l->shortest = fmin(l->shortest, area * dx);
}

/* Computes the cells and numbers of pipe i, which rises by `rise`, and updates its line. */
static void make_pipe(struct owned *o, const struct hk_plan_lines *r, struct hk_model_line *l, uint32_t i, double rise)
{
  struct hk_model_plan *p = &o->plan;
  const struct hk_plan_edge *pipe = &r->edge[i];
  const double area = PI / 4 * pipe->diameter * pipe->diameter, dx = pipe->length / pipe->cells;
  if (r->hot) {
    make_warm(o, r, l, i, area);
    return;
  }
  if (i == l->pipe)
    l->impedance = r->density * pipe->wave / area;
  const struct hk_pipeline_cell cell = { .wave = r->density * pipe->wave * pipe->wave / (area * l->impedance * dx),
                                         .push = area * l->impedance / (r->density * dx),
                                         .friction = pipe->friction / (2 * pipe->diameter * area),
                                         .lift = area * GRAVITY * rise / pipe->length };
  l->loss += pipe->cells * cell.friction / cell.push * l->impedance;
  o->pipe[i] = (struct hk_model_pipe){ pipe->from.is, pipe->to.is, l->cells, pipe->cells, pipe->length, area, l->loss };
  for (uint32_t k = 0; k < pipe->cells; k++)
    o->cell[p->cells++] = cell;
  l->cells += pipe->cells;
  l->pipes++;
  p->pipes++;
  l->transit += pipe->length / pipe->wave;
  l->shortest = fmin(l->shortest, dx / pipe->wave);
}

static int make_line(struct owned *o, const struct hk_plan_lines *r, uint32_t line, const double *rise)
{
  struct hk_model_line *l = &o->line[line];
  const struct range pipes = pipes_of(r, line);
  *l = (struct hk_model_line){ .name = r->line[line].name.is,
                               .pipe = pipes.from,
                               .cell = o->plan.cells,
                               .boundary = o->boundary + 2 * (size_t)line,
                               .boundaries = r->network ? 0 : 2,
                               .drive = 2 * line,
                               .shortest = INFINITY };
  o->boundary[2 * line] = o->boundary[2 * line + 1] = HK_MODEL_NONE;
  const int status = r->network ? 0 : check_nodes(r, line);
  for (uint32_t i = pipes.from; i < pipes.to && status == 0; i++)
    make_pipe(o, r, l, i, rise[i]);
  o->plan.longest = l->cells > o->plan.longest ? l->cells : o->plan.longest;
  o->plan.lines++;
  return status;
}

static int make_lines(struct owned *o, const struct hk_plan_lines *r)
{
  double *rise = calloc(r->edges, sizeof *rise);
  o->line = calloc(r->lines, sizeof *o->line);
  o->pipe = calloc(r->edges, sizeof *o->pipe);
  o->boundary = calloc(2 * (size_t)r->lines + r->sensors, sizeof *o->boundary);
  if (r->hot)
    o->heat = calloc(r->cells, sizeof *o->heat);
  else
    o->cell = calloc(r->cells, sizeof *o->cell);
  int status = rise && o->line && o->pipe && o->boundary && (o->cell || o->heat) ? 0 : hk_plan_no_memory(r);
  if (status == 0)
    status = r->network ? hk_plan_network_nodes(&o->network, r, rise) : take_heights(r, rise);
  for (uint32_t line = 0; line < r->lines && status == 0; line++)
    status = make_line(o, r, line, rise);
  if (status == 0 && r->network)
    status = hk_plan_network_points(&o->network, r, o->pipe, o->cell, o->plan.cells);
  free(rise);
  return status;
}

/* A process given as matrices: a line without pipes. */
static int make_process(struct owned *o, const struct hk_plan_lines *r, const char *folder)
{
  o->line = calloc(1, sizeof *o->line);
  o->boundary = calloc((size_t)r->sensors + 1, sizeof *o->boundary);
  if (!o->line || !o->boundary)
    return hk_plan_no_memory(r);
  *o->line = (struct hk_model_line){ .boundary = o->boundary, .impedance = 1 };
  o->plan.lines = 1;
  return hk_plan_matrix_make(&o->matrix, r, folder);
}

static const char *warm_fault(const struct hk_model_line *l, const struct hk_plan_sensor *s, uint32_t node)
{
  if (!s->flow && node != 0)
    return "the temperature that drives a heat line is that of its first node; make this one a check";
  return l->boundary[s->flow] != HK_MODEL_NONE ? "the line has such a boundary already; make one of them a check" : NULL;
}

/* node: on its line. */
static const char *boundary_fault(const struct owned *o, const struct hk_plan_sensor *s, uint32_t node)
{
  const struct hk_model_line *l = &o->line[s->line];
  if (node != 0 && node != l->pipes)
    return "a boundary stands at an end of the line; make this one a check";
  return l->boundary[node != 0] != HK_MODEL_NONE ? "that end of the line has a boundary already; make one of them a check"
         : s->flow && l->boundary[node == 0] != HK_MODEL_NONE && o->sensor[l->boundary[node == 0]].flow
             ? "both boundaries are flows, and nothing sets the pressure; make one a pressure"
             : NULL;
}

static int make_sensor(struct owned *o, const struct hk_plan_lines *r, uint32_t i)
{
  const struct hk_plan_sensor *s = &r->sensor[i];
  struct hk_model_line *l = &o->line[s->line];
  uint32_t node = 0;
  const int status = find_node(r, s->line, &s->node, &node);
  if (status != 0)
    return status;
  const struct hk_model_pipe *before = node == 0 ? NULL : &o->pipe[l->pipe + node - 1];
  const char *fault = !s->boundary ? NULL : r->hot ? warm_fault(l, s, node) : boundary_fault(o, s, node);
  if (fault)
    return hk_plan_complain(r, &s->name, fault);
  if (s->boundary)
    o->boundary[2 * s->line + (r->hot ? s->flow : node != 0)] = i;
  o->sensor[i] = (struct hk_model_sensor){ s->name.is,
                                           s->line,
                                           before ? before->first + before->cells : 0,
                                           s->flow,
                                           s->boundary,
                                           s->flow ? r->flow : r->pressure,
                                           before ? before->loss : 0 };
  o->plan.sensors++;
  return 0;
}

/* The same of a network. */
static int place_sensor(struct owned *o, const struct hk_plan_lines *r, uint32_t i)
{
  const struct hk_plan_sensor *s = &r->sensor[i];
  o->sensor[i] = (struct hk_model_sensor){
    .name = s->name.is, .flow = s->flow, .boundary = s->boundary, .unit = s->flow ? r->flow : r->pressure
  };
  const int status = hk_plan_network_sensor(&o->network, r, o->pipe, i, &o->sensor[i]);
  if (status == 0 && s->boundary)
    o->boundary[o->line->boundaries++] = i;
  o->plan.sensors += status == 0;
  return status;
}

/* The same of a process given as matrices, which knows where all its sensors are. */
static int place_in_process(struct owned *o, const struct hk_plan_lines *r, uint32_t i)
{
  const struct hk_plan_sensor *s = &r->sensor[i];
  o->sensor[i] = (struct hk_model_sensor){
    .name = s->name.is, .point = o->matrix.where[i].at, .flow = s->flow, .boundary = s->boundary, .unit = 1
  };
  if (s->boundary)
    o->boundary[o->line->boundaries++] = i;
  o->plan.sensors++;
  return 0;
}

static int compare_names(const struct hk_model_word *a, const struct hk_model_word *b)
{
  const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_sensors(const void *a, const void *b)
{
  const struct hk_model_sensor *const *x = a, *const *y = b;
  const int order = compare_names(&(*x)->name, &(*y)->name);
  return order ? order : (*x > *y) - (*x < *y);
}

/* Sensors by their names, of which each has its own. */
static int make_names(struct owned *o, const struct hk_plan_lines *r)
{
  for (uint32_t i = 0; i < r->sensors; i++)
    o->by_name[i] = &o->sensor[i];
  if (r->sensors > 1)
    qsort(o->by_name, r->sensors, sizeof *o->by_name, compare_sensors);
  for (uint32_t i = 1; i < r->sensors; i++)
    if (hk_plan_same(&o->by_name[i]->name, &o->by_name[i - 1]->name))
      return hk_plan_complain(r, &r->sensor[o->by_name[i] - o->sensor].name, "there is a sensor of that name already");
  return 0;
}

/* Checks that both ends of a line have a boundary. */
static int check_ends(const struct owned *o, const struct hk_plan_lines *r, uint32_t line)
{
  const struct hk_model_line *l = &o->line[line];
  const bool first = l->boundary[0] != HK_MODEL_NONE, last = l->boundary[1] != HK_MODEL_NONE;
  if (r->hot && !(first && last))
    return hk_plan_complain(r, &r->edge[l->pipe].from,
                            first ? "the line has no flow that is a boundary; one is needed, which says how fast the water is"
                                  : "this node has no temperature that is a boundary; one is needed, which drives the model");
  const struct hk_plan_word *end = first ? &r->edge[l->pipe + l->pipes - 1].to : &r->edge[l->pipe].from;
  return first && last
             ? 0
             : hk_plan_complain(r, end, "this end of the line has no boundary; a sensor there is needed, which drives the model");
}

static int model_plan_make_sensors(struct owned *o, const struct hk_plan_lines *r)
{
  uint32_t checks = 0;
  o->sensor = calloc(r->sensors + 1, sizeof *o->sensor);
  o->by_name = calloc(r->sensors + 1, sizeof *o->by_name);
  int status = o->sensor && o->by_name ? 0 : hk_plan_no_memory(r);
  for (uint32_t i = 0; i < r->sensors && status == 0; i++) {
    status = r->matrix.is ? place_in_process(o, r, i) : r->network ? place_sensor(o, r, i) : make_sensor(o, r, i);
    checks += !r->sensor[i].boundary;
  }
  status = status ? status : make_names(o, r);
  if (status == 0 && r->network)
    status = hk_plan_network_end(&o->network, r, &o->line->transit);
  for (uint32_t line = 0; line < r->lines && status == 0 && !r->network && !r->matrix.is; line++)
    status = check_ends(o, r, line);
  for (uint32_t line = 0; line < o->plan.lines && status == 0; line++)
    o->plan.boundaries += o->line[line].boundaries;
  if (status == 0 && checks == 0) {
    snprintf(r->error, r->size, "no sensor is a check: there is nothing to compare the model with");
    return -EINVAL;
  }
  return status;
}

/* Hash of what a state depends on: cells and sensors. */
static uint32_t model_plan_mark_of(const struct hk_model_plan *p)
{
  uint64_t hash = p->heat ? hk_state_mark_mix(HK_STATE_MARK_BEGIN, p->heat, p->cells * sizeof *p->heat)
                          : hk_state_mark_mix(HK_STATE_MARK_BEGIN, p->cell, p->cells * sizeof *p->cell);
  if (p->heat)
    hash = hk_state_mark_mix(hash, &p->ground, sizeof p->ground);
  if (p->network) {
    hash = hk_state_mark_mix(hash, p->network->end, p->cells * sizeof *p->network->end);
    hash = hk_state_mark_mix(hash, p->network->demand, p->network->points * sizeof *p->network->demand);
  }
  if (p->matrix)
    hash = hk_plan_matrix_mark(p->matrix, hash);
  for (uint32_t i = 0; i < p->lines; i++)
    hash = hk_state_mark_mix(hk_state_mark_mix(hash, &p->line[i].impedance, sizeof p->line[i].impedance), &p->line[i].cells,
                             sizeof p->line[i].cells);
  for (uint32_t i = 0; i < p->sensors; i++) {
    const struct hk_model_sensor *s = &p->sensor[i];
    const uint8_t kind[2] = { s->flow, s->boundary };
    hash = hk_state_mark_mix(hk_state_mark_mix(hk_state_mark_mix(hk_state_mark_mix(hash, s->name.text, s->name.length), kind, 2),
                                               &s->point, sizeof s->point),
                             &s->unit, sizeof s->unit);
    hash = hk_state_mark_mix(hash, &s->line, sizeof s->line);
    if (p->network)
      hash = hk_state_mark_mix(hash, &p->place[i], sizeof p->place[i]);
    if (p->matrix)
      hash = hk_state_mark_mix(hash, &p->where[i], sizeof p->where[i]);
  }
  return hk_state_mark_of(hash);
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

/* Makes a plan from a text that it owns. */
static int model_plan_make(struct owned *o, struct hk_plan_lines *r, size_t length, const char *folder)
{
  int status = hk_plan_lines_read(r, o->text, length);
  status = status ? status : r->matrix.is ? make_process(o, r, folder) : make_lines(o, r);
  status = status ? status : model_plan_make_sensors(o, r);
  hk_plan_lines_close(r);
  o->plan.in[0] = r->pressure;
  o->plan.in[1] = r->flow;
  o->plan.unit[0] = r->matrix.is ? o->matrix.unit : r->unit[0];
  o->plan.unit[1] = r->matrix.is ? "" : r->unit[1];
  o->plan.line = o->line;
  o->plan.pipe = o->pipe;
  o->plan.sensor = o->sensor;
  o->plan.cell = o->cell;
  o->plan.heat = o->heat;
  o->plan.ground = r->ground;
  if (r->network) {
    o->plan.network = &o->network.shape;
    o->plan.place = o->network.place;
    o->plan.node = o->network.node;
    o->plan.nodes = o->network.nodes;
  }
  if (r->matrix.is) {
    o->plan.matrix = &o->matrix.shape;
    o->plan.where = o->matrix.where;
  }
  return status;
}

int hk_model_plan_parse_in(const struct hk_model_plan **out, const char *text, size_t length, const char *folder, char *error,
                           size_t size)
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
  const int status = model_plan_make(o, &lines, length, folder);
  if (status == 0) {
    o->plan.mark = model_plan_mark_of(&o->plan);
    *out = &o->plan;
  } else {
    hk_model_plan_release(&o->plan);
  }
  return status;
}

int hk_model_plan_parse(const struct hk_model_plan **out, const char *text, size_t length, char *error, size_t size)
{
  return hk_model_plan_parse_in(out, text, length, NULL, error, size);
}

int hk_model_plan_read(const struct hk_model_plan **out, const char *path, char *error, size_t size)
{
  char why[512], *text, *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
  const struct hk_model_plan *plan = NULL;
  size_t length;
  int status = hk_whole_file_read(path, HK_MODEL_BYTES, &text, &length);
  if (slash)
    slash[slash == folder] = 0;
  if (status != 0)
    snprintf(why, sizeof why, "%s", strerror(-status));
  else
    status = hk_model_plan_parse_in(&plan, text, length, !slash ? "." : folder, why, sizeof why);
  if (status == 0 && (!plan->network || !hk_sparse_ldl))
    status = hk_lapack_load(why, sizeof why); /* here, where a file is named that needs it, and not in its first row */
  free(folder);
  free(text);
  if (status == 0) {
    *out = plan;
    return 0;
  }
  hk_model_plan_release(plan);
  snprintf(error, size, "%s: %s", path, why);
  return status;
}

/* The plan is the first member of its owner. */
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
  free(o->line);
  free(o->pipe);
  free(o->sensor);
  free(o->cell);
  free(o->heat);
  free(o->boundary);
  hk_plan_network_free(&o->network);
  hk_plan_matrix_free(&o->matrix);
  free((void *)o->by_name);
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
    const int order = compare_names(&wanted, &o->by_name[middle]->name);
    if (order == 0)
      return (uint32_t)(o->by_name[middle] - o->sensor);
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return HK_MODEL_NONE;
}

const struct hk_model_pipe *hk_model_plan_pipe(const struct hk_model_plan *plan, uint32_t line, uint32_t point)
{
  const struct hk_model_line *l = &plan->line[line];
  uint32_t i = 0;
  if (l->pipes == 0)
    return NULL;
  const struct hk_model_pipe *pipe = &plan->pipe[l->pipe];
  while (i + 1 < l->pipes && point > pipe[i].first + pipe[i].cells)
    i++;
  return &pipe[i];
}
