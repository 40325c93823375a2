/* The contents of a model file: the pipes of one line or several, or of a network, or a process given as matrices, and the
 * sensors on them.
 *
 *   kind   pipes|heat|network|matrix                 the first of all; default pipes
 *   fluid  DENSITY                                   kg/m^3; default 1000
 *   units  Pa|kPa|bar|psi m3/s|m3/h|l/s              units of all sensors; default Pa and m3/s
 *   line   NAME                                      begins a line of pipes
 *   edge   A B LENGTH DIAMETER FRICTION WAVE CELLS   a pipe from node A to node B: m, m, Darcy's factor, m/s, a whole number
 *   height NODE HEIGHT                               m; default 0; pipes are straight
 *   sensor NAME p|q NODE boundary|check              a pressure, or the flow along the line
 *
 *   Of heat lines (heat.h):
 *
 *   fluid  DENSITY HEAT                              kg/m^3 and J/(kg K); default 1000 and 4186
 *   ground TEMPERATURE                               in the unit of the sensors
 *   units  C|K|F m3/s|m3/h|l/s                       default C and m3/s
 *   edge   A B LENGTH DIAMETER LOSS CELLS            m, m, W/(m K), a whole number
 *   sensor NAME t|q NODE boundary|check              a temperature, or the flow, which is the same along the line
 *
 *   Of networks (network.h), fluid, units, edge and height as above, and:
 *
 *   demand NODE FLOW                                 what leaves there at all times, in the unit of flows; default 0
 *   sensor NAME p NODE boundary|check                a pressure
 *   sensor NAME in|out NODE boundary|check           a flow into or out of the network
 *   sensor NAME q A B check                          the flow from A to B in the pipe between these two, at A
 *
 *   Of a process given as matrices (matrix.h), whose files are of Matrix Market (cpu/sparse/market.h) and numbered from 1:
 *
 *   equations FILE                                   A
 *   storage  FILE                                    M; default 0
 *   inputs   FILE                                    B; default: no inputs
 *   readings FILE                                    H; default: sensors are at unknowns
 *   constant COLUMN VALUE                            an input that is always the same
 *   unit     NAME                                    of the unknowns, to be shown
 *   sensor NAME at UNKNOWN boundary|check            an unknown
 *   sensor NAME input COLUMN boundary                an input
 *   sensor NAME reading ROW check                    a row of H times the unknowns
 *
 * Words are separated by blanks and tabs; # begins a comment. A file with only one line need not name it. The pipes of a line are
 * in series, each begins where the previous one ends, and flows are positive from the first node to the last; names of nodes are
 * local to the line. Each end of a line has one boundary; at least one of the two is a pressure. A heat line has a temperature at
 * its first node and a flow anywhere as its boundaries, in this order. The pipes of a network join nodes in any way; each of its
 * connected parts has a pressure as a boundary, and no node has two boundaries of which one is a pressure. What leaves where a
 * pressure is a boundary may be a check. For the rest of the program a network is one unnamed line, and so is a
 * process given as matrices, which has a boundary at least, and for each input a boundary or a constant. Names of its files are
 * relative to the folder of the model file.
 *
 * A plan is immutable. Thread: any. */
#ifndef HK_MODEL_PLAN_H
#define HK_MODEL_PLAN_H

#include "cpu/model/heat.h"
#include "cpu/model/matrix.h"
#include "cpu/model/model_word.h"
#include "cpu/model/network.h"

#include <stdbool.h>
#include <stddef.h>

struct hk_model_pipe {
  struct hk_model_word from, to; /* nodes */
  uint32_t first, cells;         /* of the line */
  double length, area;           /* m, m^2 */
  double loss;                   /* loss of the line's pipes up to the end of this one, as in struct hk_model_line */
};

struct hk_model_sensor {
  struct hk_model_word name;
  uint32_t line;
  uint32_t point; /* of the line; of a network: the node, or the first one of a flow in a pipe */
  bool flow;      /* else a pressure, a temperature, or an unknown; of matrices: an input */
  bool boundary;  /* else a check */
  double unit;    /* one unit of the sensor in Pa or m^3/s; negative if it counts against hk_network_place or hk_network_drive */
  double loss;    /* loss of the line's pipes before it, as in struct hk_model_line; of networks and matrices 0 */
};

struct hk_model_line {
  struct hk_model_word name; /* length 0: unnamed */
  uint32_t pipe, pipes;      /* the first in the plan, and their number */
  uint32_t cell, cells;      /* likewise */
  const uint32_t *boundary;  /* sensors at the first and at the last node; of heat lines a temperature and a flow; of networks all
                              * that are boundaries */
  uint32_t boundaries;       /* their number */
  uint32_t drive;            /* number of boundaries of all lines before */
  double impedance;          /* pipeline.h */
  double loss;               /* Pa of friction loss of the whole line at 1 m^3/s; proportional to the square of the flow. Of heat
                              * lines the sum of hk_heat_cell's loss */
  double transit;  /* s of a wave from end to end, of networks twice that from a given pressure to the farthest node; of heat
                    * lines m^3 of water in it */
  double shortest; /* the same of the shortest cell */
};

struct hk_model_plan {
  const struct hk_model_line *line;
  const struct hk_model_pipe *pipe;
  const struct hk_model_sensor *sensor;   /* in the order of the file */
  const struct hk_pipeline_cell *cell;    /* NULL: heat lines */
  const struct hk_heat_cell *heat;        /* NULL: pipes */
  double ground;                          /* of heat lines */
  const struct hk_network_shape *network; /* NULL: lines; else also: */
  const struct hk_network_place *place;   /* where a sensor is, by sensor; */
  const struct hk_model_word *node;       /* and the names of the first `nodes` points */
  const struct hk_matrix_shape *matrix;   /* NULL: pipes; else there are no pipes and no cells, and: */
  const struct hk_matrix_place *where;    /* where a sensor is, by sensor */
  uint32_t lines, pipes, sensors, cells, boundaries, nodes;
  uint32_t longest;    /* cells of the line with most cells */
  double in[2];        /* the units of pressure and flow of all sensors, in Pa and m^3/s; */
  const char *unit[2]; /* their names; static */
  uint32_t mark;       /* hash of the plan: different plans share it with a probability of one in four billion; never 0 */
};

/* Reads a plan from a file, and loads LAPACK if the CPU computes it with that (-ELIBACC); hk_model_plan_parse: from a text in
 * memory, which names no files; hk_model_plan_parse_in: the files that it names are in a folder. Returns 0 and *out with one
 * reference, or a negative errno with a message that names line and column. */
int hk_model_plan_read(const struct hk_model_plan **out, const char *path, char *error, size_t size);
int hk_model_plan_parse(const struct hk_model_plan **out, const char *text, size_t length, char *error, size_t size);
int hk_model_plan_parse_in(const struct hk_model_plan **out, const char *text, size_t length, const char *folder, char *error,
                           size_t size);
const struct hk_model_plan *hk_model_plan_hold(const struct hk_model_plan *plan); /* adds a reference */
void hk_model_plan_release(const struct hk_model_plan *plan);                     /* NULL is allowed */

/* Finds a sensor by its name; HK_MODEL_NONE: not in the plan. */
uint32_t hk_model_plan_find(const struct hk_model_plan *plan, const char *name, size_t length);
/* The pipe that contains a point of a line; the first of two that meet there. NULL: the plan has no pipes. */
const struct hk_model_pipe *hk_model_plan_pipe(const struct hk_model_plan *plan, uint32_t line, uint32_t point);

/* Whether points lie along a line: of lines of pipes and of heat. */
static inline bool hk_model_is_along(const struct hk_model_plan *plan)
{
  return !plan->network && !plan->matrix;
}

/* Number of points of a line, of all lines, and of all lines before a line: the index of its first point in a column of all
 * points. */
static inline uint32_t hk_model_points(const struct hk_model_line *line)
{
  return line->cells + 1;
}

static inline uint32_t hk_model_all_points(const struct hk_model_plan *plan)
{
  return plan->matrix ? plan->matrix->n : plan->network ? plan->network->points : plan->cells + plan->lines;
}

static inline uint32_t hk_model_first_point(const struct hk_model_plan *plan, uint32_t line)
{
  return plan->line[line].cell + line;
}

/* Numbers of the state of a line, of all lines, and of all before a line: s and q by point, or as in network.h or matrix.h. */
static inline size_t hk_model_numbers(const struct hk_model_plan *plan, uint32_t line)
{
  return plan->matrix    ? plan->matrix->n
         : plan->network ? hk_network_numbers(plan->network)
                         : 2 * (size_t)hk_model_points(&plan->line[line]);
}

static inline size_t hk_model_all_numbers(const struct hk_model_plan *plan)
{
  return plan->matrix    ? plan->matrix->n
         : plan->network ? hk_network_numbers(plan->network)
                         : 2 * (size_t)hk_model_all_points(plan);
}

static inline size_t hk_model_first_number(const struct hk_model_plan *plan, uint32_t line)
{
  return plan->network || plan->matrix ? 0 : 2 * (size_t)hk_model_first_point(plan, line);
}

#endif
