/* Parses the lines of a model file (model_plan.h), without what needs the whole file: the nodes, and the sensors at them. Words
 * point into the text and have their position. Thread: the caller's. */
#ifndef HK_MODEL_PLAN_LINES_H
#define HK_MODEL_PLAN_LINES_H

#include "cpu/model/model_word.h"

#include <stdbool.h>
#include <stddef.h>

struct hk_plan_word {
  struct hk_model_word is;
  uint32_t line, column; /* from 1 */
};

/* A line of pipes: its edges begin at `edge` and end where those of the next line begin. */
struct hk_plan_line {
  struct hk_plan_word name; /* length 0: the only line, unnamed */
  uint32_t edge, cells;
};

struct hk_plan_edge {
  struct hk_plan_word from, to;
  double length, diameter, friction, wave; /* m, m, 1, m/s; of heat lines friction is the loss, W/(m K), and there is no wave */
  uint32_t cells;
};

struct hk_plan_sensor {
  struct hk_plan_word name, node;
  struct hk_plan_word to; /* of a flow in a pipe of a network; else its length is 0 */
  uint32_t line;
  bool flow, boundary; /* no flow: a pressure, or a temperature */
  bool in;             /* a flow into a network; else out of it, or in a pipe */
  uint32_t what;       /* of a process given as matrices: enum hk_matrix_what; node: its number */
};

/* Of a node: its height in m, or its demand in the unit of flows. */
struct hk_plan_node {
  struct hk_plan_word node;
  uint32_t line;
  double value;
};

/* An input that is always the same. */
struct hk_plan_constant {
  struct hk_plan_word column;
  double value;
};

enum hk_plan_file { HK_PLAN_EQUATIONS, HK_PLAN_STORAGE, HK_PLAN_INPUTS, HK_PLAN_READINGS, HK_PLAN_FILES };

#define HK_PLAN_UNIT_MAX 16u /* bytes of the name of a unit, including the 0 */

/* What only files of kind matrix say. */
struct hk_plan_said {
  bool is; /* the file is of this kind */
  struct hk_plan_word file[HK_PLAN_FILES], unit;
  struct hk_plan_constant *constant; /* owned */
  uint32_t constants;
};

struct hk_plan_lines {
  struct hk_plan_line *line; /* owned, like the other columns */
  struct hk_plan_edge *edge;
  struct hk_plan_sensor *sensor;
  struct hk_plan_node *height, *demand;
  uint32_t lines, edges, sensors, heights, demands;
  uint32_t cells;                 /* of all edges */
  double density, pressure, flow; /* kg/m^3, and the units of pressure and flow in Pa and m^3/s */
  const char *unit[2];            /* their names; static */
  double heat, ground;            /* of heat lines: specific heat, J/(kg K), and temperature of the ground */
  bool hot, network;              /* heat lines, or a network */
  bool fluid, units, grounded;    /* whether the file gives them */
  struct hk_plan_said matrix;
  char *error; /* buffer of the caller, `size` bytes, for the error message */
  size_t size;
};

/* Parses all lines of a text into an empty *out, in which error and size are set. Returns 0, -EINVAL or -ENOMEM, with a message.
 * Call hk_plan_lines_close in all cases. */
int hk_plan_lines_read(struct hk_plan_lines *out, const char *text, size_t length);
void hk_plan_lines_close(struct hk_plan_lines *lines);

/* Writes an error message about a word, with its position. Returns -EINVAL. */
int hk_plan_complain(const struct hk_plan_lines *lines, const struct hk_plan_word *word, const char *what);
int hk_plan_no_memory(const struct hk_plan_lines *lines); /* writes a message, returns -ENOMEM */
/* Reads a number. what: its name, for messages. Returns 0 or -EINVAL, with a message. */
int hk_plan_number(const struct hk_plan_lines *lines, const struct hk_plan_word *word, const char *what, double least,
                   double most, double *out);
bool hk_plan_is(const struct hk_plan_word *word, const char *text);

static inline bool hk_plan_same(const struct hk_model_word *a, const struct hk_model_word *b)
{
  return a->length == b->length && __builtin_memcmp(a->text, b->text, a->length) == 0;
}

#endif
